"""Merges that GitHub makes: a branch into a branch, a pull request into its base.

Sources: the provider's "Merge a pull request" and "Merge a branch". The caller holds the
repository's lock.
"""

from dataclasses import dataclass, replace

from bot.sandbox import merge_rules, merges, rules
from bot.sandbox.acts import pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.faults import lands_other_tree
from bot.sandbox.git import ZERO, Commit, NewCommit
from bot.sandbox.merges import Conflict
from bot.sandbox.records import Actor
from bot.sandbox.refusal import refused
from bot.sandbox.rules import METHODS
from bot.sandbox.world import PullRequest, Repository


@dataclass(frozen=True, slots=True)
class MergeCall:
    """The parameters of a merge call."""

    method: str = "merge"
    sha: str | None = None
    title: str | None = None
    message: str | None = None


async def merge_branch(
    repository: Repository, actor: Actor, ends: tuple[str, str], message: str | None
) -> Commit | None:
    """Merge `ends[1]` (branch or commit) into the branch `ends[0]`; None if nothing is new.

    Raises Refusal: 404 without base or head, 409 for a conflict.
    """
    base, head = ends
    tip = repository.git.branch(base)
    if tip is None:
        raise refused("merges.absent")
    sha = repository.git.branch(head) or head
    objects = repository.git.objects
    if objects.commit(sha) is None:
        raise refused("merges.absent/head")
    if objects.is_ancestor(sha, tip):
        return None
    merged = await merges.merge(objects, tip, sha)
    if isinstance(merged, Conflict):
        raise refused("merges.conflict")
    author = pull_states.signature(repository.world, actor.account)
    committer = pull_states.provider_signature(repository.world)
    message = message or f"Merge {head} into {base}"
    commit = _write(repository, NewCommit(merged.tree, (tip, sha), author, committer, message))
    await refs.refuse_workflow_files(repository, actor, tip, commit.sha)
    step = Move(f"refs/heads/{base}", commit.sha, tip)
    await refs.move(repository, actor, [step], How("merge of a branch", status=409))
    return commit


async def merge_pull(pull: PullRequest, actor: Actor, call: MergeCall) -> str:
    """Merge a pull request into its base; return the sha that landed.

    Raises Refusal with GitHub's answer for every reason not to.
    """
    repository = pull.repository
    _refuse_by_state(pull, call)
    tip = pull.base_tip
    if tip is None:
        raise refused("merge.not_mergeable")
    merged = await merges.merge(repository.git.objects, tip, pull.head_sha)
    if isinstance(merged, Conflict):
        raise refused("merge.conflicts")
    broken = merge_rules.broken_by_merge(pull, actor, call.method)
    if broken:
        raise broken.refusal(405)
    landed = await written(pull, actor, call, (tip, merged.tree))
    await refs.refuse_workflow_files(repository, actor, tip, landed)
    # Merged before the branch moves: what follows a push must not find it open.
    await pull_states.mark_merged(pull, actor.account, (tip, landed))
    step = Move(f"refs/heads/{pull.base_ref}", landed, tip)
    how = How(f"{call.method} of #{pull.number}", is_allowed=True)
    await refs.move(repository, actor, [step], how)
    if repository.settings.delete_head and pull.head_repo is repository:
        await _delete_head(pull, actor)
    return landed


def _refuse_by_state(pull: PullRequest, call: MergeCall) -> None:
    repository = pull.repository
    if repository.archived:
        raise refused("perm.archived")
    if repository.stack_of(pull.number) is not None:
        raise refused("merge.stacked")
    if not pull.open:
        raise refused("merge.not_mergeable" if pull.merged else "merge.closed")
    if pull.draft:
        raise refused("merge.draft")
    if pull.head_tip not in (None, pull.head_sha):
        # The pushed head does not show on the pull request yet.
        raise refused("merge.head_out_of_date")
    if call.sha is not None and call.sha != pull.head_sha:
        raise refused("merge.head_modified")
    if pull.queued:
        raise refused("queue.inside")
    if call.method not in rules.merge_methods(repository, pull.base_ref):
        raise refused("method.denied", METHODS[call.method])
    moved, world = pull.base_moved_at, repository.world
    window_s = world.knobs.base_window_s
    if moved is not None and (world.timeline.now() - moved).total_seconds() < window_s:
        raise refused("merge.base_modified")


async def written(pull: PullRequest, actor: Actor, call: MergeCall, merged: tuple[str, str]) -> str:
    """Write the commits of a merge, return the last; `merged`: the base's tip, the merged tree."""
    tip, tree = merged
    world, objects = pull.repository.world, pull.repository.git.objects
    own = pull_states.signature(world, actor.account)
    if call.method == "rebase":
        made = await merges.replay(objects, tip, pull.head_sha, own)
        if isinstance(made, Conflict):
            raise refused("method.rebase")
        if not made or not lands_other_tree.get():
            return made[-1].sha if made else tip
        last = made[-1]
        new = NewCommit(last.tree, last.parents, last.author, last.committer, last.message)
        return _write(pull.repository, new, signed=False).sha
    if call.method == "squash":
        message, parents = _message(call, _squash_message(pull)), (tip,)
        author = pull_states.signature(world, pull.author)
        new = NewCommit(tree, parents, author, pull_states.provider_signature(world), message)
        return _write(pull.repository, new).sha
    message = _message(call, _merge_message(pull))
    committer = pull_states.provider_signature(world)
    new = NewCommit(tree, (tip, pull.head_sha), own, committer, message)
    return _write(pull.repository, new).sha


def _write(repository: Repository, new: NewCommit, *, signed: bool = True) -> Commit:
    """Write a commit; while the fault "other_tree" applies, with another tree."""
    objects = repository.git.objects
    if lands_other_tree.get():
        tree = objects.tree_with(new.tree, {"SANDBOX-OTHER-TREE": b"fault\n"})
        new = replace(new, tree=tree)
    return objects.write_commit(new, signed=signed)


def _message(call: MergeCall, default: tuple[str, str]) -> str:
    title = default[0] if call.title is None else call.title
    body = default[1] if call.message is None else call.message
    return f"{title}\n\n{body}" if body else title


def _merge_message(pull: PullRequest) -> tuple[str, str]:
    settings = pull.repository.settings
    title = f"Merge pull request #{pull.number} from {pull.head_repo.owner.login}/{pull.head_ref}"
    if settings.merge_title == "PR_TITLE":
        title = f"{pull.title} (#{pull.number})"
    bodies = {"PR_TITLE": pull.title, "PR_BODY": pull.body or "", "BLANK": ""}
    return title, bodies[settings.merge_message]


def _squash_message(pull: PullRequest) -> tuple[str, str]:
    settings = pull.repository.settings
    commits = pull_states.commits_of(pull)
    title, body = pull.title, ""
    if settings.squash_title == "COMMIT_OR_PR_TITLE" and len(commits) == 1:
        title = commits[0].message.partition("\n")[0]
    if settings.squash_message == "PR_BODY":
        body = pull.body or ""
    elif settings.squash_message == "COMMIT_MESSAGES" and len(commits) == 1:
        body = commits[0].message.partition("\n")[2].strip()
    elif settings.squash_message == "COMMIT_MESSAGES":
        body = "\n\n".join(f"* {commit.message}" for commit in commits)
    return f"{title} (#{pull.number})", body


async def _delete_head(pull: PullRequest, actor: Actor) -> None:
    repository, branch = pull.repository, pull.head_ref
    is_needed = any(other.base_ref == branch for other in repository.open_pulls())
    if pull.head_tip == pull.head_sha and branch != repository.default_branch and not is_needed:
        step = Move(f"refs/heads/{branch}", ZERO, pull.head_sha)
        how = How("deletion of a merged head", is_allowed=True)
        await refs.move(repository, actor, [step], how)

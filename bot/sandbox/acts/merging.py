"""Merges made by the provider: a branch into a branch, a pull request into its base.

Sources: the provider's "Merge a pull request" and "Merge a branch". The caller holds the
repository's lock.
"""

from dataclasses import dataclass

from bot.sandbox import merge_rules, merges, rules
from bot.sandbox.acts import pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.faults import lands_other_tree
from bot.sandbox.git import ZERO, Commit, NewCommit
from bot.sandbox.merges import Clean, Conflict
from bot.sandbox.records import Actor, Issue, Pull
from bot.sandbox.refusal import not_found, refused
from bot.sandbox.rules import METHODS
from bot.sandbox.world import Repository, World


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
    new = NewCommit(
        merged.tree,
        (tip, sha),
        pull_states.signature(repository.world, actor.account),
        pull_states.provider_signature(repository.world),
        message or f"Merge {head} into {base}",
    )
    commit = objects.write_commit(_with_other_tree(repository, new), signed=True)
    await refs.refuse_workflow_files(repository, actor, tip, commit.sha)
    step = Move(f"refs/heads/{base}", commit.sha, tip)
    await refs.move(repository, actor, [step], How("merge of a branch", status=409))
    return commit


async def merge_pull(repository: Repository, actor: Actor, issue: Issue, call: MergeCall) -> str:
    """Merge a pull request into its base; the sha that landed.

    Raises Refusal with the provider's answer for every reason not to.
    """
    pull = issue.pull
    if pull is None:
        raise not_found()
    _refuse_by_state(repository, issue, pull, call)
    tip = repository.git.branch(pull.base_ref)
    if tip is None:
        raise refused("merge.not_mergeable")
    merged = await merges.merge(repository.git.objects, tip, pull.head_sha)
    if isinstance(merged, Conflict):
        raise refused("merge.conflicts")
    broken = merge_rules.broken_by_merge(repository, pull, actor, call.method)
    if broken:
        raise broken.refusal(405)
    landed = await _landed(repository, actor, issue, (call, merged))
    await refs.refuse_workflow_files(repository, actor, tip, landed)
    # Merged before the branch moves: what follows a push must not find it open.
    await pull_states.mark_merged(repository, issue, actor.account, (tip, landed))
    step = Move(f"refs/heads/{pull.base_ref}", landed, tip)
    how = How(f"{call.method} of #{issue.number}", is_allowed=True)
    await refs.move(repository, actor, [step], how)
    if repository.settings.delete_head and pull.head_repo == repository.id:
        await _delete_head(repository, actor, pull)
    return landed


def _refuse_by_state(repository: Repository, issue: Issue, pull: Pull, call: MergeCall) -> None:
    if repository.archived:
        raise refused("perm.archived")
    if repository.stack_of(issue.number) is not None:
        raise refused("merge.stacked")
    if not issue.open:
        raise refused("merge.not_mergeable" if issue.merged else "merge.closed")
    if pull.draft:
        raise refused("merge.draft")
    if _is_stale(repository.world, pull):
        raise refused("merge.head_out_of_date")
    if call.sha is not None and call.sha != pull.head_sha:
        raise refused("merge.head_modified")
    if pull.queued:
        raise refused("queue.inside")
    if call.method not in rules.merge_methods(repository, pull.base_ref):
        raise refused("method.denied", METHODS[call.method])
    moved = pull.base_moved_at
    window = repository.world.knobs.base_window_s
    if moved is not None and (repository.world.timeline.now() - moved).total_seconds() < window:
        raise refused("merge.base_modified")


def _is_stale(world: World, pull: Pull) -> bool:
    """Return whether a pushed head does not show on the pull request yet."""
    source = world.repositories.get(pull.head_repo) if pull.head_repo is not None else None
    tip = source.git.branch(pull.head_ref) if source is not None else None
    return tip is not None and tip != pull.head_sha


async def _landed(
    repository: Repository,
    actor: Actor,
    issue: Issue,
    what: tuple[MergeCall, Clean],
) -> str:
    call, merged = what
    pull = issue.pull
    tip = repository.git.branch(pull.base_ref) if pull is not None else None
    if pull is None or tip is None:
        raise not_found()
    objects = repository.git.objects
    if call.method == "rebase":
        return await _rebased(repository, actor, pull)
    provider = pull_states.provider_signature(repository.world)
    if call.method == "squash":
        message = _joined(call, _squash_message(repository, issue, pull))
        author = pull_states.signature(repository.world, issue.author)
        new = NewCommit(merged.tree, (tip,), author, provider, message)
    else:
        message = _joined(call, _merge_message(repository, issue, pull))
        author = pull_states.signature(repository.world, actor.account)
        new = NewCommit(merged.tree, (tip, pull.head_sha), author, provider, message)
    return objects.write_commit(_with_other_tree(repository, new), signed=True).sha


async def _rebased(repository: Repository, actor: Actor, pull: Pull) -> str:
    objects = repository.git.objects
    tip = repository.git.branch(pull.base_ref) or ""
    committer = pull_states.signature(repository.world, actor.account)
    done = await merges.replay(objects, tip, pull.head_sha, committer)
    if isinstance(done, Conflict):
        raise refused("method.rebase")
    if not done.commits or not lands_other_tree.get():
        return done.tip
    last = done.commits[-1]
    new = NewCommit(last.tree, last.parents, last.author, last.committer, last.message)
    return objects.write_commit(_with_other_tree(repository, new)).sha


def _with_other_tree(repository: Repository, new: NewCommit) -> NewCommit:
    if not lands_other_tree.get():
        return new
    tree = repository.git.objects.tree_with(new.tree, {"SANDBOX-OTHER-TREE": b"fault\n"})
    return NewCommit(tree, new.parents, new.author, new.committer, new.message)


def _joined(call: MergeCall, own: tuple[str, str]) -> str:
    title = own[0] if call.title is None else call.title
    body = own[1] if call.message is None else call.message
    return f"{title}\n\n{body}" if body else title


def _merge_message(repository: Repository, issue: Issue, pull: Pull) -> tuple[str, str]:
    chosen = repository.settings
    title = f"Merge pull request #{issue.number} from {pull.head_owner.login}/{pull.head_ref}"
    if chosen.merge_title == "PR_TITLE":
        title = f"{issue.title} (#{issue.number})"
    bodies = {"PR_TITLE": issue.title, "PR_BODY": issue.body or "", "BLANK": ""}
    return title, bodies[chosen.merge_message]


def _squash_message(repository: Repository, issue: Issue, pull: Pull) -> tuple[str, str]:
    chosen = repository.settings
    commits = pull_states.commits_of(repository, issue, pull)
    title, body = issue.title, ""
    if chosen.squash_title == "COMMIT_OR_PR_TITLE" and len(commits) == 1:
        title = commits[0].message.partition("\n")[0]
    if chosen.squash_message == "PR_BODY":
        body = issue.body or ""
    elif chosen.squash_message == "COMMIT_MESSAGES" and len(commits) == 1:
        body = commits[0].message.partition("\n")[2].strip()
    elif chosen.squash_message == "COMMIT_MESSAGES":
        body = "\n\n".join(f"* {commit.message}" for commit in commits)
    return f"{title} (#{issue.number})", body


async def _delete_head(repository: Repository, actor: Actor, pull: Pull) -> None:
    tip = repository.git.branch(pull.head_ref)
    is_needed = any(one.base_ref == pull.head_ref for _, one in repository.open_pulls())
    if tip == pull.head_sha and pull.head_ref != repository.default_branch and not is_needed:
        step = Move(f"refs/heads/{pull.head_ref}", ZERO, tip)
        how = How("deletion of a merged head", is_allowed=True)
        await refs.move(repository, actor, [step], how)

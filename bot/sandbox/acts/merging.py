"""Merges that GitHub makes: a branch into a branch, a pull request into its base.

Sources: the provider's "Merge a pull request" and "Merge a branch". The caller holds the
repository's lock.

By the asynchronous API a pull request lands with all unmerged ones below it in its stack. Sources:
the provider's "Merge a pull request asynchronously" and "Stacked pull requests". Rules are judged
when a request runs, and either all of its pull requests land or none. The next member is then based
on the trunk; its head stays as it is.
"""

import copy
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from bot.sandbox import merge_rules, merges, rules
from bot.sandbox.acts import pull_requests, pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.faults import lands_other_tree
from bot.sandbox.git import ZERO, Commit, NewCommit
from bot.sandbox.merges import Conflict
from bot.sandbox.records import Actor, AsyncMerge
from bot.sandbox.refusal import RULE_PREFIX, Refusal, refused, say
from bot.sandbox.rules import METHODS
from bot.sandbox.world import PullRequest, Repository

_KEPT = timedelta(hours=24)
_ENQUEUED = "Merge request enqueued."
_MERGED = "Pull Request successfully merged"


@dataclass(frozen=True, slots=True)
class _Landing:
    """A pull request about to land: the target's tip before it, and the commit it lands as."""

    pull: PullRequest
    before: str
    commit: str


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
    """Merge `ends[1]` (branch, ref or commit) into the branch `ends[0]`; None if nothing is new.

    Raises Refusal: 404 without base or head, 409 for a conflict.
    """
    base, head = ends
    tip = repository.git.branch(base)
    if tip is None:
        raise refused("merges.absent")
    sha = repository.git.branch(head) or repository.git.refs.get(head, head)
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


def submit(pull: PullRequest, actor: Actor, call: MergeCall, action: str) -> AsyncMerge:
    """Accept a request, or return the one that is pending or what has happened already."""
    repository, world = pull.repository, pull.repository.world
    pending = pending_of(pull)
    if pending is not None:
        return pending
    name = str(uuid.UUID(int=world.new_id("async_merge")))
    made = AsyncMerge(
        name, pull.number, call.sha or pull.head_sha, call.method, action, _ENQUEUED, world.now()
    )
    if pull.merged:
        made.status, made.text, made.landed = "merged", _MERGED, pull.merge_commit
    elif not pull.open or pull.draft:
        made.status, made.text = "failed", say("async.closed")
    else:
        repository.async_merges[name] = made
        run = partial(_run, pull, actor, call, made)
        title = f"asynchronous merge of {repository.full_name}#{pull.number}"
        world.timeline.later(world.knobs.async_merge_delay_s, title, run)
    return made


def pending_of(pull: PullRequest) -> AsyncMerge | None:
    """Return the pending request for a pull request."""
    requests = pull.repository.async_merges.values()
    return next(
        (one for one in requests if one.number == pull.number and one.status == "pending"), None
    )


def find(repository: Repository, name: str) -> AsyncMerge | None:
    """Return a request by its uuid, for 24 hours after its last change."""
    found = repository.async_merges.get(name)
    if found is None or found.updated_at + _KEPT < repository.world.now():
        return None
    return found


async def _run(pull: PullRequest, actor: Actor, call: MergeCall, request: AsyncMerge) -> None:
    async with pull.repository.lock:
        try:
            landed = await _land(pull, actor, call, request.sha)
        except Refusal as refusal:
            request.status = "failed"
            request.text = refusal.message.removeprefix(RULE_PREFIX)
        else:
            request.status, request.text, request.landed = "merged", _MERGED, landed
        request.updated_at = pull.repository.world.now()


async def _land(pull: PullRequest, actor: Actor, call: MergeCall, sha: str) -> str:
    """Land a pull request and the unmerged ones below it by one move of the target."""
    repository = pull.repository
    if pull.head_sha != sha:
        raise refused("merge.head_modified")
    stack = repository.stack_of(pull.number)
    trunk, members = pull.base_ref, [pull]
    if stack is not None:
        trunk = repository.trunk_of(stack)
        listed = [repository.issues[number].pull for number in stack.members]
        members = [one for one in listed if one is not None and not one.merged]
        members = members[: members.index(pull) + 1]
    start = repository.git.branch(trunk)
    if start is None:
        raise refused("merge.not_mergeable")
    landings, tip = [], start
    for member in members:
        commit = await _written(member, actor, call, (trunk, tip))
        landings.append(_Landing(member, tip, commit))
        tip = commit
    await refs.refuse_workflow_files(repository, actor, start, tip)
    for one in landings:
        one.pull.base_ref = trunk
        await pull_states.mark_merged(one.pull, actor.account, (one.before, one.commit))
    how = How(f"{call.method} of #{pull.number}", is_allowed=True)
    await refs.move(repository, actor, [Move(f"refs/heads/{trunk}", tip, start)], how)
    await _retarget_next(pull, actor, trunk)
    return tip


async def _written(pull: PullRequest, actor: Actor, call: MergeCall, onto: tuple[str, str]) -> str:
    """Write the commits of one member on a branch and its tip; return the last. Raises Refusal."""
    repository, (trunk, tip) = pull.repository, onto
    if not pull.open or pull.draft:
        raise refused("async.closed")
    if call.method not in rules.merge_methods(repository, trunk):
        raise refused("method.denied", METHODS[call.method])
    judged = copy.copy(pull)
    judged.base_ref = trunk
    broken = merge_rules.broken_by_merge(judged, actor, call.method)
    if broken:
        raise broken.refusal(405)
    merged = await merges.merge(repository.git.objects, tip, pull.head_sha)
    if isinstance(merged, Conflict):
        raise refused("async.conflict")
    return await written(pull, actor, call, (tip, merged.tree))


async def _retarget_next(pull: PullRequest, actor: Actor, trunk: str) -> None:
    """Base the member above on the target, as GitHub does after a merge."""
    stack = pull.repository.stack_of(pull.number)
    if stack is None or pull.number == stack.members[-1]:
        return
    above = pull.repository.issues[stack.members[stack.members.index(pull.number) + 1]].pull
    if above is not None and above.open:
        await pull_requests.change_base(above, actor, trunk)

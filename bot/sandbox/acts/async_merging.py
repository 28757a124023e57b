"""The asynchronous merge API: a pull request lands with all unmerged ones below it in its stack.

Sources: the provider's "Merge a pull request asynchronously" and "Stacked pull requests". Rules are
judged when a request runs, and either all of its pull requests land or none. The next member is
then based on the trunk; its head stays as it is. The caller holds the repository's lock.
"""

import copy
import uuid
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from bot.sandbox import merge_rules, merges, rules
from bot.sandbox.acts import merging, pull_requests, pull_states, refs
from bot.sandbox.acts.merging import MergeCall
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.merges import Conflict
from bot.sandbox.records import Actor, AsyncMerge
from bot.sandbox.refusal import RULE_PREFIX, Refusal, refused, say
from bot.sandbox.rules import METHODS
from bot.sandbox.world import PullRequest, Repository

KEPT = timedelta(hours=24)
ENQUEUED = "Merge request enqueued."
MERGED = "Pull Request successfully merged"


@dataclass(frozen=True, slots=True)
class Landing:
    """A pull request about to land: the target's tip before it, and the commit it lands as."""

    pull: PullRequest
    before: str
    commit: str


def submit(pull: PullRequest, actor: Actor, call: MergeCall, action: str) -> AsyncMerge:
    """Accept a request, or return the one that is pending or what has happened already."""
    repository, world = pull.repository, pull.repository.world
    pending = pending_of(pull)
    if pending is not None:
        return pending
    name = str(uuid.UUID(int=world.new_id("async_merge")))
    made = AsyncMerge(
        name, pull.number, call.sha or pull.head_sha, call.method, action, ENQUEUED, world.now()
    )
    if pull.merged:
        made.status, made.text, made.landed = "merged", MERGED, pull.merge_commit
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
    if found is None or found.updated_at + KEPT < repository.world.now():
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
            request.status, request.text, request.landed = "merged", MERGED, landed
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
        landings.append(Landing(member, tip, commit))
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
    return await merging.written(pull, actor, call, (tip, merged.tree))


async def _retarget_next(pull: PullRequest, actor: Actor, trunk: str) -> None:
    """Base the member above on the target, as GitHub does after a merge."""
    stack = pull.repository.stack_of(pull.number)
    if stack is None or pull.number == stack.members[-1]:
        return
    above = pull.repository.issues[stack.members[stack.members.index(pull.number) + 1]].pull
    if above is not None and above.open:
        await pull_requests.change_base(above, actor, trunk)

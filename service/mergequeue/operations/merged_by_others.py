"""Note what others merge beside a queue in shadow, for its report (docs/design/shadow.md 3).

A submission may have ended before, so pull requests are read again whenever the target moves.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from cachetools import LRUCache

from service.memory import QUEUES_MAX
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import turn
from service.mergequeue.store import shadow
from service.mergequeue.store.shadow import SeenMerge, Submission
from service.provider.values import Checks
from service.runtime import Runtime
from service.vocabulary import CheckOutcome, PullRequestState, QueueRef, Sha

LOOKED_AT_MAX = 200
"""Newest submissions among which merges are looked for: four requests of 50 pull requests."""

TIPS_MAX = 50
CI_WITHIN = timedelta(hours=6)
"""The time after a merge in which the checks on its commit are read."""

_PASSES = (CheckOutcome.PASSED, CheckOutcome.SKIPPED)


class TipsSeen(LRUCache[int, Sha]):
    """The tip at which this process has looked for merges last, by queue."""

    def __init__(self) -> None:
        super().__init__(QUEUES_MAX)


async def look(runtime: Runtime, queue: QueueRef, *, is_sweep: bool = False) -> None:
    """Note the merges since the last look, if the queue is in shadow and its target has moved.

    A sweep looks in any case: a pull request may be shown as open for a moment after its merge.
    Raises the provider's errors.
    """
    value = await turn.value(runtime, queue.id)
    tips = runtime.memory.of(TipsSeen)
    if not value.config.shadow or value.tip is None:
        return
    if tips.get(queue.id) == value.tip.sha and not is_sweep:
        return
    known = await runtime.store.read(shadow.submissions, queue.id, LOOKED_AT_MAX)
    open_ones = _without_end(value, known, runtime.clock.now())
    numbers = sorted({one.pr for one in open_ones})
    pulls = await runtime.providers[queue.repo.host].pull_requests(queue.repo, numbers)
    seen = [
        SeenMerge(one.entry, None if (at := pull.merged_at) is None else at.at, pull.merge_commit)
        for one in open_ones
        if (pull := pulls.get(one.pr)) is not None
        and pull.state is PullRequestState.MERGED
        and pull.head_sha == one.head
        and pull.base_branch == queue.branch
    ]
    await runtime.store.run(shadow.note_merges, queue, seen)
    tips[queue.id] = value.tip.sha


def _without_end(value: MergeQueue, known: Sequence[Submission], now: datetime) -> list[Submission]:
    """Return what the report counts that has ended, without a merge, newest first."""
    began = value.shadow_time
    counted = [] if began is None else shadow.counted(known, began.since, now)
    return [
        one
        for one in counted
        if not (one.is_live or one.is_merge_seen)
        and (one.has_verdict or one.state is EntryState.MERGED)
    ]


async def read_targets(runtime: Runtime, queue: QueueRef) -> None:
    """Note whether the target was red after merges by others, where all checks have reported.

    Raises the provider's errors.
    """
    value = await turn.value(runtime, queue.id)
    if not value.config.shadow or value.required is None or not value.required.names:
        return
    since = runtime.clock.now() - CI_WITHIN
    waiting = await runtime.store.read(shadow.unread, queue.id, since, TIPS_MAX)
    if not waiting:
        return
    shas = list(dict.fromkeys(sha for _, sha in waiting))
    provider, skips = runtime.providers[queue.repo.host], value.config.skipped_statuses_pass
    read = await provider.checks_of_many(queue.repo, shas, skipped_pass=skips)
    for entry, sha in waiting:
        is_red = _is_red(value, read[sha]) if sha in read else None
        if is_red is not None:
            await runtime.store.run(shadow.note_red, entry, is_red=is_red)


def _is_red(value: MergeQueue, checks: Checks) -> bool | None:
    """Return whether a required check failed; None while one is missing and none has failed."""
    required = () if value.required is None else value.required.names
    outcomes = [verdict.standing(one, checks.items).outcome for one in required]
    if CheckOutcome.FAILED in outcomes:
        return True
    return False if all(one in _PASSES for one in outcomes) else None

"""Conflicts between open pull requests, found before any of them is queued.

Heads are compared when one of them has moved, within a budget (docs/design/conflicts.md 2).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from service import sweeping
from service.database.database import Tx
from service.memory import QUEUES_MAX
from service.mergequeue.conflict_pairs import ConflictPair, Foreseen, orders
from service.mergequeue.engine.config import ConflictRadar
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import naming, queue_views, turn
from service.mergequeue.store import conflicts, queues
from service.mergequeue.wording import conflict_messages
from service.notifications import notifications
from service.notifications.store import subscribers
from service.provider.errors import ProviderError
from service.provider.overlaps import HeadPair, OverlapRequest, Overlaps
from service.provider.values import ListedPullRequest
from service.runtime import Runtime
from service.vocabulary import ConflictRule, QueueRef

LOOK_AGAIN = timedelta(minutes=10)
"""The time until open pull requests are listed again without news: a delivery may be lost."""

PAIRS_MAX = 400
"""Pairs that one look merges."""

LOOK_CPU_S = 10.0
HOUR_CPU_S = 60.0
"""CPU time of git for a queue, in one look and in an hour."""

HOUR = timedelta(hours=1)

log = structlog.get_logger()


@dataclass(slots=True)
class Look:
    """The state of one queue: when it was looked at, and the pairs of heads that were compared.

    `left`: pairs that touch the same files and were not compared yet. `is_blind`: git cannot look.
    """

    at: datetime | None = None
    rules: tuple[ConflictRule, ...] | None = None
    compared: set[HeadPair] = field(default_factory=set)
    left: int = 0
    is_blind: bool = False
    spent: deque[tuple[datetime, float]] = field(default_factory=deque)

    def budget_s(self, now: datetime) -> float:
        """Return the CPU time that is left for a look."""
        while self.spent and self.spent[0][0] + HOUR <= now:
            self.spent.popleft()
        return min(LOOK_CPU_S, HOUR_CPU_S - sum(cpu_s for _, cpu_s in self.spent))


@dataclass(slots=True)
class Looks:
    """The looks of this process by queue, and the repositories with news since."""

    by_queue: dict[int, Look] = field(default_factory=dict)
    news: set[int] = field(default_factory=set)

    def of(self, queue_id: int) -> Look:
        """Return the look at a queue; it is changed in place."""
        if queue_id not in self.by_queue and len(self.by_queue) >= QUEUES_MAX:
            self.by_queue.clear()
        return self.by_queue.setdefault(queue_id, Look())


def note(runtime: Runtime, repository_id: int) -> None:
    """Note that a pull request of a repository was opened, moved or closed."""
    runtime.memory.of(Looks).news.add(repository_id)


async def look_everywhere(runtime: Runtime) -> None:
    """Sweep: look at the queues whose pull requests have moved."""
    known = await runtime.store.read(queues.all_queues)
    looks, now = runtime.memory.of(Looks), runtime.clock.now()
    news, looks.news = looks.news, set()
    due = []
    for queue in known:
        at = looks.of(queue.id).at
        goes_on = looks.of(queue.id).left and looks.of(queue.id).budget_s(now) > 0
        is_due = at is None or at + LOOK_AGAIN <= now or goes_on
        if queue.repo.host in runtime.providers and (is_due or queue.repository_id in news):
            due.append(queue)
    await sweeping.one_by_one(look(runtime, queue) for queue in due)


async def look(runtime: Runtime, queue: QueueRef) -> None:
    """Compare the open pull requests of a queue that were not compared yet."""
    value, now = await turn.value(runtime, queue.id), runtime.clock.now()
    state = runtime.memory.of(Looks).of(queue.id)
    state.at = now
    heads: Mapping[int, ListedPullRequest] = {}
    found: Sequence[ConflictPair] = ()
    compared: set[HeadPair] = set()
    if value.config.conflict_radar is ConflictRadar.ON and value.tip is not None:
        try:
            listed = await runtime.providers[queue.repo.host].open_pull_requests(
                queue.repo, queue.branch
            )
        except ProviderError as trouble:
            # GitHub did not answer; the next look asks again.
            log.warning("radar_postponed", queue=queue.id, why=trouble.message)
            return
        heads = {one.number: one for one in listed if not naming.is_of_test(one.branch)}
        overlaps = await _compared(runtime, queue, value, state, heads)
        compared = {(pair.low.head, pair.high.head) for pair in overlaps.pairs}
        found = [
            ConflictPair(
                pair.low.number, pair.high.number, pair.low.head, pair.high.head, pair.paths, now
            )
            for pair in overlaps.pairs
            if pair.paths
        ]
    else:
        state.compared, state.left = set(), 0
    await runtime.store.run(_settle, runtime, _Result(queue, value, heads, compared, found, now))


async def _compared(
    runtime: Runtime,
    queue: QueueRef,
    value: MergeQueue,
    state: Look,
    heads: Mapping[int, ListedPullRequest],
) -> Overlaps:
    """Ask the provider for what was not compared, newest first."""
    there = {one.head for one in heads.values()}
    if state.rules != value.config.rules_for_conflicts:
        # Other rules resolve other conflicts.
        state.rules, state.compared = value.config.rules_for_conflicts, set()
    state.compared = {pair for pair in state.compared if there.issuperset(pair)}
    now = runtime.clock.now()
    budget_s = state.budget_s(now)
    tip = value.tip
    if len(heads) < 2 or tip is None or budget_s <= 0:
        return Overlaps((), state.left, 0.0)
    request = OverlapRequest(
        repo=queue.repo,
        target=queue.branch,
        tip=tip.sha,
        heads=tuple(sorted(heads.values(), key=_changed_at, reverse=True)),
        compared=frozenset(state.compared),
        rules=value.config.rules_for_conflicts,
        pairs_max=PAIRS_MAX,
        cpu_s_max=budget_s,
    )
    overlaps = await runtime.providers[queue.repo.host].overlaps(request)
    state.is_blind = overlaps is None
    if overlaps is None:
        return Overlaps((), 0, 0.0)
    state.compared |= {(pair.low.head, pair.high.head) for pair in overlaps.pairs}
    state.left = overlaps.left
    state.spent.append((now, overlaps.cpu_s))
    return overlaps


def _changed_at(one: ListedPullRequest) -> tuple[float, int]:
    return (0.0 if one.shown_at is None else one.shown_at.at.timestamp()), one.number


@dataclass(frozen=True, slots=True)
class _Result:
    """The outcome of a look: the open heads, what was compared, and what conflicts."""

    queue: QueueRef
    value: MergeQueue
    heads: Mapping[int, ListedPullRequest]
    compared: set[HeadPair]
    found: Sequence[ConflictPair]
    now: datetime


def _settle(session: Tx, runtime: Runtime, result: _Result) -> None:
    """Store the conflicts of now, and tell what has come and gone."""
    # Two processes that look at once tell of each pair once.
    queues.head_of(session, result.queue.id, lock=True)
    known = {(row.low, row.high): row for row in conflicts.of_queue(session, result.queue.id)}
    new = {(one.low, one.high): one for one in result.found}
    gone = [row for key, row in known.items() if key not in new and not _stands(row, result)]
    conflicts.remove(session, result.queue, gone)
    conflicts.put(session, result.queue, [one for key, one in new.items() if key in known])
    room = conflicts.PAIRS_MAX - len(known) + len(gone)
    come = [one for key, one in new.items() if key not in known][:room]
    conflicts.put(session, result.queue, come)
    if come or gone:
        _tell(session, runtime, result, come, gone)


def _stands(row: ConflictPair, result: _Result) -> bool:
    """Return whether both heads are the compared ones, and no later look found that they fit."""
    low, high = result.heads.get(row.low), result.heads.get(row.high)
    are_same = (row.head_low, row.head_high) == (low and low.head, high and high.head)
    return are_same and (row.head_low, row.head_high) not in result.compared


def _tell(
    session: Tx,
    runtime: Runtime,
    result: _Result,
    come: Sequence[ConflictPair],
    gone: Sequence[ConflictPair],
) -> None:
    queue = result.queue
    listening = subscribers.enabled(session, queue.org_id, queue.repository_id)
    if not listening:
        return
    slug = subscribers.organization_slug(session, queue.org_id)
    rows = conflicts.of_queue(session, queue.id)
    advised = orders(((row.low, row.high) for row in rows), _line(result.value))
    scene = conflict_messages.Scene(slug, queue, result.heads, advised, result.now)
    for one in come:
        notifications.enqueue(session, runtime, conflict_messages.foreseen(scene, one), listening)
    for one in gone:
        notifications.enqueue(session, runtime, conflict_messages.gone(scene, one), listening)


def _line(value: MergeQueue) -> list[int]:
    entries = queue_views.entries_in_order(value)
    return [one.pr for one in entries if one.state is not EntryState.NOT_READY]


async def foreseen(runtime: Runtime, queue: QueueRef) -> Foreseen:
    """Return the conflicts of a queue as the last look left them."""
    value = await turn.value(runtime, queue.id)
    is_on = value.config.conflict_radar is ConflictRadar.ON
    rows = await runtime.store.read(conflicts.of_queue, queue.id) if is_on else ()
    state = runtime.memory.of(Looks).by_queue.get(queue.id, Look())
    return Foreseen(
        pairs=rows,
        orders=orders(((row.low, row.high) for row in rows), _line(value)),
        left=state.left,
        looked_at=state.at,
        is_on=is_on,
        is_blind=state.is_blind,
    )

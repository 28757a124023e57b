"""The metrics page: what a token may see of queues, as text (docs/reference/metrics.md).

A queue's text is made from its committed value and its sums, and kept until one of them
changes or the oldest fact of the hour is too old; so every instance writes the same, and a
page that is asked for again is put together from pieces.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cachetools import LRUCache

from service.accounts import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.http.callers import Caller
from service.memory import QUEUES_MAX
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.reasons import NO_BLAME, Cause, HoldReason, Reason
from service.mergequeue.engine.states import FINAL, EntryState, QueueState, RunStatus
from service.mergequeue.operations import counting, turn
from service.mergequeue.operations.counting import BISECTION, MAIN, NO_CAUSE
from service.mergequeue.store import figures
from service.mergequeue.store.figures import Figures, Shown
from service.metrics import exposition, queue_families
from service.metrics.facts import Labels, Samples
from service.metrics.queue_families import QueueLabels
from service.runtime import Runtime
from service.vocabulary import Channel

CONTENT_TYPE = exposition.CONTENT_TYPE
EXPIRING = timedelta(days=14)

_TYPES = (MAIN, BISECTION)

_LIVE = tuple(state for state in EntryState if state not in FINAL)

ENDINGS: Mapping[EntryState, tuple[Reason, ...]] = {
    EntryState.MERGED: tuple(one for one in Reason if one.record.merged),
    EntryState.FAILED: tuple(one for one in Reason if one.record.failed),
    EntryState.CANCELLED: tuple(one for one in Reason if one.record.cancelled),
}
"""Final states and the reasons that lead there (docs/design/engine.md 4)."""

RESTARTS = tuple(one for one in Reason if one.record.pending and one is not Reason.NOW_READY)
"""Reasons that lead back to pending (docs/design/engine.md 4)."""


def _by_type(*words: str) -> tuple[Labels, ...]:
    return tuple((queue_type, word) for queue_type in _TYPES for word in words)


_CONCLUSIONS = tuple(state.value.lower() for state in ENDINGS)
_ENDED = tuple(
    (state.value.lower(), reason.value) for state, reasons in ENDINGS.items() for reason in reasons
)
_CAUSES: Mapping[RunStatus, tuple[str, ...]] = {
    RunStatus.SUCCEEDED: (NO_CAUSE, Cause.QUARANTINED_ONLY.value),
    RunStatus.FAILED: (
        NO_CAUSE,
        *(cause.value for cause in Cause if cause is not Cause.QUARANTINED_ONLY),
    ),
    RunStatus.CANCELLED: (NO_CAUSE, *sorted(cause.value for cause in NO_BLAME)),
}
_VERDICTS = tuple((status.value, cause) for status, causes in _CAUSES.items() for cause in causes)
_EACH_TYPE: tuple[Labels, ...] = tuple((queue_type,) for queue_type in _TYPES)

ZEROS: queue_families.Zeros = {
    "mq_pr_conclusions_1h_total": _by_type(*_CONCLUSIONS),
    "mq_pr_restarts_1h_total": _EACH_TYPE,
    "mq_pr_wait_duration_1h_seconds": _EACH_TYPE,
    "mq_pr_test_duration_1h_seconds": _EACH_TYPE,
    # Windows of an hour, which no `rate()` reads: ten series for each word that never happened.
    "mq_pr_time_in_queue_1h_seconds": (),
    "mq_pr_state_duration_1h_seconds": (),
    "headgate_pull_requests_submitted_total": tuple((one.value,) for one in Channel),
    "headgate_pull_requests_left_total": _ENDED,
    "headgate_pull_request_restarts_total": tuple((reason.value,) for reason in RESTARTS),
    "headgate_test_runs_total": tuple(
        (queue_type, *verdict) for queue_type in _TYPES for verdict in _VERDICTS
    ),
    "headgate_landings_total": tuple((one,) for one in ("landed", "rejected", "unknown")),
    "headgate_test_duration_seconds": _EACH_TYPE,
    "headgate_time_in_queue_seconds": tuple((word,) for word in _CONCLUSIONS),
}
"""Series that every queue has from its first day on; a family that is not here has its one."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A queue's text, and as long as what it stands.

    `oldest` is when its oldest ready pull request was submitted, None without one.
    """

    stamp: tuple[Shown, QueueLabels]
    until: datetime | None
    parts: tuple[bytes, ...]
    oldest: datetime | None

    def stands(self, stamp: tuple[Shown, QueueLabels], now: datetime) -> bool:
        """Return whether it may be shown again."""
        return self.stamp == stamp and (self.until is None or now < self.until)


class _Pieces(LRUCache[int, _Piece]):
    """Metrics of queues as text, by queue."""

    def __init__(self) -> None:
        super().__init__(QUEUES_MAX)


@dataclass(frozen=True, slots=True)
class _Found:
    """The findings of one look into the database: queues in order, and the newest that is kept."""

    shown: tuple[tuple[Shown, QueueLabels], ...]
    fresh: Mapping[int, tuple[MergeQueue, Figures]]
    expiring: int


async def page(runtime: Runtime, caller: Caller, repository: RepositoryRecord | None) -> bytes:
    """Every family of every queue that the caller may see, or of one repository's."""
    now = runtime.clock.now()
    pieces_kept = runtime.memory.of(_Pieces)
    known = dict(pieces_kept)
    found = await runtime.store.read(
        _found, runtime, _FiguresRequest(caller, repository, known, now)
    )
    pieces = []
    for stamp in found.shown:
        shown, place = stamp
        fresh = found.fresh.get(shown.ref.id)
        piece = known.get(shown.ref.id) if fresh is None else _piece(stamp, *fresh)
        if piece is None:
            continue
        if fresh is not None:
            pieces_kept[shown.ref.id] = piece
        pieces.append(_aged(piece, place, now))
    return queue_families.page(pieces, found.expiring)


@dataclass(frozen=True, slots=True)
class _FiguresRequest:
    caller: Caller
    repository: RepositoryRecord | None
    known: Mapping[int, _Piece]
    now: datetime


def _found(session: Tx, runtime: Runtime, request: _FiguresRequest) -> _Found:
    everything = figures.metered_queues(session, request.caller.org_id)
    several = len({one.ref.repo.host for one in everything}) > 1
    mine = tuple(
        (one, _place(one, several=several)) for one in everything if _is_asked(one, request)
    )
    stale = [
        stamp[0].ref.id
        for stamp in mine
        if (kept := request.known.get(stamp[0].ref.id)) is None
        or not kept.stands(stamp, request.now)
    ]
    sums = figures.of_queues(session, stale, request.now)
    fresh = {
        queue_id: (turn.newest(session, runtime, queue_id)[1], sums[queue_id]) for queue_id in stale
    }
    return _Found(mine, fresh, _expiring(session, request))


def _is_asked(one: Shown, request: _FiguresRequest) -> bool:
    is_its = request.repository is None or one.ref.repository_id == request.repository.id
    return is_its and access.sees(request.caller, one.ref.repository_id)


def _place(one: Shown, *, several: bool) -> QueueLabels:
    repo = one.ref.repo
    name = f"{repo.host}/{repo.slug}" if several else repo.slug
    return QueueLabels(mq_repo=name, host=repo.host, repo=repo.slug, branch=one.ref.branch)


def _expiring(session: Tx, request: _FiguresRequest) -> int:
    """Tokens that reach something the caller sees, and end soon."""
    scopes = figures.expiring(session, request.caller.org_id, request.now, request.now + EXPIRING)
    seen = request.caller.repositories
    return sum(1 for scope in scopes if scope is None or seen is None or scope & seen)


def _aged(piece: _Piece, place: QueueLabels, now: datetime) -> Sequence[bytes]:
    """The text with the one value that no change of the queue makes older."""
    if piece.oldest is None:
        return piece.parts
    parts = list(piece.parts)
    age_s = max(0, (now - piece.oldest) // timedelta(seconds=1))
    parts[queue_families.OLDEST] = queue_families.oldest(place, age_s)
    return parts


def _piece(stamp: tuple[Shown, QueueLabels], value: MergeQueue, sums: Figures) -> _Piece:
    shown = queue_families.samples(present(value), sums.hour, sums.ever, ZEROS)
    ready = [one for one in value.entries.values() if one.state is not EntryState.NOT_READY]
    return _Piece(
        stamp=stamp,
        until=sums.until,
        parts=queue_families.fragments(stamp[1], shown),
        oldest=min((one.submitted_at for one in ready), default=None),
    )


def present(value: MergeQueue) -> Samples:
    """Return what a queue's value alone says."""
    ready: list[Labels] = []
    unready: list[Labels] = []
    for entry in value.entries.values():
        where = unready if entry.state is EntryState.NOT_READY else ready
        where.append((counting.type_of(entry, value),))
    running = _counts(
        _EACH_TYPE,
        (
            (counting.type_of_run(run.kind),)
            for run in value.runs.values()
            if run.status is RunStatus.IN_PROGRESS
        ),
    )
    states = [(state.value,) for state in _LIVE]
    held = {hold.reason for hold in value.holds}
    config = value.config
    return {
        "mq_depth_current": _counts(_EACH_TYPE, ready),
        "mq_awaiting_mergeability": _counts(_EACH_TYPE, unready),
        "mq_testing_slots_active": running,
        "headgate_queue_state": {(state.value,): int(state is value.state) for state in QueueState},
        "headgate_queue_held": {(reason.value,): int(reason in held) for reason in HoldReason},
        "headgate_queue_pull_requests": _counts(
            states, ((entry.state.value,) for entry in value.entries.values())
        ),
        "headgate_queue_oldest_pull_request_age_seconds": {(): 0},
        "headgate_test_slots": {
            (MAIN,): config.concurrency,
            (BISECTION,): config.bisection_concurrency,
        },
        "headgate_test_slots_in_use": running,
    }


def _counts(every: Iterable[Labels], found: Iterable[Labels]) -> Mapping[Labels, int]:
    """Return how often each was found, those included that were not."""
    counts = dict.fromkeys(every, 0)
    for labels in found:
        counts[labels] += 1
    return counts

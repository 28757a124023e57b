"""Deliveries: stored before they are answered, worked on afterwards, in order in each repository.

A process claims a repository with its waiting deliveries. Those that only report checks go through
one turn, in which they are settled (docs/design/transactions.md 7).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

import structlog

from service import time_limits, tracing
from service.database import inbox
from service.database.claims import ClaimedRows
from service.database.database import Tx
from service.database.inbox import ClaimedDelivery, ClaimedLane
from service.errors import DatabaseUnavailable
from service.mergequeue.operations.turn import QueueGone
from service.process import signals
from service.process.guard import failure_of
from service.provider.errors import AppRefused, ProviderError, Suspended, Unavailable
from service.provider.signals import CheckReported, Delivery, Signal
from service.runtime import Runtime
from service.tracing import Side
from service.troubles import Part
from service.vocabulary import RepoId

ATTEMPTS_MAX = 5
"""Then a delivery is parked (docs/design/transactions.md 7)."""
WAITS_FOR = timedelta(hours=24)
"""The time that a delivery waits for a provider that is away, or refuses us, uncounted."""
FIRST_PAUSE = timedelta(seconds=2)
LATEST = timedelta(minutes=5)
SOON = timedelta(seconds=1)
"""The time until a delivery is tried again that an unavailable database interrupted."""

ROUNDS_MAX = 4
"""Bunches of one repository that follow each other; then others that wait go first."""

AWAY = (Unavailable, AppRefused, Suspended, DatabaseUnavailable)
"""Troubles that no delivery causes: all of a bunch wait."""

MISTAKES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a mistake in a translation."""

log = structlog.get_logger()


async def accept(runtime: Runtime, delivery: Delivery) -> bool:
    """Store a delivery durably; False when its id is known. Raises DatabaseUnavailable.

    One without a signal is not stored: about half of them, such as echoes of our own comments. To
    translate one takes 0.06 ms (the examples that GitHub publishes); to store one, claim it and
    settle it are three transactions. A stored one is translated again, when its turn comes.
    """
    runtime.troubles.end(Part.WEBHOOKS, delivery.host)
    if _is_silent(runtime, delivery):
        log.debug("delivery_ignored", delivery_id=delivery.id, kind=delivery.event)
        return True
    time_limits.answer_soon()
    stored = await runtime.store.run_kind("accept", inbox.accept, delivery)
    if stored is not None and not stored.is_awaited:
        runtime.wakeups.wake("inbox")
    runtime.crash_points.reach("hook.before_answer")
    return stored is not None


def _is_silent(runtime: Runtime, delivery: Delivery) -> bool:
    """Return whether a delivery has no signal; one that meets trouble is tried again later."""
    translator = runtime.translators.get(delivery.host)
    try:
        return translator is not None and not translator(delivery)
    except (ProviderError, *MISTAKES):
        return False  # It is stored, and the worker reports what is wrong.


async def claim(
    runtime: Runtime, limit: int, owned: Collection[int] | None = None
) -> ClaimedRows[ClaimedLane]:
    """Claim repositories whose oldest open delivery is due, at most `limit`, with their deliveries.

    If `owned` ids are given, other lanes that this process has claimed are freed first.
    """
    return await runtime.store.run(_claim, runtime, limit, owned)


def _claim(
    session: Tx, runtime: Runtime, limit: int, owned: Collection[int] | None
) -> ClaimedRows[ClaimedLane]:
    me, given_back = runtime.instance, 0
    if owned is not None:
        given_back = inbox.release_unowned(session, me, owned)
    claimed = inbox.claim(session, me, runtime.clock.now(), limit)
    return ClaimedRows(claimed, inbox.next_due(session), given_back, is_behind=False)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A delivery with its signals, None if it cannot be translated."""

    row: ClaimedDelivery
    signals: tuple[Signal, ...] | None


@dataclass(slots=True)
class _Round:
    """The work on the deliveries of one claim; `following` are claimed as the last one ends."""

    lane: ClaimedLane
    following: ClaimedLane | None = None


async def take_up(runtime: Runtime, lane: ClaimedLane) -> None:
    """Work on the claimed deliveries of a repository, and on those that have come meanwhile.

    Trouble at the provider postpones a delivery, and those behind it; after five attempts it is
    parked. While the provider is away, or refuses or has suspended our App, a young delivery waits
    without being counted: nothing that was said is lost.
    """
    for _ in range(ROUNDS_MAX):
        work = _Round(lane)
        for group in _groups(_heard(runtime, row) for row in lane.deliveries):
            if not await _is_handled(runtime, work, group):
                return
        if work.following is None:
            return
        lane = work.following
    await _give_back(runtime, lane)


async def _give_back(runtime: Runtime, lane: ClaimedLane) -> None:
    now = runtime.clock.now()
    await runtime.store.run(inbox.give_back, runtime.instance, lane.id, now)
    runtime.wakeups.wake("inbox")


def _heard(runtime: Runtime, row: ClaimedDelivery) -> _Heard:
    translator = runtime.translators.get(row.delivery.host)
    try:
        return _Heard(row, None if translator is None else translator(row.delivery))
    except (ProviderError, *MISTAKES):
        return _Heard(row, None)  # The work on it meets the same, and says so.


def _groups(heard: Iterable[_Heard]) -> Iterator[list[_Heard]]:
    """Yield deliveries in order: each by itself, but reports of checks that follow each other."""
    for repository, group in groupby(heard, _reports_of):
        together = list(group)
        yield from ([one] for one in together) if repository is None else (together,)


def _reports_of(heard: _Heard) -> RepoId | None:
    """Return the repository of whose checks a delivery reports; None if it says more, or else."""
    found = heard.signals or ()
    about = {one.where.id if isinstance(one, CheckReported) else None for one in found}
    return about.pop() if len(about) == 1 else None


async def _is_handled(runtime: Runtime, work: _Round, group: Sequence[_Heard]) -> bool:
    """Work on deliveries and settle them; return False if the repository waits.

    One that fails spoils no other: those that failed together are tried again in halves.
    """
    trouble = await _trouble_of(runtime, work, group)
    if trouble is None:
        return True
    if len(group) == 1:
        return await _is_put_off(runtime, work, group[0].row, trouble)
    if isinstance(trouble, AWAY):
        is_first_handled, first = await _is_put_off(runtime, work, group[0].row, trouble), 1
    else:
        first = len(group) // 2
        is_first_handled = await _is_handled(runtime, work, group[:first])
    return is_first_handled and await _is_handled(runtime, work, group[first:])


async def _trouble_of(runtime: Runtime, work: _Round, group: Sequence[_Heard]) -> Exception | None:
    """Work on deliveries; return what ended it, None if they are settled."""
    trouble: Exception | None = None

    async def act() -> None:
        nonlocal trouble
        try:
            await _act(runtime, work, group)
        except (ProviderError, QueueGone) as met:
            tracing.failed(met)
            trouble = met

    delivery = group[0].row.delivery
    fields: tracing.Fields = {
        "headgate.delivery.id": delivery.id,
        "headgate.delivery.action": delivery.action or "",
        "headgate.deliveries": len(group),
    }
    with runtime.traces.work(
        f"webhook {delivery.event}", fields, Side.INCOMING, delivery.received_at
    ):
        crash = await failure_of("inbox", act())
    return crash or trouble


async def _act(runtime: Runtime, work: _Round, group: Sequence[_Heard]) -> None:
    """Act on the signals of deliveries, and settle them with the last of their effects."""
    delivery = group[0].row.delivery
    translator = runtime.translators.get(delivery.host)
    if translator is None:
        await runtime.store.run(_settle, runtime, work, group, "ignored: unknown host")
        return
    found = [one for heard in group for one in heard.signals or translator(heard.row.delivery)]
    log.info("delivery", delivery_id=delivery.id, signals=len(found), deliveries=len(group))
    note = ", ".join(type(signal).__name__ for signal in found) or "ignored"
    reports = [one for one in found if isinstance(one, CheckReported)]
    if _reports_of(group[0]) is not None:
        settle = partial(_settle, runtime=runtime, work=work, group=group, note=note)
        await signals.hear_reports(runtime, reports, settle)
        return
    for signal in found:
        await signals.receive(runtime, signal, delivery.received_at)
    await runtime.store.run(_settle, runtime, work, group, note)


def _settle(
    session: Tx, runtime: Runtime, work: _Round, group: Sequence[_Heard], note: str
) -> None:
    inbox.settle(session, [heard.row.id for heard in group], note)
    _end(session, runtime, work, group[-1].row)


def _end(session: Tx, runtime: Runtime, work: _Round, row: ClaimedDelivery) -> None:
    """Claim what waits behind the last delivery of a claim, in the transaction that ends it."""
    if row is work.lane.deliveries[-1]:
        now = runtime.clock.now()
        work.following = inbox.proceed(session, work.lane, runtime.instance, now)


async def interrupted(runtime: Runtime, lane: ClaimedLane, error: Exception) -> None:
    """Retry a delivery whose work ended by an error that nobody expected; safe to repeat.

    After a mistake of our own it is parked after five attempts. An unavailable database counts
    no attempt.
    """
    if await _is_put_off(runtime, _Round(lane), lane.deliveries[0], error):
        await _give_back(runtime, lane)


@dataclass(frozen=True, slots=True)
class _Again:
    """The time to try a delivery again, how many attempts count against it by then, and why."""

    at: datetime
    attempts: int
    why: str


async def _is_put_off(
    runtime: Runtime, work: _Round, row: ClaimedDelivery, trouble: Exception
) -> bool:
    """Retry a delivery later, for which its repository waits; return True if it is parked."""
    again = _again(runtime, row, trouble)
    if again.attempts >= ATTEMPTS_MAX:
        # This webhook failed too often and is set aside; sweeps read the same facts.
        log.error("delivery_parked", delivery_id=row.delivery.id, why=again.why)
        await runtime.store.run(_park, runtime, work, row, again.why)
        return True
    await runtime.store.run(_put_off, runtime, work, row, again)
    runtime.wakeups.wake("inbox")
    return False


def _park(session: Tx, runtime: Runtime, work: _Round, row: ClaimedDelivery, why: str) -> None:
    inbox.poison(session, row.id, why)
    _end(session, runtime, work, row)


def _put_off(
    session: Tx, runtime: Runtime, work: _Round, row: ClaimedDelivery, again: _Again
) -> None:
    inbox.retry(session, row.id, again.at, again.attempts, again.why)
    inbox.give_back(session, runtime.instance, work.lane.id, again.at)


def _again(runtime: Runtime, row: ClaimedDelivery, trouble: Exception) -> _Again:
    """Decide when a delivery that met trouble is tried again."""
    now = runtime.clock.now()
    age = now - row.delivery.received_at
    is_young, before = age < WAITS_FOR, row.attempts - 1
    later = now + min(timedelta(seconds=2.0 ** min(row.attempts, 10)), LATEST)
    match trouble:
        case DatabaseUnavailable():
            why = "The database was unavailable while this was worked on."
            return _Again(now + SOON, before, why)
        case QueueGone():
            # What it is about is looked for again: the branch may have another queue by now.
            return _Again(now, row.attempts, trouble.detail)
        case Unavailable() | AppRefused() | Suspended():
            if is_young:
                # No attempt is counted, so its age makes the pauses longer.
                later = now + min(max(age, FIRST_PAUSE), LATEST)
            at = max(trouble.retry_at, later) if isinstance(trouble, Unavailable) else later
            return _Again(at, before if is_young else row.attempts, trouble.message)
        case ProviderError():
            return _Again(later, row.attempts, trouble.message)
        case _:
            return _Again(later, row.attempts, "A mistake of ours; the log has it.")

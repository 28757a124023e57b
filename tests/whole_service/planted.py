"""Faults of the shell, each planted in one place, and a seed whose history shows it.

What is planted is a mistake that somebody could make; the history that shows it is sound without.
A fault that ordinary histories rarely show names a plan in which little fails, but often.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from bot.github.auth import Tokens
from bot.github.pacing import Pacer
from bot.sandbox.records import Json
from service.database import inbox, outbox
from service.database.outbox import ClaimedEffect, OutboxState
from service.errors import DatabaseUnavailable
from service.mergequeue.engine.outputs import Land
from service.mergequeue.operations import building, lost_branches, missed_comments
from service.process import deliveries, effects
from service.process.guard import failure_of
from service.process.workers.flow import Flow
from service.provider.errors import OutcomeUnknown, ProviderError, Unavailable
from tests.whole_service.faults import Write
from tests.whole_service.plan import Plan, drawn

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A planted fault; `shown_by` is a seed whose plan finds it."""

    plant: Plant
    shown_by: int
    plan: Callable[[int], Plan] = drawn


def _replaced(one: object, name: str, new: object) -> Plant:
    return lambda patch: patch.setattr(one, name, new)


def _nothing(*_: object, **__: object) -> int:
    return 0


async def _nothing_awaited(*_: object, **__: object) -> None:
    """Do nothing."""


def _one_domain(seed: int, **more: Any) -> Plan:
    """Return a short history of two people's work, in which one thing fails, and often."""
    queue = {"concurrency": 2, "mode": "SINGLE", "autoRetryLimit": 1}
    return Plan(seed, **{"people": 2, "settings": queue, "storm_s": 150.0, "pause_s": 25.0, **more})


AWAY: tuple[Json, ...] = ({"kind": "fail_before", "status": 503},)
READS_FAIL = partial(_one_domain, reads=0.8)
READS_OFTEN_FAIL = partial(_one_domain, reads=0.4, pause_s=10.0, storm_s=240.0)
WRITES_FAIL = partial(_one_domain, writes={Write.FAILS: 0.3})
OFTEN_DUE = partial(
    _one_domain, writes={Write.ANSWER_LOST: 0.6}, calls=AWAY, call_rate=0.4, pause_s=10.0
)
SETTLEMENTS_FAIL = partial(
    _one_domain, writes={Write.FAILS: 0.1}, service={"period_readback_s": 3600}
)
CLAIMS_LOST = partial(
    _one_domain, writes={Write.ANSWER_LOST: 0.4}, service={"period_readback_s": 3600}
)
GITHUB_AWAY = partial(_one_domain, calls=AWAY, call_rate=1.0, storm_s=2000.0, pause_s=400.0)
LANDINGS_FAIL = partial(
    _one_domain, calls=AWAY, call_rate=0.25, people=4, storm_s=240.0, acts={"open": 1}
)
GITHUB_OFTEN_AWAY = partial(_one_domain, calls=AWAY, call_rate=0.6, storm_s=240.0)
LIMITED = partial(
    _one_domain, calls=({"kind": "secondary_limit", "retry_after": 120},), call_rate=0.1
)
ANSWERS_LOST = partial(
    _one_domain,
    calls=({"kind": "fail_after", "status": 502}, {"kind": "reset_after"}),
    call_rate=0.5,
)
_again = deliveries._again
_accept = deliveries.accept
_perform = effects.perform
_explain = effects._explain_trouble
_wait = effects._wait
_own = Flow._own


def _database_counts(runtime: Any, row: Any, trouble: Exception) -> Any:
    again = _again(runtime, row, trouble)
    is_away = isinstance(trouble, DatabaseUnavailable)
    return replace(again, attempts=row.attempts) if is_away else again


def _provider_counts(runtime: Any, row: Any, trouble: Exception) -> Any:
    again = _again(runtime, row, trouble)
    return replace(again, attempts=row.attempts) if isinstance(trouble, Unavailable) else again


async def _acknowledged_first(runtime: Any, delivery: Any) -> bool:
    try:
        return await _accept(runtime, delivery)
    except DatabaseUnavailable:
        return True


def _marked_later(_: Connection, __: str, ids: Sequence[int], ___: datetime) -> frozenset[int]:
    """Claim effects and commit nothing of it."""
    return frozenset(ids)


async def _taken_for_done(runtime: Any, row: ClaimedEffect) -> Any:
    try:
        return await _perform(runtime, row)
    except OutcomeUnknown:
        return {}


async def _as_if_new(runtime: Any, row: ClaimedEffect) -> Any:
    return await _perform(runtime, replace(row, state=OutboxState.READY, attempts=0))


async def _failed_by_database(runtime: Any, row: ClaimedEffect, trouble: ProviderError) -> None:
    if trouble.message.startswith("The database"):
        trouble = ProviderError(trouble.message)
    await _wait(runtime, row, trouble)


def _few_tries_of_the_database(patch: Patch) -> None:
    patch.setattr(effects, "ATTEMPTS_MAX", 2)
    patch.setattr(effects, "_wait", _failed_by_database)


async def _landing_given_up(runtime: Any, row: ClaimedEffect, trouble: ProviderError) -> None:
    if isinstance(row.effect, Land) and row.attempts >= 1:
        await runtime.store.run(outbox.settle, [row.id], OutboxState.FAILED, trouble.message)
        return
    await _wait(runtime, row, trouble)


async def _control_given_up(runtime: Any, row: ClaimedEffect, trouble: ProviderError) -> None:
    is_spent = row.attempts >= 2 and row.lane is outbox.Lane.CONTROL
    if is_spent and await effects._give_up(runtime, row, trouble.message):
        await runtime.store.run(outbox.settle, [row.id], OutboxState.FAILED, trouble.message)
        return
    await _wait(runtime, row, trouble)


async def _notices_hold(runtime: Any, row: ClaimedEffect, trouble: ProviderError) -> None:
    await _explain(runtime, replace(row, lane=outbox.Lane.CONTROL), trouble)


def _owned_twice(flow: Any, row: Any) -> None:
    flow._owned.pop(row.id, None)
    _own(flow, row)


async def _settled_once(flow: Any, row: Any) -> None:
    error = await failure_of(flow._work.topic, flow._work.carry_out(flow._runtime, row))
    if error is not None:
        await failure_of(flow._work.topic, flow._work.interrupted(flow._runtime, row, error))
        flow._runtime.wakeups.wake(flow._work.topic)


class _Kept:
    """A moment that is not forgotten once it is known."""

    def __get__(self, flow: Any, _: object = None) -> Any:
        return vars(flow).get("kept")

    def __set__(self, flow: Any, value: Any) -> None:
        if value is not None:
            vars(flow)["kept"] = value


def _checked_once(patch: Patch) -> None:
    patch.setattr(Flow, "_checked_s", _Kept(), raising=False)


def _doubled(now: datetime, attempts: int, _: ProviderError) -> datetime:
    return _next_try(now, attempts, ProviderError("Something else."))


def _branches_stay(patch: Patch) -> None:
    """Delete none at the end of a run, and none by the sweep."""
    patch.setattr(building, "retire", _nothing_awaited)
    patch.setattr(lost_branches, "restore_branches", _nothing_awaited)


_next_try = effects._next_try


def _at_once(now: datetime, *_: object) -> datetime:
    return now


def _unlimited(*_: object) -> float:
    return 0.0


FAULTS = {
    "own sent effects without a task are never read back": Fault(
        _replaced(outbox, "reopen_unowned", _nothing), 3
    ),
    "trouble of a notice holds the queue": Fault(
        _replaced(effects, "_explain_trouble", _notices_hold), 22
    ),
    "a delivery is acknowledged before it is stored": Fault(
        _replaced(deliveries, "accept", _acknowledged_first), 2
    ),
    "claims of a dead process are never freed": Fault(_replaced(inbox, "release", _nothing), 0),
    "effects of a dead process are never read back": Fault(
        _replaced(outbox, "reopen_sent", _nothing), 5
    ),
    "a missed command is forgotten": Fault(
        _replaced(missed_comments, "_store_missed", _nothing), 13
    ),
    "an effect is tried again at once, for ever": Fault(
        _replaced(effects, "_next_try", _at_once), 2
    ),
    "Retry-After is ignored": Fault(_replaced(Pacer, "strike", _unlimited), 6),
    "a refused token is kept": Fault(_replaced(Tokens, "refuse", _nothing), 29),
    "test branches are never deleted": Fault(_branches_stay, 7),
    "an outage of the database counts as an attempt at a delivery": Fault(
        _replaced(deliveries, "_again", _database_counts), 0, READS_FAIL
    ),
    "an outage of the provider counts as an attempt at a delivery": Fault(
        _replaced(deliveries, "_again", _provider_counts), 0, GITHUB_AWAY
    ),
    "one row has two tasks": Fault(_replaced(Flow, "_own", _owned_twice), 2, OFTEN_DUE),
    "what an outage of the database interrupted is given up": Fault(
        _few_tries_of_the_database, 1, READS_OFTEN_FAIL
    ),
    "an unknown outcome counts as done": Fault(
        _replaced(effects, "perform", _taken_for_done), 0, ANSWERS_LOST
    ),
    "an effect is sent again as if it were new": Fault(
        _replaced(effects, "perform", _as_if_new), 0, WRITES_FAIL
    ),
    "an effect is stored as sent only after it was sent": Fault(
        _replaced(outbox, "mark_sent", _marked_later), 4, WRITES_FAIL
    ),
    "a landing is given up": Fault(
        _replaced(effects, "_wait", _landing_given_up), 3, LANDINGS_FAIL
    ),
    "a control effect is given up while the provider is away": Fault(
        _replaced(effects, "_wait", _control_given_up), 0, GITHUB_OFTEN_AWAY
    ),
    "an effect does not wait as long as the provider asks": Fault(
        _replaced(effects, "_next_try", _doubled), 1, LIMITED
    ),
    "lost claims are not freed at once": Fault(_checked_once, 0, CLAIMS_LOST),
    "a settlement is tried once": Fault(
        _replaced(Flow, "_one", _settled_once), 2, SETTLEMENTS_FAIL
    ),
}

DEAR = frozenset(
    {
        "own sent effects without a task are never read back",
        "an effect is tried again at once, for ever",
        "one row has two tasks",
        "what an outage of the database interrupted is given up",
        "a landing is given up",
    }
)
"""Those whose histories cost most; `make soak ROWS=whole_service` plays them."""

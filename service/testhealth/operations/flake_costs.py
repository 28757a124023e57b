"""Tell what flaky tests cost, and send an alert above a limit (docs/design/test-costs.md)."""

from collections.abc import Iterator, Mapping, Sequence

from service import sweeping
from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth import flake_costs as sums
from service.testhealth.detector import figures
from service.testhealth.flake_costs import Cost, FlakeCosts, OwnCost
from service.testhealth.operations import messages
from service.testhealth.store import cases, flake_costs, quarantine, states
from service.testhealth.store.cases import Place
from service.testhealth.store.states import StateChange
from service.vocabulary import Health

MINUTE_MS = 60_000


def is_above(cost: Cost, limit_minutes: int | None) -> bool:
    """Return whether the CI time of a week is above a limit; None: there is no limit."""
    return limit_minutes is not None and cost.ci_ms > limit_minutes * MINUTE_MS


async def of_repository(runtime: Runtime, repository: RepositoryRecord, weeks: int) -> FlakeCosts:
    """Return what flaky tests cost in so many weeks, the present one included, at most 12."""
    today = figures.day_of(runtime.clock.now())
    return await runtime.store.read(read, repository.id, today, weeks)


def read(session: Tx, repository_id: int, last_day: int, weeks: int) -> FlakeCosts:
    """Return the same of the weeks up to that of a day, and of days up to it."""
    last = sums.week_of(last_day)
    wanted = range(last - weeks + 1, last + 1)
    days = (sums.first_day_of(wanted[0]), last_day + 1)
    failed = flake_costs.of_days(session, repository_id, *days)
    flaky = _flaky_spans(session, repository_id, {each.no for each in failed})
    costs = [
        OwnCost(each.day, each.no, Cost(ci_ms=each.cost_ms))
        for each in failed
        if sums.is_in_weeks(flaky.get(each.no, ()), sums.week_of(each.day))
    ]
    costs += [
        OwnCost(each.day, each.no, Cost(wait_ms=each.wait_ms, failures=each.failures))
        for each in flake_costs.queue_waits(session, repository_id, *days)
    ]
    owners = cases.owners_of(session, repository_id, {each.no for each in costs})
    return sums.costs_of(wanted, flake_costs.known(session, repository_id), costs, owners)


Spans = Sequence[tuple[int, int | None]]
"""Days from which and to which something was so, both included; None: it still is."""


def _flaky_spans(session: Tx, repository_id: int, nos: set[int]) -> Mapping[int, Spans]:
    """Return the days on which each test was flaky, by its history as it is known now."""
    histories = states.histories_of(session, repository_id, nos)
    return {no: list(_spans_in(history)) for no, history in histories.items()}


def _spans_in(history: Sequence[StateChange]) -> Iterator[tuple[int, int | None]]:
    kept: list[StateChange] = []
    for change in history:
        # A later row says better what was from its time on.
        kept = [each for each in kept if each.at < change.at]
        kept.append(change)
    for change, following in zip(kept, [*kept[1:], None], strict=True):
        if change.value is Health.FLAKY:
            until = None if following is None else figures.day_of(following.at)
            yield figures.day_of(change.at), until


async def alert(runtime: Runtime) -> None:
    """Tell the endpoints of each repository, once a week, that flaky tests cost too much."""
    # The newest day that can be counted: on Monday last week's Sunday.
    yesterday = figures.day_of(runtime.clock.now()) - 1
    watched = await runtime.store.read(flake_costs.watched, sums.week_of(yesterday))
    await sweeping.one_by_one(_alert_one(runtime, place, yesterday) for place in watched)


async def _alert_one(runtime: Runtime, place: Place, yesterday: int) -> None:
    if await runtime.store.run(_alert, runtime, place, yesterday):
        outbox.wake(runtime.wakeups)


def _alert(session: Tx, runtime: Runtime, place: Place, yesterday: int) -> bool:
    now, here = runtime.clock.now(), place.repository_id
    limit = quarantine.settings_of(session, here).flake_cost_alert_minutes
    present = read(session, here, yesterday, 1).present
    if not is_above(present.cost, limit):
        return False
    if not flake_costs.note_alert(session, here, present.number):
        return False
    repository = access.repository(session, here)
    message = messages.costly(session, repository, present, limit or 0, now)
    messages.tell(session, runtime, repository, message)
    return True

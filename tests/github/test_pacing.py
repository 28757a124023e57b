"""Who may call when: turns, spacing, limits (docs/design/provider.md 5)."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from bot.github import pacing
from bot.github.limits import Limit
from bot.github.pacing import CallKind, Cost, Pacer, Priority
from service.provider.budget import LimitName, Pressure
from service.provider.errors import Throttled


class StillClock:
    """Moves only by waiting; while it is stopped, waits do not end."""

    def __init__(self):
        self.passed_s = 0.0
        self.is_stopped = False

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.passed_s)

    def monotonic_s(self):
        return self.passed_s

    async def sleep(self, seconds):
        if self.is_stopped:
            await asyncio.Event().wait()
        self.passed_s += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def pacer(clock):
    return Pacer(clock, 1.0, is_limited=True)


def read(priority=Priority.VERDICT):
    return Cost(priority, is_write=False, points=1)


def write(priority=Priority.BUILD, *, content=False):
    return Cost(priority, is_write=True, points=5, is_content=content)


async def take(pacer, cost, times=1):
    for _ in range(times):
        async with pacer.turn(cost):
            await asyncio.sleep(0)


async def rest():
    for _ in range(50):
        await asyncio.sleep(0)


async def test_reads_do_not_wait(pacer, clock):
    await take(pacer, read(), 100)
    assert clock.passed_s == 0


async def test_writes_stand_a_second_apart(pacer, clock):
    await take(pacer, write(), 4)
    assert clock.passed_s == 3


async def test_a_landing_skips_the_spacing(pacer, clock):
    await take(pacer, write())
    await take(pacer, write(Priority.LANDING))
    assert clock.passed_s == 0


async def test_waiting_calls_go_by_priority_and_then_by_age(pacer):
    order = []

    async def ask(name, cost):
        async with pacer.turn(cost):
            order.append(name)

    holding = asyncio.Event()

    async def hold():
        async with pacer.turn(write(Priority.LANDING)):
            await holding.wait()

    tasks = [asyncio.create_task(hold())]
    await rest()
    asked = [
        ("notice", Priority.NOTICE),
        ("sweep", Priority.SWEEP),
        ("build", Priority.BUILD),
        ("answer", Priority.ANSWER),
        ("second build", Priority.BUILD),
        ("landing", Priority.LANDING),
    ]
    tasks += [asyncio.create_task(ask(name, write(priority))) for name, priority in asked]
    await rest()
    assert order == []
    holding.set()
    await asyncio.gather(*tasks)
    assert order == ["landing", "build", "second build", "answer", "notice", "sweep"]


async def test_one_write_at_a_time_and_twenty_calls_in_all(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    inside = {"all": 0, "writes": 0, "most": 0, "most_writes": 0}

    async def stay(cost):
        async with pacer.turn(cost):
            inside["all"] += 1
            inside["writes"] += cost.is_write
            inside["most"] = max(inside["most"], inside["all"])
            inside["most_writes"] = max(inside["most_writes"], inside["writes"])
            await asyncio.sleep(0)
            inside["all"] -= 1
            inside["writes"] -= cost.is_write

    reads = (stay(read(Priority.LANDING)) for _ in range(60))
    await asyncio.gather(*reads, *(stay(write()) for _ in range(5)))
    assert inside["most"] == pacing.IN_FLIGHT_MAX
    assert inside["most_writes"] == 1


async def test_a_cancelled_wait_leaves_the_line(pacer):
    holding = asyncio.Event()

    async def hold():
        async with pacer.turn(write()):
            await holding.wait()

    first = asyncio.create_task(hold())
    await rest()
    second = asyncio.create_task(take(pacer, write(Priority.LANDING)))
    third = asyncio.create_task(take(pacer, write(Priority.NOTICE)))
    await rest()
    second.cancel()
    await rest()
    holding.set()
    await first
    await third


def query(priority=Priority.VERDICT):
    return Cost(priority, is_write=False, points=1, resource="graphql")


async def test_points_of_a_minute_are_not_exceeded(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, write(Priority.LANDING), 150)
    assert clock.passed_s == 0
    with pytest.raises(Throttled) as throttled:
        await take(pacer, read(Priority.LANDING))
    assert throttled.value.retry_at == clock.now() + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("priority", "most"),
    [
        (Priority.SWEEP, 375),
        (Priority.NOTICE, 525),
        (Priority.BUILD, 637),
        (Priority.ANSWER, 675),
        (Priority.VERDICT, 712),
    ],
)
async def test_what_decides_finds_points_that_others_must_leave(clock, priority, most):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, read(priority), most)
    assert clock.passed_s == 0
    await take(pacer, read(priority))
    assert clock.passed_s == 60


async def test_queries_have_points_of_their_own(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, read(Priority.LANDING), 750)
    await take(pacer, query(), 1615)
    assert clock.passed_s == 0
    await take(pacer, query())
    assert clock.passed_s == 60


async def test_a_query_does_not_wait_behind_a_read_of_rest(pacer, clock):
    await take(pacer, read(Priority.LANDING), 750)
    clock.is_stopped = True
    reading = asyncio.create_task(take(pacer, read()))
    await rest()
    await take(pacer, query(Priority.SWEEP))
    assert not reading.done()
    reading.cancel()


async def test_notices_and_sweeps_leave_places_to_reads_that_decide(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    ended = asyncio.Event()

    async def hold(cost):
        async with pacer.turn(cost):
            await ended.wait()

    notices = [asyncio.create_task(hold(read(Priority.NOTICE))) for _ in range(40)]
    await rest()
    await asyncio.wait_for(take(pacer, read(), 6), 1)
    ended.set()
    await asyncio.gather(*notices)


async def test_a_line_is_bounded_and_ends_first_for_what_can_wait(pacer, clock):
    clock.is_stopped = True
    await take(pacer, read(Priority.LANDING), 750)
    sweeps = [asyncio.create_task(take(pacer, read(Priority.SWEEP))) for _ in range(300)]
    await rest()
    assert sum(each.done() for each in sweeps) == 300 - pacing.WAITING_MAX // 2
    verdict = asyncio.create_task(take(pacer, read()))
    await rest()
    assert not verdict.done()
    for each in (*sweeps, verdict):
        each.cancel()
    ended = await asyncio.gather(*sweeps, return_exceptions=True)
    assert sum(isinstance(each, Throttled) for each in ended) == 300 - pacing.WAITING_MAX // 2


async def test_a_budget_names_the_points_of_the_minute(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, write(), 2)
    clock.passed_s += 20
    await take(pacer, query())
    points = use_of(pacer, LimitName.REST_POINTS_MINUTE)
    assert (points.used, points.most) == (10, 750)
    assert points.frees_at == clock.now() + timedelta(seconds=40)
    assert use_of(pacer, LimitName.GRAPHQL_POINTS_MINUTE).used == 1


async def test_refreshes_leave_most_of_the_content_to_others(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    refresh = write(Priority.REFRESH, content=True)
    await take(pacer, refresh, 28)
    with pytest.raises(Throttled):
        await take(pacer, refresh, 200)
    await take(pacer, write(Priority.NOTICE, content=True))


async def test_content_is_limited_and_some_is_kept_for_landing(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    shares = {Priority.NOTICE: 59, Priority.BUILD: 63, Priority.FINAL: 66, Priority.LANDING: 70}
    used = 0
    for priority, most in shares.items():
        await take(pacer, write(priority, content=True), most - used)
        used = most
        assert clock.passed_s == 0
    await take(pacer, write(Priority.NOTICE, content=True))
    assert clock.passed_s == 60


def seen():
    return Cost(Priority.NOTICE, is_write=True, points=5, is_seen=True)


async def test_edits_and_check_runs_count_as_content_after_a_secondary_limit(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, seen(), 80)
    assert clock.passed_s == 0
    assert pacer.content_left == pacing.CONTENT_HOUR_MAX
    pacer.strike(Limit(wait_s=0), "core")
    assert pacer.content_left == pacing.CONTENT_HOUR_MAX - 80
    await take(pacer, seen())
    assert clock.passed_s >= 60


def use_of(pacer, name):
    return next(use for use in pacer.budget("octo/widgets").limits if use.name is name)


async def test_a_budget_names_what_is_used_of_each_limit_and_when_some_is_free(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, write(content=True), 3)
    clock.passed_s += 90
    await take(pacer, write(content=True))
    pacer.note(left(clock, 4000))
    pacer.counts.add_push("octo/widgets")
    pacer.counts.add_push("octo/other")
    minute = use_of(pacer, LimitName.CONTENT_MINUTE)
    assert (minute.used, minute.left) == (1, pacing.CONTENT_MINUTE_MAX - 1)
    hour = use_of(pacer, LimitName.CONTENT_HOUR)
    assert (hour.used, hour.frees_at) == (4, clock.now() + timedelta(seconds=3600 - 90))
    assert use_of(pacer, LimitName.REST_HOUR).left == 4000
    assert use_of(pacer, LimitName.PUSHES_MINUTE).used == 1


@pytest.mark.parametrize(
    ("remaining", "pressure"),
    [(4000, Pressure.NONE), (1500, Pressure.HIGH), (750, Pressure.CRITICAL)],
)
async def test_the_fullest_limit_makes_the_pressure(clock, remaining, pressure):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, write(content=True))
    pacer.note(left(clock, remaining))
    assert pacer.budget("octo/widgets").pressure is pressure
    clock.passed_s += 3600
    assert pacer.budget("octo/widgets").pressure is Pressure.NONE


async def test_a_secondary_limit_is_critical_while_it_lasts(pacer, clock):
    pacer.strike(Limit(wait_s=30), "core")
    assert pacer.budget("octo/widgets").pressure is Pressure.CRITICAL
    clock.passed_s += 31
    assert pacer.budget("octo/widgets").pressure is Pressure.NONE


async def test_calls_and_landings_are_counted_by_the_hour(pacer, clock):
    pacer.counts.add(CallKind.READ)
    pacer.counts.add_landed(2)
    clock.passed_s += 3000
    pacer.counts.add(CallKind.CONTENT)
    budget = pacer.budget("octo/widgets")
    assert (budget.calls["read"], budget.calls["content"], budget.landed) == (1, 1, 2)
    clock.passed_s += 601
    budget = pacer.budget("octo/widgets")
    assert (budget.calls["read"], budget.calls["content"], budget.landed) == (0, 1, 0)


async def test_a_secondary_limit_stops_everybody(pacer, clock):
    assert pacer.strike(Limit(wait_s=12), "core") == 12
    await take(pacer, read())
    assert clock.passed_s == 12


async def test_unnamed_limits_double_up_to_a_quarter_of_an_hour_until_all_is_fine(pacer):
    unnamed = Limit()
    waits = [pacer.strike(unnamed, "core") for _ in range(6)]
    assert waits == [60, 120, 240, 480, 900, 900]
    pacer.reset_strikes()
    assert pacer.strike(unnamed, "core") == 60


async def test_a_server_without_spacing_gets_some_once_it_throttles(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    await take(pacer, write(), 3)
    assert clock.passed_s == 0
    pacer.strike(Limit(wait_s=0), "core")
    await take(pacer, write(), 3)
    assert clock.passed_s == 2


async def test_what_would_wait_too_long_is_throttled(pacer, clock):
    pacer.strike(Limit(wait_s=61), "core")
    with pytest.raises(Throttled) as throttled:
        await take(pacer, read())
    assert throttled.value.retry_at == clock.now() + timedelta(seconds=61)
    pacer = Pacer(clock, 0.0, is_limited=True)
    pacer.strike(Limit(wait_s=6), "core")
    with pytest.raises(Throttled):
        await take(pacer, read(Priority.LANDING))


def left(clock, remaining, limit=5000, resource="core"):
    return {
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-reset": str(int(clock.now().timestamp()) + 3600),
        "x-ratelimit-resource": resource,
    }


@pytest.mark.parametrize(
    ("remaining", "stopped"),
    [
        (1001, set()),
        (1000, {Priority.REFRESH, Priority.SWEEP, Priority.ANONYMOUS}),
        (500, {Priority.NOTICE, Priority.REFRESH, Priority.SWEEP, Priority.ANONYMOUS}),
        (100, set(Priority) - {Priority.LANDING}),
        (1, set(Priority) - {Priority.LANDING}),
        (0, set(Priority)),
    ],
)
async def test_the_less_is_left_the_fewer_may_call(clock, remaining, stopped):
    pacer = Pacer(clock, 0.0, is_limited=True)
    pacer.note(left(clock, remaining))
    found = set()
    for priority in Priority:
        try:
            await take(pacer, read(priority))
        except Throttled:
            found.add(priority)
    assert found == stopped


@pytest.mark.parametrize("off", [timedelta(minutes=-10), timedelta(0), timedelta(minutes=10)])
async def test_a_reset_is_compared_with_the_clock_of_the_answer(clock, off):
    """Not with this machine's, which may be wrong, or set while the limit lasts."""
    pacer = Pacer(clock, 0.0, is_limited=True)
    theirs = clock.now() + off
    told = {"x-ratelimit-reset": str(int(theirs.timestamp()) + 1800)}
    pacer.note(left(clock, 0) | told | {"date": format_datetime(theirs, usegmt=True)})
    assert pacer.spent_until("core") == clock.now() + timedelta(seconds=1800)
    (hour,) = [
        use for use in pacer.budget("octo/widgets").limits if use.name is LimitName.REST_HOUR
    ]
    assert hour.frees_at == clock.now() + timedelta(seconds=1800)
    clock.passed_s += 1790
    with pytest.raises(Throttled):
        await take(pacer, read(Priority.LANDING))
    clock.passed_s += 10
    assert pacer.left_of("core") is None
    await take(pacer, read(Priority.LANDING))


@pytest.mark.parametrize("date", ["Thu, 01 Jan 1970 00:00:00 GMT", "yesterday", ""])
async def test_a_date_by_which_a_reset_is_far_away_is_that_of_a_proxy(clock, date):
    pacer = Pacer(clock, 0.0, is_limited=True)
    pacer.note(left(clock, 0) | {"date": date})
    assert pacer.spent_until("core") == clock.now() + timedelta(seconds=3600)


async def test_resources_are_counted_apart_and_come_back(clock):
    pacer = Pacer(clock, 0.0, is_limited=True)
    pacer.note(left(clock, 0, resource="graphql"))
    await take(pacer, read())
    with pytest.raises(Throttled):
        await take(pacer, query())
    clock.passed_s += 3600
    await take(pacer, query())


async def test_a_host_of_its_own_is_not_limited_until_it_says_so(clock):
    pacer = Pacer(clock, 0.0, is_limited=False)
    await take(pacer, write(Priority.BUILD), 200)
    assert clock.passed_s == 0
    pacer.strike(Limit(wait_s=5.0), "core")
    await take(pacer, read())
    assert clock.passed_s > 5


async def test_a_call_that_waits_in_the_line_gives_up_as_well(clock):
    """Otherwise calls behind others would hold the places of their effects for ever."""
    pacer = Pacer(clock, 0.0, is_limited=True)
    holding = asyncio.Event()

    async def hold():
        async with pacer.turn(write()):
            await holding.wait()

    first = asyncio.create_task(hold())
    await rest()
    second = asyncio.create_task(take(pacer, write()))
    third = asyncio.create_task(take(pacer, write(Priority.NOTICE)))
    await rest()
    clock.passed_s += pacing.PATIENCE_S + 1
    holding.set()
    await asyncio.gather(first, second)
    with pytest.raises(Throttled) as throttled:
        await third
    assert throttled.value.retry_at == clock.now() + timedelta(seconds=pacing.PATIENCE_S)


async def test_a_call_behind_one_that_waits_gives_up_in_time(clock):
    """The one at the head came later, so it is patient for longer."""
    pacer = Pacer(clock, 0.0, is_limited=True)
    holding = asyncio.Event()

    async def hold():
        async with pacer.turn(write()):
            await holding.wait()

    first = asyncio.create_task(hold())
    await rest()

    async def give_up():
        with pytest.raises(Throttled):
            await take(pacer, write(Priority.NOTICE))
        return clock.passed_s

    behind = asyncio.create_task(give_up())
    await rest()
    clock.passed_s += 40
    ahead = asyncio.create_task(take(pacer, write()))
    pacer.strike(Limit(wait_s=50.0), "core")
    holding.set()
    await asyncio.gather(first, ahead)
    assert await behind == pacing.PATIENCE_S
    assert clock.passed_s == 90


@pytest.mark.fault(
    "a host without limits, for years", holds="only calls of the last hour are kept", within="-"
)
async def test_where_no_limits_hold_old_calls_are_forgotten_too(clock):
    pacer = Pacer(clock, 0.0, is_limited=False)
    for _ in range(300):
        await take(pacer, write(content=True))
        pacer.counts.add_landed(1)
        pacer.counts.add_push("octo/widgets")
        clock.passed_s += 60
    assert max(len(times) for times in pacer._points.values()) <= 2
    assert len(pacer._content) <= 61
    assert len(pacer.counts._landed) <= 61
    assert len(pacer.counts._pushes["octo/widgets"]) <= 2

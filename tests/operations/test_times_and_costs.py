"""What tests take, what flaky ones cost, and shards (docs/design/test-costs.md)."""

import json
from dataclasses import replace
from datetime import date, timedelta
from itertools import count
from typing import Any

import pytest

from service.errors import Invalid
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.states import RunKind, RunStatus
from service.testhealth.filters import TimeOrder
from service.testhealth.flake_costs import Cost
from service.testhealth.operations import (
    count_days,
    flags,
    flake_costs,
    messages,
    remove,
    settings,
    slow_tests,
    sweeps,
)
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.operations.slow_tests import Period, ShardsWanted
from service.testhealth.reports.results import Attempt, CaseResult, FileStatus, Format, ReportFile
from service.vocabulary import SYSTEM, Flag, Sha
from tests.dashboard import queue_stage
from tests.dashboard.queue_stage import a_queue, a_run
from tests.operations import upload_stage
from tests.operations.upload_stage import LETTERS, NOW


class Died(Exception):
    """The process died."""


DAY = timedelta(days=1)
UPLOADS = count(1)
OWNERS = "tests/mail.py @octo/mail\ntests/shared.py @octo/mail @octo/web\n"


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


def a_report(tests, nth):
    """A report of tests: name → its attempts as letters, and the seconds of each."""
    cases = tuple(
        CaseResult(
            name,
            "Cart",
            "ui",
            f"tests/{name}.py",
            *((seconds, ()) if letters == "P" else (None, attempts_of(letters, seconds))),
        )
        for name, (letters, seconds) in tests.items()
    )
    report = ReportFile(Format.JUNIT, FileStatus.ACCEPTED, cases)
    return replace(report, name="junit.xml", sha256=f"{nth:064}")


def attempts_of(letters, seconds):
    return tuple(Attempt(LETTERS[each], seconds, "E: no" * (each == "F")) for each in letters)


async def ran(stage, days_ago, tests, **meta):
    """Upload a report of a day, two hours before its end by our clock's day."""
    nth = next(UPLOADS)
    at = NOW - days_ago * DAY - timedelta(hours=2)
    given = {"ran_at": at, "sha": Sha(f"{nth:040x}"), "run_id": f"{nth}", "branch": "main", **meta}
    return await stage.send([a_report(tests, nth)], **given)


async def counted(stage, days=1):
    """Let days pass until all that ran is counted."""
    stage.clock.present += timedelta(hours=24 * days)
    await sweeps.expire(stage.runtime)


async def slowest(stage, order=TimeOrder.TOTAL, owner="", at_most=10):
    return await slow_tests.slowest(stage.runtime, stage.repository, order, owner, at_most)


async def test_tests_are_listed_by_total_median_and_percentile_with_their_trend(stage):
    for day in range(14):
        slow = 3.0 if day < 7 else 2.0
        tests = {"mail": ("P", slow), "often": ("PPPP", 1.0), "spiky": ("P", 9 if day == 2 else 1)}
        await ran(stage, day, tests)
    assert (await slowest(stage)).period is None
    await counted(stage)
    found = await slowest(stage)
    assert found.period == Period(date(2026, 3, 15), date(2026, 3, 21))
    assert [each.case.name for each in found.tests] == ["often", "mail", "spiky"]
    times = {each.case.name: each for each in found.tests}
    assert times["mail"].now.total_ms == pytest.approx(21_000, rel=0.05)
    assert times["mail"].trend == pytest.approx(0.5, abs=0.15)
    assert times["spiky"].trend == 0
    assert times["often"].now.runs == 28
    assert found.now_ms == pytest.approx(64_000, rel=0.05)
    assert found.before_ms == pytest.approx(49_000, rel=0.05)
    by_median = await slowest(stage, TimeOrder.MEDIAN)
    assert by_median.tests[0].case.name == "mail"
    by_p95 = await slowest(stage, TimeOrder.P95, at_most=1)
    assert [each.case.name for each in by_p95.tests] == ["spiky"]
    assert by_p95.count == 3


async def test_a_removed_upload_takes_its_times_back_and_a_late_one_adds_its_own(stage):
    await ran(stage, 1, {"mail": ("P", 1.0)})
    wrong = await ran(stage, 1, {"mail": ("P", 500.0)})
    await counted(stage)
    assert (await slowest(stage)).now_ms == pytest.approx(501_000, rel=0.05)
    await remove.remove(stage.runtime, stage.repository, wrong.upload_id, SYSTEM)
    await ran(stage, 1, {"mail": ("P", 3.0)})
    await counted(stage)
    (test,) = (await slowest(stage)).tests
    assert (test.now.runs, test.now.total_ms) == (2, pytest.approx(4000, rel=0.05))


async def test_a_day_whose_sum_was_not_written_is_summed_by_the_next_sweep(stage, monkeypatch):
    await ran(stage, 1, {"mail": ("P", 1.0)})
    stage.clock.present += DAY

    async def dies(*_):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(count_days, "sum_weeks", dies)
        with pytest.raises(Died):
            await sweeps.expire(stage.runtime)
    assert (await slowest(stage)).tests == ()
    await sweeps.expire(stage.runtime)
    assert [each.case.name for each in (await slowest(stage)).tests] == ["mail"]


async def test_shards_are_planned_by_the_medians_of_files(stage):
    wanted = ShardsWanted(2)
    with pytest.raises(Invalid, match="No time of a test in octo/widgets is known yet") as refused:
        await slow_tests.plan_shards(stage.runtime, stage.repository, wanted)
    assert refused.value.code == "times_unknown"
    named = ShardsWanted(2, ("tests/mail.py", "tests/new.py"))
    blind = await slow_tests.plan_shards(stage.runtime, stage.repository, named)
    assert "No time of these files is known" in blind.note
    await ran(stage, 1, {"mail": ("P", 6.0), "web": ("P", 4.0), "cart": ("P", 2.0)})
    await counted(stage)
    found = await slow_tests.plan_shards(stage.runtime, stage.repository, wanted)
    assert {shard.files for shard in found.plan.shards} == {
        ("tests/mail.py",),
        ("tests/cart.py", "tests/web.py"),
    }
    assert found.plan.worst_s == pytest.approx(6, rel=0.05)
    assert found.note == ""
    mixed = ShardsWanted(2, ("./tests/mail.py", "tests/web.py", "tests/cart.py", "tests/new.py"))
    found = await slow_tests.plan_shards(stage.runtime, stage.repository, mixed)
    assert found.note.startswith("The time of 1 of 4 files is not known; each counts as 4")
    little = replace(mixed, files=("tests/mail.py", "a.py", "b.py", "c.py"))
    found = await slow_tests.plan_shards(stage.runtime, stage.repository, little)
    assert found.note.startswith("Too little is known for a good plan: the time of 3 of 4 files")


async def flagged(stage, name):
    """Say of a test that it is flaky."""
    said = FlagRequest((await stage.case(name)).id, Flag.FLAKY, "a race")
    await flags.put(stage.runtime, stage.repository, said, SYSTEM)


async def costs_of(stage, weeks=3):
    return await flake_costs.of_repository(stage.runtime, stage.repository, weeks)


async def test_costs_are_told_by_week_and_owner_of_tests_that_were_flaky_then(stage):
    passing = {"mail": ("P", 60.0), "shared": ("P", 60.0), "sound": ("P", 60.0)}
    await ran(stage, 1, passing, codeowners=OWNERS)
    for name in ("mail", "shared"):
        await flagged(stage, name)
    # NOW is a Sunday's first instant: these runs end on that day, on Monday, and a week later.
    for days_later, name in ((1, "mail"), (2, "shared"), (2, "sound"), (9, "mail")):
        failing = {**passing, name: ("F", 60.0)}
        stage.clock.present = NOW + days_later * DAY
        await ran(stage, -days_later, failing, codeowners=OWNERS)
    await counted(stage)
    found = await costs_of(stage)
    assert [week.cost.ci_ms for week in found.weeks] == [180_000, 180_000, 180_000]
    owners = {each.owner: [cost.ci_ms for cost in each.weeks] for each in found.owners}
    assert owners == {"@octo/mail": [180_000, 90_000, 180_000], "@octo/web": [0, 90_000, 0]}
    assert [week.start for week in found.weeks][-1] == date(2026, 3, 30)
    assert (found.first, found.weeks[0].is_whole) == (date(2026, 3, 20), False)


@pytest.mark.parametrize(
    ("limit", "ci_ms", "expected"),
    [(None, 120_001, False), (2, 120_000, False), (2, 120_001, True), (0, 1, True)],
)
def test_a_cost_is_above_a_limit_only_where_there_is_one(limit, ci_ms, expected):
    assert flake_costs.is_above(Cost(ci_ms=ci_ms), limit) is expected


async def test_a_limit_is_told_once_a_week(stage, monkeypatch):
    told = []
    monkeypatch.setattr(messages, "tell", lambda *given: told.append(given[-1]))
    await ran(stage, 1, {"mail": ("P", 60.0)})
    await flagged(stage, "mail")
    changes = {"flake_cost_alert_minutes": 2}
    await settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    told.clear()
    for days_later, expected in ((2, 0), (3, 0), (4, 1), (5, 1), (9, 1), (10, 1), (11, 2)):
        stage.clock.present = NOW + days_later * DAY
        await ran(stage, -days_later, {"mail": ("F", 60.0)})
        await counted(stage)
        named = [each for each in told if each.event == "flake_costs.exceeded"]
        assert len(named) == expected, days_later
    body = json.loads(named[0].body)["flake_costs"]
    assert body == {"week_start": "2026-03-23", "ci_minutes": 3, "limit_minutes": 2}


FLAKED, AGAIN = Sha("c1" * 20), Sha("c2" * 20)


def at(minutes):
    """Return a time of the last two hours of the day before NOW."""
    return NOW - timedelta(hours=2) + timedelta(minutes=minutes)


async def test_pull_requests_wait_for_failures_that_the_queue_proved_to_be_flaky(store, stage):
    queue = await queue_stage.staged(store)
    over: dict[str, Any] = {"created_at": at(0), "built_at": at(0), "start_clock": at(0)}
    failed = a_run(1, (7, 8), status=RunStatus.FAILED, finished_at=at(10), sha=FLAKED, **over)
    passed = a_run(
        2, (7, 8), kind=RunKind.CONFIRMATION, status=RunStatus.SUCCEEDED, finished_at=at(40),
        sha=AGAIN, steps=failed.steps, **over,
    )  # fmt: skip
    retried = a_run(
        3, (9,), status=RunStatus.SUCCEEDED, is_flaky=True, attempt=2, rerun_at=at(50),
        finished_at=at(55), **over,
    )  # fmt: skip
    outage = a_run(4, (10,), status=RunStatus.FAILED, cause=Cause.INFRA, finished_at=at(20), **over)
    mended = a_run(
        5, (10,), status=RunStatus.SUCCEEDED, finished_at=at(60), steps=outage.steps, **over
    )
    await queue.put(a_queue(), runs=(failed, passed, retried, outage, mended))
    tests = {"mail": ("P", 6.0), "shared": ("P", 6.0)}
    await ran(stage, 0, tests, codeowners=OWNERS)
    branch = failed.branch
    await ran(stage, 0, {**tests, "shared": ("F", 6.0)}, sha=FLAKED, branch=branch)
    await counted(stage)
    found = await costs_of(stage, 2)
    cost = found.weeks[0].cost
    assert (cost.wait_ms, cost.failures) == ((2 * 30 + 5) * 60_000, 2)
    waits = {each.owner: each.whole.wait_ms / 60_000 for each in found.owners}
    assert waits == {"@octo/mail": 30, "@octo/web": 30, "": 5}


async def test_a_pull_request_waits_once_for_failures_that_overlap(store, stage):
    queue = await queue_stage.staged(store)
    over: dict[str, Any] = {"created_at": at(0), "built_at": at(0), "start_clock": at(0)}
    failed = {"status": RunStatus.FAILED, **over}
    passed = {"status": RunStatus.SUCCEEDED, "kind": RunKind.CONFIRMATION, **over}
    first = a_run(1, (8, 7), finished_at=at(10), sha=FLAKED, **failed)
    second = a_run(2, (7,), finished_at=at(20), sha=AGAIN, steps=first.steps, **failed)
    inner = a_run(3, (8,), finished_at=at(25), sha=Sha("c3" * 20), **failed)
    healed = a_run(4, (8,), finished_at=at(30), steps=inner.steps, **passed)
    # Its own retry is inside the time that its first failure began.
    whole = a_run(
        5, (8, 7), finished_at=at(40), steps=first.steps, is_flaky=True, attempt=2,
        rerun_at=at(35), **passed,
    )  # fmt: skip
    await queue.put(a_queue(), runs=(first, second, inner, healed, whole))
    tests = {"mail": ("P", 6.0)}
    await ran(stage, 0, tests, codeowners=OWNERS)
    await ran(stage, 0, {"mail": ("F", 6.0)}, sha=FLAKED, branch=first.branch)
    await counted(stage)
    cost = (await costs_of(stage, 2)).weeks[0].cost
    assert (cost.wait_ms, cost.failures) == (2 * 30 * 60_000, 4)

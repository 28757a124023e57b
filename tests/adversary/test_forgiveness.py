"""Attacks that would have a regression excused by what is known of flaky tests."""

from datetime import timedelta
from typing import Any, NamedTuple

import aiohttp
import pytest

from service.mergequeue.engine.states import RunStatus
from service.vocabulary import Role
from tests.adversary.judge import landed_on
from tests.harness import effort, gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
OTHER = "ImportError: no module named cart"
GREEN = {"total": "", "mail": ""}
RED = {"total": WRONG, "mail": ""}
JOB = "unit"
Files = dict[str, str | None]
"""Each path → its content after a change, None: it is deleted."""

HALVES = {
    "attempt that repeats only failed tests": [(RED, 1), ({"total": ""}, 2)],
    "run that was canceled after half of its results": [({"total": ""}, 1)],
}
"""CI runs on `main` whose last results are half of what the job reports: tests and attempt."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and that we may start again."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `total` is quarantined, and `unit` has reported two tests on `main`."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(asking, GREEN, "1")
    await ci.quarantine(asking, "total", WRONG)
    return asking


async def merging(world: World, files: Files | None = None, *, fresh: bool = False) -> int:
    """A pull request that was asked to merge; its number. `fresh`: it contains the tip."""
    number = await world.open(files=files, fresh=fresh)
    await world.settle()
    await world.comment("/merge", on=number)
    return number


async def sent(ask: Asker, gate: gates.Gate, tests: dict[str, str], **meta: Any) -> dict[str, Any]:
    """Upload results in the name of the CI job that tests a run."""
    ran = gates.workflow_run_of(ask.world, gate.check)
    about = {
        "sha": gate.run.sha,
        "branch": gate.run.branch,
        "run_id": str(ran.id),
        "run_attempt": ran.attempt,
        "job": JOB,
    }
    by = ci.token_of(ask.world, gate.check)
    return await ci.upload(ask, tests, **{"by": by, **about, **meta})


async def test_what_proves_everything_is_still_excused(world: World, ask: Asker) -> None:
    """Hurts authors: a rule so strict that no failure is ever excused would be a cheap defense."""
    number = await merging(world)
    await ci.ends(ask, number, RED)
    await world.settle()
    assert len(await landed_on(world)) == 1


class Incomplete(NamedTuple):
    """A report that proves too little, and what is said of it."""

    tests: dict[str, str]
    meta: dict[str, Any]
    named: str


INCOMPLETE = {
    "runner crashed": Incomplete({"total": WRONG}, {}, "1 of 2 tests"),
    "odd code": Incomplete(RED, {"command_exit_code": 7}, "ended with 7"),
    "signal": Incomplete(RED, {"command_exit_code": 139}, "signal 11"),
    "upload missing": Incomplete(RED, {"session": "s", "session_uploads": 2}, "1 of 2 uploads"),
    "file unread": Incomplete(RED, {"unsent_files": 1}, "1 report file"),
    "job renamed": Incomplete(
        {"total": WRONG, "mail": "", "new": ""}, {"job": "renamed"}, "`renamed` has not reported"
    ),
}
TOLD_ALIKE = ("signal", "upload missing")
"""What tests/flaky/test_completeness.py finds as well; `make soak` plays it."""


async def test_a_report_that_proves_too_little_excuses_nothing(world: World, ask: Asker) -> None:
    """Hurts everybody who builds main: `mail` is broken, and its result is lost or never made."""
    for attack, report in INCOMPLETE.items():
        if attack in TOLD_ALIKE and not effort.IS_SOAK:
            continue
        number = await merging(world)
        gate = await gates.under_test(world, number)
        await sent(ask, gate, report.tests, **report.meta)
        run = await ci.ends(ask, number, RED, sends=False)
        await world.settle()
        assert await world.state(number) == "FAILED", attack
        assert await landed_on(world) == [], attack
        assert report.named in world.comment_on(number), attack
        shown = await ask.done("getMergeQueueTestingDetails", testRunId=run.id)
        assert report.named in str(shown["incompleteReports"]), attack


async def test_a_known_flake_in_half_a_report_is_not_tried_again(world: World, ask: Asker) -> None:
    """Hurts those behind: a lost report would be taken for a flake and cost a second run."""
    await ci.settle_tests(ask, "update-settings", quarantine_enabled=False)
    await ci.on_main(ask, RED, "2")
    await ci.on_main(ask, GREEN, "3")
    number = await merging(world)
    await ci.ends(ask, number, {"total": WRONG})
    await world.settle()
    assert await landed_on(world) == []
    assert (await world.state(number)) == "FAILED"


async def test_a_job_does_not_borrow_the_expectation_of_a_smaller_one(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: results sent under another job's name hide lost ones."""
    await ci.on_main(ask, GREEN, "1")
    sha = str(world.repository.git.branch("main"))
    by = ci.token_on_main(world, "1")
    await ci.upload(ask, {"total": ""}, by=by, sha=sha, branch="main", run_id="1", job="small")
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await sent(ask, gate, {"total": WRONG}, job="small")
    await ci.ends(ask, number, RED, sends=False)
    await world.settle()
    assert await landed_on(world) == []


async def test_a_late_upload_takes_an_excuse_back(world: World, ask: Asker) -> None:
    """Hurts everybody who builds main: the failure that counts arrives when all looks excused."""
    ahead = await merging(world)
    number = await merging(world)
    first = await gates.under_test(world, ahead)
    gate = await gates.under_test(world, number)
    await ci.ends(ask, number, RED)

    async def is_excused() -> bool:
        run = (await world.value()).runs.get(gate.run.id)
        return run is not None and run.excused == ("unit",)

    await world.until(is_excused)
    await sent(ask, gate, {"mail": WRONG})
    assert first.run.id != gate.run.id
    await ci.ends(ask, ahead, GREEN)
    await world.settle()
    assert len(await landed_on(world)) == 1
    assert await world.state(number) == "FAILED"


COMMAND = {
    "session": "a" * 32,
    "session_uploads": 1,
    "command_exit_code": 1,
    "runner": "pytest",
}
"""One run of `headgate test` around tests that failed."""


async def behind_another(world: World, ask: Asker) -> tuple[int, gates.Gate, int]:
    """A pull request whose run cannot land before another one: that one, the run, and itself."""
    ahead = await merging(world)
    number = await merging(world)
    await gates.under_test(world, ahead)
    return ahead, await gates.under_test(world, number), number


async def passed(world: World, gate: gates.Gate) -> None:
    """Wait until the queue counts a run as passed."""

    async def has_passed() -> bool:
        run = (await world.value()).runs.get(gate.run.id)
        return run is not None and run.status is RunStatus.SUCCEEDED

    await world.until(has_passed)


LATE: dict[str, dict[str, Any]] = {
    "plain upload": {},
    "another command": {"session": "b" * 32, "command_exit_code": 1, "runner": "pytest"},
    "same command": {"session": "a" * 32},
}


async def test_a_late_upload_fails_a_check_that_passed_by_an_excuse(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: the check is green by `headgate test`, the rest is late."""
    for landed, (attack, late) in enumerate(LATE.items()):
        ahead, gate, number = await behind_another(world, ask)
        answer = await sent(ask, gate, RED, **COMMAND)
        assert answer["verdict"]["exit_code"] == 0, attack
        await ci.ends(ask, number, GREEN, sends=False)
        await passed(world, gate)
        await sent(ask, gate, {"mail": WRONG}, **late)
        await ci.ends(ask, ahead, GREEN)
        await world.settle()
        assert len(await landed_on(world)) == landed + 1, attack
        assert await world.state(number) == "FAILED", attack
        assert "passed, but counts as failed" in world.comment_on(number), attack
        assert "tests/mail.py::mail" in world.comment_on(number), attack


async def test_an_upload_of_a_later_step_fails_a_job_that_was_excused(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: the failure comes before the check turns green."""
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await sent(ask, gate, RED, **COMMAND)
    await sent(ask, gate, {"mail": WRONG})
    await ci.ends(ask, number, GREEN, sends=False)
    await world.settle()
    assert await landed_on(world) == []
    assert await world.state(number) == "FAILED"


async def test_a_failure_counts_though_the_check_turns_green_while_its_job_is_looked_up(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: GitHub answers slowly, and the failure is passed by."""
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await sent(ask, gate, RED, **COMMAND)
    await world.fault({"path": "*/attempts/*/jobs", "nth": 1}, "hang", s=30)
    await sent(ask, gate, {"mail": WRONG})
    await ci.ends(ask, number, GREEN, sends=False)
    await world.settle()
    assert await landed_on(world) == []
    assert await world.state(number) == "FAILED"


async def test_an_excuse_is_taken_back_though_the_queue_resumes_while_the_job_is_looked_up(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: GitHub answers slowly, and the failure is passed by."""
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await world.comment("/merge pause for a moment", on=number, by="alice")
    await ci.ends(ask, number, RED)
    await passed(world, gate)
    await world.fault({"path": "*/attempts/*/jobs", "nth": 1}, "hang", s=30)
    await sent(ask, gate, {"mail": WRONG})
    await world.comment("/merge resume", on=number, by="alice")
    await world.settle()
    assert await landed_on(world) == []
    assert await world.state(number) == "FAILED"


async def test_a_job_that_was_not_excused_stays_green_whatever_it_reports(
    world: World, ask: Asker
) -> None:
    """Hurts authors: a project that lets failures of a job pass would never merge again."""
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await sent(ask, gate, {"total": "", "mail": WRONG}, **COMMAND)
    await sent(ask, gate, RED)
    await ci.ends(ask, number, GREEN, sends=False)
    await world.settle()
    assert len(await landed_on(world)) == 1


async def test_a_token_of_other_jobs_fails_no_run_by_an_upload(world: World, ask: Asker) -> None:
    """Hurts authors: any job with the shared token names their run, and fails it."""
    stranger = await asker(world, role=Role.CI)
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await sent(ask, gate, RED, **COMMAND)
    await sent(stranger, gate, {"mail": WRONG}, by="")
    await ci.ends(ask, number, GREEN, sends=False)
    await world.settle()
    assert len(await landed_on(world)) == 1


async def test_a_failure_that_arrives_after_the_landing_is_told(world: World, ask: Asker) -> None:
    """Hurts everybody who builds main: nobody hears that what landed had failed."""
    number = await merging(world)
    gate = await gates.under_test(world, number)
    await ci.ends(ask, number, RED)
    await world.settle()
    assert len(await landed_on(world)) == 1
    await sent(ask, gate, {"mail": WRONG})
    await world.settle()
    said = [one.body for one in world.repository.issues[number].comments]
    assert any("after it merged" in body and "tests/mail.py::mail" in body for body in said)


async def test_known_failures_does_not_excuse_a_new_text_that_repeats(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: a real break hides behind a test that is known to flake."""
    number = await merging(world)
    first = await ci.ends(ask, number, {"total": OTHER, "mail": ""})

    async def is_tried_again() -> bool:
        run = (await world.value()).runs.get(first.id)
        return run is not None and run.attempt == 2

    await world.until(is_tried_again)
    await ci.ends(ask, number, {"total": OTHER, "mail": ""})
    await world.settle()
    assert await landed_on(world) == []


async def test_any_failure_excuses_a_new_text_and_says_so(world: World, ask: Asker) -> None:
    """Hurts reviewers: a break that is excused by the rule must be seen by those who read."""
    await ci.settle_tests(ask, "update-settings", quarantine_forgives="ANY_FAILURE")
    number = await merging(world)
    run = await ci.ends(ask, number, {"total": OTHER, "mail": ""})
    await world.settle()
    assert len(await landed_on(world)) == 1
    assert "new failure text" in world.comment_on(number)
    shown = await ask.done("getMergeQueueTestingDetails", testRunId=run.id)
    assert [one["newFailureText"] for one in shown["failedTests"]] == [True]


async def test_tests_that_the_change_deletes_are_not_missed(world: World, ask: Asker) -> None:
    """Hurts authors: who deletes a test would never be excused again."""
    await world.act("push", by="alice", branch="main", files={"tests/mail.py": "x\n"}, bypass=True)
    number = await merging(world, files={"tests/mail.py": None}, fresh=True)
    await ci.ends(ask, number, {"total": WRONG})
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_a_package_that_does_not_build_blocks_though_it_is_a_plain_line(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: Go before 1.24 says in a plain line what did not build."""
    lines = (
        b'{"Action":"fail","Package":"x/a","Test":"total"}\n'
        b'{"Action":"fail","Package":"x/a"}\n'
        b"FAIL\tx/b [build failed]\n"
    )
    form = aiohttp.FormData()
    form.add_field("metadata", ci.about(sha="c" * 40, job="go"))
    form.add_field("file", lines, filename="go.json")
    answer = await ci.done(ask, "upload-test-results", data=form)
    assert answer["counts"]["suite_failures"] == 1


async def later_on_main(ask: Asker, minutes: int, tests: dict[str, str], **meta: Any) -> None:
    """Results of another CI run of the tip of `main`."""
    sha = str(ask.world.repository.git.branch("main"))
    ran_at = (ask.world.runtime.clock.now() + timedelta(minutes=minutes)).isoformat()
    told = {"sha": sha, "branch": "main", "run_id": "2", "job": "unit", "ran_at": ran_at}
    by = ci.token_on_main(ask.world, "2", meta.get("run_attempt", 1))
    await ci.upload(ask, tests, by=by, **told, **meta)


@pytest.mark.parametrize("half", HALVES)
async def test_half_of_a_run_on_main_does_not_say_what_the_whole_job_reports(
    world: World, ask: Asker, half: str
) -> None:
    """Hurts everybody who builds main: `mail` is broken, and its result is lost or never made."""
    for minutes, (tests, attempt) in enumerate(HALVES[half], 1):
        await later_on_main(ask, minutes, tests, run_attempt=attempt)
    number = await merging(world)
    await ci.ends(ask, number, {"total": WRONG})
    await world.settle()
    assert await landed_on(world) == []
    assert await world.state(number) == "FAILED"
    assert "1 of 2 tests" in world.comment_on(number)

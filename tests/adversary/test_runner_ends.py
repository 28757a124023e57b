"""Stories of one quarantined failure, with and without the word of the runner.

What the word shows is held or let through by it; what it cannot show stays as it was.
"""

from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from tests.adversary.judge import landed_on
from tests.harness import command_reports as command
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.command_reports import CART, GREEN, RED
from tests.harness.world import World, WorldOptions

FAILED: dict[str, Any] = {
    "run": "1",
    "runner": "pytest",
    "reason": "tests_failed",
    "exit_code": 1,
    "planned": 4,
    "passed": 3,
    "failed": 1,
}
PASSED = {**FAILED, "reason": "passed", "exit_code": 0, "passed": 4, "failed": 0}
NEW = {"file": "tests/new.test.js", "message": "SyntaxError: Unexpected token"}
COVERAGE = {"runner": "pytest-cov"}
NO_CART = {name: inside for name, inside in RED.items() if name != CART}
TOUCHES_CART: dict[str, str | None] = {"tests/cart.py": "# its tests are elsewhere now\n"}


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `total` is quarantined."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    earlier = (world.runtime.clock.now() - timedelta(hours=1)).isoformat()
    for run_id in "12":
        about = {"runner_ends": [PASSED], "ran_at": earlier}
        await command.on_main(asking, GREEN, 0, run_id, **about)
    await command.quarantine(asking)
    return asking


class Story(NamedTuple):
    """A report of a test run; `without` says what is missing in it, empty: it is excused.

    `said` is the same beside the word of the runner, None where it has no word.
    """

    without: str
    end: dict[str, Any]
    said: str
    meta: dict[str, Any] = {}  # noqa: RUF012 - never changed
    tests: dict[str, str] = dict(RED)  # noqa: RUF012
    files: dict[str, str | None] | None = None
    code: int = 1


def told(**more: Any) -> dict[str, Any]:
    return {**FAILED, **more}


STORIES = {
    "the coverage was high enough": Story("ended with 1", told(), "", COVERAGE),
    "the coverage was too low": Story(
        "ended with 1", told(reason="threshold"), "a threshold was missed", COVERAGE
    ),
    "a touched file has lost its tests": Story(
        "1 of 4 tests", told(planned=3, passed=2), "", tests=NO_CART, files=TOUCHES_CART
    ),
    "a touched file does not load": Story(
        "1 of 4 tests",
        told(planned=3, passed=2, reason="unloaded", unloaded=[NEW]),
        "`tests/new.test.js` did not load: `SyntaxError: Unexpected token`",
        tests=NO_CART,
        files=TOUCHES_CART,
    ),
    "another file is silent": Story(
        "1 of 4 tests", told(planned=3, passed=2), "1 of 4 tests", tests=NO_CART
    ),
    # Nobody expects anything of a new file.
    "a new file does not load": Story(
        "", told(reason="unloaded", unloaded=[NEW]), "`tests/new.test.js` did not load"
    ),
    "the runner was killed late": Story(
        "", {"run": "1", "runner": "pytest", "reason": "killed"}, "never said how it ended"
    ),
    "a shared fixture failed": Story(
        "",
        told(reason="error_outside", errors_outside=[{"file": "", "message": "OSError: gone"}]),
        "an error outside of the tests: `OSError: gone`",
    ),
    "tests did not run": Story("", told(planned=6, not_run=2), "did not run 2 of 6 tests"),
    "tests are in no report": Story("", told(planned=9, passed=8), "its report files have 4"),
    "a runner behind a script": Story(
        "ended with 1", told(), "ended with 1", {"runner": "sh", "command_key": "k"}
    ),
    "an exit code that the runner does not name": Story(
        "ended with 7", told(), "says that it ends with 1", {"runner": "pytest-cov"}, code=7
    ),
}


async def answer_of(ask: Asker, gate: gates.Gate, story: Story, **meta: Any) -> dict[str, Any]:
    # Equal content would be the same upload.
    number = ask.world.sandbox.world.new_id()
    report = command.report_of(story.tests) + f"<!-- {number} -->".encode()
    return await command.in_gate(ask, gate, report, story.code, **story.meta, **meta)


async def under_test(world: World, files: dict[str, str | None] | None) -> gates.Gate:
    number = await world.open(files=files)
    await world.settle()
    await world.comment("/merge", on=number)
    return await gates.under_test(world, number)


def reasons(answer: dict[str, Any]) -> str:
    return " ".join(answer["not_excused_because"])


async def test_the_word_of_a_runner_replaces_a_guess(world: World, ask: Asker) -> None:
    """Hurts everybody who builds main: what broke beside a known failure lands with it."""
    for files in (None, TOUCHES_CART):
        gate = await under_test(world, files)
        for name, story in STORIES.items():
            if story.files == files:
                await is_judged(ask, gate, name, story)
        await ci.ends(ask, gate.run.prs[0], {"total": "failed"}, sends=False)
        await world.settle()


async def is_judged(ask: Asker, gate: gates.Gate, name: str, story: Story) -> None:
    for said, ends in ((story.without, []), (story.said, [story.end])):
        answer = await answer_of(ask, gate, story, runner_ends=ends)
        assert answer["verdict"]["exit_code"] == (story.code if said else 0), name
        assert said in reasons(answer), name
        assert bool(said) is bool(reasons(answer)), (name, reasons(answer))
        assert [each["reason"] for each in answer["runner_ends"]] == [e["reason"] for e in ends]


@pytest.mark.parametrize("reason", ["tests_failed", "threshold"])
async def test_a_run_lands_by_the_word_of_its_runner(world: World, ask: Asker, reason: str) -> None:
    """Hurts everybody who builds main: the code of a missed threshold is that of a failed test."""
    gate = await under_test(world, None)
    story = STORIES["the coverage was high enough"]
    answer = await answer_of(ask, gate, story, runner_ends=[told(reason=reason)])
    code = answer["verdict"]["exit_code"]
    await ci.ends(ask, gate.run.prs[0], {"total": "failed" if code else ""}, sends=False)
    await world.settle()
    assert bool(await landed_on(world)) is (reason == "tests_failed")


async def test_a_runner_is_believed_where_it_speaks_on_the_target_branch_too(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: a test writes the line of a plug-in that is not there."""
    await command.on_main(ask, GREEN, 0, "3")
    gate = await under_test(world, None)
    story = STORIES["the coverage was high enough"]
    answer = await answer_of(ask, gate, story, runner_ends=[told()])
    assert answer["verdict"]["exit_code"] == 1
    assert "ended with 1" in reasons(answer)


async def test_a_word_is_proved_as_far_as_its_upload_is(world: World, ask: Asker) -> None:
    """Hurts everybody who builds main: another job could speak in the name of this one's runner."""
    await ci.settle_tests(ask, "update-settings", excuse_proof="JOB")
    gate = await under_test(world, None)
    story = STORIES["the coverage was high enough"]
    answer = await answer_of(ask, gate, story, runner_ends=[told()])
    assert "no report of the CI job itself" in reasons(answer)
    by = ci.token_of(world, gate.check)
    answer = await answer_of(ask, gate, story, runner_ends=[told()], by=by)
    assert reasons(answer) == ""


async def test_results_of_a_runner_that_did_not_end_plainly_teach_no_code(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: a file that does not load ends `make` as tests do."""
    made = {"runner": "make", "command_key": "m"}
    end = told(runner="jest", reason="unloaded", unloaded=[NEW])
    await command.on_main(ask, RED, 2, "5", runner_ends=[end], **made)
    await command.on_main(ask, GREEN, 0, "5", run_attempt=2, **made)
    gate = await under_test(world, None)
    answer = await command.in_gate(ask, gate, command.report_of(RED), 2, **made)
    assert "ended with 2" in reasons(answer)

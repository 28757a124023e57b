"""Attacks by reports in which a known failure is all that is seen, and more has failed.

Each is sent by `headgate test` for a queue's test run, beside one quarantined failure.
"""

from typing import Any, NamedTuple

import pytest

from tests.adversary.judge import landed_on
from tests.harness import command_reports as command
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.command_reports import CART, FAILS, GREEN, MAIL, POST, RED, TOTAL
from tests.harness.world import World, WorldOptions

TEARDOWN = '<error message="failed on teardown with &quot;OSError: the schema is gone&quot;"/>'
OLD_TEARDOWN = '<error message="test teardown failure">OSError: gone</error>'
SETUP = '<error message="failed on setup with &quot;OSError: no database&quot;"/>'
SKIPPED = "<skipped/>"


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so."""
    return WorldOptions(ci=gates.CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin; `total` is quarantined, whose known failures are one of its own and of fixtures."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    for run_id in "12":
        await command.on_main(asking, GREEN, 0, run_id)
    await command.quarantine(asking, FAILS, TEARDOWN, OLD_TEARDOWN)
    return asking


class Attack(NamedTuple):
    """A report with more wrong in it than a known failure, and what is said of it."""

    report: bytes
    named: str
    meta: dict[str, Any] = {}  # noqa: RUF012 - never changed
    code: int = 1
    files: dict[str, str | None] | None = None


def without(*names: str) -> dict[str, str]:
    return {name: inside for name, inside in RED.items() if name not in names}


def report(**inside: str) -> bytes:
    return command.report_of({**RED, **inside})


BREAKS_MAIL: dict[str, str | None] = {"tests/mail.py": "import nope\n"}
TESTS_GONE = {
    "a test is gone": Attack(command.report_of(without(CART)), "1 of 4 tests"),
    "one of a file's tests is gone": Attack(command.report_of(without(POST)), "1 of 4 tests"),
    "a touched file does not load": Attack(
        command.report_of(without(MAIL, POST)), "2 of 4 tests", files=BREAKS_MAIL
    ),
    "another file is touched": Attack(
        command.report_of(without(POST)), "1 of 4 tests", files={"tests/cart.py": "x\n"}
    ),
    "a file of the same name is deleted elsewhere": Attack(
        command.report_of(without(CART)), "1 of 4 tests", files={"tests/cart.py.txt": "x\n"}
    ),
}
DECLARED = {
    "a declared failure is not there": Attack(
        command.report_of(RED, about='failures="2"'), "1 failure more"
    ),
    "a declared error is not there": Attack(
        command.report_of(RED, about='failures="1" errors="1"'), "1 failure more"
    ),
    "the root declares more": Attack(
        b'<testsuites failures="3">' + command.report_of(RED) + b"</testsuites>", "2 failures more"
    ),
    "an inner suite declares more": Attack(
        b'<testsuite failures="1">'
        + command.report_of(RED, about='failures="2"')
        + b"</testsuite>",
        "1 failure more",
    ),
}
UNKNOWN = {
    "an unknown status": Attack(command.report_of(RED, last='status="incomplete"'), "`incomplete`"),
    "an unknown result": Attack(command.report_of(RED, last='result="timeout"'), "`timeout`"),
    "an unknown element": Attack(report(cart="<aborted/>"), "`<aborted>`"),
    "a rerun that failed, without its failure": Attack(
        report(cart='<rerunFailure message="no"/>'), "without <failure>"
    ),
    "a rerun with an error": Attack(report(cart='<rerunError message="no"/>'), "without <failure>"),
}
SKIPS = {
    "a test is skipped": Attack(report(cart=SKIPPED), "1 test that passed"),
    "all others are skipped": Attack(
        report(cart=SKIPPED, mail=SKIPPED, post=SKIPPED), "3 tests that passed"
    ),
    "skipped by its status": Attack(
        command.report_of(RED, last='status="disabled"'), "1 test that passed"
    ),
}
FIXTURES = {
    "a shared fixture ends badly": Attack(report(total=TEARDOWN), "a fixture failed"),
    "the same in the words of old pytest": Attack(report(total=OLD_TEARDOWN), "a fixture failed"),
    "a fixture fails at its beginning": Attack(report(total=SETUP), "a fixture failed"),
    "a known failure, and then the fixture": Attack(
        command.report_of(RED).replace(
            b"</testcase>",
            f'</testcase><testcase name="{TOTAL}" classname="Cart" file="tests/total.py">'
            f"{TEARDOWN}</testcase>".encode(),
            1,
        ),
        "a fixture failed",
    ),
}
COMMANDS = {
    "an unhandled rejection": Attack(report(), "ended with 1", {"runner": "vitest"}),
    "a file that jest does not load": Attack(report(), "ended with 1", {"runner": "jest"}),
    "a coverage threshold": Attack(report(), "ended with 1", {"runner": "pytest-cov"}),
    "a linter after the tests": Attack(report(), "ended with 1", {"runner": "sh"}),
    "a threshold of jest": Attack(report(), "ended with 1", {"runner": "npm"}),
    "a code that nothing has shown": Attack(report(), "ended with 2", {"runner": "make"}, 2),
    "a failed build": Attack(report(), "ended with 101", {"runner": "cargo nextest"}, 101),
    "the crash of a runner that counts": Attack(report(), "ended with 7", {"runner": "mocha"}, 7),
    "a command that has lost its tests": Attack(
        command.report_of(GREEN), "", {"session_uploads": 2}
    ),
}
KINDS = {
    "tests gone": TESTS_GONE,
    "declared": DECLARED,
    "unknown words": UNKNOWN,
    "skips": SKIPS,
    "fixtures": FIXTURES,
    "commands": COMMANDS,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_known_failure_hides_nothing_else(world: World, ask: Asker, kind: str) -> None:
    """Hurts everybody who builds main: what broke beside a known failure lands with it."""
    for attack, sent in KINDS[kind].items():
        number = await world.open(files=sent.files)
        await world.settle()
        await world.comment("/merge", on=number)
        gate = await gates.under_test(world, number)
        answer = await command.in_gate(ask, gate, sent.report, sent.code, **sent.meta)
        assert answer["verdict"]["exit_code"] == sent.code, attack
        assert sent.named in " ".join(answer["not_excused_because"]), attack
        await ci.ends(ask, number, {TOTAL: "failed"}, sends=False)
        await world.settle()
        assert await world.state(number) == "FAILED", attack
    assert await landed_on(world) == []


async def test_a_job_without_an_exit_code_excuses_nothing_by_itself(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: whatever failed in the job, its report is that of tests."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await ci.ends(ask, number, {TOTAL: command.WRONG, MAIL: "", POST: "", CART: ""})
    await world.settle()
    assert await landed_on(world) == []
    assert "exit code" in world.comment_on(number)


TAUGHT_BADLY: dict[str, list[tuple[dict[str, str], int, str]]] = {
    "the general code": [(dict(RED), 1, "5"), (dict(GREEN), 0, "5")],
    "never passed on the same code": [(dict(RED), 2, "5")],
    "ended so without a failed test": [
        (dict(RED), 2, "5"),
        (dict(GREEN), 0, "5"),
        (dict(GREEN), 2, "6"),
    ],
    "a signal": [(dict(RED), 137, "5"), (dict(GREEN), 0, "5")],
}


@pytest.mark.parametrize("lesson", TAUGHT_BADLY)
async def test_a_code_is_not_learned_from_runs_that_do_not_show_what_it_means(
    world: World, ask: Asker, lesson: str
) -> None:
    """Hurts everybody who builds main: a linter ends the job as failed tests do."""
    taught = TAUGHT_BADLY[lesson]
    made = {"runner": "make", "command_key": "m"}
    for number, (tests, code, run_id) in enumerate(taught, 1):
        await command.on_main(ask, tests, code, run_id, run_attempt=number, **made)
    pull = await world.open()
    await world.settle()
    await world.comment("/merge", on=pull)
    gate = await gates.under_test(world, pull)
    code = taught[0][1]
    answer = await command.in_gate(ask, gate, command.report_of(RED), code, **made)
    assert answer["verdict"]["exit_code"] == code


async def test_a_code_that_one_command_has_shown_says_nothing_of_another(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: a linter was added to the command."""
    for attempt, (tests, code) in enumerate(((RED, 2), (GREEN, 0)), 1):
        await command.on_main(ask, tests, code, "5", run_attempt=attempt, runner="make")
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    report_now = command.report_of(RED)
    answer = await command.in_gate(
        ask, gate, report_now, 2, runner="make", command_key="make test lint"
    )
    assert answer["verdict"]["exit_code"] == 2


async def test_a_test_that_one_leg_of_a_matrix_lost_is_not_lent_by_another(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: the file fails to load on one platform alone."""
    for run_id in "34":
        for job in ("unit", "unit on arm"):
            await command.on_main(ask, GREEN, 0, run_id, job=job)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    await command.in_gate(ask, gate, command.report_of(GREEN), 0, job="unit on arm")
    answer = await command.in_gate(ask, gate, command.report_of(without(CART)), 1)
    assert "1 of 4 tests" in answer["verdict"]["message"]

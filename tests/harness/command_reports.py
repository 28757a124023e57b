"""Results of `headgate test` around one command, with the report that its runner wrote."""

from collections.abc import Mapping
from typing import Any

import aiohttp

from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker

WRONG = "AssertionError: 10.0 != 10.01"
FAILS = f'<failure message="{WRONG}"/>'
TOTAL, MAIL, POST, CART = "total", "mail", "post", "cart"
GREEN: Mapping[str, str] = {TOTAL: "", MAIL: "", POST: "", CART: ""}
"""Name of each test → what is inside its element; an empty one passes."""
RED: Mapping[str, str] = {**GREEN, TOTAL: FAILS}
FILES = {MAIL: "tests/mail.py", POST: "tests/mail.py"}
"""The files of tests that share one; another one is alone in the file of its name."""


def report_of(tests: Mapping[str, str], *, about: str = "", last: str = "") -> bytes:
    """A JUnit report; `about` are more attributes of its suite, `last` those of its last case."""
    names = list(tests)
    cases = (
        f'<testcase name="{name}" classname="Cart" file="{FILES.get(name, f"tests/{name}.py")}"'
        f"{f' {last}' if name == names[-1] else ''}>{inside}</testcase>"
        for name, inside in tests.items()
    )
    return f'<testsuite name="ui" {about}>{"".join(cases)}</testsuite>'.encode()


async def send(ask: Asker, report: bytes, code: int, **meta: Any) -> dict[str, Any]:
    """Send the report of a command that ended with a code, as the job of a token `by`, if any."""
    by = meta.pop("by", "")
    form = aiohttp.FormData()
    about = {
        "job": "unit",
        "runner": "pytest",
        "command_key": "k",
        "command_exit_code": code,
        "session": f"{ask.world.sandbox.world.new_id():032}",
        "session_uploads": 1,
    }
    form.add_field("metadata", ci.about(**about | meta))
    form.add_field("file", report, filename="junit.xml")
    return await ci.done(ask, "upload-test-results", data=form, by=by)


async def on_main(
    ask: Asker, tests: Mapping[str, str], code: int, run_id: str, **meta: Any
) -> None:
    """The same of a CI run of the tip of `main`."""
    sha = str(ask.world.repository.git.branch("main"))
    by = ci.token_on_main(ask.world, run_id, meta.get("run_attempt", 1))
    about = {"by": by, "sha": sha, "branch": "main", "run_id": run_id}
    await send(ask, report_of(tests), code, **about | meta)


async def in_gate(
    ask: Asker, gate: gates.Gate, report: bytes, code: int, **meta: Any
) -> dict[str, Any]:
    """The same of the CI job that tests a run."""
    ran = gates.workflow_run_of(ask.world, gate.check)
    about = {
        "sha": gate.run.sha,
        "branch": gate.run.branch,
        "run_id": str(ran.id),
        "run_attempt": ran.attempt,
    }
    return await send(ask, report, code, **about | meta)


async def quarantine(ask: Asker, *known: str) -> None:
    """Quarantine `total`, which has failed in each of these ways on other branches.

    A token is proof enough: what is told here is how complete a report is, not who sent it.
    """
    settings = {"quarantine_enabled": True, "excuse_proof": "TOKEN"}
    await ci.settle_tests(ask, "update-settings", **settings)
    for number, inside in enumerate(known or (FAILS,)):
        tests = {**GREEN, TOTAL: inside}
        about = {"sha": "b" * 40, "branch": f"topic-{number}", "run_id": f"9{number}"}
        failing = await send(ask, report_of(tests), 1, **about)
    await ci.always_quarantine(ask, failing["failures"][0]["test_id"])

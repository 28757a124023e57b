"""Attacks by what a report looks like: a regression read as a retry, as another test, as none."""

import json
from typing import Any, NamedTuple

import aiohttp
import pytest

from bot.sandbox import ci, reports
from bot.sandbox.records import Actor
from tests.adversary.judge import landed_on
from tests.harness import effort, gates, reporting_ci
from tests.harness.asking import HOST, Asker, asker
from tests.harness.world import REPO, World, WorldOptions

# The failure that is quarantined; in every report the regression is another test.
KNOWN = '<testcase id="headgate:known" name="known"><failure message="no clock"/></testcase>'
NO = '<failure message="10 != 11"/>'


class Sent(NamedTuple):
    """The files of an upload: the content of each."""

    attack: str
    files: tuple[str, ...]


def junit(*suites: str, root: str = "") -> str:
    """A report of these suites beside one in which the quarantined test fails."""
    known = f'<testsuite name="known">{KNOWN}</testsuite>'
    return f'<testsuites name="{root}">{"".join(suites)}{known}</testsuites>'


def suite(name: str, *cases: tuple[str, str], about: str = "") -> str:
    """A suite of cases, each a name and what is inside."""
    made = "".join(
        f'<testcase classname="Cart" file="cart.js" name="{case}">{inner}</testcase>'
        for case, inner in cases
    )
    return f'<testsuite name="{name}" {about}>{made}</testsuite>'


def go(*events: tuple[str, ...]) -> str:
    """Lines of `go test -json`: action, package, and test where it is one's."""
    names = ("Action", "Package", "Test", "Output")
    return "\n".join(
        json.dumps({name: each for name, each in zip(names, event, strict=False) if each})
        for event in events
    )


# What Go writes when a subtest fails, and with it the test around it.
GO_RUN = (
    ("run", "shop", "TestA"),
    ("run", "shop", "TestA/known"),
    ("output", "shop", "TestA/known", "    a_test.go:9: no clock\n"),
    ("output", "shop", "TestA", "--- FAIL: TestA (0.00s)\n"),
    ("output", "shop", "TestA/known", "    --- FAIL: TestA/known (0.00s)\n"),
    ("fail", "shop", "TestA/known"),
)
GO_END = (("fail", "shop", "TestA"), ("fail", "shop"))
GO_OWN = ("output", "shop", "TestA", "    a_test.go:12: 10 != 11\n")

BROWSERS = ('hostname="chromium" tests="1"', 'hostname="webkit" tests="1"')

HIDDEN = [
    Sent(
        "it fails in one browser and passes in the next",
        (
            junit(
                *(
                    suite("a.js", ("pays", NO * fails), about=BROWSERS[1 - fails])
                    for fails in (1, 0)
                )
            ),
        ),
    ),
    Sent(
        "its twin below passes, which looks like a retry",
        (junit(suite("cart", ("pays", NO), ("pays", "")), root="jest tests"),),
    ),
    Sent(
        "a test of the same name passes in another suite element",
        (junit(suite("cart", ("pays", NO)), suite("cart", ("pays", ""))),),
    ),
    Sent(
        "a test of the same name passes further down",
        (junit(suite("cart", ("pays", NO), ("adds", ""), ("pays", ""))),),
    ),
    Sent(
        "it passes in another file of the upload",
        (junit(suite("cart", ("pays", NO))), suite("cart", ("pays", ""))),
    ),
    Sent(
        "it fails on one worker of pytest and passes on the other",
        (junit(suite("pytest", ("pays", NO), ("pays", ""), about='tests="2"')),),
    ),
    Sent(
        "its example of rspec has the name of one that passes",
        (junit(suite("rspec", ("pays", NO), ("pays", ""))),),
    ),
    Sent(
        "the package of Go does not build",
        (go(*GO_RUN, *GO_END) + "\nFAIL\tshop/tax [build failed]\n",),
    ),
    Sent("the test of Go fails beside its subtest", (go(*GO_RUN, GO_OWN, *GO_END),)),
]


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the test says so."""
    return WorldOptions(ci=gates.CI)


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin, in whose repository the known failures of all reports are quarantined."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await reporting_ci.settle_tests(asking, "update-settings", quarantine_enabled=True)
    await reporting_ci.fails_by_tests_alone(asking)
    for files in ((junit(),), (go(*GO_RUN, *GO_END),)):
        told = await send(asking, files, sha="b" * 40, branch="topic", run_id=f"t{len(files[0])}")
        for failure in told["failures"]:
            if "known" in failure["name"]:
                await reporting_ci.always_quarantine(asking, failure["test_id"])
    tip = str(world.repository.git.branch("main"))
    for files in ((junit(),), (go(*GO_RUN, *GO_END),)):
        run_id = str(len(files[0]))
        by = reporting_ci.token_on_main(world, run_id)
        await send(asking, files, by=by, sha=tip, branch="main", run_id=run_id, job="unit")
    return asking


async def send(ask: Asker, files: tuple[str, ...], *, by: str = "", **meta: Any) -> dict[str, Any]:
    """Upload report files, as a job by its token `by` if one is given; the answer."""
    owner, name = REPO.split("/")
    repo = {"host": HOST, "owner": owner, "name": name}
    form = aiohttp.FormData()
    form.add_field("metadata", json.dumps({"repo": repo, "org_url_slug": owner, **meta}))
    for number, content in enumerate(files):
        form.add_field("file", content.encode(), filename=f"{number}.xml")
    url = f"{ask.world.url}/v1/flaky-tests/upload-test-results"
    headers = {"Authorization": f"Bearer {by}"} if by else {"x-api-token": ask.secret}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, headers=headers, data=form) as answer,
    ):
        said: dict[str, Any] = await answer.json(content_type=None)
        assert answer.status == 200, said
        return said


async def ending_of(world: World, ask: Asker, files: tuple[str, ...]) -> str:
    """Where a pull request ends whose only required check fails, with these reports."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    gate = await gates.under_test(world, number)
    ran = gates.workflow_run_of(world, gate.check)
    await send(
        ask,
        files,
        by=reporting_ci.token_of(world, gate.check),
        sha=gate.run.sha,
        branch=gate.run.branch,
        run_id=str(ran.id),
        run_attempt=ran.attempt,
        job="unit",
    )
    actor = Actor(gate.check.suite.app.bot, gate.check.suite.app)
    fields = {"status": "completed", "conclusion": "failure"}
    reports.change_run(world.repository, gate.check, actor, fields)
    ci.close_when_done(world.repository, ran)
    await world.settle()
    return await world.state(number)


async def only_on_main(ask: Asker, report: str) -> None:
    """The newest results of the job on `main` are three of this report."""
    await ask.world.rest(60)
    tip = str(ask.world.repository.git.branch("main"))
    for number in range(3):
        run_id = f"90{number}"
        by = reporting_ci.token_on_main(ask.world, run_id)
        await send(ask, (report,), by=by, sha=tip, branch="main", run_id=run_id, job="unit")


PLAYED = HIDDEN if effort.IS_SOAK else HIDDEN[::4]
"""Those that are sent by a test run; what is said of all tells already what does not count."""


async def test_a_regression_is_not_excused_by_the_way_its_report_is_written(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who uses main: a failure that a quarantined one covers for lands with it."""
    for number, sent in enumerate(PLAYED):
        # A test that fails several authors is run again: each attack breaks one of its own.
        files = tuple(content.replace("pays", f"pays {number}") for content in sent.files)
        assert await ending_of(world, ask, files) == "FAILED", sent.attack
        assert await landed_on(world) == [], sent.attack
    for sent in HIDDEN:
        told = await send(ask, sent.files, sha="d" * 40, branch="topic", run_id="8", job="unit")
        assert told["unquarantined_failures"] > 0, sent.attack
        assert told["verdict"]["exit_code"] != 0, sent.attack


@pytest.mark.parametrize("report", [junit(), go(*GO_RUN, *GO_END)], ids=["junit", "go"])
async def test_a_quarantined_failure_alone_is_excused_in_every_format(
    world: World, ask: Asker, report: str
) -> None:
    """Hurts an innocent author: a test around a quarantined subtest fails the pull request."""
    await only_on_main(ask, report)
    assert await ending_of(world, ask, (report,)) == "MERGED"
    assert len(await landed_on(world)) == 1


async def test_quarantine_holds_though_the_suite_is_named_after_the_second(
    world: World, ask: Asker
) -> None:
    """Hurts an innocent author: the test is unknown again in each second, so never excused."""
    first, later = (suite(f"Cart-2026112220351{second}", ("slow", NO)) for second in (4, 5))
    told = await send(ask, (first,), sha="c" * 40, branch="topic", run_id="9")
    await reporting_ci.always_quarantine(ask, told["failures"][0]["test_id"])
    await only_on_main(ask, first)
    assert await ending_of(world, ask, (later,)) == "MERGED"


async def test_a_test_that_is_broken_for_good_does_not_become_flaky_by_its_retries(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who uses main: a broken test is shielded as a flaky one."""
    retried = (suite("pytest", ("pays", ""), ("pays", ""), ("pays", NO), about='tests="1"'),)
    for attempt in range(5):
        sha = f"{attempt:040x}"
        told = await send(ask, retried, sha=sha, branch="main", run_id=str(attempt), job="unit")
    (failure,) = told["failures"]
    assert failure["status"] == "broken"

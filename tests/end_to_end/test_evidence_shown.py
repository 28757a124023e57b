"""Comment, check, page, API and command line say the same of each required check, and no more.

A check that was skipped, excused or reused is never told as one that passed on the tested commit.
"""

import re
from typing import Any

import aiohttp
import pytest

from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
PUBLIC = "http://127.0.0.1:8642"
ALL_PASSED = re.compile("all required checks pass", re.IGNORECASE)

BOTH = """\
triggers: {pull_request: true, push: ["headgate/**"]}
checks:
  - {name: build, seconds: 1}
  - {name: e2e, seconds: 1, rules: [{exists: [docs.txt], conclusion: skipped}]}
"""
ONE = "triggers: {pull_request: true}\nchecks:\n  - {name: unit, seconds: 1}\n"

SKIPPING = {"ci": BOTH, "required": ("build", "e2e")}
DIRECT = {"ci": ONE, "required": ("unit",)}
REPORTING = {"ci": gates.CI, "permissions": {"actions": "write"}}


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    return WorldOptions(settings={"public_url": PUBLIC}, **request.param)


def world_of(**options: Any) -> Any:
    """The mark of a story in a world with these options."""
    return pytest.mark.parametrize("world_options", [options], indirect=True)


async def surfaces(ask: Asker, number: int) -> list[str]:
    """Every text about the pull request that people and programs read."""
    world = ask.world
    async with aiohttp.ClientSession() as session:
        address = f"{world.url}/octo/widgets/main/pull/{number}"
        async with session.get(address) as answer:
            page = re.sub(r"<[^>]+>", " ", await answer.text())
    return [
        world.comment_on(number),
        world.check_summary(number),
        " ".join(page.split()),
        await ask.headgate("explain", str(number)),
        await ask.headgate("status", str(number)),
        str(await ask.done("getSubmittedPullRequest", number, includeTimeline=True)),
        str(await ask.done("getPullRequestTimeline", number)),
    ]


async def tables(ask: Asker, number: int) -> list[dict[str, Any]]:
    """The table of the pull request; its explanation and its test run have the same."""
    record = await ask.done("getSubmittedPullRequest", number)
    table: list[dict[str, Any]] = record["requiredChecks"]
    assert (await ask.done("explainPullRequest", number))["requiredChecks"] == table
    run = await ask.done("getMergeQueueTestingDetails", testRunId=record["verifiedByTestRun"])
    assert run["requiredChecks"] == table
    return table


async def merged(world: World, number: int) -> None:
    """Ask for the landing of a pull request, which lands."""
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"


@world_of(**SKIPPING)
async def test_a_check_that_was_skipped_is_told_as_skipped_everywhere(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(skipped_statuses_pass=True)
    await merged(world, await world.open())
    number = await world.open(files={"docs.txt": "read me\n"})
    await merged(world, number)
    build, e2e = await tables(ask, number)
    assert (build["name"], build["state"], build["place"]) == ("build", "passed", "test_branch")
    assert (e2e["name"], e2e["state"]) == ("e2e", "skipped")
    assert build["reporter"]["kind"] == "check_run"
    assert build["reporter"]["checkRun"] != e2e["reporter"]["checkRun"]
    for text in await surfaces(ask, number):
        assert not ALL_PASSED.search(text)
        assert re.search(r"e2e\W.*was skipped|e2e.*Skipped", text, re.DOTALL), text


@world_of(**DIRECT)
async def test_the_checks_of_a_direct_merge_are_told_as_those_of_its_head(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(direct_merge_mode="ALWAYS")
    number = await world.open(fresh=True)
    await merged(world, number)
    (unit,) = await tables(ask, number)
    assert (unit["state"], unit["place"]) == ("passed", "head")
    assert unit["sha"] == (await world.entry(number)).head
    assert "needed no test run: all required checks passed" in world.comment_on(number)
    assert "head of the PR" in world.check_summary(number)


@world_of(ci=gates.CI)
async def test_a_reused_result_names_the_run_that_tested_the_tree(world: World) -> None:
    ask = await asker(world)
    await world.make_queue()
    first = await world.open()
    await world.settle()
    await world.comment("/merge", on=first)
    await gates.under_test(world, first)
    await gates.ends(world, first)
    await world.settle()
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await gates.under_test(world, number)
    await ask.done("updateQueue", state="PAUSED", stateReason="a freeze")
    tested = await gates.ends(world, number)
    await world.settle()
    assert await world.state(number) == "TESTS_PASSED"
    await world.comment("/merge cancel", on=number)
    await world.settle()
    await ask.done("updateQueue", state="RUNNING")
    await merged(world, number)
    (unit,) = await tables(ask, number)
    assert (unit["state"], unit["run"], unit["sha"]) == ("reused", tested.id, tested.sha)
    for text in await surfaces(ask, number):
        assert re.search("earlier run of the same tree|Passed before|result is reused", text), text


@world_of(**REPORTING)
async def test_an_excused_check_is_told_with_the_tests_that_failed(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    await ci.on_main(ask, {"total": "", "mail": ""}, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await ci.ends(ask, number, {"total": WRONG, "mail": ""})
    await world.settle()
    assert await world.state(number) == "MERGED"
    (unit,) = await tables(ask, number)
    assert (unit["state"], unit["tests"]) == ("excused", ["tests/total.py::total"])
    for text in await surfaces(ask, number):
        assert not ALL_PASSED.search(text)
        assert "xcused" in text


@world_of(**REPORTING)
async def test_programs_are_told_what_failed_as_pages_are(world: World) -> None:
    ask = await asker(world)
    await world.make_queue(confirm_failures="ALWAYS")
    await ci.on_main(ask, {"total": "", "mail": ""}, "1")
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    for _ in range(2):
        await ci.ends(ask, number, {"total": "", "mail": WRONG})
        await world.settle()
    assert await world.state(number) == "FAILED"
    explained = await ask.done("explainPullRequest", number)
    failures = explained["failures"]
    (check,) = failures["checks"]
    assert check["name"] == "unit"
    (test,) = failures["tests"]
    assert (test["name"], test["message"]) == ("tests/mail.py::mail", WRONG)
    assert (test["knownAs"], test["quarantined"]) == ("new", False)
    assert test["page"].startswith(f"{PUBLIC}/octo/widgets/tests/")
    assert "It failed in 2 test runs. No other PR was in its base" in failures["text"]
    assert explained["next"]["what"] == "Fix it, push, then comment /merge again."
    (condition,) = explained["conditions"]
    assert (condition["code"], condition["met"]) == ("status_passed", False)
    assert condition["whoMustAct"] == "author"
    shown = await ask.headgate("explain", str(number))
    for words in (WRONG, "tests/mail.py::mail (new)", "It failed in 2 test runs.", check["url"]):
        assert words in shown
    assert explained["page"] in shown

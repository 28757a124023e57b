"""A pull request's comment names the tests that failed, and leads to their pages."""

import re

import aiohttp
import pytest
from pydantic.alias_generators import to_camel

from tests.contract.instance import RECEIVERS
from tests.end_to_end.test_messages import heard
from tests.harness import gates
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
PUBLIC = "http://127.0.0.1:8642"
HISTORY = re.compile(rf"\[history\]\({PUBLIC}(/octo/widgets/tests/[0-9a-f-]+)\)")


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so; people of this machine read pages."""
    return WorldOptions(
        ci=gates.CI,
        permissions={"actions": "write"},
        settings={**RECEIVERS, "public_url": PUBLIC},
    )


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of the organization, by whose token CI uploads too."""
    asking = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    return asking


async def merging(world: World) -> int:
    """A pull request that was asked to merge; its number."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return number


async def page_of(world: World, path: str) -> str:
    """A page as somebody on this machine sees it."""
    async with aiohttp.ClientSession() as session, session.get(world.url + path) as answer:
        assert answer.status == 200
        return await answer.text()


async def told(world: World, number: int) -> list[str]:
    """Every comment of ours on a pull request, its lines about tests."""
    comments = [one.body for one in world.repository.issues[number].comments]
    lines = [line for body in comments for line in body.splitlines()]
    return [line for line in lines if line.startswith("- ") and "`tests/" in line]


async def test_who_failed_is_told_which_tests_failed_and_what_they_were_before(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, {"total": WRONG, "mail": ""}, "1")
    await ci.on_main(ask, GREEN, "2")
    number = await merging(world)
    await ci.ends(ask, number, {"total": "TimeoutError", "mail": WRONG})
    await world.settle()
    assert await world.state(number) == "FAILED"
    assert "**Tests:** 2 failed\n" in world.comment_on(number)
    (new, known), below = (await told(world, number))[:2], (await told(world, number))[2:]
    # The comment that notifies has only what failed.
    assert below == ["- ❌ `tests/mail.py::mail`", "- ❌ `tests/total.py::total`"]
    last = world.repository.issues[number].comments[-1].body
    assert "@bob This PR was not merged into `main`: **`unit` failed**. See the status" in last
    assert last.count(f"  `{WRONG}`") == last.count("  `TimeoutError`") == 1
    assert new.startswith("- ❌ `tests/mail.py::mail`: *new failure* ([history]")
    assert known.startswith("- ❌ `tests/total.py::total`: *known flaky, new failure text*, ")
    path = HISTORY.search(known)
    assert path is not None
    assert "TimeoutError" in await page_of(world, path[1])
    shown = world.comment_on(number).splitlines()
    assert shown[shown.index(new) + 1] == f"  `{WRONG}`"
    assert shown[shown.index(known) + 1] == "  `TimeoutError`"


async def test_a_test_that_fails_on_main_too_is_told_so_to_people_and_programs(
    world: World, ask: Asker
) -> None:
    for run in ("1", "2"):
        await ci.on_main(ask, {"total": WRONG, "mail": ""}, run)
    async with heard(world, "pull_request.failed") as receiver:
        number = await merging(world)
        await ci.ends(ask, number, {"total": WRONG, "mail": WRONG})
        await world.settle()
    assert await world.state(number) == "FAILED"
    _, known = (await told(world, number))[:2]
    assert known.startswith("- ❌ `tests/total.py::total`: *also fails on `main`*, ")
    failures = (await ask.done("explainPullRequest", number))["failures"]
    named = {test["name"]: test["failsOn"] for test in failures["tests"]}
    assert named == {"tests/mail.py::mail": None, "tests/total.py::total": "main"}
    assert "tests/total.py::total (seen, also fails on main)" in await ask.headgate(
        "explain", str(number)
    )
    (message,) = receiver.got
    sent = message.json["failures"]
    assert (sent["text"], sent["failed_tests"]) == (failures["text"], 2)
    checks = [{to_camel(name): value for name, value in one.items()} for one in sent["checks"]]
    assert checks == failures["checks"]
    for told_to_receiver, test in zip(sent["tests"], failures["tests"], strict=True):
        named = {to_camel(name): value for name, value in told_to_receiver.items()}
        assert named.items() <= test.items()
    assert "also fails on <code>" in await page_of(world, f"/octo/widgets/main/pull/{number}")


async def test_an_excused_failure_stands_on_the_pull_request_that_it_did_not_stop(
    world: World, ask: Asker
) -> None:
    await ci.on_main(ask, GREEN, "1")
    await ci.quarantine(ask, "total", WRONG)
    number = await merging(world)
    await ci.ends(ask, number, {"total": WRONG, "mail": ""})
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert "**Tests:** 1 excused\n" in world.comment_on(number)
    line, check = await told(world, number)
    assert check.endswith("(`tests/total.py::total`), by a report of its own job")
    assert line.startswith("- 🟦 `tests/total.py::total`: *failed, excused* (quarantined until ")


async def test_a_run_without_failures_says_nothing_of_tests(world: World, ask: Asker) -> None:
    await ci.on_main(ask, GREEN, "1")
    number = await merging(world)
    await ci.ends(ask, number, GREEN)
    await world.settle()
    assert await world.state(number) == "MERGED"
    assert "Tests" not in world.comment_on(number)

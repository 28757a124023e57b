"""`kill -9` around the issue of a test: one issue is made, and each comment is written once."""

from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.app import PERMISSIONS
from tests.end_to_end.test_kill import TICKETING
from tests.end_to_end.test_two_processes import REPO, REPO_REF, seed, token
from tests.harness.processes import (
    LAND_WITHIN_S,
    LOOK_EVERY_S,
    NeverHappened,
    Service,
    Stage,
    stage,
)

OFTEN = {"HEADGATE_PERIOD_TESTS_S": "1"}
REPORT = '<testsuite><testcase name="total"><failure message="no"/></testcase></testsuite>'


async def ask(set_up: Stage, service: Service, name: str, **body: Any) -> Any:
    """What an admin is answered about tests."""
    told = {"repo": REPO_REF, "org_url_slug": "octo", **body}
    secret = await token(set_up)
    status, answer = await set_up.api(service, f"flaky-tests/{name}", secret, **told)
    assert status == 200, answer
    return answer


async def fail(set_up: Stage, service: Service, *pulls: int) -> str:
    """The test fails for these pull requests; its id."""
    report = set_up.folder / "junit.xml"
    report.write_text(REPORT)
    secret = await token(set_up)
    for number in pulls:
        place = {"HEADGATE_URL": service.url, "HEADGATE_TOKEN": secret}
        place |= {"GITHUB_REPOSITORY": REPO, "GITHUB_SERVER_URL": "https://github.localhost"}
        words = ["--junit", str(report), "--sha", str(number) * 40, "--pr", str(number)]
        code, _, err = await set_up.headgate("upload", *words, **place)
        assert code == 1, err
    answer = await ask(set_up, service, "check-quarantine", tests=[{"name": "total"}])
    test_id: str = answer["tests"][0]["test_id"]
    return test_id


async def issues(set_up: Stage) -> list[Any]:
    """Issues of the repository, each with the texts of its comments."""
    listed = await set_up.rest(f"repos/{REPO}/issues?state=all")
    found = [each for each in listed if "pull_request" not in each]
    for each in found:
        comments = await set_up.rest(f"repos/{REPO}/issues/{each['number']}/comments")
        each["said"] = [one["body"] for one in comments]
    return found


async def told(set_up: Stage, service: Service, title: str) -> list[Any]:
    """Issues, once one has this title and nothing waits to be written."""
    deadline = set_up.clock.monotonic_s() + LAND_WITHIN_S
    while set_up.clock.monotonic_s() < deadline:
        found = await issues(set_up)
        if found and found[0]["title"] == title and await is_idle(set_up):
            return found
        await set_up.clock.sleep(LOOK_EVERY_S * 2)
    raise NeverHappened(f"no issue is called {title}; the log is {service.log}")


async def is_idle(set_up: Stage) -> bool:
    """Whether the sandbox has heard nothing for a while."""
    before = len((await set_up.look("calls"))["calls"])
    await set_up.clock.sleep(1.5)
    return len((await set_up.look("calls"))["calls"]) == before


@pytest.mark.parametrize("name", TICKETING)
async def test_a_kill_while_an_issue_is_made_makes_one(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        set_up.environment |= OFTEN
        await granted(set_up)
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:1:kill")
        await ask(set_up, struck, "update-settings", ticket_issues=True)
        test_id = await fail(set_up, struck, 1, 2, 3)
        await ask(set_up, struck, "flag-test", test_id=test_id, flag="FLAKY", reason="it is")
        assert await struck.ended() == -9
        async with set_up.serving() as service:
            (issue,) = await told(set_up, service, "Flaky test: total")
            assert (issue["state"], issue["said"]) == ("open", [])
            test = (await ask(set_up, service, "get-test-details", test_id=test_id))["test"]
            assert test["ticket"] == {"html_url": issue["html_url"]}


@pytest.mark.parametrize("name", TICKETING)
async def test_a_kill_while_it_is_closed_says_so_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        set_up.environment |= OFTEN
        await granted(set_up)
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:2:kill")
        await ask(set_up, struck, "update-settings", ticket_issues=True)
        test_id = await fail(set_up, struck, 1, 2, 3)
        await ask(set_up, struck, "flag-test", test_id=test_id, flag="FLAKY", reason="it is")
        await told(set_up, struck, "Flaky test: total")
        await ask(set_up, struck, "flag-test", test_id=test_id, flag="NONE")
        assert await struck.ended() == -9
        async with set_up.serving() as service:
            (issue,) = await told(set_up, service, "Healthy again: total")
            assert issue["state"] == "closed"
            assert len(issue["said"]) == 1
            assert "This test is **healthy** again." in issue["said"][0]


async def granted(set_up: Stage) -> None:
    """The repository, whose owner has granted `issues: write`."""
    await seed(set_up)
    act = {"act": "permissions", "as": "alice", "repo": REPO}
    await set_up.control("acts", {**act, "permissions": {**PERMISSIONS, "issues": "write"}})

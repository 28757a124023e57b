"""`kill -9` around the issue of a test: one issue is made, and each comment is written once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.app import PERMISSIONS
from tests.end_to_end.test_kill import TICKETING
from tests.end_to_end.test_two_processes import REPO, REPO_REF, seed, token
from tests.harness import effort
from tests.harness.processes import (
    LAND_WITHIN_S,
    LOOK_EVERY_S,
    NeverHappened,
    Service,
    Stage,
    stage,
)

CLOSING = TICKETING[::-1] if effort.IS_SOAK else ("act.ticket.after_send",)
"""In `make test` the closing is killed where it could say twice what it says."""
OFTEN = {"HEADGATE_PERIOD_TESTS_S": "1"}
REPORT = '<testsuite><testcase name="total"><failure message="no"/></testcase></testsuite>'


@dataclass
class Admin:
    """Who asks the service about tests, before and after it was killed."""

    set_up: Stage
    service: Service
    secret: str

    async def ask(self, name: str, **body: Any) -> Any:
        """What the admin is answered."""
        told = {"repo": REPO_REF, "org_url_slug": "octo", **body}
        status, answer = await self.set_up.api(
            self.service, f"flaky-tests/{name}", self.secret, **told
        )
        assert status == 200, answer
        return answer

    async def fail(self, *pulls: int) -> str:
        """The test fails for these pull requests; its id."""
        report = self.set_up.folder / "junit.xml"
        report.write_text(REPORT)
        place = {"HEADGATE_URL": self.service.url, "HEADGATE_TOKEN": self.secret}
        place |= {"GITHUB_REPOSITORY": REPO, "GITHUB_SERVER_URL": "https://github.localhost"}
        for number in pulls:
            words = ["--junit", str(report), "--sha", str(number) * 40, "--pr", str(number)]
            code, _, err = await self.set_up.headgate("upload", *words, **place)
            assert code == 1, err
        answer = await self.ask("check-quarantine", tests=[{"name": "total"}])
        test_id: str = answer["tests"][0]["test_id"]
        return test_id


async def opening(set_up: Stage, crash_point: str) -> tuple[Admin, str]:
    """A service that is killed at the crash point, and a test that is to get its issue; its id."""
    set_up.environment |= OFTEN
    await seed(set_up)
    act = {"act": "permissions", "as": "alice", "repo": REPO}
    await set_up.control("acts", {**act, "permissions": {**PERMISSIONS, "issues": "write"}})
    struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{crash_point}:kill")
    admin = Admin(set_up, struck, await token(set_up))
    await admin.ask("update-settings", ticket_issues=True)
    test_id = await admin.fail(1, 2, 3)
    await admin.ask("flag-test", test_id=test_id, flag="FLAKY", reason="it is")
    return admin, test_id


async def issues(set_up: Stage) -> list[Any]:
    """Issues of the repository, each with the texts of its comments."""
    listed = await set_up.rest(f"repos/{REPO}/issues?state=all")
    found = [each for each in listed if "pull_request" not in each]
    for each in found:
        comments = await set_up.rest(f"repos/{REPO}/issues/{each['number']}/comments")
        each["said"] = [one["body"] for one in comments]
    return found


async def told(set_up: Stage, title: str) -> Any:
    """The only issue, once it has this title and nothing waits to be written."""
    deadline = set_up.clock.monotonic_s() + LAND_WITHIN_S
    while set_up.clock.monotonic_s() < deadline:
        found = await issues(set_up)
        if found and found[0]["title"] == title and await is_idle(set_up):
            (issue,) = await issues(set_up)
            return issue
        await set_up.clock.sleep(LOOK_EVERY_S * 2)
    raise NeverHappened(f"no issue is called {title}")


async def ticket_of(admin: Admin, test_id: str) -> Any:
    """The ticket of a test, once it is known: a sweep may find the issue later than we do."""
    deadline = admin.set_up.clock.monotonic_s() + LAND_WITHIN_S
    while admin.set_up.clock.monotonic_s() < deadline:
        test = (await admin.ask("get-test-details", test_id=test_id))["test"]
        if "ticket" in test:
            return test["ticket"]
        await admin.set_up.clock.sleep(LOOK_EVERY_S)
    raise NeverHappened("the test has no ticket")


async def is_idle(set_up: Stage) -> bool:
    """Whether the tracker shows the same for longer than a sweep takes."""
    before = await issues(set_up)
    await set_up.clock.sleep(1.5)
    return await issues(set_up) == before


@pytest.mark.parametrize(
    ("name", "database_url"), effort.spread(TICKETING), indirect=["database_url"]
)
@pytest.mark.fault(
    "`kill -9` while an issue is made",
    holds="one is made",
    within="150 s",
)
async def test_a_kill_while_an_issue_is_made_makes_one(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        admin, test_id = await opening(set_up, f"{name}:1")
        assert await admin.service.ended() == -9
        async with set_up.serving() as admin.service:
            issue = await told(set_up, "Flaky test: total")
            assert (issue["state"], issue["said"]) == ("open", [])
            assert await ticket_of(admin, test_id) == {"html_url": issue["html_url"]}


@pytest.mark.parametrize(
    ("name", "database_url"), effort.spread(CLOSING), indirect=["database_url"]
)
@pytest.mark.fault(
    "`kill -9` while an issue is closed",
    holds="it is said once",
    within="150 s",
)
async def test_a_kill_while_it_is_closed_says_so_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        admin, test_id = await opening(set_up, f"{name}:2")
        await told(set_up, "Flaky test: total")
        await admin.ask("flag-test", test_id=test_id, flag="NONE")
        assert await admin.service.ended() == -9
        async with set_up.serving():
            issue = await told(set_up, "Healthy again: total")
            assert issue["state"] == "closed"
            (said,) = issue["said"]
            assert "This test is **healthy** again." in said

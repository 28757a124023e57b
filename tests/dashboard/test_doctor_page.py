"""The page that examines a queue's branch, as `headgate doctor` does."""

import re

import pytest

from service.dashboard.page_of_doctor import DoctorPage
from service.provider import audits
from tests.dashboard.signing_in import PATH, visitor
from tests.dashboard.test_queue_actions import newest
from tests.harness.world import REPO

DOCTOR = f"{PATH}/doctor"


async def test_a_maintainer_examines_a_branch_and_others_may_not(pages):
    async with visitor(pages, "bob", DOCTOR) as browser:
        assert "What keeps the queue from working?" in browser.page.text
        assert "needs maintain access" in browser.page.text
    async with visitor(pages, "alice", DOCTOR) as browser:
        page = await browser.press("Examine now")
        assert page.status == 200
        assert "in order" in page.text
        assert "nothing was changed" in page.text
        # A fix that names a page of GitHub leads there: here the permission to write workflows.
        assert f"{pages.sandbox.url}/organizations/sandbox/settings/apps/headgate" in page.links
        assert f"headgate doctor {REPO} --branch main --dry-test" in page.text
        assert (await browser.open(f"{pages.url}/{REPO}/other/doctor")).status == 404


async def test_an_admin_starts_a_dry_test_sees_it_run_and_its_result(pages):
    await pages.act("role", by="alice", login="alice", role="admin")
    async with visitor(pages, "alice", DOCTOR) as browser:
        asked = await browser.press("Start a dry test")
        assert "The target branch does not change." in asked.text
        page = await browser.press("Start a dry test")
        assert re.search(r"Dry test: \d of \d required checks? passed", page.text)
        row = await newest(pages, "dry_test.start")
        assert row.actor.login == "alice"
        address = page.url

        async def is_over():
            return "Result of the dry test" in (await browser.open(address)).text

        await pages.until(is_over)
        assert "reported on the test branch and passed" in browser.page.text
        page = await browser.press("Remove the test branch")
        assert "The test branch is removed." in page.text
        assert "reported on the test branch and passed" in page.text
    async with visitor(pages, "bob", DOCTOR) as browser:
        page = await browser.open(address)
        assert (page.status, "passed" in page.text) == (200, False)
        assert "needs admin access" in page.text


async def test_a_branch_that_is_no_dry_test_is_not_found(pages):
    await pages.act("role", by="alice", login="alice", role="admin")
    async with visitor(pages, "alice", DOCTOR) as browser:
        assert (await browser.open(f"{pages.url}{DOCTOR}?dry=main&sha=abc")).status == 404


@pytest.mark.parametrize(
    ("findings", "heading"),
    [
        (None, "What keeps the queue from working?"),
        ((audits.fine("a", "fine"),), "1 audit in order"),
        (
            (
                audits.error("a", "x", "y"),
                audits.warning("b", "x", "y"),
                audits.warning("c", "x", "y"),
                audits.fine("d", "x"),
                audits.fine("e", "x"),
            ),
            "1 error, 2 warnings, 2 audits in order",
        ),
    ],
)
def test_the_heading_counts_findings_the_worst_first(findings, heading):
    assert DoctorPage("main", findings).heading == heading

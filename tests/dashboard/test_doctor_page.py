"""The page that examines a queue's branch, as `headgate doctor` does."""

import pytest

from service.dashboard.page_of_doctor import DoctorPage
from service.provider import audits
from tests.dashboard.signing_in import PATH, visitor
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
        assert f"headgate doctor {REPO} --branch main --dry-test" in page.text
        assert (await browser.open(f"{pages.url}/{REPO}/other/doctor")).status == 404


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

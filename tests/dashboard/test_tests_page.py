"""The page that lists the tests of a repository by the harm that they do."""

from datetime import timedelta

import pytest

from service.dashboard import page_of_tests
from service.vocabulary import Role, Sha
from tests.dashboard.browsing import browsing, token_of
from tests.dashboard.test_pages import quarantining
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW

PATH = "/octo/widgets/tests"
HOUR = timedelta(hours=1)


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


async def flaking(stage, *names):
    """Each test fails and passes on the same code; the first hits most pull requests."""
    await quarantining(stage)
    for nth, name in enumerate(names):
        for hours in (5, 4):
            sha = Sha(f"{nth:02}{hours:02}" * 10)
            await stage.ran({name: "FP", "steady": "P"}, sha=sha, ran_at=NOW - hours * HOUR)
        for number in range(len(names) - nth):
            sha = Sha(f"{nth:02}9{number}" * 10)
            await stage.ran({name: "F"}, sha=sha, pr_number=number + 1, ran_at=NOW - HOUR)


async def test_tests_that_hit_most_pull_requests_come_first(stage):
    await flaking(stage, "worst", "middle", "least")
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(PATH)
        assert "3 flaky and 0 broken tests" in page.text
        assert "Flaky 3\nBroken 0\nQuarantined 3" in page.text
        places = [page.text.index(each) for each in ("worst", "middle", "least")]
        assert places == sorted(places)
        assert "steady" not in page.text
        case = await stage.case("worst")
        assert f"{PATH}/{case.id}" in page.links
        quarantined = await browser.see(f"{PATH}?show=quarantined")
        assert "least" in quarantined.text
        assert "There is none." in (await browser.see(f"{PATH}?show=broken")).text


async def test_more_tests_than_a_page_shows_are_on_the_next(stage, monkeypatch):
    monkeypatch.setattr(page_of_tests, "TESTS_MAX", 2)
    await flaking(stage, "worst", "middle", "least")
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        first = await browser.see(PATH)
        assert "least" not in first.text
        (further,) = [link for link in first.links if "token=" in link]
        second = await browser.see(further)
        assert "least" in second.text
        assert "worst" not in second.text
        (back,) = [link for link in second.links if "token=" in link]
        assert "worst" in (await browser.see(back)).text
        refused = await browser.get(f"{PATH}?token=none")
        assert refused.status == 400
        assert b"Begin at its first page" in refused.body
        assert (await browser.get(f"{PATH}?show=all")).status == 404


async def test_a_repository_without_unhealthy_tests_says_so(stage):
    token = await token_of(stage.runtime, Role.READ)
    stranger = await token_of(stage.runtime, Role.ADMIN, "elsewhere")
    async with browsing(stage.runtime, token) as browser:
        assert "No test is flaky or broken" in (await browser.see(PATH)).text
        assert (await browser.get(PATH, password=stranger)).status == 404
        assert (await browser.get(PATH, password="wrong")).status == 401

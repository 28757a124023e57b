"""The page that lists the tests of a repository by the harm that they do."""

import re
from datetime import timedelta

import pytest

from service.dashboard import page_of_tests
from service.testhealth.detector.machines import BadMachine
from service.testhealth.store import bad_machines
from service.testhealth.store.cases import Place
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
        assert "3 flaky and 0 broken tests hit 3 pull requests this week" in page.text
        places = [page.text.index(each) for each in ("worst", "middle", "least")]
        assert places == sorted(places)
        assert "steady" not in page.text
        case = await stage.case("worst")
        assert f"{PATH}/{case.id}" in page.links
        assert "Runs excused" in page.text
        quarantined = await browser.see(f"{PATH}?quarantined=yes&q=LEAST")
        assert "least" in quarantined.text
        assert "worst" not in quarantined.text
        assert "No test passes the filter." in (await browser.see(f"{PATH}?status=broken")).text
        assert "steady" in (await browser.see(f"{PATH}?status=all")).text


async def test_a_machine_that_fails_tests_is_named_with_who_acts(stage):
    await flaking(stage, "worst", "middle")
    case = await stage.case("worst")
    bad = BadMachine("runner <7>", (case.no,), 3, NOW, NOW, 18, 21, 7, 179)
    place = Place(stage.repository.org_id, stage.repository.id)
    await stage.runtime.store.run(bad_machines.replace, place, [bad])
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(PATH)
        assert "runner <7> fails 3 tests" in page.text
        assert "in 18 of its 21 runs" in page.text
        assert "Whoever runs the CI machines" in page.text
        await stage.runtime.store.run(bad_machines.replace, place, [])
        assert "Whoever runs the CI machines" not in (await browser.see(PATH)).text


async def test_tests_are_sorted_by_the_ci_time_that_they_lost(stage):
    await flaking(stage, "often", "rarely")
    case = upload_stage.a_case("rarely", "F")
    slow = case._replace(explicit_attempts=(case.explicit_attempts[0]._replace(duration_s=7200),))
    file = upload_stage.a_file({}, cases=(slow,))
    await stage.send([file], sha=Sha("c" * 40), ran_at=NOW - 3 * HOUR)
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(PATH)
        (by_cost,) = [link for link in page.links if "sort=ci" in link]
        assert page.text.index("often") < page.text.index("rarely")
        page = await browser.see(by_cost)
        assert page.text.index("rarely") < page.text.index("often")
        assert "2 h" in page.text
        case = await stage.case("rarely")
        assert "2 h" in (await browser.see(f"{PATH}/{case.id}")).text


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
        wrong = await browser.get(f"{PATH}?status=sick")
        assert wrong.status == 400
        assert b"The filter `status` takes" in wrong.body


async def test_a_repository_without_unhealthy_tests_says_so(stage):
    token = await token_of(stage.runtime, Role.READ)
    stranger = await token_of(stage.runtime, Role.ADMIN, "elsewhere")
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(PATH)
        assert "There are no tests yet" in page.text
        assert "url: https://queue.example.org" in page.text
        assert "org: octo" in page.text
        uploads = await browser.see("/octo/widgets/uploads")
        assert "There are no uploads yet" in uploads.text
        assert "--repo octo/widgets" in uploads.text
        assert (await browser.get(PATH, password=stranger)).status == 404
        assert (await browser.get(PATH, password="wrong")).status == 401


HOSTILE = ("<script>alert(1)</script>", "\u202egnp.exe")


async def test_many_tests_fit_on_small_pages(stage):
    await flaking(stage, *(f"test_{nth}" for nth in range(2)), *HOSTILE)
    many = {f"steady_{nth}_in_a_long_name_of_a_test": "P" for nth in range(100)}
    for hours in range(60):
        await stage.ran(many, sha=Sha(f"{hours:040}"), ran_at=NOW - hours * HOUR)
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        reply = await browser.get(f"{PATH}?status=all")
        assert reply.status == 200
        assert len(reply.body) < 100_000
        assert b"<script>alert" not in reply.body
        page = await browser.see(f"{PATH}?status=all")
        assert "1 to 50 of 10" in page.text
        uploads = await browser.get("/octo/widgets/uploads")
        assert len(uploads.body) < 100_000


def pages_of_tests(links):
    """Those links that lead to the page of a test."""
    return [link for link in links if re.match(rf"{PATH}/[0-9a-f-]{{36}}$", link)]


async def test_a_test_shows_its_trace_its_variants_and_the_pull_requests_it_hit(stage):
    case = upload_stage.a_case("total", "F")
    first = case.explicit_attempts[0]
    stack = "def total():\n    assert <b>1</b>\n"
    case = case._replace(explicit_attempts=(first._replace(stack=stack),))
    at = NOW - HOUR
    await stage.send(
        [upload_stage.a_file({}, cases=(case,))], sha=Sha("1" * 40), pr_number=7, ran_at=at
    )
    await stage.ran({"total": "P"}, sha=Sha("2" * 40), variant="windows", job="win", ran_at=at)
    stage.clock.present = NOW + HOUR
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        listed = await browser.see(f"{PATH}?status=all&variant=windows")
        (path,) = pages_of_tests(listed.links)
        variant = await browser.see(path)
        (other,) = pages_of_tests(variant.links)
        page = await browser.see(other)
        assert "assert <b>1</b>" in page.text
        assert "https://github.test/octo/widgets/pull/7" in page.links
        assert "windows" in page.text

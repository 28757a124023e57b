"""The box in the header: it finds pull requests by number, title or author, and tests by name."""

import pytest

from service.vocabulary import Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import token_of
from tests.dashboard.queue_stage import a_queue, an_entry
from tests.operations import upload_stage


@pytest.fixture
async def stage(store):
    """Pull request 12 waits in two repositories, 13 in one, and three tests have run."""
    for repository, numbers in (("gadgets", (12,)), ("widgets", (12, 13))):
        stage = await queue_stage.staged(store, "main", repository)
        entries = [an_entry(each, id=f"{repository}-{each}") for each in numbers]
        await stage.put(a_queue(entries))
    await (await upload_stage.staged(store)).ran({"test_add": "P", "test_drop": "P", "tax 12": "P"})
    return stage


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("13", "/octo/widgets/main/pull/13"),
        ("%2313", "/octo/widgets/main/pull/13"),
        ("Widgets%2312", "/octo/widgets/main/pull/12"),
        ("octo/gadgets%2312", "/octo/gadgets/main/pull/12"),
        ("Feature+FLAGS", "/octo/widgets/main/pull/13"),
        ("dave", "/octo/widgets/main/pull/13"),
        ("DROP", "/octo/widgets/tests/"),
    ],
)
async def test_the_only_thing_found_is_opened(stage, asked, path):
    async with stage.browsing() as browser:
        reply = await browser.get(f"/find?q={asked}", host="localhost")
    assert (reply.status, reply.headers["location"].startswith(path)) == (302, True)


async def test_several_things_found_are_listed(stage):
    async with stage.browsing() as browser:
        for asked in ("rounding", "12"):
            page = await browser.see(f"/find?q={asked}", host="localhost")
            assert {"/octo/widgets/main/pull/12", "/octo/gadgets/main/pull/12"} <= set(page.links)
        assert "tax 12" in page.text
        tests = await browser.see("/find?q=test_", host="localhost")
        assert "test_add" in tests.text
        assert "tax 12" not in tests.text
        for nothing in ("/find?q=%25", "/find?q=99", "/find?q=other%2313"):
            assert "Nothing found" in (await browser.see(nothing, host="localhost")).text
        assert "Find a pull request" in (await browser.see("/find", host="localhost")).text
        assert (await browser.get(f"/find?q={'x' * 201}", host="localhost")).status == 400


async def test_what_a_reader_may_not_see_is_not_found(stage):
    stranger = await token_of(stage.runtime, Role.ADMIN, "elsewhere")
    narrow = await token_of(stage.runtime, Role.READ, repositories=(stage.queue.repo,))
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        for asked in ("12", "rounding", "test_"):
            page = await browser.see(f"/find?q={asked}", password=stranger)
            assert "Nothing found" in page.text
        for asked in ("12", "rounding+in", "invoice"):
            reply = await browser.get(f"/find?q={asked}", password=narrow)
            assert b"gadgets" not in reply.body
        assert (await browser.get("/find?q=12")).status == 401

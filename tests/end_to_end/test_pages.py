"""The pages of a queue while it works: read over HTTP, as somebody on this machine reads them."""

import aiohttp
import pytest

from tests.dashboard.browsing import parsed
from tests.harness import gates
from tests.harness.asking import asker
from tests.harness.world import REPO, World, WorldOptions

OURS = "http://127.0.0.1:8642"


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and pages for this machine."""
    readers = {"dashboard_auth": "loopback", "public_url": OURS}
    return WorldOptions(ci=gates.CI, settings=readers)


async def read(world: World, path: str) -> str:
    """The text of a page."""
    async with aiohttp.ClientSession() as session, session.get(f"{world.url}{path}") as reply:
        assert reply.status == 200, path
        return parsed(await reply.read()).text


async def test_pages_follow_pull_requests_from_the_first_comment_to_the_proof(
    world: World,
) -> None:
    first = await world.open(title="Retry uploads")
    second = await world.open(title="Show <b>totals</b>")
    await world.settle()
    await world.make_queue(batch=True, batching_min_size=2)
    assert "the queue is empty" in await read(world, f"/{REPO}/main")
    await world.comment("/merge", on=first)
    await world.comment("/merge", on=second)
    await gates.under_test(world, first, second)
    queue = await read(world, f"/{REPO}/main")
    assert f"#{first} Retry uploads bob" in queue
    assert f"#{second} Show <b>totals</b> bob" in queue
    assert "Testing" in queue
    assert "Waits until check unit passes" in await read(world, f"/{REPO}/main/pull/{first}")
    run = (await world.entry(first)).run
    assert "0 of 1 required statuses passed" in await read(world, f"/{REPO}/runs/{run}")
    await gates.ends(world, first, second)
    await world.settle()
    merged = await read(world, f"/{REPO}/main/pull/{second}")
    assert "Landing proof" in merged
    assert "= equals" in merged
    assert "Testing of" in merged
    assert "landed tree = tested tree" in await read(world, f"/{REPO}/runs/{run}")
    assert f"#{second}" in await read(world, "/")
    assert "equal" in await read(world, f"/{REPO}/main")


async def test_comments_checks_and_answers_lead_to_the_pages(world: World) -> None:
    first, second = await world.open(), await world.open()
    await world.settle()
    await world.make_queue(batch=True, batching_min_size=2)
    await world.comment("/merge", on=first)
    await world.comment("/merge", on=second)
    await gates.under_test(world, first, second)
    page = f"{OURS}/{REPO}/main/pull/{second}"
    await world.until(lambda: has_live_page(world, second))
    assert f"[Live page]({page})" in world.comment_on(second)
    assert f"[#{first}]({OURS}/{REPO}/main/pull/{first})" in world.comment_on(second)
    reports = world.repository.check_runs((await world.entry(second)).head)
    assert [run.details_url for run in reports if run.name == "Headgate (main)"] == [page]
    shown = await (await asker(world)).done("getSubmittedPullRequest", second)
    assert shown["links"]["page"] == page


async def has_live_page(world: World, number: int) -> bool:
    """Whether the comment on a pull request is there."""
    return "[Live page]" in world.comment_on(number)

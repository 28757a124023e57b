"""The wall: chosen queues on one screen, those in trouble first."""

from dataclasses import replace

import pytest

from service.dashboard import marks, page_of_wall
from service.dashboard.page_of_wall import Tile, WallPage
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import turn
from service.text.phrases import Phrase
from service.vocabulary import Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import token_of
from tests.dashboard.queue_stage import a_queue, a_run, an_entry, ended, in_run, passed


@pytest.fixture
async def stage(store):
    """Queues of two repositories, of which one is paused."""
    gadgets = await queue_stage.staged(store, "main", "gadgets")
    landed = passed(9, (21,))
    left = [ended(20 + nth, landed, 90 - nth, id=f"g{nth}") for nth in range(3)]
    await gadgets.put(a_queue(), entries=tuple(left), runs=(landed,))
    widgets = await queue_stage.staged(store)
    run = a_run(3, (11,))
    await widgets.put(a_queue([*in_run(run, 1), an_entry(12), an_entry(13)], [run]))
    paused = await queue_stage.staged(store, "release/2")
    await paused.put(a_queue(state=QueueState.PAUSED, state_reason="release freeze"))
    return widgets


async def seen(stage, path):
    async with stage.browsing() as browser:
        return " ".join((await browser.see(path, host="localhost")).text.split())


async def test_without_names_the_wall_shows_every_queue_those_in_trouble_first(stage):
    text = await seen(stage, "/wall")
    assert "3 queues, 1 paused" in text
    assert text.startswith("paused · Wall · Headgate")
    assert text.index("release/2 Paused") < text.index("octo/gadgets main Running")
    assert "release freeze" in text
    assert "octo/gadgets main Running in test 0 waiting 0 last landing #22 1 h 28 min ago" in text
    assert "octo/widgets main Running in test 1 waiting 2 last landing none yet" in text


@pytest.mark.parametrize(
    "name", ["octo/widgets/release/2", "/octo/widgets/release~2/", "Octo/widgets/Release/2"]
)
async def test_a_queue_is_named_as_its_page_or_its_branch_is(stage, name):
    text = await seen(stage, f"/wall?queue={name}&queue=octo/none/main")
    assert "1 queue, 1 paused" in text
    assert "octo/gadgets" not in text
    assert "no such queue: octo/none/main" in text


async def test_a_wall_without_queues_says_how_to_name_them(stage):
    text = await seen(stage, "/wall?queue=octo/none/main")
    assert "/wall?queue=octo/widgets/main&queue=octo/api/main" in text


async def test_the_wall_shows_what_its_reader_may_see(stage):
    narrow = await token_of(stage.runtime, Role.READ, repositories=(stage.queue.repo,))
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        page = await browser.see("/wall", password=narrow)
        assert "octo/gadgets" not in page.text
        page = await browser.see("/wall?queue=octo/gadgets/main", password=narrow)
        assert "no such queue: octo/gadgets/main" in " ".join(page.text.split())
        assert (await browser.get("/wall")).status == 401


async def test_the_wall_changes_with_its_own_queues_alone(stage):
    async with stage.browsing() as browser:
        path = "/wall?queue=octo/gadgets/main"
        tag = (await browser.get(path, host="localhost")).headers["etag"]
        value = await turn.value(stage.runtime, stage.queue.id)
        await stage.put(replace(value, state=QueueState.PAUSED))
        again = f"If-None-Match: {tag}"
        assert (await browser.get(path, again, host="localhost")).status == 304
        assert (await browser.get("/wall", again, host="localhost")).status == 200


async def test_more_queues_than_fit_are_counted(stage, monkeypatch):
    monkeypatch.setattr(page_of_wall, "TILES_MAX", 2)
    assert "and 1 more" in await seen(stage, "/wall")


@pytest.mark.parametrize(
    ("tiles", "columns"), [(0, 1), (1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4), (12, 4)]
)
def test_tiles_stand_in_at_most_three_rows(tiles, columns):
    mark = marks.RUNNING
    tile = Tile("octo/widgets", "main", "/", mark, Phrase(), 0, 0, None, None)
    assert WallPage((tile,) * tiles, 0, ()).columns == columns

"""Attacks on what comes in: a command that is lost or hidden, and a queue that stands silently."""

from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from sqlalchemy import Update, update

from bot.github import client
from service.database.database import Tx
from service.database.outbox import OutboxState
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.operations.watch import SeenQueues
from service.process import deliveries
from service.provider.signals import Delivery, Where
from service.vocabulary import RepoId, RepoRef
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

PERIOD_S = 20
NOISE = 320
"""More comments than one look at a repository reads."""
YEARS = timedelta(days=3650)


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(settings={"period_comments_s": PERIOD_S, "period_redelivery_s": 3600})


async def merges(world: World, number: int) -> None:
    """Wait until the pull request is merged."""

    async def has_merged() -> bool:
        return await world.merged() == [number]

    await world.until(has_merged)


async def test_words_that_are_no_command_are_none_when_swept_either(world: World) -> None:
    """Hurts the author: a sweep carries out code, a quote, or what a comment became later."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({"event": "issue_comment"}, "drop", nth=None)
    await world.comment("```\n/merge\n```", on=one)
    await world.comment("> /merge", on=one)
    await world.comment("I would write `/merge` here", on=one)
    await world.comment("x" * 65_000, on=one)
    await world.comment("hello", on=one)
    await world.rest(2)
    last = world.repository.issues[one].comments[-1]
    await world.act("edit", number=one, comment=last.id, body="/merge")
    await world.rest(3 * PERIOD_S)
    await world.settle()
    assert await world.merged() == []
    assert await world.reactions(one) == []


@pytest.mark.fault(
    "a command is lost in a flood of comments",
    holds="the sweep finds it",
    within="15 min",
)
async def test_a_flood_of_comments_does_not_hide_a_lost_command(world: World) -> None:
    """Hurts everybody else: hundreds of comments push a command off what one look reads."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({"event": "issue_comment"}, "drop", nth=None)
    for number in range(NOISE):
        await world.comment(f"noise {number}", on=one, by="carol")
        # All within one period of the sweep, but not within one second.
        await world.rest(PERIOD_S / NOISE / 2)
    await world.comment("/merge", on=one)
    await merges(world, one)


async def test_a_command_behind_a_page_that_just_became_full_is_found(world: World) -> None:
    """Hurts the author: the full page is answered as unchanged, and names no page behind it."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({"event": "issue_comment"}, "drop", nth=None)
    for number in range(client.PER_PAGE):
        await world.comment(f"noise {number}", on=one, by="carol")
    provider = world.runtime.providers["github.localhost"]
    ref = RepoRef("github.localhost", "octo", "widgets")
    where = Where(RepoId(ref.host, str(world.repository.id)), ref)
    start = world.clock.now() - YEARS
    assert (await provider.comments_since(where, start)).deliveries == ()
    await world.comment("/merge", on=one)
    assert len((await provider.comments_since(where, start)).deliveries) == 1


@pytest.mark.fault(
    "a delivery cannot be read",
    holds="those behind it are heard",
    within="15 min",
)
async def test_a_delivery_that_cannot_be_read_stops_none_behind_it(world: World) -> None:
    """Hurts the repository: a broken delivery from another year blocks its lane."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    now = world.clock.now()
    body = b'{"action":"created","issue":{"pull_request":{}},"repository":{}}'
    for name, at in (("past", now - YEARS), ("future", now + timedelta(seconds=5))):
        told = ("github.localhost", f"broken-{name}", "issue_comment", "created")
        await deliveries.accept(world.runtime, Delivery(*told, str(world.repository.id), body, at))
    await world.comment("/merge", on=one)
    await merges(world, one)


async def test_a_strangers_command_overtakes_nobodys(world: World) -> None:
    """Hurts the author: a refused command of a stranger makes an older, lost one count as old."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({"event": "issue_comment"}, "drop")
    await world.comment("/merge", on=one)
    await world.rest(2)
    await world.comment("/merge cancel", on=one, by="dave")
    await merges(world, one)


async def test_a_retry_overtakes_no_submission(world: World) -> None:
    """Hurts the author: `/merge` is lost, `/merge retry` is refused, and then both count as old."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    await world.fault({"event": "issue_comment", "nth": 1}, "drop")
    await world.comment("/merge", on=one)
    await world.rest(2)
    await world.comment("/merge retry", on=one)
    await merges(world, one)


async def test_a_stranger_is_answered_once_and_no_more(world: World) -> None:
    """Hurts the reader: a stranger makes the bot write comment after comment."""
    await world.make_queue()
    one = await world.open()
    for _ in range(3):
        await world.comment("/merge", on=one, by="dave")
    await world.settle()
    written = [each for each in world.repository.issues[one].comments if each.via is not None]
    assert len(written) == 1
    assert await world.reactions(one) == ["-1", "-1", "-1"]


async def engine_of(world: World) -> str:
    """What the service says of its engine."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{world.url}/v1/status") as answer,
    ):
        services = (await answer.json())["services"]
    return next(one["status"] for one in services if one["name"] == "engine")


async def planted(world: World, statement: Update) -> None:
    def plant(session: Tx) -> None:
        session.execute(statement)

    await world.runtime.store.run(plant)


@pytest.mark.fault(
    "the effect of a run is lost",
    holds="the run is named as standing still",
    within="400 s",
)
async def test_a_run_whose_effect_is_lost_is_named_until_it_moves(world: World) -> None:
    """Hurts the whole queue: the row that builds a test branch is gone, and all wait silently."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    limit = {"method": "POST", "path": "*/git/refs", "nth": 1}
    await world.fault(limit, "secondary_limit", retry_after=120)
    await world.comment("/merge", on=one)

    async def is_building() -> bool:
        return bool((await world.value()).runs)

    await world.until(is_building)
    await world.rest(30)
    build = update(OutboxRow.__table__).where(OutboxRow.__table__.c.kind == "build")
    await planted(world, build.values(state=OutboxState.DONE.value, is_open=False))
    run = next(iter((await world.value()).runs))

    async def is_named() -> bool:
        return any(run in named for named in world.runtime.memory.of(SeenQueues).stalled.values())

    await world.until(is_named, within_s=400)
    assert await engine_of(world) == "impacted"
    assert b'headgate_stalled{kind="build_missing"} 1.0' in world.runtime.telemetry.text()
    await planted(world, build.values(state=OutboxState.READY.value, is_open=True))
    await merges(world, one)

    async def moves_again() -> bool:
        return world.runtime.memory.of(SeenQueues).stalled == {}

    await world.until(moves_again, within_s=120)
    assert await engine_of(world) == "up"


async def test_the_cursor_of_comments_never_goes_back(world: World) -> None:
    """Hurts everybody: the same comments are read, and carried out, again and again."""
    await world.make_queue()
    one = await world.open()
    await world.comment("/merge", on=one)
    await world.settle()
    await world.comment("/merge cancel", on=one)
    await world.rest(4 * PERIOD_S)
    asked = [
        call["query"]
        for call in world.sandbox.world.calls
        if call["path"].endswith("/issues/comments") and call["method"] == "GET"
    ]
    since = [query.partition("since=")[2] for query in asked if "since=" in query]
    assert since == sorted(since)
    assert await world.merged() == [one]


async def test_a_test_branch_that_waits_for_a_limit_says_so(world: World) -> None:
    """Hurts the author: the provider's limit is used up, and the queue only looks dead."""
    await world.make_queue()
    asking = await asker(world)
    one = await world.open()
    await world.settle()
    limit = {"method": "POST", "path": "*/git/refs", "nth": 1}
    await world.fault(limit, "secondary_limit", retry_after=240)
    await world.comment("/merge", on=one)
    shown: dict[str, Any] = {}

    async def is_told() -> bool:
        nonlocal shown
        status, shown = await asking.post("explainPullRequest", one)
        texts = [condition["text"] for condition in shown.get("conditions", ())]
        return status == 200 and any("used up; the next try is at" in text for text in texts)

    await world.until(is_told)
    assert shown["next"]["at"] is not None
    await merges(world, one)
    assert world.runtime.memory.of(SeenQueues).stalled == {}


async def test_who_must_act_is_the_same_everywhere(world: World) -> None:
    """Hurts the author: a program that polls the record waits for nobody, for ever."""
    await world.make_queue()
    asking = await asker(world)
    draft, ready = await world.open(draft=True), await world.open()
    await world.settle()
    await asking.done("updateQueue", state="PAUSED")
    for number in (draft, ready):
        await asking.done("submitPullRequest", number)
    await world.settle()
    for number, who in ((draft, "author"), (ready, "maintainer")):
        record = await asking.done("getSubmittedPullRequest", number)
        explained = await asking.done("explainPullRequest", number)
        unmet = [one for one in explained["conditions"] if not one["met"]]
        assert (record["whoMustAct"], unmet[0]["whoMustAct"]) == (who, who)
    record = await asking.done("getSubmittedPullRequest", ready)
    assert record["reasonMessage"].endswith("The queue is paused.")
    placed = await asking.done("addQueueHold", text="release is out")
    await asking.done("updateQueue", state="RUNNING")
    record = await asking.done("getSubmittedPullRequest", ready)
    explained = await asking.done("explainPullRequest", ready)
    unmet = [one for one in explained["conditions"] if not one["met"]]
    assert record["whoMustAct"] == unmet[0]["whoMustAct"] != "nobody"
    assert "release is out" in record["reasonMessage"]
    await asking.done("releaseQueueHold", holdId=placed["hold"]["id"], text="out")
    await world.settle()


async def test_a_reaction_that_is_not_permitted_is_tried_once(world: World) -> None:
    """Hurts everybody: each reaction that can never be written uses up calls of the limit."""
    await world.make_queue()
    one = await world.open()
    await world.settle()
    refused = {"method": "POST", "path": "*/reactions"}
    await world.fault({**refused, "nth": None}, "fail_before", status=403)
    await world.comment("/merge", on=one)
    await merges(world, one)
    await world.settle()
    tried = [
        call
        for call in world.sandbox.world.calls
        if call["path"].endswith("/reactions") and call["status"] == 403
    ]
    assert len(tried) == 1

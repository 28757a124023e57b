"""The pull requests of a person and of their team, over all queues that they may see."""

from dataclasses import replace
from typing import Any

import pytest

from service.dashboard import page_of_mine
from service.dashboard.visitors import Visitor
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import turn
from service.vocabulary import Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import token_of
from tests.dashboard.queue_stage import a_queue, a_run, an_entry, at, ended, in_run, passed, person
from tests.dashboard.signing_in import visitor

BOB: dict[str, Any] = {"author": "bob", "submitted_by": person("bob")}
DAVE: dict[str, Any] = {"author": "dave", "submitted_by": person("dave")}


@pytest.fixture
async def stage(store):
    """Bob has four pull requests in two repositories, dave has one."""
    widgets = await queue_stage.staged(store)
    run = a_run(3, (11,))
    review = (Reason.CHANGES_REQUESTED,)
    unready: dict[str, Any] = {"state": EntryState.NOT_READY, "reason": review[0], "unmet": review}
    entries = [
        *in_run(run, 1, **BOB),
        an_entry(12, **DAVE),
        an_entry(13, seq=None, state_since=at(130), **unready, **BOB),
    ]
    await widgets.put(a_queue(entries, [run]))
    gadgets = await queue_stage.staged(store, "release/2", "gadgets")
    landed = passed(9, (21,))
    left = ended(21, landed, 30, id="g21", **BOB)
    old = ended(22, landed, 60 * 25, id="g22", **BOB)
    await gadgets.put(
        a_queue([an_entry(23, id="g23", author="dave", submitted_by=person("BOB"))]),
        entries=(left, old),
        runs=(landed,),
    )
    await gadgets.landed(landed)
    return widgets


async def test_a_team_sees_what_it_has_in_every_queue_those_first_that_wait_for_it(stage):
    async with stage.browsing() as browser:
        page = await browser.see("/mine?team=bob", host="localhost")
    text = " ".join(page.text.split())
    assert "widgets#13" in text
    assert text.index("widgets#13") < text.index("widgets#11") < text.index("gadgets#21")
    assert "Waiting to enter Waits until no reviewer requests changes bob 2 h 10 min" in text
    assert "gadgets#23" in text, "he submitted it"
    assert "Left in the last 24 hours" in text
    assert "gadgets#22" not in text, "it left 25 hours ago"
    assert "widgets#12" not in text
    for link in ("/octo/widgets/main/pull/13", "/octo/gadgets/release~2/pull/21"):
        assert link in page.links


async def test_who_may_not_see_a_repository_sees_nothing_of_its_pull_requests(stage):
    narrow = await token_of(stage.runtime, Role.READ, repositories=(stage.queue.repo,))
    stranger = await token_of(stage.runtime, Role.ADMIN, "elsewhere")
    async with stage.browsing(dashboard_auth=queue_stage.TOKEN) as browser:
        page = await browser.see("/mine?team=bob", password=narrow)
        assert "widgets#11" in page.text
        assert "gadgets" not in page.text
        page = await browser.see("/mine?team=bob", password=stranger)
        assert "None of their pull requests is in a queue" in page.text
        assert "#" not in page.text
        assert (await browser.get("/mine?team=bob")).status == 401


async def test_the_page_is_sent_again_when_a_queue_or_the_team_has_changed(stage):
    async with stage.browsing() as browser:
        first = await browser.get("/mine?team=bob", host="localhost")
        again = f"If-None-Match: {first.headers['etag']}"
        assert (await browser.get("/mine?team=bob", again, host="localhost")).status == 304
        assert (await browser.get("/mine?team=dave", again, host="localhost")).status == 200
        value = await turn.value(stage.runtime, stage.queue.id)
        await stage.put(replace(value, state=QueueState.PAUSED))
        assert (await browser.get("/mine?team=bob", again, host="localhost")).status == 200


@pytest.mark.parametrize(
    ("team", "why"),
    [
        ("bob,%3Cb%3E", "`&lt;b&gt;` is not a login of GitHub."),
        (",".join(f"p{nth}" for nth in range(31)), "A team has at most 30 people here."),
    ],
)
async def test_a_team_that_is_none_is_refused(stage, team, why):
    async with stage.browsing() as browser:
        reply = await browser.get(f"/mine?team={team}", host="localhost")
    assert (reply.status, why in reply.body.decode()) == (400, True)


def test_people_are_named_with_commas_blanks_and_signs():
    assert page_of_mine.team_of(" @bob, Carol  bob\tdependabot[bot],") == (
        *("bob", "Carol", "dependabot[bot]"),
    )
    assert page_of_mine.team_of("") == ()


def test_a_browser_remembers_a_team_for_one_person_alone():
    alice, bob = (Visitor(replace(person(name), id=name), "") for name in ("alice", "bob"))
    cookie = page_of_mine.cookie_of(alice, ("carol", "dependabot[bot]"))
    assert page_of_mine.remembered(alice, cookie) == ("carol", "dependabot[bot]")
    assert page_of_mine.remembered(bob, cookie) == ()
    for wrong in ("", "alice", "alice:%3Cb%3E"):
        assert page_of_mine.remembered(alice, wrong) == ()


async def test_a_person_sees_their_own_and_names_a_team(pages):
    mine = await pages.open(by="alice")
    await pages.comment("/merge", mine, by="alice")
    await pages.settle()
    async with visitor(pages, "alice", "/") as browser:
        page = await browser.follow("Mine")
        assert "None of your pull requests is in a queue" in page.text
        assert f"widgets#{mine}" in page.text
        assert "Merged" in page.text
        page = await browser.press("Show and remember", team="bob, @carol")
        assert page.url.endswith("/mine?team=bob,carol")
        page = await browser.open(f"{pages.url}/mine")
        assert "Your team bob , carol" in page.text
        page = await browser.press("Show and remember", team="")
        assert "nobody yet" in page.text

"""What people do on the pages of queues and pull requests, and what they may not do."""

import pytest

from service.accounts.store import audit
from service.dashboard import visitors
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import HoldRequest
from service.vocabulary import SYSTEM, ActorKind, Channel
from tests.dashboard.signing_in import PATH, visitor


async def newest(world, action):
    """The newest entry of the audit log about an action."""
    queue = await world.queue()
    rows = await world.runtime.store.read(audit.newest, queue.org_id, 100)
    return next(row for row in rows if row.action == action)


async def until_tested(world, number):
    """Wait until the tests of a pull request run."""

    async def is_tested():
        entry = (await world.value()).entries.get(number)
        return entry is not None and entry.state is EntryState.TESTING

    await world.until(is_tested)


async def test_a_maintainer_pauses_with_a_reason_and_resumes(pages):
    async with visitor(pages, "alice") as browser:
        page = await browser.press("Pause the queue", reason="release freeze")
        assert page.status == 200
        assert "Paused: the queue is empty" in page.text
        assert "Paused by alice" in page.text
        assert "release freeze" in page.text
        value = await pages.value()
        assert (value.state, value.state_reason) == (QueueState.PAUSED, "release freeze")
        row = await newest(pages, "queue.pause")
        assert (row.actor.kind, row.actor.login) == (ActorKind.PERSON, "alice")
        assert (row.actor.channel, row.request_id != "") == (Channel.DASHBOARD, True)
        page = await browser.press("Drain the queue")
        assert (await pages.value()).state is QueueState.DRAINING
        page = await browser.press("Resume")
        assert "Running" in page.text
        assert (await pages.value()).state is QueueState.RUNNING


async def test_a_form_that_was_sent_twice_changes_nothing_more(pages):
    async with visitor(pages, "alice") as browser:
        before = browser.page
        await browser.press("Pause the queue", reason="one")
        version = (await pages.value()).version
        browser.page = before
        assert (await browser.press("Pause the queue", reason="one")).status == 200
        assert (await pages.value()).version == version


async def test_a_refused_form_says_why_and_keeps_what_was_typed(pages):
    async with visitor(pages, "alice") as browser:
        page = await browser.press("Pause the queue", reason="bell \x07 " + "x" * 600)
        assert page.status == 400
        assert "Not done:" in page.text
        assert "reason" in page.text
        kept = dict(page.form("Pause the queue").fields)["reason"]
        assert kept.startswith("bell")
        assert (await pages.value()).state is QueueState.RUNNING


@pytest.mark.parametrize("login", ["bob", "carol"])
async def test_who_has_less_access_sees_what_it_takes_and_is_refused(pages, login):
    async with visitor(pages, "alice") as maintainer, visitor(pages, login) as browser:
        assert "needs maintain access" in browser.page.text
        assert all("Pause the queue" not in form.buttons for form in browser.page.forms)
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        data = {"form_tag": tag, "action": "pause", "reason": "x"}
        url = f"{pages.url}{PATH}"
        async with browser.http.post(url, data=data, headers={"Origin": pages.url}) as answer:
            assert answer.status == 403
            assert "needs maintain access to octo/widgets" in await answer.text()
        # The secret field of one session is of no use in another one.
        stolen = {**data, "form_tag": dict(maintainer.page.form("Sign out").fields)["form_tag"]}
        async with browser.http.post(url, data=stolen, headers={"Origin": pages.url}) as answer:
            assert answer.status == 403
        assert (await pages.value()).state is QueueState.RUNNING
    row = await newest(pages, "page.pause")
    assert (row.decision, row.actor.login) == ("denied", login)


async def test_a_role_that_was_taken_away_changes_nothing_any_more(pages):
    async with visitor(pages, "alice") as browser:
        await pages.act("role", by="alice", login="alice", role="read")
        page = await browser.press("Pause the queue")
        assert (page.status, "you have read access" in page.text) == (403, True)
        assert (await pages.value()).state is QueueState.RUNNING


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        ({"action": "pause"}, {"Origin": "https://evil.test"}, 403),
        ({"action": "pause"}, {}, 403),
        ({"action": "no such"}, None, 400),
        ({}, None, 400),
    ],
)
async def test_forms_of_others_are_refused(pages, data, headers, status):
    async with visitor(pages, "alice") as browser:
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        sent = {**data, "form_tag": tag}
        given = {"Origin": pages.url} if headers is None else headers
        url = f"{pages.url}{PATH}"
        async with browser.http.post(url, data=sent, headers=given) as answer:
            assert answer.status == status
        async with browser.http.post(url, json=sent, headers={"Origin": pages.url}) as answer:
            assert answer.status == 400
        assert (await pages.value()).state is QueueState.RUNNING


async def test_an_admin_releases_a_hold_with_a_reason(pages):
    held = await queues.add_hold(pages.runtime, await pages.queue(), HoldRequest("audit"), SYSTEM)
    async with visitor(pages, "alice") as browser:
        assert "needs admin access" in browser.page.text
        await pages.act("role", by="alice", login="alice", role="admin")
        await pages.rest(visitors.KEPT.total_seconds() + 1)
        await browser.open(f"{pages.url}{PATH}")
        page = await browser.press("Release it", reason="")
        assert (page.status, "reason" in page.text) == (400, True)
        page = await browser.press("Release it", reason="the audit is over", hold=held.id)
        assert page.status == 200
    assert (await pages.value()).holds == ()
    assert (await newest(pages, "queue.release")).actor.login == "alice"


async def test_a_pull_request_is_tested_again_moved_up_removed_and_queued_again(pages):
    first = await pages.open()
    number = await pages.open()
    await pages.comment("/merge", on=first)
    await pages.comment("/merge", on=number)

    await until_tested(pages, number)
    async with visitor(pages, "bob", f"{PATH}/pull/{number}") as browser:
        assert "needs maintain access" in browser.page.text
        assert "Remove it It leaves the queue." in browser.page.text
        page = await browser.press("Restart tests")
        assert page.status == 200
        assert (await newest(pages, "pull_request.restart")).actor.login == "bob"
        page = await browser.press("Remove from the queue…")
        assert "Remove from the queue?" in page.text
        assert await pages.state(number) == "TESTING"
        page = await browser.press("Remove from the queue")
        assert (page.status, "Removed" in page.text) == (200, True)
        assert await pages.state(number) == "CANCELLED"
        row = await newest(pages, "pull_request.cancel")
        assert (row.actor.login, row.actor.channel) == ("bob", Channel.DASHBOARD)
        page = await browser.press("Queue again")
        assert page.status == 200
        assert await pages.state(number) != "CANCELLED"
        removed = browser.page
    async with visitor(pages, "alice", f"{PATH}/pull/{number}") as browser:
        page = await browser.press("Change it", priority="urgent")
        assert page.status == 200
        assert (await pages.entry(number)).priority == 0
        page = await browser.press("Change it", priority="soon")
        assert (page.status, "priority must be one of urgent" in page.text) == (400, True)
    assert removed.status == 200
    await pages.settle()
    assert sorted(await pages.merged()) == [first, number]


async def test_what_the_queue_refuses_is_shown_with_its_reason(pages):
    number = await pages.open()
    await pages.comment("/merge", on=number)

    await until_tested(pages, number)
    async with visitor(pages, "bob", f"{PATH}/pull/{number}") as browser:
        before = browser.page
        await pages.settle()
        page = await browser.press("Restart tests")
        assert (page.status, "Not done:" in page.text) == (404, True)
        assert "Merged" in page.text
        assert before.status == 200

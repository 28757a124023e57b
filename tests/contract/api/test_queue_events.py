"""The events of a queue since a cursor (docs/design/http.md 12)."""

import asyncio

import pytest


async def listed(queue, **more):
    return await queue.client.done("listQueueEvents", queue.named(**more))


async def test_a_first_request_begins_now_and_its_cursor_leads_to_what_comes(client, queue):
    before = await queue.submitted()
    first = await listed(queue)
    assert (first["events"], first["hasMore"]) == ([], False)
    await client.done("cancelPullRequest", queue.about(before))
    later = await listed(queue, cursor=first["cursor"])
    moved = [each for each in later["events"] if each["event"] == "EntryMoved"]
    assert [(each["prNumber"], each["to"]) for each in moved] == [(before, "CANCELLED")]
    assert moved[0]["actor"]["kind"] == "token"
    assert (await listed(queue, cursor=later["cursor"]))["events"] == []


async def test_pages_join_without_gap_or_repetition(queue):
    await queue.submitted()
    start = "2020-01-01T00:00:00Z"
    whole = await listed(queue, since=start)
    joined, cursor, has_more = [], None, True
    while has_more:
        place = {"since": start} if cursor is None else {"cursor": cursor}
        part = await listed(queue, take=2, **place)
        assert len(part["events"]) <= 2
        joined += part["events"]
        cursor, has_more = part["cursor"], part["hasMore"]
    assert joined == whole["events"]
    assert len(joined) > 2
    assert {"EntrySubmitted", "EntryMoved", "RunStarted"} <= {each["event"] for each in joined}


async def test_a_change_of_the_queue_has_its_states(client, queue):
    first = await listed(queue)
    await client.done("updateQueue", queue.named(state="PAUSED", stateReason="freeze"))
    (changed,) = [
        each
        for each in (await listed(queue, cursor=first["cursor"]))["events"]
        if each["event"] == "QueueStateChanged"
    ]
    assert (changed["from"], changed["to"], changed["prNumber"]) == ("RUNNING", "PAUSED", None)


async def test_a_request_may_wait_for_the_next_event(client, queue):
    number = await queue.submitted()
    first = await listed(queue)
    waiting = asyncio.create_task(listed(queue, cursor=first["cursor"], waitFor=30))
    await client.done("cancelPullRequest", queue.about(number))
    assert (await waiting)["events"]


async def test_without_an_event_the_wait_ends_with_the_same_place(queue):
    first = await listed(queue)
    again = await listed(queue, cursor=first["cursor"], waitFor=1)
    assert again["events"] == []


@pytest.mark.parametrize("cursor", ["x", "eyJrIjpbMV19"])
async def test_a_cursor_that_is_none_of_this_queue_is_refused(client, queue, cursor):
    answer = await client.post("listQueueEvents", queue.named(cursor=cursor))
    assert answer.is_problem(400, "invalid_page_token")

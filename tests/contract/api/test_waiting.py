"""Reads that wait until their answer has another version (docs/design/http.md 12)."""

import asyncio

import pytest

ENOUGH = 41
"""One more than may wait with one token."""


def changed_since(record, seconds=30):
    """The members that wait for another version than that of a record."""
    return {"sinceVersion": record["recordVersion"], "waitFor": seconds}


async def test_the_version_stays_while_the_record_does(queue):
    number = await queue.submitted()
    first, second = await queue.record(number), await queue.record(number)
    assert first == second
    assert (await queue.get())["recordVersion"] == (await queue.get())["recordVersion"]


async def test_a_record_that_has_changed_is_answered_at_once(client, queue):
    number = await queue.submitted()
    before = await queue.record(number)
    await client.done("cancelPullRequest", queue.about(number))
    after = await queue.record(number, **changed_since(before))
    assert after["state"] == "CANCELLED"
    assert after["recordVersion"] != before["recordVersion"]


async def test_a_change_ends_the_wait(client, queue):
    number = await queue.submitted()
    before, whole = await queue.record(number), await queue.get()
    body = queue.about(number, **changed_since(before))
    record = asyncio.create_task(client.done("getSubmittedPullRequest", body))
    line = asyncio.create_task(client.done("getQueue", queue.named(**changed_since(whole))))
    await client.done("submitPullRequest", queue.about(number, priority="high"))
    assert (await record)["priorityName"] == "high"
    assert (await line)["enqueuedPullRequests"][0]["priorityName"] == "high"


async def test_without_a_change_the_same_record_is_answered_after_the_time(queue):
    number = await queue.submitted()
    before = await queue.record(number)
    assert await queue.record(number, **changed_since(before, 1)) == before


async def test_the_timeline_may_be_waited_for_too(client, queue):
    number = await queue.submitted()
    before = await queue.record(number, includeTimeline=True)
    await client.done("submitPullRequest", queue.about(number, priority="high"))
    after = await queue.record(number, includeTimeline=True, **changed_since(before))
    assert len(after["timeline"]) == len(before["timeline"]) + 1


@pytest.mark.parametrize(
    ("sent", "field", "code"),
    [
        ({"sinceVersion": "x", "waitFor": 31}, "/waitFor", "range"),
        ({"sinceVersion": "x", "waitFor": 0}, "/waitFor", "range"),
        ({"sinceVersion": "", "waitFor": 5}, "/sinceVersion", "length"),
    ],
)
async def test_a_wait_out_of_range_is_refused_with_its_field(client, queue, sent, field, code):
    answer = await client.post("getQueue", queue.named(**sent))
    assert answer.is_problem(400, "invalid_field")
    assert [(one["field"], one["code"]) for one in answer.json["errors"]] == [(field, code)]


async def test_a_first_read_answers_at_once(client, queue):
    number = await queue.submitted()
    assert await queue.record(number, waitFor=30) == await queue.record(number)


async def test_a_version_alone_is_enough_to_wait(client, queue):
    number = await queue.submitted()
    now = await queue.record(number)
    assert await queue.record(number, sinceVersion="an older one") == now


async def test_a_token_may_have_only_so_many_requests_waiting(client, queue):
    number = await queue.submitted()
    before = await queue.record(number)
    body = queue.about(number, **changed_since(before))
    asked = [client.post("getSubmittedPullRequest", body) for _ in range(ENOUGH)]
    waiting = [asyncio.create_task(one) for one in asked]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    refused = [one.result() for one in done]
    assert [(one.status, one.json["code"]) for one in refused] == [(503, "overloaded")]
    assert refused[0].headers["Retry-After"] == "5"
    await client.done("cancelPullRequest", queue.about(number))
    answers = await asyncio.gather(*waiting)
    assert sorted(one.status for one in answers) == [200] * (ENOUGH - 1) + [503]


async def test_a_token_that_ends_while_it_waits_is_answered_nothing(client, queue):
    number = await queue.submitted()
    before = await queue.record(number)
    made = await client.done("tokens/create", {"name": "short", "role": "read"})
    body = queue.about(number, **changed_since(before))
    asked = asyncio.create_task(client.post("getSubmittedPullRequest", body, made["token"]))
    await client.done("tokens/revoke", {"id": made["id"]})
    await client.done("cancelPullRequest", queue.about(number))
    assert (await asked).status == 401

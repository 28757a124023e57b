"""Whatever happens to rows while a list is read, each that was there throughout is read once."""

import pytest

from service.http.route import Posted
from service.process.api import routes
from tests.contract.api.conftest import made, removed
from tests.harness.receiver import receiving

SETTLED = {
    "listPullRequests",
    "getPullRequestTimeline",
    "listQueues",
    "listMergeQueueTestingResults",
    "listQueueEvents",
    "listLandingEvidence",
    "tokens/list",
    "webhooks/list-endpoints",
    "webhooks/list-deliveries",
    *(
        f"flaky-tests/list-{kind}"
        for kind in ("tests", "unhealthy-tests", "failing-tests", "quarantined-tests")
    ),
}
"""Each has a test here, in `test_queue_events.py`, or in `flaky/test_settled_order.py`."""


def test_every_list_with_pages_is_tested_for_its_order():
    names = {"next_cursor", "cursor", "page"}
    found = {
        route.path.removeprefix("/v1/")
        for route in routes.ROUTES
        if isinstance(route, Posted)
        and not isinstance(route.answers, str | None)
        and names & route.answers.model_fields.keys()
    }
    # The `page` of an explanation is an address.
    assert found - {"explainPullRequest"} == SETTLED


async def read(client, name, body, rows, between):
    """Every row of a list that is read two by two; `between` pages something happens."""
    found, cursor, turn = [], "", 0
    while cursor is not None:
        answer = await client.done(name, {**body, "take": 2, "cursor": cursor})
        found += answer[rows]
        cursor = answer.get("nextCursor", answer.get("next_cursor"))
        turn += 1
        assert turn < 40
        if turn < 6:
            await between(turn)
    return found


async def test_submissions_that_change_places_leave_or_come_are_read_once(client, queue):
    await client.done("updateQueue", queue.named(state="PAUSED"))
    waiting = [await queue.submitted() for _ in range(8)]

    async def between(turn):
        await client.done("submitPullRequest", queue.about(waiting[turn % 2], priority="urgent"))
        await client.done("submitPullRequest", queue.about(waiting[-turn], priority="low"))
        await client.done("cancelPullRequest", queue.about(waiting[turn + 1]))
        await queue.submitted()

    found = await read(client, "listPullRequests", queue.named(), "pullRequests", between)
    assert [each["prNumber"] for each in found] == waiting[::-1]


async def test_runs_that_end_or_begin_are_read_once(client, queue):
    await client.done("updateQueue", queue.named(concurrency=10))
    tested = [await queue.submitted() for _ in range(6)]
    before = await client.done("listMergeQueueTestingResults", queue.named(take=100))
    ids = [each["testRunId"] for each in before["testingResults"]]
    assert len(ids) == before["totalItems"] == 6

    async def between(turn):
        await client.done("restartTestsOnPullRequest", queue.about(tested[turn % 6]))
        await queue.submitted()

    name = "listMergeQueueTestingResults"
    found = await read(client, name, queue.named(), "testingResults", between)
    assert [each["testRunId"] for each in found] == ids
    both = await client.post(name, queue.named(offset=1, cursor="hgp1_x"))
    assert both.is_problem(422, "conflicting_fields")


async def test_evidence_of_what_lands_meanwhile_is_read_once(client, open_queue):
    landed = [await open_queue.submitted() for _ in range(3)]

    async def between(turn):
        if turn < 2:
            landed.append(await open_queue.submitted())

    found = await read(client, "listLandingEvidence", open_queue.named(), "evidence", between)
    assert [each["prNumber"] for each in found] == landed


async def test_queues_that_change_come_or_go_are_read_once(client, world):
    own = [await made(client, world) for _ in range(4)]
    doomed, more = await made(client, world), []

    async def between(turn):
        await client.done("updateQueue", own[turn % 4].named(state="PAUSED", stateReason="x"))
        if turn == 1:
            await removed(doomed)
            more.append(await made(client, world))

    found = await read(client, "listQueues", {}, "queues", between)
    branches = [each["branch"] for each in found]
    assert len(branches) == len({(str(each["repo"]), each["branch"]) for each in found})
    assert {each.branch for each in own} <= set(branches)
    for each in (*own, *more):
        await removed(each)


async def test_tokens_that_come_or_end_are_read_once(client):
    async def new(name):
        body = {"name": name, "role": "read"}
        return (await client.done("tokens/create", body))["id"]

    staying = [await new(f"stays-{turn}") for turn in range(4)]
    doomed = [await new(f"ends-{turn}") for turn in range(5)]
    later = []

    async def between(turn):
        await client.done("tokens/revoke", {"id": doomed[turn - 1]})
        later.append(await new(f"comes-{turn}"))

    found = [each["id"] for each in await read(client, "tokens/list", {}, "tokens", between)]
    assert len(found) == len(set(found))
    assert set(staying) <= set(found)
    for each in (*staying, *later):
        await client.done("tokens/revoke", {"id": each})


@pytest.fixture
async def receiver():
    async with receiving() as own:
        yield own


async def test_endpoints_that_come_change_or_go_are_read_once(client, world, receiver):
    async def new():
        body = {"url": receiver.url, "events": ["queue.*"]}
        return (await client.done("webhooks/create-endpoint", body))["id"]

    staying, doomed = [await new() for _ in range(4)], [await new() for _ in range(5)]
    later = []

    async def between(turn):
        await client.done("webhooks/update-endpoint", {"id": staying[turn % 4], "events": ["*"]})
        await client.done("webhooks/delete-endpoint", {"id": doomed[turn - 1]})
        later.append(await new())

    rows = await read(client, "webhooks/list-endpoints", {}, "endpoints", between)
    found = [each["id"] for each in rows]
    assert len(found) == len(set(found))
    assert set(staying) <= set(found)
    for each in (*staying, *later):
        await client.done("webhooks/delete-endpoint", {"id": each})


async def test_deliveries_that_are_made_or_sent_again_are_read_once(client, world, receiver):
    body = {"url": receiver.url, "events": ["*"]}
    endpoint = (await client.done("webhooks/create-endpoint", body))["id"]
    about = {"endpoint_id": endpoint}
    sent = [
        (await client.done("webhooks/test-endpoint", {"id": endpoint}))["message_id"]
        for _ in range(6)
    ]

    async def between(turn):
        await client.done("webhooks/replay", {**about, "message_id": sent[-turn]})
        await client.done("webhooks/test-endpoint", {"id": endpoint})

    rows = await read(client, "webhooks/list-deliveries", about, "deliveries", between)
    found = [each["message_id"] for each in rows]
    assert found == sent[::-1]
    await client.done("webhooks/delete-endpoint", {"id": endpoint})

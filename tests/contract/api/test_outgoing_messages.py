"""What webhook endpoints receive is what the document says (docs/design/notifications.md 1)."""

from typing import Any

import jsonschema_rs
import pytest

from tests.harness.receiver import receiving


@pytest.fixture
async def endpoint(client, world):
    """An endpoint that receives everything."""
    async with receiving() as receiver:
        made = await client.done("webhooks/create-endpoint", {"url": receiver.url, "events": ["*"]})
        yield made["id"]
        await client.post("webhooks/delete-endpoint", {"id": made["id"]})


async def payloads(client, endpoint):
    """Every message to an endpoint, oldest first."""
    found: list[Any] = []
    more: dict[str, str] = {}
    while True:
        body = {"endpoint_id": endpoint, "take": 100, **more}
        listed = await client.done("webhooks/list-deliveries", body)
        found += [each["payload"] for each in listed["deliveries"]]
        if "next_cursor" not in listed:
            return found[::-1]
        more = {"cursor": listed["next_cursor"]}


async def test_every_message_about_a_landing_is_as_the_document_says(
    client, world, endpoint, open_queue
):
    number = await open_queue.submitted()
    assert (await open_queue.record(number))["state"] == "MERGED"
    document = (await client.ask("GET", "/openapi.json", "")).json
    told = [
        each
        for each in await payloads(client, endpoint)
        if each.get("target_branch") == open_queue.branch
    ]
    for payload in told:
        content = document["webhooks"][payload["type"]]["post"]["requestBody"]["content"]
        schema = {**content["application/json"]["schema"], "components": document["components"]}
        jsonschema_rs.Draft202012Validator(schema).validate(payload)
    assert {each["type"] for each in told} >= {
        *("pull_request.submitted", "pull_request.testing", "pull_request.tests_passed"),
        *("pull_request.merged", "test_run.started", "test_run.finished"),
    }


async def test_the_test_branch_is_known_while_it_is_tested(client, world, endpoint, queue):
    number = await queue.submitted()
    record = await queue.record(number)
    assert record["state"] == "TESTING"
    (started,) = [
        each
        for each in await payloads(client, endpoint)
        if each["type"] == "test_run.started" and each["target_branch"] == queue.branch
    ]
    details = await client.done(
        "getMergeQueueTestingDetails", queue.named(testRunId=record["testRunId"])
    )
    assert started["test_run_id"] == record["testRunId"]
    assert (started["status"], started["pr_numbers_tested"]) == ("in_progress", [number])
    shown = (started["test_branch"], started["test_branch_sha"], started["test_pr_number"])
    assert shown == (details["testBranch"], details["testBranchSha"], details["testPrNumber"])

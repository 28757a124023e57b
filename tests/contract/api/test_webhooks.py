"""The webhook endpoints over HTTP, with receivers on loopback."""

import re
from typing import Any

import pytest

from tests.contract.api.conftest import Client
from tests.harness.receiver import receiving, verified

UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NOWHERE = "6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10"
MESSAGE = "msg_" + "0" * 32

FIELDS = [
    "id",
    "url",
    "events",
    "repositories",
    "description",
    "format",
    "state",
    "disabled_reason",
    "last_success_at",
    "last_failure_at",
    "created_at",
]

ABOUT_ONE: dict[str, dict[str, Any]] = {
    "update-endpoint": {"id": NOWHERE},
    "delete-endpoint": {"id": NOWHERE},
    "rotate-secret": {"id": NOWHERE},
    "test-endpoint": {"id": NOWHERE},
    "list-deliveries": {"endpoint_id": NOWHERE},
    "replay": {"endpoint_id": NOWHERE, "message_id": MESSAGE},
}


@pytest.fixture
async def receiver():
    async with receiving() as own:
        yield own


@pytest.fixture
async def endpoint(client, world, receiver):
    """An endpoint that hears of queues, removed at the end."""
    body = {"url": receiver.url, "events": ["Queue.*"], "description": "ops"}
    made = await client.done("webhooks/create-endpoint", body)
    yield made
    await client.post("webhooks/delete-endpoint", {"id": made["id"]})


def list_of(client: Client) -> Any:
    """Every endpoint that the admin sees, by id."""
    return client.done("webhooks/list-endpoints", {"take": 100})


async def test_an_endpoint_is_made_with_a_secret_that_is_shown_once(client, endpoint, receiver):
    assert list(endpoint) == [*FIELDS, "secret"]
    assert UUID.fullmatch(endpoint["id"])
    assert TIME.fullmatch(endpoint["created_at"])
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", endpoint["secret"])
    assert {name: endpoint[name] for name in FIELDS[1:-1]} == {
        "url": receiver.url,
        "events": ["queue.*"],
        "repositories": None,
        "description": "ops",
        "format": "json",
        "state": "enabled",
        "disabled_reason": None,
        "last_success_at": None,
        "last_failure_at": None,
    }
    listed = (await list_of(client))["endpoints"]
    assert {name: endpoint[name] for name in FIELDS} in listed
    assert all(list(each) == FIELDS for each in listed)


async def test_an_endpoint_in_the_format_of_slack_gets_one_text_signed_as_it_is_sent(
    client, world, receiver, endpoint
):
    change = {"id": endpoint["id"], "format": "Slack"}
    changed = await client.done("webhooks/update-endpoint", change)
    assert changed["format"] == "slack"
    await client.done("webhooks/test-endpoint", {"id": endpoint["id"]})
    text = verified(receiver.got[-1], endpoint["secret"])
    assert set(text) == {"text"}
    assert text["text"].startswith("This is a test by Headgate for `")
    body = {"endpoint_id": endpoint["id"], "event": "webhook.test"}
    logged = (await client.done("webhooks/list-deliveries", body))["deliveries"]
    assert logged[0]["payload"] == text
    refused = await client.post(
        "webhooks/create-endpoint", {"url": receiver.url, "events": ["*"], "format": "teams"}
    )
    assert refused.status == 400


async def test_endpoints_are_listed_by_pages(client, world, receiver, endpoint):
    more = [
        await client.done(
            "webhooks/create-endpoint", {"url": receiver.url, "events": ["upload.processed"]}
        )
        for _ in range(2)
    ]
    first = await client.done("webhooks/list-endpoints", {"take": 2})
    assert len(first["endpoints"]) == 2
    cursor = first["next_cursor"]
    rest = await client.done("webhooks/list-endpoints", {"take": 100, "cursor": cursor})
    assert "next_cursor" not in rest
    ids = [each["id"] for each in first["endpoints"] + rest["endpoints"]]
    assert ids == [each["id"] for each in (await list_of(client))["endpoints"]]
    other = "B" if cursor[-2] == "A" else "A"
    changed = cursor[:-2] + other + cursor[-1]
    bad = await client.post("webhooks/list-endpoints", {"cursor": changed})
    assert bad.is_problem(400, "invalid_page_token")
    foreign = await client.post("webhooks/list-endpoints", {"cursor": cursor}, world.foreign_token)
    assert foreign.is_problem(400, "invalid_page_token")
    for each in more:
        assert await client.done("webhooks/delete-endpoint", {"id": each["id"]}) == {
            "deleted": True
        }


FAULTS = [
    ("create-endpoint", {}, [("/url", "missing"), ("/events", "missing")]),
    ("create-endpoint", {"url": "", "events": []}, [("/url", "length"), ("/events", "length")]),
    ("create-endpoint", {"url": "x" * 2001, "events": ["*"]}, [("/url", "length")]),
    ("create-endpoint", {"url": 1, "events": "x"}, [("/url", "type"), ("/events", "type")]),
    ("create-endpoint", {"url": "x", "events": ["queue.hold"]}, [("/events/0", "enum")]),
    ("create-endpoint", {"url": "x", "events": ["*"] * 51}, [("/events", "length")]),
    (
        "create-endpoint",
        {"url": "x", "events": ["*"], "description": "x" * 201, "repositories": [{}]},
        [
            ("/repositories/0/host", "missing"),
            ("/repositories/0/owner", "missing"),
            ("/repositories/0/name", "missing"),
            ("/description", "length"),
        ],
    ),
    (
        "create-endpoint",
        {"url": "x", "events": ["*"], "description": "a\nb"},
        [("/description", "format")],
    ),
    ("list-endpoints", {"take": 101}, [("/take", "range")]),
    ("list-endpoints", {"take": 0}, [("/take", "range")]),
    ("update-endpoint", {"id": "x", "state": "off"}, [("/id", "format"), ("/state", "enum")]),
    ("delete-endpoint", {}, [("/id", "missing")]),
    ("rotate-secret", {"id": NOWHERE, "overlap_hours": 73}, [("/overlap_hours", "range")]),
    ("rotate-secret", {"id": NOWHERE, "overlap_hours": -1}, [("/overlap_hours", "range")]),
    ("test-endpoint", {"id": 7}, [("/id", "type")]),
    (
        "list-deliveries",
        {"endpoint_id": NOWHERE, "event": "queue.*", "state": "lost", "since": "2026-03-02"},
        [("/event", "enum"), ("/state", "enum"), ("/since", "format")],
    ),
    ("replay", {"endpoint_id": NOWHERE, "message_id": "msg_1"}, [("/message_id", "format")]),
    (
        "replay",
        {"endpoint_id": NOWHERE, "include_delivered": 1},
        [("/include_delivered", "type")],
    ),
]


@pytest.mark.parametrize(("name", "body", "found"), FAULTS)
async def test_faulty_fields_are_named_in_their_spelling(client, name, body, found):
    answer = await client.post(f"webhooks/{name}", body)
    assert answer.is_problem(400, "invalid_field")
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == found


async def test_a_misspelled_event_is_answered_with_the_one_that_was_meant(client):
    body = {"url": "https://1.1.1.1/", "events": ["queue.hold"]}
    answer = await client.post("webhooks/create-endpoint", body)
    assert answer.json["errors"][0]["did_you_mean"] == "queue.held"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://2130706434/",
        "https://0x7f.1/",
        "https://user:secret@1.1.1.1/",
        "https://1.1.1.1:22/",
        "http://1.1.1.1:8080/",
        "https://no-such-host.invalid/",
        "ftp://1.1.1.1/",
    ],
)
async def test_an_address_that_may_not_be_called_is_refused_with_the_reason(client, world, url):
    answer = await client.post("webhooks/create-endpoint", {"url": url, "events": ["*"]})
    assert answer.is_problem(422, "webhook_url_refused")
    assert answer.json["detail"].startswith("`url` may not be called. ")
    assert "secret" not in answer.json["detail"]


async def test_a_public_address_is_accepted(client, world):
    body = {"url": "https://1.1.1.1/hook", "events": ["upload.processed"]}
    made = await client.done("webhooks/create-endpoint", body)
    await client.done("webhooks/delete-endpoint", {"id": made["id"]})


async def test_what_is_sent_is_changed_and_nothing_else(client, endpoint):
    about = {"id": endpoint["id"].upper()}
    same = await client.done("webhooks/update-endpoint", {**about, "description": None})
    assert same == {name: endpoint[name] for name in FIELDS}
    events = ["pull_request.merged", "QUEUE.*", "queue.*"]
    changed = await client.done("webhooks/update-endpoint", {**about, "events": events})
    assert changed == {**same, "events": ["pull_request.merged", "queue.*"]}
    only = [client.named()["repo"]]
    limited = await client.done("webhooks/update-endpoint", {**about, "repositories": only})
    assert limited == {**changed, "repositories": only}
    lifted = await client.done("webhooks/update-endpoint", {**about, "repositories": None})
    assert lifted == changed
    off = await client.done("webhooks/update-endpoint", {**about, "state": "DISABLED"})
    assert off["state"] == "disabled"
    assert off["disabled_reason"] == "Disabled by admin of octo."
    on = await client.done("webhooks/update-endpoint", {**about, "state": "enabled"})
    assert on == changed
    refused = await client.post("webhooks/update-endpoint", {**about, "url": "https://10.0.0.1/"})
    assert refused.is_problem(422, "webhook_url_refused")
    missing = [{**only[0], "name": "nothing"}]
    refused = await client.post("webhooks/update-endpoint", {**about, "repositories": missing})
    assert refused.is_problem(404, "repository_not_found")


@pytest.mark.parametrize("name", ABOUT_ONE)
async def test_a_foreign_endpoint_is_a_missing_one(client, world, endpoint, name):
    body = ABOUT_ONE[name]
    missing = await client.post(f"webhooks/{name}", body)
    assert missing.is_problem(404, "webhook_endpoint_not_found")
    own = {
        key: endpoint["id"] if key in ("id", "endpoint_id") else value
        for key, value in body.items()
    }
    for token in (world.foreign_token, world.narrow_token):
        hidden = await client.post(f"webhooks/{name}", own, token)
        assert hidden.is_problem(404, "webhook_endpoint_not_found")
        told = missing.json["detail"].replace(NOWHERE, endpoint["id"])
        assert hidden.json["detail"] == told
    seen = await client.done("webhooks/list-endpoints", {}, world.foreign_token)
    assert seen == {"endpoints": []}


async def test_a_deleted_endpoint_is_missing(client, world, receiver):
    body = {"url": receiver.url, "events": ["*"]}
    made = await client.done("webhooks/create-endpoint", body)
    about = {"id": made["id"]}
    assert await client.done("webhooks/delete-endpoint", about) == {"deleted": True}
    again = await client.post("webhooks/delete-endpoint", about)
    assert again.is_problem(404, "webhook_endpoint_not_found")


async def test_a_test_is_sent_at_once_and_answers_how_it_went(client, endpoint, receiver):
    tested = await client.done("webhooks/test-endpoint", {"id": endpoint["id"]})
    assert list(tested) == ["message_id", "status_code", "duration_ms", "error"]
    assert re.fullmatch(r"msg_[0-9a-f]{32}", tested["message_id"])
    assert (tested["status_code"], tested["error"]) == (200, None)
    (got,) = receiver.got
    assert got.id == tested["message_id"]
    assert verified(got, endpoint["secret"])["type"] == "webhook.test"
    receiver.answers = [404]
    failed = await client.done("webhooks/test-endpoint", {"id": endpoint["id"]})
    assert (failed["status_code"], failed["error"]) == (404, "It answered 404.")
    log = await client.done("webhooks/list-deliveries", {"endpoint_id": endpoint["id"]})
    assert {each["state"] for each in log["deliveries"]} == {"delivered", "failed"}


async def test_both_secrets_sign_while_they_overlap(client, endpoint, receiver):
    body = {"id": endpoint["id"]}
    rotated = await client.done("webhooks/rotate-secret", body)
    assert list(rotated) == ["secret"]
    await client.done("webhooks/test-endpoint", body)
    for secret in (rotated["secret"], endpoint["secret"]):
        verified(receiver.got[0], secret)
    alone = await client.done("webhooks/rotate-secret", {**body, "overlap_hours": 0})
    await client.done("webhooks/test-endpoint", body)
    assert verified(receiver.got[1], alone["secret"])
    assert " " not in receiver.got[1].headers["webhook-signature"]


async def test_what_happened_is_delivered_logged_and_replayed(
    client, world, endpoint, receiver, queue
):
    await client.done("addQueueHold", queue.named(text="release freeze"))
    await world.settle()
    about = {"endpoint_id": endpoint["id"]}
    wanted = {**about, "event": "queue.held", "state": "DELIVERED"}
    log = await client.done("webhooks/list-deliveries", wanted)
    (held,) = log["deliveries"]
    assert list(held) == [
        "message_id",
        "event",
        "state",
        "attempts",
        "next_attempt_at",
        "payload",
    ]
    assert (held["event"], held["state"], held["next_attempt_at"]) == (
        "queue.held",
        "delivered",
        None,
    )
    assert list(held["attempts"][0]) == ["at", "status_code", "duration_ms", "error"]
    got = next(each for each in receiver.got if each.json["type"] == "queue.held")
    told = verified(got, endpoint["secret"])
    assert told == held["payload"]
    assert (told["organization"], told["target_branch"]) == ("octo", queue.branch)
    assert told["actor"] == {"kind": "token", "login": "admin of octo"}
    assert told["version"] == (await queue.get())["version"]

    once = {**about, "message_id": held["message_id"]}
    assert await client.done("webhooks/replay", once) == {"queued": 1}
    await world.settle()
    assert [each.id for each in receiver.got].count(held["message_id"]) == 2
    span = {**about, "since": held["attempts"][0]["at"][:10] + "T00:00:00Z"}
    span["until"] = held["attempts"][0]["at"][:10] + "T23:59:59Z"
    assert await client.done("webhooks/replay", span) == {"queued": 0}
    unknown = await client.post("webhooks/replay", {**about, "message_id": MESSAGE})
    assert unknown.is_problem(404, "message_not_found")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, "conflicting_fields"),
        ({"since": "2026-03-02T00:00:00Z"}, "conflicting_fields"),
        ({"message_id": MESSAGE, "until": "2026-03-02T00:00:00Z"}, "conflicting_fields"),
        (
            {
                "message_id": MESSAGE,
                "since": "2026-03-02T00:00:00Z",
                "until": "2026-03-03T00:00:00Z",
            },
            "conflicting_fields",
        ),
        (
            {"since": "2026-03-02T00:00:00Z", "until": "2026-03-09T00:00:01Z"},
            "invalid_time_range",
        ),
        (
            {"since": "2026-03-02T00:00:00Z", "until": "2026-03-02T00:00:00Z"},
            "invalid_time_range",
        ),
    ],
)
async def test_a_replay_names_one_message_or_a_span_of_a_week(client, endpoint, more, code):
    answer = await client.post("webhooks/replay", {"endpoint_id": endpoint["id"], **more})
    assert answer.is_problem(422, code)


async def test_a_log_of_a_span_that_ends_before_it_begins_is_refused(client, endpoint):
    span = {"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"}
    body = {"endpoint_id": endpoint["id"], **span}
    answer = await client.post("webhooks/list-deliveries", body)
    assert answer.is_problem(422, "invalid_time_range")


async def test_a_limited_token_makes_endpoints_of_its_repositories_alone(client, world, receiver):
    body = {"url": receiver.url, "events": ["*"]}
    refused = await client.post("webhooks/create-endpoint", body, world.narrow_token)
    assert refused.is_problem(422, "scope_exceeds_own")
    outside = {**body, "repositories": [client.named()["repo"]]}
    hidden = await client.post("webhooks/create-endpoint", outside, world.narrow_token)
    assert hidden.is_problem(404, "repository_not_found")
    inside = {**body, "repositories": [{**client.named()["repo"], "name": "gears"}]}
    made = await client.done("webhooks/create-endpoint", inside, world.narrow_token)
    seen = await client.done("webhooks/list-endpoints", {}, world.narrow_token)
    assert [each["id"] for each in seen["endpoints"]] == [made["id"]]
    await client.done("webhooks/delete-endpoint", {"id": made["id"]}, world.narrow_token)


async def test_the_status_names_the_service(client):
    status = (await client.ask("GET", "/v1/status", "")).json
    assert {"name": "webhooks", "status": "up"} in status["services"]

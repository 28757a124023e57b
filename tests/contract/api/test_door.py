"""What holds for every endpoint: keys of repeated requests, queries, the order of checks."""

import gzip
import io
import json
import uuid

import pytest


@pytest.fixture
def key() -> str:
    """A key that nobody has used."""
    return str(uuid.uuid4())


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


async def post(client, name, body, key, token=None):
    """A request that may be sent again."""
    return await client.ask("POST", f"/v1/{name}", token, json=body, headers=keyed(key))


async def test_a_hold_is_placed_once_however_often_it_is_asked_for(client, queue, key):
    body = queue.named(text="release day")
    first = await post(client, "addQueueHold", body, key)
    again = await post(client, "addQueueHold", body, key)
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert "Idempotency-Replayed" not in first.headers
    shown = await client.done("getQueue", queue.named())
    assert len([each for each in shown["holds"] if each["text"] == "release day"]) == 1


async def test_a_new_token_is_made_once_and_its_secret_told_again(client, key):
    body = {"name": "once", "role": "read"}
    made = [(await post(client, "tokens/create", body, key)).json for _ in range(2)]
    assert made[0] == made[1]
    answer = await client.ask("GET", "/v1/tokens/self", made[1]["token"])
    assert (answer.status, answer.json["id"]) == (200, made[0]["id"])


async def test_a_key_of_another_request_is_refused(client, queue, key):
    await post(client, "addQueueHold", queue.named(text="one"), key)
    answer = await post(client, "addQueueHold", queue.named(text="two"), key)
    assert answer.is_problem(422, "idempotency_key_reused")


async def test_a_key_belongs_to_its_token_and_its_endpoint(client, world, queue, key):
    body = queue.named(text="mine")
    await post(client, "addQueueHold", body, key)
    other = (await client.done("tokens/create", {"name": "other", "role": "admin"}))["token"]
    answer = await post(client, "addQueueHold", body, key, other)
    assert (answer.status, "Idempotency-Replayed" in answer.headers) == (200, False)
    answer = await post(client, "updateQueue", queue.named(), key)
    assert (answer.status, "Idempotency-Replayed" in answer.headers) == (200, False)


async def test_a_refusal_is_told_again_with_its_first_id(client, key):
    body = client.named("no-queue-here")
    first = await post(client, "deleteQueue", body, key)
    again = await post(client, "deleteQueue", body, key)
    assert first.is_problem(404, "queue_not_found")
    assert again.body == first.body
    assert again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize("odd", ["", "a b", "x" * 256])
async def test_an_odd_key_is_refused_where_something_changes_and_ignored_elsewhere(
    client, queue, odd
):
    refused = await post(client, "addQueueHold", queue.named(text="x"), odd)
    assert refused.is_problem(400, "invalid_header")
    assert (await post(client, "getQueue", queue.named(), odd)).status == 200


async def test_a_parameter_of_the_address_is_nobodys_business_unless_it_comes_twice(client, queue):
    body = queue.named()
    for query, status in (("?a=1&b=2", 200), ("?&", 200), ("?a=1&b=2&a=1", 400), ("?a&a", 400)):
        answer = await client.ask("POST", f"/v1/getQueue{query}", json=body)
        assert answer.status == status
        assert status == 200 or answer.is_problem(400, "invalid_parameter")
    for path in ("/v1/tokens/self", "/v1/status"):
        assert (await client.ask("GET", f"{path}?x=1&y=1")).status == 200
        twice = await client.ask("GET", f"{path}?x=1&x=2")
        assert twice.is_problem(400, "invalid_parameter")
        assert "'x'" in twice.json["detail"]


async def test_the_first_check_that_fails_answers(client, world):
    """Each request breaks what its row names, and everything further down.

    See docs/design/http.md 1.
    """
    broken = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}

    async def status(path: str, token: str, headers: dict[str, str], body: bytes = b"{") -> int:
        answer = await client.ask("POST", path, token, headers=headers, data=io.BytesIO(body))
        return answer.status

    assert await status("/v1/nothing", "", broken) == 404
    assert (await client.ask("PUT", "/v1/addQueueHold", "", headers=broken)).status == 405
    assert await status("/v1/addQueueHold", "", broken) == 401
    assert await status("/v1/addQueueHold", world.read_token, broken) == 403
    assert await status("/v1/addQueueHold", world.admin_token, broken) == 415
    plain = {"Content-Type": "application/json"}
    large = b"x" * (20 * 1024 * 1024 + 1)
    assert await status("/v1/addQueueHold", world.admin_token, plain, large) == 413
    faults = json.dumps({"repo": {"host": "h", "owner": "o", "name": "n"}, "text": ""}).encode()
    answer = await client.ask("POST", "/v1/addQueueHold", data=faults)
    assert answer.is_problem(400, "invalid_field")
    missing = json.dumps({**client.named("nowhere"), "text": "x"}).encode()
    assert await status("/v1/addQueueHold", world.admin_token, plain, missing) == 404


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(b"{}", mtime=0),
        '{"repo": "é"}'.encode("latin-1"),
        '{"repo": 1}'.encode("utf-16"),
        '{"repo": 1}'.encode("utf-32-le"),
        b'{"a": "\\udc00\\ud800"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\\u0000"}',
        b'{"a": 1e400}',
        b'{"a": -Infinity}',
        b'{"a": 9223372036854775808}',
        b'{"a": 1' + b"0" * 20 + b"}",
        b'{"a": {"b": 1, "b": 2}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": "' + b"x" * (1024 * 1024 + 1) + b'"}',
    ],
    ids=lambda body: repr(body[:16]),
)
async def test_what_only_looks_like_json_is_refused(client, body):
    answer = await client.ask("POST", "/v1/addQueueHold", data=io.BytesIO(body))
    assert answer.is_problem(400, "invalid_json")


@pytest.mark.parametrize("body", [b"{} {}", b"{", b"[]", b""])
async def test_a_breach_of_the_syntax_is_refused_by_its_place(client, body):
    answer = await client.ask("POST", "/v1/addQueueHold", data=io.BytesIO(body))
    assert answer.is_problem(400, "invalid_json")
    assert answer.json["line"] >= 1
    assert answer.json["column"] >= 1


async def test_targets_of_exactly_twenty_mebibytes_are_taken_in(client, queue):
    number = await queue.client.instance.open_pull_request(base=queue.branch)
    body = queue.named(pr={"number": number}, impactedTargets=["//a"], pad="")
    missing = 20 * 1024 * 1024 - len(json.dumps(body))
    names = [f"//{n:013x}" for n in range(missing // 19)]
    body["impactedTargets"] = names
    body["pad"] = "x" * (20 * 1024 * 1024 - len(json.dumps(body)))
    data = json.dumps(body).encode()
    assert len(data) == 20 * 1024 * 1024
    answer = await client.ask("POST", "/v1/setImpactedTargets", data=io.BytesIO(data))
    assert answer.status == 200, answer.json
    assert answer.json["targetCount"] == len(names)
    answer = await client.ask("POST", "/v1/setImpactedTargets", data=io.BytesIO(data + b" "))
    assert answer.is_problem(413, "body_too_large")

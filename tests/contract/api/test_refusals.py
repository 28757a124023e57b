"""What every endpoint refuses, in the order of docs/design/http.md 1."""

import asyncio
import io

import pytest

from service.http import callers
from service.http.route import Posted
from service.process.api import routes

WRITES = {
    "submitPullRequest": "queue",
    "cancelPullRequest": "queue",
    "restartTestsOnPullRequest": "queue",
    "setImpactedTargets": "ci",
    "createQueue": "admin",
    "updateQueue": "admin",
    "deleteQueue": "admin",
    "addQueueHold": "admin",
    "releaseQueueHold": "admin",
}
READS = [
    "getSubmittedPullRequest",
    "getSubmittedPullRequests",
    "listPullRequests",
    "getPullRequestTimeline",
    "explainPullRequest",
    "getNextStep",
    "previewCancelPullRequest",
    "getQueue",
    "listQueues",
    "getMergeQueueTestingDetails",
    "listMergeQueueTestingResults",
    "getMergeQueueStatistics",
]
POSTS = [*WRITES, *READS]

# About an organization, whose missing things are answered elsewhere.
WEBHOOKS = {
    f"webhooks/{name}": "admin"
    for name in (
        "create-endpoint",
        "list-endpoints",
        "update-endpoint",
        "delete-endpoint",
        "rotate-secret",
        "test-endpoint",
        "list-deliveries",
        "replay",
    )
}

UNAUTHORIZED = callers.NO_TOKEN.encode()


@pytest.mark.parametrize("name", [*POSTS, *WEBHOOKS])
async def test_an_endpoint_is_asked_by_post_alone(client, name):
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = await client.ask(method, f"/v1/{name}", "")
        assert answer.is_problem(405, "method_not_allowed")
        assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/v1/tokens/self", "/v1/status", "/healthz", "/readyz"])
async def test_what_is_fetched_answers_get_and_head(client, path):
    got = await client.ask("GET", path)
    looked = await client.ask("HEAD", path)
    assert (got.status, looked.status) == (200, 200)
    assert looked.body == b""
    assert looked.headers["Content-Length"].isdigit()
    answer = await client.ask("POST", path, json={})
    assert answer.is_problem(405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/getQueu", "/v1/getQueue"),
        ("/v1/getqueue", "/v1/getQueue"),
        ("/v1/getQueue/", "/v1/getQueue"),
        ("/getQueue", "/v1/getQueue"),
        ("/v1/submitPullrequest", "/v1/submitPullRequest"),
    ],
)
async def test_an_unknown_path_is_answered_with_the_one_that_was_meant(client, path, meant):
    answer = await client.ask("POST", path, "", json={})
    assert answer.is_problem(404, "unknown_endpoint")
    assert answer.json["did_you_mean"] == meant


async def test_a_path_like_no_other_is_unknown_and_nothing_is_suggested(client):
    answer = await client.ask("GET", "/favicon.ico", "")
    assert answer.is_problem(404, "unknown_endpoint")
    assert "did_you_mean" not in answer.json


BAD_TOKENS = [
    "",
    "x",
    "hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjl",
    "hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjm",
    "hgt_" + "é" * 60,
]


@pytest.mark.parametrize("token", BAD_TOKENS, ids=["none", "short", "unknown", "checksum", "odd"])
@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html"])
async def test_without_a_valid_token_there_is_one_answer(client, token, accept):
    headers = {"Accept": accept}
    if token:
        headers["x-api-token"] = token
    for path in ("/v1/getQueue", "/v1/submitPullRequest"):
        answer = await client.ask("POST", path, "", headers=headers, data=b"{")
        assert (answer.status, answer.body) == (401, UNAUTHORIZED)
        assert answer.headers["Content-Type"] == "application/plain-text"
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="headgate"'
        assert answer.headers["Content-Length"] == str(len(UNAUTHORIZED))


async def test_a_bearer_token_counts_only_where_no_other_was_sent(client):
    token = client.instance.admin_token

    async def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await client.ask("GET", "/v1/tokens/self", "", headers=named)).status

    assert await status(Authorization=f"Bearer {token}") == 200
    assert await status(Authorization=f"bearer  {token}") == 200
    assert await status(Authorization=f"Basic {token}") == 401
    assert await status(x_api_token=token, Authorization="Bearer nonsense") == 200
    assert await status(x_api_token="nonsense", Authorization=f"Bearer {token}") == 401
    assert await status(x_api_token="  ", Authorization=f"Bearer {token}") == 200


async def test_a_token_in_the_address_or_the_body_is_not_seen(client):
    token = client.instance.admin_token
    answer = await client.ask("GET", f"/v1/tokens/self?x-api-token={token}", "")
    assert answer.status == 401
    answer = await client.ask("POST", "/v1/getQueue", "", json={"x-api-token": token})
    assert answer.status == 401


ALLOWED = {
    "read": {"read", "queue", "admin"},
    "ci": {"ci", "queue", "admin"},
    "queue": {"queue", "admin"},
    "admin": {"admin"},
}


@pytest.mark.parametrize("name", [*POSTS, *WEBHOOKS])
async def test_a_role_opens_what_it_says_and_nothing_else(client, world, name):
    needed = {**WRITES, **WEBHOOKS}.get(name, "read")
    held = {
        "read": world.read_token,
        "ci": world.ci_token,
        "queue": world.queue_token,
        "admin": world.admin_token,
    }
    for role, token in held.items():
        # The body is looked at after the role, so a broken one shows that the role sufficed.
        answer = await client.ask("POST", f"/v1/{name}", token, data=b"{")
        if role in ALLOWED[needed]:
            assert answer.is_problem(400, "invalid_json")
        else:
            assert answer.is_problem(403, "missing_role")
            assert (answer.json["required_role"], answer.json["role"]) == (needed, role)


async def test_any_role_may_look_at_itself(client, world):
    for token in (world.read_token, world.ci_token, world.queue_token, world.admin_token):
        assert (await client.ask("GET", "/v1/tokens/self", token)).status == 200


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 400),
        ("Application/JSON; Charset=UTF-8", 400),
        ('application/json;charset="utf-8"', 400),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=latin-1", 415),
        ("application/json; profile=x", 415),
        ("application/jsonp", 415),
    ],
)
async def test_a_body_is_json_by_its_content_type(client, kind, status):
    answer = await client.ask("POST", "/v1/getQueue", headers={"Content-Type": kind}, data=b"{")
    code = "invalid_json" if status == 400 else "unsupported_media_type"
    assert answer.is_problem(status, code)


async def test_a_body_without_a_content_type_reads_as_json(client):
    answer = await client.ask("POST", "/v1/getQueue", data=b"{", skip_auto_headers=["Content-Type"])
    assert answer.is_problem(400, "invalid_json")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity"])
async def test_an_encoded_body_is_refused(client, encoding):
    answer = await client.ask(
        "POST", "/v1/getQueue", headers={"Content-Encoding": encoding}, data=b"{}"
    )
    assert answer.is_problem(415, "unsupported_encoding")


async def test_a_body_beyond_twenty_mebibytes_is_too_large(client):
    too_large = b"x" * (20 * 1024 * 1024 + 1)
    answer = await client.ask("POST", "/v1/getQueue", data=io.BytesIO(too_large))
    assert answer.is_problem(413, "body_too_large")
    assert answer.headers["Connection"] == "close"


async def test_a_body_of_exactly_twenty_mebibytes_is_read(client):
    answer = await client.ask("POST", "/v1/getQueue", data=io.BytesIO(b"x" * 20 * 1024 * 1024))
    assert answer.is_problem(400, "invalid_json")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"", (1, 1)),
        (b"[1]", (1, 1)),
        (b'{"a": 1,\n "a" 2}', (2, 6)),
        (b'\xef\xbb\xbf{"a": 1}', (1, 1)),
        (b'{"a": 1,\n "a": 2}', (None, None)),
        (b'{"a": NaN}', (None, None)),
        (b'{"a": "\\ud800"}', (None, None)),
        (b'{"a": 123456789012345678901}', (None, None)),
        (b'{"a":' * 33 + b"1" + b"}" * 33, (None, None)),
    ],
)
async def test_what_is_no_acceptable_json_is_refused_and_bad_syntax_by_its_place(
    client, body, place
):
    answer = await client.ask("POST", "/v1/getQueue", data=body)
    assert answer.is_problem(400, "invalid_json")
    assert (answer.json.get("line"), answer.json.get("column")) == place


async def test_all_faulty_fields_are_named_at_once_by_pointer(client):
    body = {"repo": {"host": "https://github.com", "owner": "octo"}, "pr": {"number": "12a"}}
    answer = await client.post("cancelPullRequest", body)
    assert answer.is_problem(400, "invalid_field")
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [
        ("/repo/host", "format"),
        ("/repo/name", "missing"),
        ("/targetBranch", "missing"),
        ("/pr/number", "type"),
    ]
    assert answer.json["errors"][0]["message"] == "must be the host alone: `github.com`"


async def test_a_faulty_field_comes_before_a_missing_thing(client):
    body = client.named("no-such-branch", testRunId="")
    answer = await client.post("getMergeQueueTestingDetails", body)
    assert answer.is_problem(400, "invalid_field")


async def test_every_answer_has_an_id_and_takes_a_harmless_one_from_the_request(client):
    async def request_id(given: str) -> str:
        headers = {"X-Request-Id": given} if given else {}
        answer = await client.ask("GET", "/healthz", "", headers=headers)
        return answer.headers["X-Request-Id"]

    assert await request_id("a.B_c-1") == "a.B_c-1"
    assert await request_id("x" * 64) == "x" * 64
    for made in (await request_id("x" * 65), await request_id("a b"), await request_id("")):
        assert len(made) == 32
        assert set(made) <= set("0123456789abcdef")


async def test_no_answer_may_be_kept_or_guessed_at(client):
    for answer in (
        await client.ask("GET", "/v1/status", ""),
        await client.ask("GET", "/nowhere", ""),
        await client.ask("POST", "/v1/getQueue", ""),
        await client.ask("POST", "/v1/getQueue", data=b"{"),
    ):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("Access-Control")]


async def test_errors_are_plain_text_for_who_prefers_it(client):
    answer = await client.ask("GET", "/nowhere", "", headers={"Accept": "text/plain"})
    assert answer.status == 404
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.body == b"There is no endpoint /nowhere."
    either = {"Accept": "text/plain, application/json"}
    answer = await client.ask("GET", "/nowhere", "", headers=either)
    assert answer.is_problem(404, "unknown_endpoint")


async def test_what_is_no_http_is_a_bad_request(client):
    host, _, port = client.instance.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
    assert b'"code":"bad_request"' in answer


@pytest.mark.parametrize("method", ["TRACE", "CONNECT"])
async def test_trace_and_connect_are_never_allowed(client, method):
    answer = await client.ask(method, "/v1/getQueue", "")
    assert answer.is_problem(405, "method_not_allowed")


ABOUT = {
    "pr": {"number": 1},
    "prNumbers": [1],
    "impactedTargets": [],
    "testRunId": "x",
    "text": "x",
    "holdId": "6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10",
}


def known_to(name, body):
    """The fields of a body that an endpoint knows."""
    (route,) = (each for each in routes.ROUTES if each.path == f"/v1/{name}")
    assert isinstance(route, Posted)
    known = {field.alias or own for own, field in route.model.model_fields.items()}
    return {field: value for field, value in body.items() if field in known}


@pytest.mark.parametrize("name", POSTS)
async def test_what_a_token_may_not_see_is_missing(client, world, name):
    seen = known_to(name, client.named("main", **ABOUT))
    missing = {**seen, "repo": {**seen["repo"], "name": "nothing"}}
    nowhere = await client.post(name, missing)
    assert nowhere.is_problem(404, "repository_not_found")
    for token in (world.foreign_token, world.narrow_token):
        hidden = await client.post(name, seen, token)
        assert hidden.is_problem(404, "repository_not_found")
        assert without_names(hidden, world.repo) == without_names(nowhere, "nothing")


def without_names(answer, name):
    """The body, but for the id of the request and the name that was asked for."""
    body = {key: value for key, value in answer.json.items() if key != "request_id"}
    return {**body, "detail": body["detail"].replace(name, "…")}


@pytest.mark.parametrize("name", sorted({*POSTS} - {"createQueue", "listQueues"}))
async def test_a_branch_without_queue_is_answered_with_those_that_have_one(client, queue, name):
    body = queue.client.named("no-queue-here", **ABOUT)
    answer = await client.post(name, known_to(name, body))
    assert answer.is_problem(404, "queue_not_found")
    assert queue.branch in answer.json["branches"]


async def test_a_repository_is_known_in_any_letter_case(client, queue):
    body = queue.named()
    body["repo"] = {name: value.upper() for name, value in body["repo"].items()}
    assert (await client.done("getQueue", body))["branch"] == queue.branch

"""The client of our own API: patience, and what an answer means."""

from email.message import Message

import pytest

from bot.cli import client
from bot.cli.client import Client, Refusal
from bot.cli.exits import Exit, Failed
from bot.uploader.transport import RequestFailed, Response
from tests.cli import service
from tests.cli.service import Steps


@pytest.fixture(name="clock")
def _clock():
    return Steps()


def connected(url, clock, token=service.TOKEN):
    said: list[str] = []
    return Client(url, token, said.append, clock.as_clock())


def post(api, clock, token=service.TOKEN, url=None):
    return connected(url or api.url, clock, token).post("/getQueue", {"targetBranch": "main"})


def test_a_request_goes_below_v1_with_the_token_in_its_header(api, clock):
    api.says("/getQueue", {"branch": "main"})
    assert post(api, clock, url=f"{api.url}/v1/") == {"branch": "main"}
    path, body, headers = api.asked[0]
    assert (path, body) == ("/getQueue", {"targetBranch": "main"})
    assert headers["x-api-token"] == service.TOKEN


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_five_times_with_growing_pauses(api, clock, status):
    api.refuses("/getQueue", status, "recovering")
    with pytest.raises(Failed) as failed:
        post(api, clock)
    assert failed.value.code == Exit.UNREACHABLE
    assert f"answered {status} (recovering)" in failed.value.what
    assert (len(api.asked), clock.slept) == (5, [1, 2, 4, 8])


def test_what_a_service_in_trouble_says_is_shown_at_each_try(api, clock):
    trouble = "The database does not answer in time, since 06:29 UTC. An operator looks at it."
    api.says("/getQueue", {"code": "database_unavailable", "detail": trouble}, 503)
    said: list[str] = []
    with pytest.raises(Failed) as failed:
        Client(api.url, service.TOKEN, said.append, clock.as_clock()).post("/getQueue", {})
    reason = f"answered 503 (database_unavailable): {trouble.removesuffix('.')}"
    assert said == [f"{api.url}: {reason}; trying again in {wait} s" for wait in (1, 2, 4, 8)]
    assert failed.value.what == f"{api.url}: {reason}"
    assert failed.value.todo == "Try again later"


def test_the_time_that_a_service_names_for_another_try_is_said_once(api, clock):
    said = "The database is locked. Try again in 30 seconds."
    api.says("/getQueue", {"code": "database_unavailable", "detail": said}, 503)
    with pytest.raises(Failed) as failed:
        post(api, clock)
    assert (failed.value.what.count("Try again"), failed.value.todo) == (1, "")


def test_a_service_that_comes_back_is_answered_by(api, clock):
    api.refuses("/getQueue", 503, "recovering")
    api.says("/getQueue", {"branch": "main"})
    assert post(api, clock) == {"branch": "main"}


def test_the_service_may_ask_for_more_patience(api, clock):
    api.says("/getQueue", {"code": "recovering"}, 503, **{"Retry-After": "7"})
    api.says("/getQueue", {"branch": "main"})
    post(api, clock)
    assert clock.slept == [7]


def test_more_patience_than_a_minute_is_not_to_be_had(api, clock):
    api.says("/getQueue", {"code": "rate_limited"}, 429, **{"Retry-After": "600"})
    with pytest.raises(Failed, match="answered 429"):
        post(api, clock)
    assert clock.slept == []


def test_nobody_listening_is_unreachable_after_five_tries(api, clock, unused_tcp_port):
    with pytest.raises(Failed, match="connection refused") as failed:
        post(api, clock, url=f"http://127.0.0.1:{unused_tcp_port}")
    assert failed.value.code == Exit.UNREACHABLE
    assert len(clock.slept) == 4


def test_every_try_of_a_request_has_its_key_and_every_request_another(api, clock):
    api.refuses("/getQueue", 503, "overloaded")
    api.says("/getQueue", {})
    for _ in range(2):
        post(api, clock)
    keys = [headers["Idempotency-Key"] for _, _, headers in api.asked]
    assert keys[0] == keys[1] != keys[2]


def test_an_earlier_try_that_still_runs_is_waited_for(api, clock):
    api.says("/getQueue", {"code": "idempotency_in_progress"}, 409, **{"Retry-After": "1"})
    api.says("/getQueue", {"branch": "main"})
    assert post(api, clock) == {"branch": "main"}
    assert clock.slept == [1]


def test_what_is_fetched_has_a_query_and_no_key(api, clock):
    api.refuses("/tokens/self", 503, "recovering")
    api.says("/tokens/self", {"name": "ops"})
    assert connected(api.url, clock).get("/tokens/self", {"a": "b c"}) == {"name": "ops"}
    path, query, headers = api.asked[1]
    assert (path, query) == ("/tokens/self", {"a": "b c"})
    assert "Idempotency-Key" not in headers


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "invalid_field", Exit.REFUSED),
        (403, "missing_role", Exit.NOT_ALLOWED),
        (404, "queue_not_found", Exit.NOT_FOUND),
        (405, "method_not_allowed", Exit.REFUSED),
        (409, "queue_exists", Exit.REFUSED),
        (413, "body_too_large", Exit.REFUSED),
        (422, "conflicting_fields", Exit.REFUSED),
    ],
)
def test_a_no_is_not_asked_again(api, clock, status, code, expected):
    api.refuses("/getQueue", status, code, "because.", branches=["main"])
    with pytest.raises(Refusal) as refusal:
        post(api, clock)
    assert (refusal.value.code, refusal.value.problem_code) == (expected, code)
    assert (refusal.value.what, refusal.value.problem["branches"]) == ("because.", ["main"])
    assert len(api.asked) == 1


def test_a_wrong_token_is_told_apart_and_not_repeated(api, clock):
    with pytest.raises(Failed, match="unknown, expired or revoked") as failed:
        post(api, clock, token="hgt_wrong")
    assert failed.value.code == Exit.NOT_ALLOWED
    assert "hgt_wrong" not in failed.value.what + failed.value.todo


def test_every_faulty_field_is_named(api, clock):
    faults = [
        {"field": "/concurrency", "code": "range", "message": "must be 1 to 1000"},
        {"field": "/mod", "code": "unknown", "message": "is unknown", "did_you_mean": "mode"},
    ]
    api.refuses("/getQueue", 400, "invalid_field", errors=faults)
    with pytest.raises(Refusal) as refusal:
        post(api, clock)
    assert refusal.value.what == (
        "concurrency must be 1 to 1000; mod is unknown; did you mean mode?"
    )


def test_a_faulty_field_is_named_by_its_option(api, clock):
    fault = {"field": "/pr/sha", "code": "form", "message": "must be the whole commit"}
    api.refuses("/getQueue", 400, "invalid_field", errors=[fault])
    with pytest.raises(Refusal, match=r"^--sha must be the whole commit$"):
        post(api, clock)


def test_a_faulty_item_of_a_list_is_named_by_its_option(api, clock):
    fault = {"field": "/events/0", "code": "enum", "message": "must be one of *, queue.*"}
    api.refuses("/getQueue", 400, "invalid_field", errors=[fault])
    with pytest.raises(Refusal, match=r"^--event must be one of"):
        post(api, clock)


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("/url", "the address of the endpoint"),
        ("/holdId", "the hold's id"),
        ("/repositories/0/owner", "--repo"),
        ("/message_id", "--message"),
        ("/timeoutMinutes", "--timeout"),
        ("/batchingRules/0/targetPattern", "batchingRules/0/targetPattern"),
    ],
)
def test_a_faulty_field_has_the_name_that_the_command_line_gives_it(field, named):
    assert client.error_text({"field": field, "message": "is wrong"}) == f"{named} is wrong"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null"])
@pytest.mark.parametrize("status", [200, 404, 405])
def test_an_answer_that_is_no_object_is_trouble_that_stays(status, body):
    with pytest.raises(RequestFailed, match="without a JSON object"):
        client.parse_response(Response(status, Message(), body, is_whole=True))


@pytest.mark.parametrize("status", [200, 404, 405])
def test_what_is_not_headgate_is_asked_once(api, clock, status):
    api.says("/getQueue", [], status)
    with pytest.raises(Failed, match=f"answered {status} without a JSON object") as failed:
        post(api, clock)
    assert failed.value.code == Exit.UNREACHABLE
    assert "--url" in failed.value.todo
    assert (len(api.asked), clock.slept) == (1, [])


def test_a_role_that_is_too_small_is_told_which_token_to_make(api, clock):
    api.refuses("/getQueue", 403, "missing_role", required_role="admin", role="read")
    with pytest.raises(Refusal) as refusal:
        post(api, clock)
    assert refusal.value.code == Exit.NOT_ALLOWED
    assert refusal.value.todo == "Make one with `headgate token create --role admin`"


def test_the_token_follows_nobody_elsewhere(api, clock):
    with service.served() as elsewhere:
        elsewhere.says("/getQueue", {"branch": "main"})
        api.says("/getQueue", {}, 307, Location=f"{elsewhere.url}/v1/getQueue")
        with pytest.raises(Failed, match="redirects to 'http://127") as failed:
            post(api, clock)
    assert elsewhere.asked == []
    assert (failed.value.code, clock.slept) == (Exit.UNREACHABLE, [])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://a..b", "the address cannot be used"),
        ("http://127.0.0.1:99999", "is not an http address"),
    ],
)
def test_an_address_that_no_host_can_have_is_not_tried_again(clock, url, why):
    with pytest.raises(Failed, match=why) as failed:
        post(None, clock, url=url)
    assert (failed.value.code, clock.slept) == (Exit.UNREACHABLE, [])


def test_an_answer_of_something_else_names_what_it_lacks(api, clock):
    api.says("/getQueue", {"hello": "world"})
    with pytest.raises(Failed, match="answered without 'state'") as failed:
        (post(api, clock))["state"]
    assert failed.value.code == Exit.UNREACHABLE

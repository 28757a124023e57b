"""Requests that are too long, break off, or carry two tokens; and names that show nothing."""

import json

import pytest
from structlog.testing import capture_logs

from service.accounts.api.models.tokens import CreateToken
from service.errors import Malformed
from service.http.models import common
from service.process.api import app
from tests.api.wire import answer, connected, head, served

LONG = "a" * 20_000


@pytest.fixture
async def port(runtime, readiness):
    async with served(app.build_app(runtime, readiness)) as own:
        yield own


@pytest.mark.parametrize(
    ("path", "lines", "status", "code"),
    [
        (f"/v1/{LONG}", (), 414, "address_too_long"),
        (f"/v1/status?x={LONG}", (), 414, "address_too_long"),
        ("/v1/status", (f"X-Long: {LONG}",), 431, "header_too_long"),
        ("/v1/status", (f"X-{LONG}: x",), 431, "header_too_long"),
        ("/v1/status", tuple(f"X-{n}: x" for n in range(100)), 400, "bad_request"),
    ],
    ids=["path", "query", "value", "name", "count"],
)
async def test_what_is_too_long_is_named(port, path, lines, status, code):
    async with connected(port) as client:
        refused = await answer(client, path, *lines, method="GET")
    assert (refused.status, json.loads(refused.body)["code"]) == (status, code)


async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(port, admin):
    with capture_logs() as said:
        for _ in range(3):
            async with connected(port) as client:
                lines = (f"x-api-token: {admin}", "Content-Length: 9000", "Expect: 100-continue")
                await client.send(head("/v1/getQueue", *lines))
                assert (await client.reply()).status == 100
                await client.send(b'{"repo"')
                client._writer.transport.abort()
        async with connected(port) as client:
            assert (await answer(client, "/v1/status", method="GET")).status == 200
    assert [line for line in said if line["log_level"] == "error"] == []


async def test_two_tokens_that_differ_are_none_and_the_same_twice_is_one(port, admin):
    async with connected(port) as client:
        for lines, status in (
            ((f"x-api-token: {admin}", "x-api-token: other"), 401),
            (("x-api-token: other", f"x-api-token: {admin}"), 401),
            ((f"x-api-token: {admin}", f"x-api-token: {admin}"), 200),
            ((f"x-api-token: {admin}", "x-api-token: "), 200),
        ):
            reply = await answer(client, "/v1/tokens/self", *lines, method="GET")
            assert reply.status == status, lines


@pytest.mark.parametrize("path", ["/docs/errors", "/docs/errors/"])
async def test_the_codes_have_a_page_that_lists_them(port, path):
    async with connected(port) as client:
        page = await answer(client, path, method="GET")
    assert page.status == 200
    assert b'href="/docs/errors/queue_not_found"' in page.body


@pytest.mark.parametrize(
    "name", ["", " ", "\t", "\u202e", "\ufeff", "\u200b", "ci\u202egpj", "\u2060"]
)
def test_a_token_needs_a_name_that_people_can_see(name):
    with pytest.raises(Malformed):
        common.read(CreateToken, {"name": name, "role": "read"})


@pytest.mark.parametrize("name", ["ci", " ci of widgets ", "ü", "建置", "👩\u200d💻"])
def test_a_name_of_any_language_is_taken(name):
    assert common.read(CreateToken, {"name": name, "role": "read"}).name == name


def test_a_token_for_no_repository_is_refused():
    with pytest.raises(Malformed, match="repositories"):
        common.read(CreateToken, {"name": "ci", "role": "read", "repositories": []})

"""Answers are compressed for clients that accept gzip, and for no others."""

import gzip

import pytest

from service.process.api import app
from tests.api.wire import answer, connected, served


@pytest.fixture
async def client(runtime, readiness):
    async with served(app.build_app(runtime, readiness)) as port, connected(port) as wire:
        yield wire


async def got(client, path, *lines, method="GET"):
    return await answer(client, path, *lines, method=method)


ACCEPTED = ["gzip", "deflate, gzip", "br;q=1.0, GZIP;q=0.5", "*", "gzip;q=0.001"]
REFUSED = ["", "identity", "gzip;q=0", "gzip; q=0.000, br", "br, *;q=0", "xgzip"]


@pytest.mark.parametrize("accepted", ACCEPTED)
async def test_a_client_that_accepts_gzip_gets_the_same_bytes_compressed(client, accepted):
    plain = await got(client, "/openapi.json")
    packed = await got(client, "/openapi.json", f"Accept-Encoding: {accepted}")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) * 5 < len(plain.body)
    for reply in (plain, packed):
        assert reply.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("accepted", REFUSED)
async def test_a_client_that_does_not_gets_plain_bytes(client, accepted):
    lines = [f"Accept-Encoding: {accepted}"] if accepted else []
    reply = await got(client, "/openapi.json", *lines)
    assert "content-encoding" not in reply.headers
    assert reply.body.startswith(b"{")


async def test_a_short_answer_is_not_compressed(client):
    reply = await got(client, "/healthz", "Accept-Encoding: gzip")
    assert ("content-encoding" in reply.headers, "vary" in reply.headers) == (False, False)


async def test_the_version_of_a_document_is_known_again_in_either_form(client):
    packed = await got(client, "/openapi.json", "Accept-Encoding: gzip")
    assert packed.headers["etag"].startswith('W/"')
    for more in ([], ["Accept-Encoding: gzip"]):
        known = f"If-None-Match: {packed.headers['etag']}"
        reply = await got(client, "/openapi.json", known, *more)
        assert (reply.status, reply.body) == (304, b"")


async def test_a_head_request_is_answered_without_a_body(client):
    reply = await got(client, "/openapi.json", "Accept-Encoding: gzip", method="HEAD")
    assert (reply.status, reply.headers["content-encoding"]) == (200, "gzip")

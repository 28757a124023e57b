"""The receiver: what is refused and how, before anything is stored (docs/design/provider.md 15)."""

import asyncio
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest
from aiohttp import web

from bot.github import webhook
from bot.github.webhook import Receiver
from service.clock import SystemClock
from service.errors import DatabaseUnavailable

SECRET, PREVIOUS = "s" * 32, "p" * 32
BODY = json.dumps({"action": "created", "repository": {"id": 5}}).encode()


def signature(body=BODY, secret=SECRET):
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(body=BODY, **changed):
    found = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issue_comment",
        "X-GitHub-Delivery": "d-1",
        "X-Hub-Signature-256": signature(body),
    }
    for name, value in changed.items():
        found[name.replace("_", "-")] = value
    return {name: value for name, value in found.items() if value is not None}


class Inbox:
    """Stores in memory; `full` stands for a database that takes nothing."""

    def __init__(self):
        self.taken = []
        self.full = False

    async def accept(self, delivery):
        if self.full:
            raise DatabaseUnavailable("full", retry_after_s=30)
        known = [each.id for each in self.taken]
        self.taken.append(delivery)
        return delivery.id not in known


@pytest.fixture
def inbox():
    return Inbox()


@pytest.fixture
async def post(aiohttp_client, inbox):
    parts = Receiver("github.com", (SECRET, PREVIOUS), SystemClock(), inbox.accept, body_time_s=0.2)
    application = web.Application(client_max_size=1024)
    application.router.add_post(webhook.PATH, webhook.receiver(parts))
    client = await aiohttp_client(application)

    async def send(body=BODY, given=None):
        given = headers(body) if given is None else given
        async with client.post(webhook.PATH, data=body, headers=given) as response:
            return response.status, await response.read()

    return send


async def test_a_delivery_is_stored_as_it_came_and_accepted(post, inbox):
    before = datetime.now(UTC).replace(microsecond=0)
    assert await post() == (202, b"")
    taken = inbox.taken[0]
    assert (taken.host, taken.id, taken.event) == ("github.com", "d-1", "issue_comment")
    assert (taken.action, taken.repository_id, taken.body) == ("created", "5", BODY)
    assert taken.received_at >= before


async def test_a_known_delivery_is_accepted_once(post):
    assert await post() == (202, b"")
    assert await post() == (200, b"")


async def test_a_full_database_asks_to_come_again(post, inbox):
    inbox.full = True
    assert await post() == (503, b"")


async def test_the_previous_secret_counts_too(post):
    given = headers(X_Hub_Signature_256=signature(secret=PREVIOUS))
    assert (await post(given=given))[0] == 202


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        signature(secret="x" * 32),
        signature(b"{}"),
        signature().removeprefix("sha256="),
        signature().upper(),
        signature() + "0",
        signature()[:-1],
        "sha1=" + "0" * 40,
        "sha256=" + "é" * 64,
    ],
)
async def test_what_is_not_signed_is_unauthorized(post, inbox, given):
    assert await post(given=headers(X_Hub_Signature_256=given)) == (401, b"")
    assert not inbox.taken


@pytest.mark.parametrize("count", [0, 1, 2])
def test_two_signatures_are_none(count):
    proof = webhook.Proof([signature()] * count, (SECRET,))
    proof.feed(BODY)
    assert proof.holds() is (count == 1)


async def test_the_old_signature_alone_does_not_do(post):
    given = headers(X_Hub_Signature_256=None)
    given["X-Hub-Signature"] = "sha1=" + hmac.new(SECRET.encode(), BODY, "sha1").hexdigest()
    assert (await post(given=given))[0] == 401


@pytest.mark.parametrize(
    "changed",
    [
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "text/plain"},
        {"Content_Encoding": "gzip"},
    ],
)
async def test_another_kind_of_body_is_refused_unread(post, changed):
    assert (await post(given=headers(X_Hub_Signature_256=None, **changed)))[0] == 415


@pytest.mark.parametrize(
    "changed",
    [
        {"X_GitHub_Event": None},
        {"X_GitHub_Delivery": None},
        {"X_GitHub_Delivery": ""},
        {"X_GitHub_Delivery": "a b"},
        {"X_GitHub_Delivery": "x" * 101},
        {"X_GitHub_Event": "é"},
    ],
)
async def test_faulty_headers_are_bad_requests(post, inbox, changed):
    assert (await post(given=headers(**changed)))[0] == 400
    assert not inbox.taken


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"x"',
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": "\xff"}',
        b'{"a":' * 64 + b"{}" + b"}" * 64,
        b"[" * 100_000,
    ],
)
async def test_a_body_that_is_no_strict_object_is_a_bad_request(post, inbox, body):
    assert (await post(body))[0] == 400
    assert not inbox.taken


async def test_sixty_four_levels_are_fine(post):
    body = b'{"a":' * 63 + b"{}" + b"}" * 63
    assert (await post(body))[0] == 202


async def test_the_signature_is_checked_before_the_body_is_parsed(post):
    assert (await post(b"{", headers(b"{}")))[0] == 401


async def test_a_body_above_the_limit_is_refused_by_its_length(post, monkeypatch):
    monkeypatch.setattr(webhook, "BODY_BYTES_MAX", 8)
    assert (await post())[0] == 413


async def test_a_body_without_a_length_is_counted(post, monkeypatch):
    monkeypatch.setattr(webhook, "BODY_BYTES_MAX", 8)

    async def parts():
        yield b"123456"
        yield b"123456"

    assert (await post(parts(), headers()))[0] == 413


async def test_a_body_that_never_ends_times_out(post):
    async def parts():
        yield b"{"
        await asyncio.Event().wait()

    assert (await post(parts(), headers()))[0] == 408


async def test_no_repository_and_no_action_are_fine(post, inbox):
    assert (await post(b'{"zen": "calm"}'))[0] == 202
    assert (inbox.taken[0].action, inbox.taken[0].repository_id) == (None, None)

"""What opens the door: each condition on a token fails alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.accounts import access, tokens
from service.accounts.store import access as stored
from service.accounts.store import audit
from service.accounts.tenants import TokenRecord
from service.accounts.tokens import TokenRequest
from service.errors import DatabaseUnavailable, NotFound, Unauthenticated
from service.http import callers
from service.http.callers import Caller
from service.mergequeue.operations import queue_access
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, ActorKind, Channel, QueueRef, RepoId, RepoRef, Role

NOW = datetime(2026, 3, 2, 14, tzinfo=UTC)
WISH = TokenRequest("github.com", "octo", "ops", Role.ADMIN)
RECORD = TokenRecord(
    id="p" * access.PUBLIC_LENGTH,
    org_id=1,
    org_slug="octo",
    host="github.com",
    name="ops",
    role=Role.ADMIN,
    digest=b"",
    repositories=None,
    created_at=NOW,
    granted_until=None,
    expires_at=None,
    last_used_at=None,
    revoked_at=None,
)
BODY = f"{access.PREFIX}{'a' * access.PUBLIC_LENGTH}_{'b' * access.RANDOM_LENGTH}"


def checked(body: str) -> str:
    """The body with the checksum that belongs to it."""
    return body + access.checksum(body)


def test_a_token_is_well_formed():
    assert access.is_well_formed(checked(BODY))
    assert access.public_id_of(checked(BODY)) == "a" * access.PUBLIC_LENGTH


@pytest.mark.parametrize(
    "token",
    [
        "",
        checked(BODY)[:-1],
        checked(BODY) + "0",
        checked(BODY + "b"),
        checked(BODY[:-1]),
        checked("x" + BODY[1:]),
        checked(BODY[: len(access.PREFIX) + access.PUBLIC_LENGTH] + "c" + BODY[15:]),
        checked(BODY[:-1] + "-"),
        checked(BODY[:-1] + "_"),
        checked(BODY)[:-1] + ("1" if checked(BODY)[-1] == "0" else "0"),
        BODY + "aaaaaa",
    ],
    ids=[
        "empty",
        "too short",
        "too long",
        "too long with its own checksum",
        "too short with its own checksum",
        "another prefix",
        "no separator",
        "another sign",
        "two separators",
        "another checksum",
        "no checksum",
    ],
)
def test_a_text_is_no_token_if_it_is(token):
    assert not access.is_well_formed(token)


def test_letters_of_other_scripts_are_no_token():
    assert not access.is_well_formed(checked(BODY)[:-8] + "\u0661" + checked(BODY)[-7:])


def test_a_checksum_is_padded():
    assert access.checksum("") == "000000"


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({}, True),
        ({"expires_at": NOW + timedelta(seconds=1)}, True),
        ({"expires_at": NOW}, False),
        ({"expires_at": NOW - timedelta(seconds=1)}, False),
        ({"revoked_at": NOW}, False),
        # A revocation counts at once, whatever the clock of this instance says.
        ({"revoked_at": NOW + timedelta(hours=1)}, False),
    ],
)
def test_a_token_is_valid_until_it_ends(fields, is_valid):
    record = replace(RECORD, **fields)
    assert access.is_valid(record, NOW) is is_valid
    if is_valid:
        access.check_valid(record, NOW)
        return
    with pytest.raises(Unauthenticated, match="revoked" if record.revoked_at else "expired"):
        access.check_valid(record, NOW)


@pytest.mark.parametrize(
    ("repositories", "sees"), [(None, True), (frozenset({7}), True), (frozenset({8}), False)]
)
def test_a_caller_sees_the_repositories_of_its_token(repositories, sees):
    caller = access.caller_of(replace(RECORD, repositories=repositories))
    assert access.sees(caller, 7) is sees


def test_an_actor_is_a_token_only_if_it_has_one():
    caller = access.caller_of(RECORD)
    assert caller.actor == Actor(ActorKind.TOKEN, login="ops", id=RECORD.id, channel=Channel.API)
    assert replace(caller, token_id="").actor.kind is ActorKind.BOT


async def a_token(runtime: Runtime, **wish: Any) -> str:
    """A token's secret."""
    return (await tokens.create_token(runtime, replace(WISH, **wish), SYSTEM)).secret


async def test_the_holder_of_the_whole_secret_alone_is_let_in(runtime):
    secret = await a_token(runtime)
    assert (await access.look_up(runtime, secret)).name == "ops"
    body = secret[: -access.CHECKSUM_LENGTH]
    other = body[:-1] + ("a" if body[-1] != "a" else "b")
    for wrong in (checked(other), checked(BODY)):
        with pytest.raises(Unauthenticated) as refused:
            await access.look_up(runtime, wrong)
        assert refused.value.detail == callers.NO_TOKEN


async def test_a_token_that_was_looked_up_is_remembered_until_it_expires(runtime, clock):
    secret = await a_token(runtime, expires_in_days=1)
    assert await access.remembered(runtime, secret) is None
    caller = await access.look_up(runtime, secret)
    assert await access.remembered(runtime, secret) == caller
    await clock.sleep(86_400 - 1)
    assert await access.remembered(runtime, secret) == caller
    await clock.sleep(1)
    with pytest.raises(Unauthenticated, match="expired"):
        await access.remembered(runtime, secret)
    with pytest.raises(Unauthenticated, match="expired"):
        await access.look_up(runtime, secret)


async def last_used(runtime: Runtime, secret: str) -> datetime | None:
    """When the database says that a token was used."""
    record = await runtime.store.read(stored.token_by_id, access.public_id_of(secret))
    assert record is not None
    return record.last_used_at


async def test_a_token_without_end_does_not_expire(runtime, clock):
    secret = await a_token(runtime, expires_in_days=None)
    await access.look_up(runtime, secret)
    await clock.sleep(86_400 * 400)
    assert (await access.look_up(runtime, secret)).name == "ops"


async def test_the_use_of_a_token_is_kept_once_a_minute(runtime, clock):
    secret = await a_token(runtime)
    await access.look_up(runtime, secret)
    first = clock.now()
    assert await last_used(runtime, secret) == first
    await clock.sleep(60)
    await access.look_up(runtime, secret)
    assert await last_used(runtime, secret) == first
    await clock.sleep(1)
    await access.look_up(runtime, secret)
    assert await last_used(runtime, secret) == clock.now()


async def test_where_nothing_can_be_written_a_token_still_reads(runtime, monkeypatch):
    secret = await a_token(runtime)

    def unwritable(*_: object) -> None:
        raise DatabaseUnavailable("read-only", retry_after_s=1)

    monkeypatch.setattr(stored, "touch_token", unwritable)
    assert (await access.look_up(runtime, secret)).name == "ops"


async def test_a_write_is_judged_by_the_token_as_it_is_then(runtime, clock):
    caller = await access.look_up(runtime, await a_token(runtime, expires_in_days=1))
    actor = caller.actor
    recheck = access.recheck
    assert (await runtime.store.run(recheck, actor, clock.now())).id == caller.token_id
    assert await runtime.store.run(recheck, SYSTEM, clock.now()) is None
    with pytest.raises(Unauthenticated, match="expired"):
        await runtime.store.run(recheck, actor, clock.now() + timedelta(days=1))
    with pytest.raises(Unauthenticated, match="Missing or unknown"):
        await runtime.store.run(recheck, replace(actor, id="nobody"), clock.now())
    await tokens.revoke_token(runtime, caller.token_id, SYSTEM)
    with pytest.raises(Unauthenticated, match="revoked"):
        await runtime.store.run(recheck, actor, clock.now())


async def test_a_queue_is_found_in_what_the_caller_may_see(runtime: Runtime, queue: QueueRef):
    repo = queue.repo
    caller = await access.look_up(
        runtime, await a_token(runtime, host=repo.host, org_slug=repo.owner)
    )
    found = await access.find_repository(runtime, caller, repo)
    for _ in range(2):
        assert await queue_access.find_queue(runtime, caller, repo, "main") == queue
        assert await access.find_repository(runtime, caller, repo) == found
    assert await access.repository_of_anyone(runtime, repo) == found
    blind = replace(caller, repositories=frozenset({found.id + 1}))
    seeing = replace(caller, repositories=frozenset({found.id}))
    assert await queue_access.find_queue(runtime, seeing, repo, "main") == queue
    nowhere = RepoRef(repo.host, repo.owner, "nowhere")
    for who, where, code in (
        (blind, repo, "repository_not_found"),
        (caller, nowhere, "repository_not_found"),
    ):
        with pytest.raises(NotFound) as missing:
            await queue_access.find_queue(runtime, who, where, "main")
        assert missing.value.code == code
    with pytest.raises(NotFound, match="here"):
        await access.repository_of_anyone(runtime, nowhere)
    with pytest.raises(NotFound, match=r'^Branch "other" .*\. Queues in this repository: main\.'):
        await queue_access.find_queue(runtime, caller, repo, "other")


async def test_a_repository_that_was_met_is_known_as_it_is_now(runtime, queue):
    met = await access.repository_of_anyone(runtime, queue.repo)
    identity = RepoId(met.ref.host, met.provider_id)
    assert await access.known_repository(runtime, RepoId(identity.host, "nobody's")) is None
    for is_available in (False, True):
        changed = (stored.set_repository_available, met.id, is_available)
        await runtime.store.run(*changed)
        for _ in range(2):
            known = await access.known_repository(runtime, identity)
            assert known == replace(met, available=is_available)


async def test_a_denial_is_written_down(runtime: Runtime):
    caller: Caller = await access.look_up(runtime, await a_token(runtime, role=Role.READ))
    await access.note_denial(runtime, caller, "/createQueue")
    (row, *_) = await runtime.store.read(audit.newest, caller.org_id, 1)
    assert (row.action, row.decision, row.reason) == ("api.call", "denied", "has role read")

"""How many tokens there may be, and what a token may do to others."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.accounts import access, tokens
from service.accounts.store import audit
from service.accounts.tenants import IssuedToken
from service.accounts.tokens import TokenRequest
from service.database.paging import PageSelection
from service.errors import Invalid, Malformed, NotFound, Unauthenticated
from service.http.callers import Caller
from service.memory import Memory
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, Role

ADMIN = TokenRequest("github.com", "octo", "ops", Role.ADMIN)
WISH = replace(ADMIN, name="x", role=Role.READ)


@pytest.fixture
async def ops(runtime: Runtime) -> Caller:
    """An admin's token."""
    made = await tokens.create_token(runtime, ADMIN, SYSTEM)
    return await access.look_up(runtime, made.secret)


@pytest.fixture
def actor(ops: Caller) -> Actor:
    return ops.actor


async def made(runtime: Runtime, actor: Actor) -> IssuedToken:
    return await tokens.create_token(runtime, WISH, actor)


async def test_only_live_tokens_count_towards_the_limit(runtime, actor, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_MAX", 2)
    second = await made(runtime, actor)
    with pytest.raises(Invalid) as refused:
        await made(runtime, actor)
    assert refused.value.code == "limit_reached"
    assert refused.value.detail == ("octo has 2 live tokens already. Revoke one that nobody uses.")
    await tokens.revoke_token(runtime, second.view.id, actor)
    await made(runtime, actor)


async def test_another_organization_has_a_limit_of_its_own(runtime, actor, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_MAX", 1)
    other = replace(ADMIN, org_slug="initech")
    await tokens.create_token(runtime, other, SYSTEM)


async def test_at_the_limit_a_rotation_needs_the_old_one_to_end(runtime, actor, monkeypatch):
    old = await made(runtime, actor)
    monkeypatch.setattr(tokens, "TOKENS_MAX", 2)
    with pytest.raises(Invalid, match="rotate with an overlap of 0 hours"):
        await tokens.rotate_token(runtime, old.view.id, 24, actor)
    await tokens.rotate_token(runtime, old.view.id, 0, actor)


@pytest.mark.parametrize("days", [90, None])
async def test_a_token_that_is_rotated_again_has_a_successor_as_lasting(
    runtime, clock, actor, days
):
    wish = replace(WISH, expires_in_days=days)
    old = (await tokens.create_token(runtime, wish, actor)).view
    for _ in range(2):
        await clock.sleep(3600)
        view = (await tokens.rotate_token(runtime, old.id, 24, actor)).view
        ends = None if days is None else clock.now() + timedelta(days=days)
        assert view.expires_at == ends


async def test_a_token_without_overlap_ends_on_every_instance_whatever_its_clock(
    runtime, clock, actor
):
    old = await made(runtime, actor)
    behind = replace(runtime, clock=type(clock)(), memory=Memory())
    await clock.sleep(60)
    for instance in (runtime, behind):
        await access.look_up(instance, old.secret)
    await tokens.rotate_token(runtime, old.view.id, 0, actor)
    for instance in (runtime, behind):
        assert await access.remembered(instance, old.secret) is None
        with pytest.raises(Unauthenticated):
            await access.look_up(instance, old.secret)


async def test_a_token_makes_others_for_its_own_organization_whatever_it_is_called(
    runtime, ops, actor
):
    elsewhere = replace(WISH, org_slug="initech", host="example.org")
    issued = await tokens.create_token(runtime, elsewhere, actor)
    assert (issued.view.org_slug, issued.view.host) == ("octo", "github.com")


async def test_a_token_deals_with_none_of_another_organization(runtime, actor):
    theirs = await tokens.create_token(runtime, replace(WISH, org_slug="initech"), SYSTEM)
    for deed in (
        tokens.rotate_token(runtime, theirs.view.id, 1, actor),
        tokens.revoke_token(runtime, theirs.view.id, actor),
    ):
        with pytest.raises(NotFound) as refused:
            await deed
        assert refused.value.code == "token_not_found"
    await access.look_up(runtime, theirs.secret)


async def test_pages_go_on_behind_a_token_that_has_ended_meanwhile(runtime, ops, actor):
    ids = [(await made(runtime, actor)).view.id for _ in range(4)]
    first = await tokens.live_tokens(runtime, ops, PageSelection(2))
    last = first.rows[-1].id
    await tokens.revoke_token(runtime, last, actor)
    second = await tokens.live_tokens(runtime, ops, PageSelection(100, first.next_cursor))
    seen = [view.id for view in (*first.rows, *second.rows)]
    assert sorted(seen) == sorted([ops.token_id, *ids])
    assert second.next_cursor is None


async def test_a_cursor_of_another_organization_is_none_of_this_list(runtime, ops, actor):
    await made(runtime, actor)
    cursor = (await tokens.live_tokens(runtime, ops, PageSelection(1))).next_cursor
    stranger = replace(ops, org_id=ops.org_id + 1)
    with pytest.raises(Malformed) as refused:
        await tokens.live_tokens(runtime, stranger, PageSelection(1, cursor))
    assert refused.value.code == "invalid_page_token"


async def test_a_token_without_end_is_told_to_the_audit_log(runtime, ops, actor):
    await tokens.create_token(runtime, replace(WISH, expires_in_days=None), actor)
    (row,) = await runtime.store.read(audit.newest, ops.org_id, 1)
    assert (row.action, row.actor) == ("token.create", actor)
    limits = {"open_entries": 0, "ci_minutes": 0}
    assert row.data == {"name": "x", "role": "read", "expires_at": None, **limits}

"""What a token may do to others: each condition fails alone."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from service.accounts import access, repositories, tokens
from service.accounts.tenants import IssuedToken
from service.accounts.tokens import TokenRequest
from service.database.paging import PageSelection
from service.errors import Invalid, NotFound, Unauthenticated
from service.http.callers import Caller
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef, Role


@pytest.fixture
def repo(queue: QueueRef) -> RepoRef:
    """A repository of the organization."""
    return queue.repo


@pytest.fixture
def wish(repo: RepoRef) -> TokenRequest:
    """A token of that organization which sees all of it."""
    return TokenRequest(repo.host, repo.owner, "t", Role.ADMIN)


async def caller_by(runtime: Runtime, wish: TokenRequest) -> Caller:
    """A caller that holds such a token."""
    return await access.look_up(runtime, (await tokens.create_token(runtime, wish, SYSTEM)).secret)


async def made_by(runtime: Runtime, caller: Caller, wish: TokenRequest) -> IssuedToken:
    """A token that a caller makes."""
    return await tokens.create_token(runtime, wish, caller.actor)


def names(found: Iterable[object]) -> set[object]:
    """The ids of tokens."""
    return {getattr(each, "id", None) for each in found}


async def test_a_limited_token_makes_tokens_for_its_own_repositories_alone(runtime, repo, wish):
    limited = await caller_by(runtime, replace(wish, repositories=(repo,)))
    issued = await made_by(runtime, limited, replace(wish, repositories=(repo,)))
    assert issued.view.repositories == (repo,)
    with pytest.raises(Invalid) as refused:
        await made_by(runtime, limited, wish)
    assert refused.value.code == "scope_exceeds_own"


async def test_a_repository_that_the_asker_does_not_see_is_missing_for_it(runtime, repo, wish):
    blind = await caller_by(runtime, replace(wish, repositories=()))
    assert blind.repositories == frozenset()
    for who, where in ((blind, repo), (None, RepoRef(repo.host, repo.owner, "nowhere"))):
        actor = SYSTEM if who is None else who.actor
        with pytest.raises(NotFound) as missing:
            await tokens.create_token(runtime, replace(wish, repositories=(where,)), actor)
        assert missing.value.code == "repository_not_found"
    everywhere = await caller_by(runtime, wish)
    issued = await made_by(runtime, everywhere, replace(wish, repositories=(repo,)))
    assert issued.view.repositories == (repo,)


async def test_a_token_reaches_those_that_see_no_more_than_it_does(runtime, repo, wish):
    everywhere = await caller_by(runtime, wish)
    limited = await caller_by(runtime, replace(wish, repositories=(repo,)))
    equal = await caller_by(runtime, replace(wish, repositories=(repo,)))
    blind = await caller_by(runtime, replace(wish, repositories=()))
    foreign = await caller_by(runtime, replace(wish, org_slug="initech"))
    reached = {
        caller.token_id: names((await tokens.live_tokens(runtime, caller, PageSelection(100))).rows)
        for caller in (everywhere, limited, blind, foreign)
    }
    own = {each.token_id for each in (everywhere, limited, equal, blind)}
    assert reached[everywhere.token_id] == own
    assert reached[limited.token_id] == own - {everywhere.token_id}
    assert reached[blind.token_id] == {blind.token_id}
    assert reached[foreign.token_id] == {foreign.token_id}


@pytest.mark.parametrize("deed", ["rotate", "revoke"])
async def test_a_token_out_of_reach_is_missing(runtime, repo, wish, deed):
    everywhere = await caller_by(runtime, wish)
    limited = await caller_by(runtime, replace(wish, repositories=(repo,)))
    foreign = await caller_by(runtime, replace(wish, org_slug="initech"))

    async def does(caller: Caller | None, token: str) -> None:
        actor = SYSTEM if caller is None else caller.actor
        if deed == "rotate":
            await tokens.rotate_token(runtime, token, 1, actor)
        else:
            await tokens.revoke_token(runtime, token, actor)

    for caller, token in (
        (limited, everywhere.token_id),
        (foreign, everywhere.token_id),
        (everywhere, foreign.token_id),
        (everywhere, "unknown"),
        (None, "unknown"),
    ):
        with pytest.raises(NotFound) as missing:
            await does(caller, token)
        assert missing.value.code == "token_not_found"
    await does(everywhere, limited.token_id)
    await does(None, foreign.token_id)
    await does(everywhere, everywhere.token_id)


async def test_a_token_is_revoked_once(runtime, clock, wish):
    issued = await tokens.create_token(runtime, wish, SYSTEM)
    first = await tokens.revoke_token(runtime, issued.view.id, SYSTEM)
    assert first.revoked_at == clock.now()
    await clock.sleep(60)
    assert await tokens.revoke_token(runtime, issued.view.id, SYSTEM) == first
    with pytest.raises(NotFound):
        await tokens.rotate_token(runtime, issued.view.id, 1, SYSTEM)


async def test_at_the_limit_a_rotation_that_overlaps_is_refused_and_no_other(
    runtime, wish, monkeypatch
):
    issued = await tokens.create_token(runtime, wish, SYSTEM)
    monkeypatch.setattr(tokens, "TOKENS_MAX", 2)
    second = await tokens.rotate_token(runtime, issued.view.id, 1, SYSTEM)
    with pytest.raises(Invalid):
        await tokens.rotate_token(runtime, second.view.id, 1, SYSTEM)
    await tokens.rotate_token(runtime, second.view.id, 0, SYSTEM)


async def test_a_rotated_token_ends_when_its_overlap_does(runtime, clock, wish):
    old = await tokens.create_token(runtime, wish, SYSTEM)
    await tokens.rotate_token(runtime, old.view.id, 1, SYSTEM)
    await access.look_up(runtime, old.secret)
    ended = await tokens.create_token(runtime, wish, SYSTEM)
    await tokens.rotate_token(runtime, ended.view.id, 0, SYSTEM)
    with pytest.raises(Unauthenticated, match="revoked"):
        await access.look_up(runtime, ended.secret)
    await clock.sleep(3600)
    with pytest.raises(Unauthenticated, match="expired"):
        await access.look_up(runtime, old.secret)


async def test_tokens_are_listed_with_the_names_of_their_repositories(runtime, repo, wish):
    await tokens.create_token(runtime, wish, SYSTEM)
    await tokens.create_token(runtime, replace(wish, repositories=(repo,)), SYSTEM)
    await tokens.create_token(runtime, replace(wish, repositories=()), SYSTEM)
    listed = await tokens.list_tokens(runtime, repo.host, repo.owner)
    assert {view.repositories for view in listed} == {None, (repo,), ()}
    with pytest.raises(NotFound) as missing:
        await tokens.list_tokens(runtime, repo.host, "nobody")
    assert missing.value.code == "organization_not_found"


async def test_a_repository_outside_the_scope_is_not_named(runtime, provider, repo, wish):
    fresh = await provider.repository(provider.ref)
    ref = replace(fresh.ref, name="gadgets")
    other = replace(fresh, ref=ref, id=replace(fresh.id, id="2"))
    await runtime.store.run(repositories.upsert, other)
    await tokens.create_token(runtime, replace(wish, repositories=(repo,)), SYSTEM)
    (listed,) = await tokens.list_tokens(runtime, repo.host, repo.owner)
    assert listed.repositories == (repo,)


async def test_a_caller_is_told_of_its_own_token(runtime, wish):
    caller = await caller_by(runtime, wish)
    assert (await tokens.token_of(runtime, caller)).id == caller.token_id
    with pytest.raises(Unauthenticated):
        await tokens.token_of(runtime, replace(caller, token_id="unknown"))
    assert (
        await tokens.live_tokens(runtime, replace(caller, token_id="x"), PageSelection(9))
    ).rows == ()


async def test_pages_give_each_token_once(runtime, wish):
    caller = await caller_by(runtime, wish)
    made = [await tokens.create_token(runtime, wish, SYSTEM) for _ in range(2)]
    first = await tokens.live_tokens(runtime, caller, PageSelection(2))
    second = await tokens.live_tokens(runtime, caller, PageSelection(2, first.next_cursor))
    seen = [view.id for view in (*first.rows, *second.rows)]
    assert sorted(seen) == sorted([caller.token_id, *(each.view.id for each in made)])

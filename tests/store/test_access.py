"""Tenants, repositories under all their names, and tokens."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.accounts.tenants import Organization, RepositoryRecord, TokenRecord
from service.errors import NotFound
from service.vocabulary import MergeMethod, RepoRef, Role
from tests.store.conftest import NOW, a_repository

HOST = "github.test"
DAY = timedelta(days=1)


@pytest.fixture
def octo(session: Connection) -> Organization:
    return access.ensure_organization(session, HOST, "7", "Octo")


def slug_of(session: Connection, slug: str) -> Organization | None:
    return access.organization_by_slug(session, HOST, slug)


def ref(name: str, owner: str = "octo") -> RepoRef:
    return RepoRef(HOST, owner, name)


def test_an_organization_is_made_once(session: Connection, octo: Organization):
    assert access.ensure_organization(session, HOST, "7", "Octo") == octo
    assert access.ensure_organization(session, HOST, None, "OCTO") == octo
    assert octo == Organization(octo.id, HOST, "7", "Octo")


def test_an_organization_is_found_by_its_slug_in_any_case(session: Connection, octo: Organization):
    assert slug_of(session, "oCTO") == octo
    assert access.organization_by_slug(session, None, "octo") == octo
    assert access.organization_by_slug(session, "other.test", "octo") is None


def test_an_organization_known_by_name_is_bound_when_installed(session: Connection):
    named = access.ensure_organization(session, HOST, None, "octo")
    bound = access.ensure_organization(session, HOST, "7", "Octo")
    assert bound == Organization(named.id, HOST, "7", "Octo")
    assert slug_of(session, "octo") == bound


def test_a_renamed_account_keeps_its_organization(session: Connection, octo: Organization):
    renamed = access.ensure_organization(session, HOST, "7", "squid")
    assert renamed == replace(octo, slug="squid")
    assert slug_of(session, "squid") == renamed
    assert slug_of(session, "octo") is None


def test_a_slug_belongs_to_who_was_seen_with_it_last(session: Connection, octo: Organization):
    other = access.ensure_organization(session, HOST, "8", "octo")
    assert other.id != octo.id
    assert slug_of(session, "octo") == other
    back = access.ensure_organization(session, HOST, "7", "kraken")
    assert back.id == octo.id
    assert access.ensure_organization(session, HOST, "8", "KRAKEN").id == other.id
    assert slug_of(session, "kraken") == Organization(other.id, HOST, "8", "KRAKEN")


def test_a_repository_comes_back_as_it_was_read(session: Connection, octo: Organization):
    stored = access.upsert_repository(session, octo.id, a_repository())
    assert stored == RepositoryRecord(
        id=stored.id,
        org_id=octo.id,
        ref=ref("widgets"),
        provider_id="101",
        default_branch="main",
        merge_methods=frozenset({MergeMethod.SQUASH, MergeMethod.REBASE}),
        archived=False,
        available=True,
        url="https://github.test/octo/widgets",
    )
    assert access.repository(session, stored.id) == stored
    assert access.repository_by_provider_id(session, HOST, "101") == stored
    assert access.repository_by_provider_id(session, "other.test", "101") is None
    assert access.repository_by_ref(session, None, ref("WIDGETS", "OCTO")) == stored
    assert access.repositories_of(session, octo.id) == (stored,)
    assert access.repositories_of(session, None) == (stored,)
    assert access.repositories_of(session, octo.id + 1) == ()


def test_an_unknown_repository_is_told(session: Connection):
    with pytest.raises(NotFound) as told:
        access.repository(session, 99)
    assert told.value.code == "repository_not_found"
    assert access.repository_by_ref(session, None, ref("widgets")) is None


def test_another_organizations_repository_is_not_there(session: Connection, octo: Organization):
    access.upsert_repository(session, octo.id, a_repository())
    assert access.repository_by_ref(session, octo.id, ref("widgets")) is not None
    assert access.repository_by_ref(session, octo.id + 1, ref("widgets")) is None


def test_an_old_name_resolves_until_another_repository_takes_it(
    session: Connection, octo: Organization
):
    first = access.upsert_repository(session, octo.id, a_repository("widgets"))
    renamed = access.upsert_repository(session, octo.id, a_repository("gadgets"))
    assert renamed.id == first.id
    assert access.repository_by_ref(session, None, ref("Widgets")) == renamed
    taker = access.upsert_repository(session, octo.id, a_repository("widgets", "102"))
    assert access.repository_by_ref(session, None, ref("widgets")) == taker
    assert access.repository_by_ref(session, None, ref("gadgets")) == renamed


def test_a_name_belongs_to_who_was_seen_with_it_last(session: Connection, octo: Organization):
    old = access.upsert_repository(session, octo.id, a_repository("widgets"))
    new = access.upsert_repository(session, octo.id, a_repository("widgets", "102"))
    assert access.repository_by_ref(session, None, ref("widgets")) == new
    again = access.upsert_repository(session, octo.id, a_repository("gadgets"))
    assert again.id == old.id
    assert access.repository_by_ref(session, None, ref("gadgets")) == again
    assert access.repository_by_ref(session, None, ref("widgets")) == new


def test_a_name_taken_back_is_no_alias_any_more(session: Connection, octo: Organization):
    access.upsert_repository(session, octo.id, a_repository("widgets"))
    access.upsert_repository(session, octo.id, a_repository("gadgets"))
    back = access.upsert_repository(session, octo.id, a_repository("widgets"))
    assert access.repository_by_ref(session, None, ref("widgets")) == back
    assert access.repository_by_ref(session, None, ref("gadgets")) == back


def test_a_repository_may_be_out_of_reach(session: Connection, octo: Organization):
    stored = access.upsert_repository(session, octo.id, a_repository())
    access.set_repository_available(session, stored.id, False)
    assert access.repository(session, stored.id) == replace(stored, available=False)
    access.set_repository_available(session, stored.id, True, archived=True)
    assert access.repository(session, stored.id) == replace(stored, archived=True)
    archived = access.upsert_repository(session, octo.id, replace(a_repository(), archived=True))
    assert not archived.available


def a_token(org: Organization, token_id: str = "tok1", **given) -> TokenRecord:
    default = TokenRecord(
        id=token_id,
        org_id=org.id,
        org_slug=org.slug,
        host=org.host,
        name="ci",
        role=Role.QUEUE,
        digest=b"\x00\xff digest",
        repositories=None,
        created_at=NOW,
        granted_until=NOW + 90 * DAY,
        expires_at=NOW + 90 * DAY,
        last_used_at=None,
        revoked_at=None,
    )
    return replace(default, **given)


def kept(session: Connection, token: TokenRecord) -> TokenRecord:
    access.create_token(session, token.org_id, token)
    return token


def test_tokens_come_back_as_they_were_made(session: Connection, octo: Organization):
    first = kept(session, a_token(octo))
    scoped = a_token(octo, "tok0", repositories=frozenset({4, 2}), expires_at=None)
    second = kept(session, replace(scoped, created_at=NOW + DAY))
    assert access.token_by_id(session, "tok1") == first
    assert access.tokens_of(session, octo.id) == (first, second)
    assert access.tokens_of(session, octo.id + 1) == ()
    assert access.token_by_id(session, "tok9") is None


def test_a_token_is_revoked_once_and_by_its_own_organization(
    session: Connection, octo: Organization
):
    token = kept(session, a_token(octo))
    assert not access.revoke_token(session, octo.id + 1, "tok1", NOW)
    assert access.revoke_token(session, octo.id, "tok1", NOW)
    assert not access.revoke_token(session, octo.id, "tok1", NOW + DAY)
    assert access.token_by_id(session, "tok1") == replace(token, revoked_at=NOW)


def test_live_tokens_are_those_that_open_something_now(session: Connection, octo: Organization):
    ended = replace(a_token(octo, "tok0"), expires_at=NOW)
    for token in (a_token(octo), ended, a_token(octo, "tok2", expires_at=None)):
        kept(session, token)
    access.revoke_token(session, octo.id, "tok1", NOW)
    live = access.live_tokens_of(session, octo.id, NOW)
    assert [each.id for each in live] == ["tok2"]
    assert access.live_token_count(session, octo.id, NOW) == 1
    assert access.live_token_count(session, octo.id, NOW - DAY) == 2
    assert access.live_token_count(session, octo.id + 1, NOW) == 0


def test_a_token_is_never_made_to_last_longer(session: Connection, octo: Organization):
    token = kept(session, a_token(octo))
    access.expire_token(session, octo.id, "tok1", NOW + 100 * DAY)
    assert access.token_by_id(session, "tok1") == token
    access.expire_token(session, octo.id, "tok1", NOW + DAY)
    assert access.token_by_id(session, "tok1") == replace(token, expires_at=NOW + DAY)
    eternal = kept(session, a_token(octo, "tok2", expires_at=None))
    access.expire_token(session, octo.id, "tok2", NOW)
    assert access.token_by_id(session, "tok2") == replace(eternal, expires_at=NOW)


def test_the_last_use_is_written_once_a_minute(session: Connection, octo: Organization):
    kept(session, a_token(octo))

    def used_at(seconds: int):
        access.touch_token(session, "tok1", NOW + timedelta(seconds=seconds))
        (token,) = access.tokens_of(session, octo.id)
        return token.last_used_at

    assert used_at(0) == NOW
    assert used_at(59) == NOW
    assert used_at(60) == NOW + timedelta(seconds=60)

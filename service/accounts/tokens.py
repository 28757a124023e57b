"""API tokens: made, listed, rotated, revoked (docs/design/security.md 1).

The secret text is answered once; only its keyed hash is stored. Whoever is a token itself
reaches the tokens of its own organization alone, and of these those that see no more than it
does; all others are missing for it. That is judged inside the transaction, by the token as it
is then. The command line, which is no token, reaches all.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.accounts import access as format_of
from service.accounts import audit_log
from service.accounts.store import access, audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import IssuedToken, Organization, TokenRecord, TokenView
from service.database import page_tokens, paging
from service.database.database import Tx
from service.database.page_tokens import Key, Listing
from service.database.paging import Page, PageSelection
from service.errors import Invalid, NotFound, Unauthenticated
from service.http.callers import Caller
from service.runtime import Runtime
from service.vocabulary import Actor, RepoRef, Role

EXPIRES_IN_DAYS = 90
EXPIRES_IN_DAYS_MAX = 366
OVERLAP_HOURS = 24
TOKENS_MAX = 1000


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token to make. `expires_in_days` None: never, only when asked for explicitly.

    `open_entries` and `ci_minutes` limit what it has in queues and uses in a day; 0: no limit.
    """

    host: str
    org_slug: str
    name: str
    role: Role
    repositories: tuple[RepoRef, ...] | None = None
    expires_in_days: int | None = EXPIRES_IN_DAYS
    open_entries: int = 0
    ci_minutes: int = 0


async def create_token(runtime: Runtime, request: TokenRequest, actor: Actor) -> IssuedToken:
    """Make a token; its secret text is in the answer and nowhere else.

    The organization comes with an installation, or with its first token; a token
    makes others for its own. Raises NotFound(repository_not_found), Invalid(limit_reached,
    scope_exceeds_own).
    """
    public, secret = _mint()
    now = runtime.clock.now()
    days = request.expires_in_days
    ends = None if days is None else now + timedelta(days=days)
    draft = TokenRecord(
        id=public,
        org_id=0,
        org_slug=request.org_slug,
        host=request.host,
        name=request.name,
        role=request.role,
        digest=runtime.keys.token_digest(secret),
        repositories=None,
        created_at=now,
        granted_until=ends,
        expires_at=ends,
        last_used_at=None,
        revoked_at=None,
        open_entries=request.open_entries,
        ci_minutes=request.ci_minutes,
    )
    row = audit_log.allowed(actor, None, "token.create", f"token/{public}", now)
    view = await runtime.store.run(_insert, draft, request.repositories, row)
    return IssuedToken(secret, view)


def _mint() -> tuple[str, str]:
    """A fresh public id, and the whole secret text around it."""
    public = _random(format_of.PUBLIC_LENGTH)
    body = f"{format_of.PREFIX}{public}_{_random(format_of.RANDOM_LENGTH)}"
    return public, body + format_of.checksum(body)


def _random(length: int) -> str:
    return "".join(secrets.choice(format_of.ALPHABET) for _ in range(length))


def _insert(
    session: Tx, draft: TokenRecord, wanted: tuple[RepoRef, ...] | None, row: AuditEntry
) -> TokenView:
    asker = format_of.recheck(session, row.actor, row.at)
    org = _organization_of(session, draft, asker)
    access.lock_organization(session, org.id)
    if access.live_token_count(session, org.id, row.at) >= TOKENS_MAX:
        raise Invalid(
            f"{org.slug} has {TOKENS_MAX} live tokens already. Revoke one that nobody uses.",
            code="limit_reached",
        )
    scope = None if wanted is None else _scope(session, org, wanted, asker)
    record = replace(draft, org_id=org.id, org_slug=org.slug, host=org.host, repositories=scope)
    if not _reaches(asker, record):
        raise Invalid(
            "A token that is limited to repositories makes no token for all of them. "
            "Name the repositories.",
            code="scope_exceeds_own",
        )
    access.create_token(session, org.id, record)
    _write_down(session, record, row)
    return _view(session, record)


def _organization_of(session: Tx, draft: TokenRecord, asker: TokenRecord | None) -> Organization:
    if asker is not None:
        return access.organization(session, asker.org_id)
    org = access.organization_by_slug(session, draft.host, draft.org_slug)
    return org or access.ensure_organization(session, draft.host, None, draft.org_slug)


def _scope(
    session: Tx, org: Organization, wanted: tuple[RepoRef, ...], asker: TokenRecord | None
) -> frozenset[int]:
    ids = set()
    for ref in wanted:
        record = access.repository_by_ref(session, org.id, ref)
        seen = None if asker is None else asker.repositories
        if record is None or (seen is not None and record.id not in seen):
            raise NotFound(
                f"{org.slug} has no repository {ref.slug} on {ref.host}.",
                code="repository_not_found",
            )
        ids.add(record.id)
    return frozenset(ids)


def _reaches(asker: TokenRecord | None, token: TokenRecord) -> bool:
    """Return whether the token is of the asker's organization and sees nothing that it does not."""
    if asker is None:
        return True
    if token.org_id != asker.org_id:
        return False
    if asker.repositories is None:
        return True
    return token.repositories is not None and token.repositories <= asker.repositories


async def token_of(runtime: Runtime, caller: Caller) -> TokenView:
    """The caller's own token (`/tokens/self`)."""
    return await runtime.store.read(_own, caller)


def _own(session: Tx, caller: Caller) -> TokenView:
    record = access.token_by_id(session, caller.token_id)
    if record is None:
        raise Unauthenticated("This token is unknown.")
    return _view(session, record)


async def list_tokens(runtime: Runtime, host: str, org_slug: str) -> tuple[TokenView, ...]:
    """An organization's tokens, oldest first, those that have ended among them.

    Raises NotFound(organization_not_found).
    """
    return await runtime.store.read(_listed, host, org_slug)


def _listed(session: Tx, host: str, org_slug: str) -> tuple[TokenView, ...]:
    org = _organization(session, host, org_slug)
    return _views(session, org.id, access.tokens_of(session, org.id))


async def live_tokens(
    runtime: Runtime, caller: Caller, selection: PageSelection
) -> Page[TokenView]:
    """The live tokens that a caller reaches, oldest first.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    place = paging.place_of(runtime, Listing("/tokens/list", caller.org_id), selection)
    found = await runtime.store.read(_live, caller, place.now)
    return place.page_of_all(found, _key)


def _live(session: Tx, caller: Caller, now: datetime) -> tuple[TokenView, ...]:
    asker = access.token_by_id(session, caller.token_id)
    known = access.live_tokens_of(session, caller.org_id, now)
    reached = [record for record in known if asker is not None and _reaches(asker, record)]
    return _views(session, caller.org_id, reached)


def _key(view: TokenView) -> Key:
    return page_tokens.micros(view.created_at), view.id


async def rotate_token(
    runtime: Runtime, token_id: str, overlap_hours: int, actor: Actor
) -> IssuedToken:
    """A successor with equal rights; the old one works on for `overlap_hours`, 0 to 24.

    Raises NotFound(token_not_found), Invalid(limit_reached).
    """
    public, secret = _mint()
    digest = runtime.keys.token_digest(secret)
    now = runtime.clock.now()
    old_ends = now + timedelta(hours=overlap_hours)
    row = audit_log.allowed(actor, None, "token.rotate", f"token/{public}", now)
    view = await runtime.store.run(_rotate, token_id, (public, digest), old_ends, row)
    return IssuedToken(secret, view)


def _rotate(
    session: Tx,
    token_id: str,
    fresh: tuple[str, bytes],
    old_ends: datetime,
    row: AuditEntry,
) -> TokenView:
    now = row.at
    if (known := access.token_by_id(session, token_id)) is not None:
        access.lock_organization(session, known.org_id)
    old = _live_token(session, token_id, format_of.recheck(session, row.actor, now), now)
    if old_ends > now and access.live_token_count(session, old.org_id, now) >= TOKENS_MAX:
        raise Invalid(
            f"{old.org_slug} has {TOKENS_MAX} live tokens already. Revoke one that nobody uses, "
            "or rotate with an overlap of 0 hours.",
            code="limit_reached",
        )
    granted = old.granted_until
    ends = None if granted is None else now + (granted - old.created_at)
    record = replace(
        old,
        id=fresh[0],
        digest=fresh[1],
        created_at=now,
        granted_until=ends,
        expires_at=ends,
        last_used_at=None,
    )
    access.create_token(session, old.org_id, record)
    if old_ends > now:
        access.expire_token(session, old.org_id, old.id, old_ends)
    else:
        # A time means what each instance's clock says; a revocation means the same to all.
        access.revoke_token(session, old.org_id, old.id, now)
    _write_down(session, record, row)
    return _view(session, record)


async def revoke_token(runtime: Runtime, token_id: str, actor: Actor) -> TokenView:
    """End a token from the next request on; revoking again changes nothing.

    Raises NotFound(token_not_found).
    """
    row = audit_log.allowed(actor, None, "token.revoke", f"token/{token_id}", runtime.clock.now())
    return await runtime.store.run(_revoke, token_id, row)


def _revoke(session: Tx, token_id: str, row: AuditEntry) -> TokenView:
    asker = format_of.recheck(session, row.actor, row.at)
    record = access.token_by_id(session, token_id)
    if record is None or not _reaches(asker, record):
        raise _no_token(token_id)
    if record.revoked_at is None:
        access.revoke_token(session, record.org_id, token_id, row.at)
        _write_down(session, record, row)
        record = replace(record, revoked_at=row.at)
    return _view(session, record)


def _live_token(
    session: Tx, token_id: str, asker: TokenRecord | None, now: datetime
) -> TokenRecord:
    record = access.token_by_id(session, token_id)
    if record is None or not _reaches(asker, record) or not format_of.is_valid(record, now):
        raise _no_token(token_id)
    return record


def _no_token(token_id: str) -> NotFound:
    return NotFound(
        f'There is no live token "{token_id}"; the list of tokens shows those there are.',
        code="token_not_found",
    )


def _organization(session: Tx, host: str, slug: str) -> Organization:
    org = access.organization_by_slug(session, host, slug)
    if org is None:
        raise NotFound(
            f'There is no organization "{slug}" on {host}.', code="organization_not_found"
        )
    return org


def _view(session: Tx, record: TokenRecord) -> TokenView:
    return _views(session, record.org_id, (record,))[0]


def _views(session: Tx, org_id: int, records: Sequence[TokenRecord]) -> tuple[TokenView, ...]:
    """The tokens with the repositories they are limited to, as these are called now."""
    is_limited = any(record.repositories is not None for record in records)
    known = access.repositories_of(session, org_id) if is_limited else ()
    return tuple(
        TokenView(
            id=record.id,
            name=record.name,
            role=record.role,
            org_slug=record.org_slug,
            host=record.host,
            repositories=None
            if record.repositories is None
            else tuple(repo.ref for repo in known if repo.id in record.repositories),
            created_at=record.created_at,
            expires_at=record.expires_at,
            last_used_at=record.last_used_at,
            revoked_at=record.revoked_at,
            open_entries=record.open_entries,
            ci_minutes=record.ci_minutes,
        )
        for record in records
    )


def _write_down(session: Tx, record: TokenRecord, row: AuditEntry) -> None:
    ends = record.expires_at
    data = {
        "name": record.name,
        "role": record.role.value,
        "open_entries": record.open_entries,
        "ci_minutes": record.ci_minutes,
        "expires_at": None if ends is None else ends.isoformat(),
    }
    audit.append(session, replace(row, org_id=record.org_id, data=data))

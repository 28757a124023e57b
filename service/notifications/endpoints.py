"""Webhook endpoints of an organization: made, listed, changed, removed (API.md 9).

A token that is limited to repositories sees and makes only endpoints that are limited to some
of them. The secret is answered once; it is stored sealed.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.accounts import access, deeds
from service.accounts.store import access as stored
from service.accounts.store import audit
from service.accounts.store.audit import AuditRow
from service.database import paging
from service.database.database import Tx
from service.database.paging import Boundary, Listing, Part
from service.errors import Invalid, NotFound
from service.http.callers import Caller
from service.notifications import addresses, events, signing
from service.notifications.store import notifications, subscribers
from service.notifications.store.subscribers import Endpoint
from service.runtime import Runtime
from service.vocabulary import Actor, EndpointState, RepoRef

EVENTS = events.NAMES
"""Whatever an endpoint may be told."""

PATTERNS = events.PATTERNS
"""How an endpoint may ask for it: by name, by group, or for everything."""

ENDPOINTS_MAX = 50
OVERLAP_HOURS = 24


@dataclass(frozen=True, slots=True)
class EndpointView:
    """An endpoint without its secret; `repositories` None: all of the organization."""

    id: str
    url: str
    events: tuple[str, ...]
    repositories: tuple[RepoRef, ...] | None
    description: str
    state: EndpointState
    disabled_reason: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EndpointWish:
    """What to set; None: as it is, or the default. `everywhere` takes back a limit."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    repositories: tuple[RepoRef, ...] | None = None
    description: str | None = None
    is_enabled: bool | None = None
    everywhere: bool = False

    @property
    def says_where(self) -> bool:
        """Whether it sets the repositories or takes back their limit."""
        return self.repositories is not None or self.everywhere


async def create(runtime: Runtime, caller: Caller, wish: EndpointWish) -> tuple[EndpointView, str]:
    """Make an endpoint; it and its secret, which nobody is shown again.

    Raises NotFound(repository_not_found), Invalid(webhook_url_refused, scope_exceeds_own,
    limit_reached).
    """
    url = wish.url or ""
    await _vet(runtime, url)
    scope = await _scope(runtime, caller, wish)
    now = runtime.clock.now()
    secret = signing.new_secret()
    endpoint = Endpoint(
        id=runtime.ids.uuid(),
        org_id=caller.org_id,
        url=url,
        events=wish.events or (),
        repositories=scope,
        description=wish.description or "",
        secret=runtime.keys.sealed(secret),
        created_at=now,
    )
    row = _deed(caller, "webhook.create_endpoint", endpoint, now)
    return await runtime.store.run(_insert, endpoint, row), secret


def _insert(session: Tx, endpoint: Endpoint, row: AuditRow) -> EndpointView:
    access.recheck(session, row.actor, row.at)
    stored.lock_organization(session, endpoint.org_id)
    if len(subscribers.endpoints_of(session, endpoint.org_id)) >= ENDPOINTS_MAX:
        raise Invalid(
            f"The organization has {ENDPOINTS_MAX} endpoints already; delete one first.",
            code="limit_reached",
        )
    subscribers.create(session, endpoint)
    audit.append(session, row)
    return view_of(session, endpoint)


async def _vet(runtime: Runtime, url: str) -> None:
    refusal = await runtime.sender.refusal(url)
    if refusal is not None:
        raise Invalid(f"`url` may not be called. {refusal}", code="webhook_url_refused")


async def _scope(runtime: Runtime, caller: Caller, wish: EndpointWish) -> frozenset[int] | None:
    """The ids of the named repositories; None: every one, which a limited token may not say."""
    if wish.repositories is not None:
        found = [await access.find_repository(runtime, caller, ref) for ref in wish.repositories]
        return frozenset(record.id for record in found)
    if caller.repositories is not None:
        raise Invalid(
            "This token is limited to some repositories: name them in `repositories`.",
            code="scope_exceeds_own",
        )
    return None


async def list_all(
    runtime: Runtime, caller: Caller, take: int, cursor: str | None
) -> Part[EndpointView]:
    """The endpoints that the caller sees, oldest first; there are never more than 50.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing("webhooks/list-endpoints", caller.org_id)
    now = runtime.clock.now()
    after = paging.boundary_of(runtime.keys, listing, cursor, now)
    seen = [(view, _boundary(view)) for view in await runtime.store.read(_seen, caller)]
    if after is not None:
        seen = [(view, place) for view, place in seen if place.key > after.key]
    return paging.part_of(runtime.keys, listing, seen, take, now)


def _boundary(view: EndpointView) -> Boundary:
    return Boundary((paging.micros(view.created_at), view.id))


def _seen(session: Tx, caller: Caller) -> tuple[EndpointView, ...]:
    known = subscribers.endpoints_of(session, caller.org_id)
    return tuple(view_of(session, each) for each in known if sees(caller, each))


async def update(
    runtime: Runtime, caller: Caller, endpoint_id: str, wish: EndpointWish
) -> EndpointView:
    """Change what the wish names.

    Enabled again, its failures count from nothing; disabled, what waits for it is given up.
    Raises NotFound(webhook_endpoint_not_found, repository_not_found),
    Invalid(webhook_url_refused, scope_exceeds_own).
    """
    found = await runtime.store.read(find, caller, endpoint_id)
    url = found.url if wish.url is None else wish.url
    if url != found.url:
        await _vet(runtime, url)
    scope = await _scope(runtime, caller, wish) if wish.says_where else None
    row = _deed(caller, "webhook.update_endpoint", replace(found, url=url), runtime.clock.now())
    return await runtime.store.run(_change, caller, endpoint_id, (wish, scope), row)


def _change(
    session: Tx,
    caller: Caller,
    endpoint_id: str,
    wanted: tuple[EndpointWish, frozenset[int] | None],
    row: AuditRow,
) -> EndpointView:
    access.recheck(session, row.actor, row.at)
    before = after = find(session, caller, endpoint_id, lock=True)
    wish, scope = wanted
    if wish.url is not None:
        after = replace(after, url=wish.url)
    if wish.says_where:
        after = replace(after, repositories=scope)
    if wish.events is not None:
        after = replace(after, events=wish.events)
    if wish.description is not None:
        after = replace(after, description=wish.description)
    if wish.is_enabled is not None:
        after = _switched(after, row.actor, is_enabled=wish.is_enabled)
    subscribers.change(session, before, after)
    if wish.is_enabled is False:
        notifications.give_up(session, after.id, after.disabled_reason or "")
    audit.append(session, row)
    return view_of(session, after)


def _switched(endpoint: Endpoint, by: Actor, *, is_enabled: bool) -> Endpoint:
    if is_enabled:
        return replace(
            endpoint,
            state=EndpointState.ENABLED,
            disabled_reason=None,
            failing_since=None,
            failed_messages=0,
        )
    if endpoint.state is EndpointState.DISABLED:
        return endpoint
    reason = f"Disabled by {by.login}."
    return replace(endpoint, state=EndpointState.DISABLED, disabled_reason=reason)


async def delete(runtime: Runtime, caller: Caller, endpoint_id: str) -> None:
    """Forget an endpoint; what waits for it is dropped.

    Raises NotFound(webhook_endpoint_not_found).
    """
    found = await runtime.store.read(find, caller, endpoint_id)
    row = _deed(caller, "webhook.delete_endpoint", found, runtime.clock.now())
    await runtime.store.run(_delete, caller, endpoint_id, row)


def _delete(session: Tx, caller: Caller, endpoint_id: str, row: AuditRow) -> None:
    access.recheck(session, row.actor, row.at)
    endpoint = find(session, caller, endpoint_id, lock=True)
    notifications.give_up(session, endpoint.id, "The endpoint was deleted.")
    subscribers.remove(session, endpoint.id)
    audit.append(session, row)


async def rotate_secret(
    runtime: Runtime, caller: Caller, endpoint_id: str, overlap_hours: int
) -> str:
    """A new secret; the present one signs too for `overlap_hours`, 0 to 72.

    A secret before that one ends now. Raises NotFound(webhook_endpoint_not_found).
    """
    found = await runtime.store.read(find, caller, endpoint_id)
    now = runtime.clock.now()
    secret = signing.new_secret()
    until = now + timedelta(hours=overlap_hours) if overlap_hours else None
    row = _deed(caller, "webhook.rotate_secret", found, now)
    fresh = (runtime.keys.sealed(secret), until)
    await runtime.store.run(_rotate, caller, endpoint_id, fresh, row)
    return secret


def _rotate(
    session: Tx,
    caller: Caller,
    endpoint_id: str,
    fresh: tuple[bytes, datetime | None],
    row: AuditRow,
) -> None:
    access.recheck(session, row.actor, row.at)
    before = find(session, caller, endpoint_id, lock=True)
    secret, until = fresh
    after = replace(
        before,
        secret=secret,
        previous_secret=None if until is None else before.secret,
        previous_until=until,
    )
    subscribers.change(session, before, after)
    audit.append(session, row)


def find(session: Tx, caller: Caller, endpoint_id: str, *, lock: bool = False) -> Endpoint:
    """An endpoint that the caller sees. Raises NotFound(webhook_endpoint_not_found).

    `lock` before anything of it is written.
    """
    endpoint = subscribers.endpoint_by_id(session, endpoint_id, lock=lock)
    if endpoint is None or not sees(caller, endpoint):
        raise NotFound(
            f'There is no webhook endpoint "{endpoint_id}" that this token can see; '
            "`headgate webhook list` shows them.",
            code="webhook_endpoint_not_found",
        )
    return endpoint


def sees(caller: Caller, endpoint: Endpoint) -> bool:
    """Whether the endpoint is the caller's organization's, and told of nothing he may not see."""
    if endpoint.org_id != caller.org_id:
        return False
    if caller.repositories is None:
        return True
    return endpoint.repositories is not None and endpoint.repositories <= caller.repositories


def view_of(session: Tx, endpoint: Endpoint) -> EndpointView:
    """The endpoint as it is shown; its repositories as they are spelled now, by id."""
    names = None
    if endpoint.repositories is not None:
        known = stored.repositories_of(session, endpoint.org_id)
        names = tuple(repo.ref for repo in known if repo.id in endpoint.repositories)
    return EndpointView(
        id=endpoint.id,
        url=endpoint.url,
        events=endpoint.events,
        repositories=names,
        description=endpoint.description,
        state=endpoint.state,
        disabled_reason=endpoint.disabled_reason,
        last_success_at=endpoint.last_success_at,
        last_failure_at=endpoint.last_failure_at,
        created_at=endpoint.created_at,
    )


def _deed(caller: Caller, action: str, endpoint: Endpoint, at: datetime) -> AuditRow:
    actor = caller.actor
    row = deeds.deed(actor, caller.org_id, action, f"endpoint/{endpoint.id}", at)
    return replace(row, data={"origin": addresses.origin_of(endpoint.url)})

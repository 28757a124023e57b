"""Webhook endpoints of an organization: create, list, update, delete.

A token that is limited to repositories sees and creates only endpoints that are limited to some
of them. The secret is returned once; it is stored sealed.

See docs/design/notifications.md 3.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from service.accounts import access, audit_log
from service.accounts.store import access as stored
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.database import page_tokens, paging
from service.database.database import Tx
from service.database.page_tokens import Key, Listing
from service.database.paging import Page, PageSelection
from service.errors import Invalid, NotFound
from service.http.callers import Caller
from service.notifications import addresses, signing
from service.notifications.store import notifications, subscribers
from service.notifications.store.subscribers import Endpoint
from service.runtime import Runtime
from service.vocabulary import Actor, EndpointFormat, EndpointState, RepoRef

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
    format: EndpointFormat
    state: EndpointState
    disabled_reason: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EndpointChange:
    """Values to set; None: unchanged, or the default. `everywhere` removes the limit."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    repositories: tuple[RepoRef, ...] | None = None
    description: str | None = None
    format: EndpointFormat | None = None
    is_enabled: bool | None = None
    everywhere: bool = False

    @property
    def sets_repositories(self) -> bool:
        """Return whether it sets the repositories or removes their limit."""
        return self.repositories is not None or self.everywhere


async def create(
    runtime: Runtime, caller: Caller, change: EndpointChange
) -> tuple[EndpointView, str]:
    """Create an endpoint; return it and its secret, which is not shown again.

    Raises NotFound(repository_not_found), Invalid(webhook_url_refused, scope_exceeds_own,
    limit_reached).
    """
    url = change.url or ""
    await _vet(runtime, url)
    scope = await _scope(runtime, caller, change)
    now = runtime.clock.now()
    secret = signing.new_secret()
    endpoint = Endpoint(
        id=runtime.ids.uuid(),
        org_id=caller.org_id,
        url=url,
        events=change.events or (),
        repositories=scope,
        description=change.description or "",
        format=change.format or EndpointFormat.JSON,
        secret=runtime.keys.sealed(secret),
        created_at=now,
    )
    row = _audit_entry(caller, "webhook.create_endpoint", endpoint, now)
    return await runtime.store.run(_insert, endpoint, row), secret


def _insert(session: Tx, endpoint: Endpoint, row: AuditEntry) -> EndpointView:
    access.recheck(session, row.actor, row.at)
    stored.lock_organization(session, endpoint.org_id)
    if len(subscribers.endpoints_of(session, endpoint.org_id)) >= ENDPOINTS_MAX:
        raise Invalid(
            f"The organization has {ENDPOINTS_MAX} endpoints already; delete one first.",
            code="limit_reached",
        )
    subscribers.create(session, endpoint)
    audit.append(session, row)
    return _view_of(session, endpoint)


async def _vet(runtime: Runtime, url: str) -> None:
    refusal = await runtime.sender.refusal(url)
    if refusal is not None:
        raise Invalid(f"`url` may not be called. {refusal}", code="webhook_url_refused")


async def _scope(runtime: Runtime, caller: Caller, change: EndpointChange) -> frozenset[int] | None:
    """Return the ids of the named repositories; None: all, which a limited token may not set."""
    if change.repositories is not None:
        found = [await access.find_repository(runtime, caller, ref) for ref in change.repositories]
        return frozenset(record.id for record in found)
    if caller.repositories is not None:
        raise Invalid(
            "This token is limited to some repositories: name them in `repositories`.",
            code="scope_exceeds_own",
        )
    return None


async def list_all(
    runtime: Runtime, caller: Caller, selection: PageSelection
) -> Page[EndpointView]:
    """Return the endpoints that the caller can see, oldest first; at most 50.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing("webhooks/list-endpoints", caller.org_id)
    place = paging.place_of(runtime, listing, selection)
    return place.page_of_all(await runtime.store.read(_seen, caller), _key)


def _key(view: EndpointView) -> Key:
    return page_tokens.micros(view.created_at), view.id


def _seen(session: Tx, caller: Caller) -> tuple[EndpointView, ...]:
    known = subscribers.endpoints_of(session, caller.org_id)
    return tuple(_view_of(session, each) for each in known if _sees(caller, each))


async def update(
    runtime: Runtime, caller: Caller, endpoint_id: str, change: EndpointChange
) -> EndpointView:
    """Change the values that are set.

    Enabling resets the count of failures; disabling gives up open attempts.
    Raises NotFound(webhook_endpoint_not_found, repository_not_found),
    Invalid(webhook_url_refused, scope_exceeds_own).
    """
    found = await runtime.store.read(find, caller, endpoint_id)
    url = found.url if change.url is None else change.url
    if url != found.url:
        await _vet(runtime, url)
    scope = await _scope(runtime, caller, change) if change.sets_repositories else None
    now = runtime.clock.now()
    entry = _audit_entry(caller, "webhook.update_endpoint", replace(found, url=url), now)

    def transaction(session: Tx) -> EndpointView:
        access.recheck(session, entry.actor, entry.at)
        before = find(session, caller, endpoint_id, lock=True)
        after = _changed(before, change, scope, entry.actor)
        subscribers.change(session, before, after)
        if change.is_enabled is False:
            notifications.give_up(session, after.id, after.disabled_reason or "")
        audit.append(session, entry)
        return _view_of(session, after)

    return await runtime.store.run(transaction)


def _changed(
    endpoint: Endpoint, change: EndpointChange, scope: frozenset[int] | None, by: Actor
) -> Endpoint:
    values = {
        name: value
        for name in ("url", "events", "description", "format")
        if (value := getattr(change, name)) is not None
    }
    if change.sets_repositories:
        values["repositories"] = scope
    after = replace(endpoint, **values)
    return (
        after if change.is_enabled is None else _switched(after, by, is_enabled=change.is_enabled)
    )


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
    """Delete an endpoint and give up its open attempts.

    Raises NotFound(webhook_endpoint_not_found).
    """

    def remove(session: Tx, endpoint: Endpoint) -> None:
        notifications.give_up(session, endpoint.id, "The endpoint was deleted.")
        subscribers.remove(session, endpoint.id)

    await _audited(runtime, caller, endpoint_id, "webhook.delete_endpoint", remove)


async def rotate_secret(
    runtime: Runtime, caller: Caller, endpoint_id: str, overlap_hours: int
) -> str:
    """Return a new secret; the present one also signs for `overlap_hours`, 0 to 72.

    An earlier secret expires now. Raises NotFound(webhook_endpoint_not_found).
    """
    secret = signing.new_secret()
    sealed = runtime.keys.sealed(secret)
    until = runtime.clock.now() + timedelta(hours=overlap_hours) if overlap_hours else None

    def rotate(session: Tx, endpoint: Endpoint) -> None:
        previous = None if until is None else endpoint.secret
        after = replace(endpoint, secret=sealed, previous_secret=previous, previous_until=until)
        subscribers.change(session, endpoint, after)

    await _audited(runtime, caller, endpoint_id, "webhook.rotate_secret", rotate)
    return secret


async def _audited(
    runtime: Runtime,
    caller: Caller,
    endpoint_id: str,
    action: str,
    write: Callable[[Tx, Endpoint], None],
) -> None:
    """Write something about an endpoint together with its audit entry."""
    found = await runtime.store.read(find, caller, endpoint_id)
    entry = _audit_entry(caller, action, found, runtime.clock.now())

    def transaction(session: Tx) -> None:
        access.recheck(session, entry.actor, entry.at)
        write(session, find(session, caller, endpoint_id, lock=True))
        audit.append(session, entry)

    await runtime.store.run(transaction)


def find(session: Tx, caller: Caller, endpoint_id: str, *, lock: bool = False) -> Endpoint:
    """Return an endpoint that the caller can see. Raises NotFound(webhook_endpoint_not_found).

    `lock` is needed before a write.
    """
    endpoint = subscribers.endpoint_by_id(session, endpoint_id, lock=lock)
    if endpoint is None or not _sees(caller, endpoint):
        raise NotFound(
            f'There is no webhook endpoint "{endpoint_id}" that this token can see; '
            "`headgate webhook list` shows them.",
            code="webhook_endpoint_not_found",
        )
    return endpoint


def _sees(caller: Caller, endpoint: Endpoint) -> bool:
    """Return whether the caller may see the endpoint and every repository that it includes."""
    if endpoint.org_id != caller.org_id:
        return False
    if caller.repositories is None:
        return True
    return endpoint.repositories is not None and endpoint.repositories <= caller.repositories


def _view_of(session: Tx, endpoint: Endpoint) -> EndpointView:
    """Return the endpoint as it is shown, with the present names of its repositories."""
    names = None
    if endpoint.repositories is not None:
        known = stored.repositories_of(session, endpoint.org_id)
        names = tuple(repo.ref for repo in known if repo.id in endpoint.repositories)
    shown = [each.name for each in fields(EndpointView) if each.name != "repositories"]
    values = {name: getattr(endpoint, name) for name in shown}
    return EndpointView(repositories=names, **values)


def _audit_entry(caller: Caller, action: str, endpoint: Endpoint, at: datetime) -> AuditEntry:
    actor = caller.actor
    row = audit_log.allowed(actor, caller.org_id, action, f"endpoint/{endpoint.id}", at)
    return replace(row, data={"origin": addresses.origin_of(endpoint.url)})

"""Pages of organizations, for people who administer them (docs/design/security.md 6).

API tokens; webhook endpoints, and one with its deliveries; the audit log, with filters and as lines
of JSON.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

import orjson

from service.accounts import administrators, audit_log, page_addresses, repositories, tokens
from service.accounts.api.models.tokens import CreateToken, RevokeToken
from service.accounts.audit_log import AuditEntry, AuditFilter
from service.accounts.tenants import Organization, TokenView
from service.accounts.tokens import TokenRequest
from service.dashboard import filters
from service.dashboard.requests import Action, OrganizationRequest, PageKind
from service.dashboard.visitors import Visitor
from service.database.paging import Page, PageSelection
from service.errors import FieldError, Malformed, NotFound
from service.http.models import common
from service.notifications import endpoints, notifications
from service.notifications.api.models.webhooks import CreateEndpoint, ReplayMessages
from service.notifications.endpoints import EndpointChange, EndpointView
from service.notifications.messages import PATTERNS
from service.notifications.notifications import Delivery, DeliveryPage, ReplayRequest
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.testhealth.operations import all_tests
from service.vocabulary import RepoRef, Role

_DIGITS_MAX = 9
_ENDED_MAX = 20
"""Ended tokens that are shown, the newest."""

_LIFETIMES = ("30", "90", "180", "366")

_ON_PAGE = 50
_EXPORTED_MAX = 10_000
"""Entries of one export, the newest; narrower times give the others."""
_TEXT_MAX = 200
_FILTERS = ("actor", "action", "subject", "since", "until")


_SUBJECT_TEST = "test/"
"""An entry about a test has this as its subject, followed by the id of the test."""


_ReadableOf = Callable[[Collection[RepoRef]], Awaitable[Collection[RepoRef]]]
"""Returns those of some repositories that a visitor may read."""

_DELIVERIES_ON_PAGE = 30


@dataclass(frozen=True, slots=True)
class _WebhooksPage:
    """The endpoints, oldest first, and what they can select."""

    endpoints: tuple[EndpointView, ...]
    patterns: tuple[str, ...] = PATTERNS


@dataclass(frozen=True, slots=True)
class _WebhookPage:
    """An endpoint and a part of its deliveries, newest first."""

    endpoint: EndpointView
    deliveries: Page[Delivery]


class _LinkedTest(NamedTuple):
    """The test that an entry is about: its name, its repository, and the path of its page."""

    name: str
    slug: str
    path: str


@dataclass(frozen=True, slots=True)
class _ActivityPage:
    """Entries, newest first; `older` is the query of the next page, empty: there is none.

    `tests` has the tests that entries are about, by the number of the entry.
    """

    entries: tuple[AuditEntry, ...]
    given: Mapping[str, str]
    older: str
    export: str
    tests: Mapping[int, _LinkedTest] = field(default_factory=dict)

    def lines(self) -> str:
        """Return the entries as lines of JSON."""
        return "".join(f"{orjson.dumps(_plain(each)).decode()}\n" for each in self.entries)


@dataclass(frozen=True, slots=True)
class _TokensPage:
    """Live tokens, the oldest first, and the newest of those that have ended."""

    live: tuple[TokenView, ...]
    ended: tuple[TokenView, ...]
    roles: tuple[str, ...] = tuple(role.value for role in Role)
    lifetimes: tuple[str, ...] = _LIFETIMES


async def organizations_of(runtime: Runtime, visitor: Visitor) -> tuple[Organization, ...]:
    """Return the organizations that the visitor administers, by name."""
    known = await repositories.organizations(runtime)
    is_named = await _is_named(runtime, visitor)
    return tuple(each for each in known if _administers(visitor, each, is_named=is_named))


async def _is_named(runtime: Runtime, visitor: Visitor) -> bool:
    """Return whether a person administers every organization."""
    if not visitor.host:
        return False
    return await administrators.is_administrator(runtime, visitor.host, visitor.actor)


def _administers(visitor: Visitor, organization: Organization, *, is_named: bool) -> bool:
    """Return whether a token of role admin is of it, or a person owns the account or is named."""
    caller = visitor.caller
    if caller is not None:
        return caller.role is Role.ADMIN and caller.org_id == organization.id
    if not visitor.host:
        return True
    is_own = organization.provider_id == visitor.actor.id
    return visitor.host == organization.host and (is_own or is_named)


async def organization_of(runtime: Runtime, visitor: Visitor, slug: str) -> Organization:
    """Return an organization that the visitor administers. Raises NotFound."""
    for each in await organizations_of(runtime, visitor):
        if each.slug.lower() == slug.lower():
            return each
    raise NotFound("There is no such page.")


async def activity(runtime: Runtime, visitor: Visitor, query: Mapping[str, str]) -> _ActivityPage:
    """Return the part of the audit log that the query asks for.

    Entries without an organization, such as sign-ins, are for those who administer all of them.
    Raises NotFound for visitors who administer none, and for tokens that are limited to some
    repositories; Malformed for a wrong filter or page token.
    """
    own = await organizations_of(runtime, visitor)
    is_named = await _is_named(runtime, visitor)
    sees_all = visitor.caller is None and (not visitor.host or is_named)
    is_limited = visitor.caller is not None and visitor.caller.repositories is not None
    if is_limited or (not own and not sees_all):
        raise NotFound("There is no such page.")
    wanted = _wanted_of(query)
    ids = None if sees_all else tuple(each.id for each in own)
    selection = _selection_of(query)
    page = await audit_log.entries(runtime, ids, wanted, selection)
    return _activity_page(page, query)


async def _read_tokens(runtime: Runtime, request: OrganizationRequest) -> _TokensPage:
    """Return the tokens that the visitor reaches."""
    org, caller = request.organization, request.visitor.caller
    found = await tokens.list_tokens(runtime, org.host, org.slug)
    if caller is not None and caller.repositories is not None:
        reached = await tokens.live_tokens(runtime, caller, PageSelection(tokens.TOKENS_MAX))
        ids = {view.id for view in reached.rows}
        found = tuple(view for view in found if view.id in ids)
    live = [view for view in found if _is_live(view, request)]
    ended = [view for view in found if not _is_live(view, request)]
    return _TokensPage(tuple(live), tuple(reversed(ended))[:_ENDED_MAX])


def _is_live(view: TokenView, request: OrganizationRequest) -> bool:
    is_over = view.expires_at is not None and view.expires_at <= request.now
    return view.revoked_at is None and not is_over


async def _create_token(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Create a token; its value is on this one page."""
    org = request.organization
    body = {
        "name": request.text("name"),
        "role": request.text("role"),
        "repositories": _repositories_of(request),
        "expires_in_days": _number_of(request, "days", tokens.EXPIRES_IN_DAYS),
        "open_entries": _number_of(request, "open_entries", 0),
        "ci_minutes": _number_of(request, "ci_minutes", 0),
    }
    asked = common.read(CreateToken, body)
    wanted = TokenRequest(
        org.host,
        org.slug,
        asked.name,
        asked.role,
        asked.scope(),
        asked.lifetime_days(),
        asked.open_entries or 0,
        asked.ci_minutes or 0,
    )
    return {"issued": await tokens.create_token(runtime, wanted, request.visitor.actor)}


def _number_of(request: OrganizationRequest, name: str, default: int) -> int | str:
    """Return the number in a field of the form; any other text as it is, which is refused."""
    text = request.text(name)
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else text or default


def _repositories_of(request: OrganizationRequest) -> list[dict[str, str]] | None:
    """Return the repositories of the form, None for all. Raises Malformed for a wrong name."""
    found = []
    for slug in request.text("repositories").replace(",", " ").split():
        owner, slash, name = slug.rpartition("/")
        if not slash or not owner:
            message = f"must be names as octo/widgets, not {slug[:100]}"
            fault = FieldError("/repositories", "format", message)
            raise Malformed(f"/repositories {message}.", errors=(fault,))
        found.append({"host": request.organization.host, "owner": owner, "name": name})
    return found or None


async def _revoke_token(runtime: Runtime, request: OrganizationRequest) -> None:
    """Revoke a token of this organization."""
    id_ = request.read(RevokeToken).id
    page = await _read_tokens(runtime, request)
    if id_ not in {view.id for view in (*page.live, *page.ended)}:
        raise NotFound(f'There is no token "{id_}" here.', code="token_not_found")
    await tokens.revoke_token(runtime, id_, request.visitor.actor)


_TOKEN_ACTIONS: Mapping[str, Action[OrganizationRequest]] = {
    "create": Action(AccessLevel.ADMIN, _create_token),
    "revoke": Action(
        AccessLevel.ADMIN,
        _revoke_token,
        "Requests with the token hgt_{id} are refused from then on. It cannot be used again.",
        "Revoke the token",
    ),
}


def _wanted_of(query: Mapping[str, str]) -> AuditFilter:
    """Return which entries a query asks for. Raises Malformed, which names the wrong filter."""
    texts = {name: query.get(name, "").strip() for name in ("actor", "action", "subject")}
    for name, text in texts.items():
        if len(text) > _TEXT_MAX or "\0" in text:
            raise _wrong(name, f"must have at most {_TEXT_MAX} characters")
    until = _day(query, "until")
    return AuditFilter(
        since=_day(query, "since"),
        until=None if until is None else until + timedelta(days=1),
        **texts,
    )


def _selection_of(query: Mapping[str, str]) -> PageSelection:
    """Return which page of the log a query asks for; an export is one page of many entries."""
    return PageSelection(_EXPORTED_MAX if "export" in query else _ON_PAGE, query.get("cursor"))


def _day(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise _wrong(name, "must be a day, as 2026-11-24") from None


def _wrong(name: str, message: str) -> Malformed:
    fault = FieldError(f"/{name}", "format", message)
    return Malformed(f"{name} {message}.", errors=(fault,))


def _activity_page(page: Page[AuditEntry], query: Mapping[str, str]) -> _ActivityPage:
    """Return the page of these entries, with the addresses of older ones and of the export."""
    given = {name: query.get(name, "").strip() for name in _FILTERS}
    kept = {name: text for name, text in given.items() if text}
    older = "" if page.next_cursor is None else urlencode({**kept, "cursor": page.next_cursor})
    return _ActivityPage(page.rows, given, older, urlencode({**kept, "export": "jsonl"}))


async def with_tests(runtime: Runtime, page: _ActivityPage, readable: _ReadableOf) -> _ActivityPage:
    """Return the page with the tests that its entries are about, if the visitor may read them."""
    about = {
        each.id: (each.org_id, each.subject.removeprefix(_SUBJECT_TEST))
        for each in page.entries
        if each.subject.startswith(_SUBJECT_TEST)
    }
    org_ids = {org_id for org_id, _ in about.values() if org_id is not None}
    places = await all_tests.places_of(runtime, org_ids, {test_id for _, test_id in about.values()})
    may_read = await readable({repo for repo, _ in places.values()})
    tests = {}
    for entry_id, key in about.items():
        if key in places and places[key][0] in may_read:
            repo, name = places[key]
            path = f"{page_addresses.home(runtime.options, repo)}/tests/{key[1]}"
            tests[entry_id] = _LinkedTest(name, repo.slug, path)
    return replace(page, tests=tests)


def _plain(entry: AuditEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "at": filters.instant(entry.at),
        "actor": {"kind": entry.actor.kind.value, "login": entry.actor.login, "id": entry.actor.id},
        "channel": entry.actor.channel.value,
        "action": entry.action,
        "subject": entry.subject,
        "decision": entry.decision,
        "reason": entry.reason,
        "request_id": entry.request_id,
        "data": entry.data,
    }


async def _read_webhooks(runtime: Runtime, request: OrganizationRequest) -> _WebhooksPage:
    """Return the endpoints that the visitor reaches."""
    part = await endpoints.list_all(runtime, request.caller, PageSelection(endpoints.ENDPOINTS_MAX))
    return _WebhooksPage(tuple(part.rows))


async def _read_webhook(runtime: Runtime, request: OrganizationRequest) -> _WebhookPage:
    """Return one endpoint with its deliveries. Raises NotFound, Malformed for a wrong cursor."""
    page = await _read_webhooks(runtime, request)
    endpoint = next((each for each in page.endpoints if each.id == request.id), None)
    if endpoint is None:
        raise NotFound("There is no such page.")
    selection = PageSelection(_DELIVERIES_ON_PAGE, request.query.get("cursor"))
    wanted = DeliveryPage(request.id, selection)
    deliveries = await notifications.list_deliveries(runtime, request.caller, wanted)
    return _WebhookPage(endpoint, deliveries)


async def _create_webhook(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Create an endpoint; its secret is on this one page."""
    body = {
        "url": request.text("url"),
        "events": request.text("events").replace(",", " ").split(),
        "repositories": _repositories_of(request),
        "description": request.text("description"),
        "format": request.text("format") or None,
    }
    change = common.read(CreateEndpoint, body).change()
    view, secret = await endpoints.create(runtime, request.caller, change)
    return {"secret": secret, "made": view}


_WEBHOOKS_ACTIONS: Mapping[str, Action[OrganizationRequest]] = {
    "create": Action(AccessLevel.ADMIN, _create_webhook),
}


async def _rotate_secret(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Make a new secret; the present one signs as well for a day."""
    hours = endpoints.OVERLAP_HOURS
    secret = await endpoints.rotate_secret(runtime, request.caller, request.id, hours)
    return {"secret": secret}


async def _send_test(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Send a test message, and show what the receiver answered."""
    _, made = await notifications.send_test(runtime, request.caller, request.id)
    return {"tested": made}


async def _enable_webhook(runtime: Runtime, request: OrganizationRequest) -> None:
    """Send messages again."""
    change = EndpointChange(is_enabled=True)
    await endpoints.update(runtime, request.caller, request.id, change)


async def _disable_webhook(runtime: Runtime, request: OrganizationRequest) -> None:
    """Send no more messages."""
    change = EndpointChange(is_enabled=False)
    await endpoints.update(runtime, request.caller, request.id, change)


async def _delete_webhook(runtime: Runtime, request: OrganizationRequest) -> str:
    """Delete the endpoint; lead to the list."""
    await endpoints.delete(runtime, request.caller, request.id)
    return f"/settings/{request.organization.slug}/webhooks"


async def _replay_deliveries(runtime: Runtime, request: OrganizationRequest) -> None:
    """Send one message again."""
    body = {"endpoint_id": request.id, "message_id": request.text("message")}
    asked = ReplayRequest(common.read(ReplayMessages, body).message_id)
    await notifications.replay(runtime, request.caller, request.id, asked)


_WEBHOOK_ACTIONS: Mapping[str, Action[OrganizationRequest]] = {
    "rotate": Action(
        AccessLevel.ADMIN,
        _rotate_secret,
        "The new secret is shown once. Messages are signed with both secrets for 24 hours, so that "
        "the receiver can change.",
        "Rotate the secret",
    ),
    "test": Action(AccessLevel.ADMIN, _send_test),
    "enable": Action(AccessLevel.ADMIN, _enable_webhook),
    "disable": Action(AccessLevel.ADMIN, _disable_webhook),
    "delete": Action(
        AccessLevel.ADMIN,
        _delete_webhook,
        "Messages that still wait for this endpoint are not sent, and its deliveries are lost.",
        "Delete the endpoint",
    ),
    "replay": Action(AccessLevel.ADMIN, _replay_deliveries),
}


PAGES: tuple[PageKind[OrganizationRequest], ...] = (
    PageKind("", "tokens.html", _read_tokens, actions=_TOKEN_ACTIONS),
    PageKind("/webhooks", "webhooks.html", _read_webhooks, actions=_WEBHOOKS_ACTIONS),
    PageKind(
        "/webhooks/{id}",
        "webhook.html",
        _read_webhook,
        actions=_WEBHOOK_ACTIONS,
    ),
)
"""Every page of an organization, below `/settings/{org}`."""

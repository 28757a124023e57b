"""Pages of organizations, for people who administer them (docs/design/security.md 6)."""

from collections.abc import Mapping

from service.accounts import activity as audit_log
from service.accounts import administrators, organizations
from service.dashboard import page_of_activity, page_of_tokens, page_of_webhooks
from service.dashboard.page_of_activity import ActivityPage
from service.dashboard.requests import OrganizationRequest, PageKind
from service.dashboard.visitors import Visitor
from service.database.records import Organization
from service.errors import NotFound
from service.runtime import Runtime
from service.vocabulary import Role


async def organizations_of(runtime: Runtime, visitor: Visitor) -> tuple[Organization, ...]:
    """Return the organizations that the visitor administers, by name."""
    known = await organizations.known(runtime)
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


async def activity(runtime: Runtime, visitor: Visitor, query: Mapping[str, str]) -> ActivityPage:
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
    wanted = page_of_activity.wanted_of(query)
    ids = None if sees_all else tuple(each.id for each in own)
    selection = page_of_activity.selection_of(query)
    page = await audit_log.entries(runtime, ids, wanted, selection)
    return page_of_activity.made_of(page, query)


PAGES: tuple[PageKind[OrganizationRequest], ...] = (
    PageKind("", "tokens.html", page_of_tokens.read, actions=page_of_tokens.ACTIONS),
    PageKind("/webhooks", "webhooks.html", page_of_webhooks.read, actions=page_of_webhooks.ACTIONS),
    PageKind(
        "/webhooks/{id}",
        "webhook.html",
        page_of_webhooks.read_one,
        actions=page_of_webhooks.ACTIONS_OF_ONE,
    ),
)
"""Every page of an organization, below `/settings/{org}`."""

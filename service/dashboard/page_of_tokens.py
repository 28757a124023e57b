"""The page of an organization's API tokens: list, create, revoke."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.accounts import tokens
from service.accounts.api.models.tokens import CreateToken, RevokeToken
from service.accounts.tenants import TokenView
from service.accounts.tokens import TokenRequest
from service.dashboard.requests import Action, OrganizationRequest
from service.database.paging import PageSelection
from service.errors import FieldError, Malformed, NotFound
from service.http.models import common
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import Role

ENDED_MAX = 20
"""Ended tokens that are shown, the newest."""

LIFETIMES = ("30", "90", "180", "366")


@dataclass(frozen=True, slots=True)
class TokensPage:
    """Live tokens, the oldest first, and the newest of those that have ended."""

    live: tuple[TokenView, ...]
    ended: tuple[TokenView, ...]
    roles: tuple[str, ...] = tuple(role.value for role in Role)
    lifetimes: tuple[str, ...] = LIFETIMES


async def read(runtime: Runtime, request: OrganizationRequest) -> TokensPage:
    """Return the tokens that the visitor reaches."""
    org, caller = request.organization, request.visitor.caller
    found = await tokens.list_tokens(runtime, org.host, org.slug)
    if caller is not None and caller.repositories is not None:
        reached = await tokens.live_tokens(runtime, caller, PageSelection(tokens.TOKENS_MAX))
        ids = {view.id for view in reached.rows}
        found = tuple(view for view in found if view.id in ids)
    live = [view for view in found if _is_live(view, request)]
    ended = [view for view in found if not _is_live(view, request)]
    return TokensPage(tuple(live), tuple(reversed(ended))[:ENDED_MAX])


def _is_live(view: TokenView, request: OrganizationRequest) -> bool:
    is_over = view.expires_at is not None and view.expires_at <= request.now
    return view.revoked_at is None and not is_over


async def create(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Create a token; its value is on this one page."""
    org = request.organization
    days = request.text("days") or str(tokens.EXPIRES_IN_DAYS)
    body = {
        "name": request.text("name"),
        "role": request.text("role"),
        "repositories": repositories_of(request),
        "expires_in_days": int(days) if days.isdecimal() and len(days) < 5 else days,
    }
    asked = common.read(CreateToken, body)
    wanted = TokenRequest(
        org.host, org.slug, asked.name, asked.role, asked.scope(), asked.lifetime_days()
    )
    return {"issued": await tokens.create_token(runtime, wanted, request.visitor.actor)}


def repositories_of(request: OrganizationRequest) -> list[dict[str, str]] | None:
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


async def revoke(runtime: Runtime, request: OrganizationRequest) -> None:
    """Revoke a token of this organization."""
    id_ = request.read(RevokeToken).id
    page = await read(runtime, request)
    if id_ not in {view.id for view in (*page.live, *page.ended)}:
        raise NotFound(f'There is no token "{id_}" here.', code="token_not_found")
    await tokens.revoke_token(runtime, id_, request.visitor.actor)


ACTIONS: Mapping[str, Action[OrganizationRequest]] = {
    "create": Action(AccessLevel.ADMIN, create),
    "revoke": Action(
        AccessLevel.ADMIN,
        revoke,
        "Requests with the token hgt_{id} are refused from then on. It cannot be used again.",
        "Revoke the token",
    ),
}

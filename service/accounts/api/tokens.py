"""Handlers of the token endpoints (docs/design/security.md 1)."""

from service.accounts import tokens
from service.accounts.api.models import tokens as models
from service.accounts.api.models.answers import tokens as answers
from service.accounts.tenants import IssuedToken, TokenView
from service.accounts.tokens import TokenRequest
from service.http.callers import Call
from service.http.route import VERSIONED, Fetched, Route, read, write
from service.vocabulary import Role


async def own(call: Call) -> answers.Token:
    """Return the token that asks."""
    return _token_answer(await tokens.token_of(call.runtime, call.caller))


@write(
    "tokens/create",
    Role.ADMIN,
    models.CreateToken,
    answers.IssuedToken,
    "conflicting_fields",
    "limit_reached",
    "scope_exceeds_own",
)
async def create(call: Call, asked: models.CreateToken) -> answers.IssuedToken:
    """Create a token for the organization of the token that asks."""
    caller = call.caller
    request = TokenRequest(
        host=caller.host,
        org_slug=caller.org_slug,
        name=asked.name,
        role=asked.role,
        repositories=asked.scope(),
        expires_in_days=asked.lifetime_days(),
        open_entries=asked.open_entries or 0,
        ci_minutes=asked.ci_minutes or 0,
    )
    return _issued(await tokens.create_token(call.runtime, request, call.actor))


@read(
    "tokens/list",
    models.ListTokens,
    answers.TokensListed,
    "invalid_page_token",
    "page_token_expired",
    role=Role.ADMIN,
)
async def list_all(call: Call, asked: models.ListTokens) -> answers.TokensListed:
    """List the tokens that work, within the repositories of the token that asks."""
    page = await tokens.live_tokens(call.runtime, call.caller, asked.page())
    return answers.TokensListed(
        tokens=[_token_answer(view) for view in page.rows], next_cursor=page.next_cursor
    )


@write(
    "tokens/rotate",
    Role.ADMIN,
    models.RotateToken,
    answers.IssuedToken,
    "token_not_found",
    "limit_reached",
)
async def rotate(call: Call, asked: models.RotateToken) -> answers.IssuedToken:
    """Replace a token by a successor with equal rights."""
    issued = await tokens.rotate_token(call.runtime, asked.id, asked.overlap(), call.actor)
    return _issued(issued)


@write("tokens/revoke", Role.ADMIN, models.RevokeToken, answers.TokenRevoked, "token_not_found")
async def revoke(call: Call, asked: models.RevokeToken) -> answers.TokenRevoked:
    """End a token."""
    await tokens.revoke_token(call.runtime, asked.id, call.actor)
    return answers.TokenRevoked(revoked=True)


def _issued(issued: IssuedToken) -> answers.IssuedToken:
    organization = _organization(issued.view)
    return answers.IssuedToken.of(issued.view, organization=organization, token=issued.secret)


def _token_answer(view: TokenView) -> answers.Token:
    """Return a token without its secret."""
    return answers.Token.of(view, organization=_organization(view))


def _organization(view: TokenView) -> answers.OrganizationShown:
    return answers.OrganizationShown(slug=view.org_slug, host=view.host)


TOKEN_ROUTES: tuple[Route, ...] = (
    Fetched(f"{VERSIONED}/tokens/self", None, own, operation="getOwnToken").answering(
        answers.Token
    ),
    create,
    list_all,
    rotate,
    revoke,
)
"""The token endpoints, in the order of the document."""

"""Handlers of the token endpoints (API.md 9)."""

from service.accounts import tokens
from service.accounts.api.models import tokens as models
from service.accounts.token_views import IssuedToken, TokenView
from service.accounts.tokens import TokenWish
from service.http import rendering
from service.http.call import Call
from service.http.rendering import Json


async def own(call: Call) -> Json:
    """`GET /tokens/self`: the token that asks."""
    return token_answer(await tokens.token_of(call.runtime, call.caller))


async def create(call: Call, asked: models.CreateToken) -> Json:
    """`/tokens/create`: a token for the caller's own organization."""
    caller = call.caller
    wish = TokenWish(
        host=caller.host,
        org_slug=caller.org_slug,
        name=asked.name,
        role=asked.role,
        repositories=asked.scope(),
        expires_in_days=asked.lifetime_days(),
    )
    return _issued(await tokens.create_token(call.runtime, wish, call.actor))


async def list_all(call: Call, asked: models.ListTokens) -> Json:
    """`/tokens/list`: the live tokens that the caller reaches."""
    part = await tokens.live_tokens(call.runtime, call.caller, asked.count(), asked.cursor)
    shown: dict[str, object] = {"tokens": [token_answer(view) for view in part.rows]}
    if part.next_cursor is not None:
        shown["next_cursor"] = part.next_cursor
    return shown


async def rotate(call: Call, asked: models.RotateToken) -> Json:
    """`/tokens/rotate`: a successor with equal rights."""
    issued = await tokens.rotate_token(call.runtime, asked.id, asked.overlap(), call.actor)
    return _issued(issued)


async def revoke(call: Call, asked: models.RevokeToken) -> Json:
    """`/tokens/revoke`."""
    await tokens.revoke_token(call.runtime, asked.id, call.actor)
    return {"revoked": True}


def _issued(issued: IssuedToken) -> Json:
    return {**token_answer(issued.view), "token": issued.secret}


def token_answer(view: TokenView) -> Json:
    """A token without its secret (API.md 9)."""
    return {
        "id": view.id,
        "name": view.name,
        "role": view.role.value,
        "organization": {"slug": view.org_slug, "host": view.host},
        "repositories": None
        if view.repositories is None
        else [rendering.repository(each) for each in view.repositories],
        "created_at": rendering.time(view.created_at),
        "expires_at": rendering.time_or_null(view.expires_at),
        "last_used_at": rendering.time_or_null(view.last_used_at),
    }

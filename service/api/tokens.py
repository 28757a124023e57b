"""Handlers of the token endpoints (API.md 9)."""

from service.api import responses
from service.api.call import Call
from service.api.models import tokens as models
from service.api.responses import Json
from service.operations import tokens
from service.operations.token_views import IssuedToken
from service.operations.tokens import TokenWish


async def own(call: Call) -> Json:
    """`GET /tokens/self`: the token that asks."""
    return responses.token(await tokens.token_of(call.runtime, call.caller))


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
    shown: dict[str, object] = {"tokens": [responses.token(view) for view in part.rows]}
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
    return {**responses.token(issued.view), "token": issued.secret}

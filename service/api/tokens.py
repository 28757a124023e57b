"""Handlers of the token endpoints (API.md 9)."""

from service.api import responses
from service.api.call import Call
from service.api.responses import Json
from service.operations import tokens


async def own(call: Call) -> Json:
    """`GET /tokens/self`: the token that asks."""
    return responses.token(await tokens.token_of(call.runtime, call.caller))

"""The page of public keys that check evidence of landings (docs/design/http.md 10)."""

import orjson
from aiohttp import web

from service.accounts import signing_keys
from service.errors import ServiceError
from service.runtime import Runtime

PATH = "/.well-known/headgate-keys.json"

CACHED = {"Cache-Control": "public, max-age=300"}
"""A new key signs at once, so those who check look again after five minutes."""


def routes(runtime: Runtime) -> list[web.RouteDef]:
    """Return the route of the keys; they hold nothing of a tenant, and anybody may read them."""

    async def keys(_: web.Request) -> web.Response:
        try:
            found = await signing_keys.all_keys(runtime)
        except ServiceError as away:
            return web.json_response({"detail": away.detail}, status=503)
        body = orjson.dumps(signing_keys.served(found), option=orjson.OPT_INDENT_2)
        return web.Response(body=body, content_type="application/json", headers=CACHED)

    return [web.get(PATH, keys)]

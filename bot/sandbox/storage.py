"""The storage of archives of artifacts: signed addresses that are valid for a minute.

Like the provider's storage, it refuses a request with a token.
"""

import hashlib
from datetime import timedelta

from aiohttp import web

from bot.sandbox.records import Artifact
from bot.sandbox.world import World

PREFIX = "/_storage/"
GOOD_FOR = timedelta(minutes=1)


def address_of(world: World, artifact: Artifact) -> str:
    """Return an address of the archive, valid for the next minute."""
    until = int((world.timeline.callers_now() + GOOD_FOR).timestamp())
    query = f"until={until}&sig={_signature(world, artifact, until)}"
    # Another host to clients, which therefore leave their token behind.
    web_of_storage = world.web.replace("//127.0.0.1", "//localhost")
    return f"{web_of_storage}{PREFIX}{artifact.id}?{query}"


def _signature(world: World, artifact: Artifact, until: int) -> str:
    return hashlib.sha256(f"{world.seed}:{artifact.id}:{until}".encode()).hexdigest()


class Storage:
    """The archives of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def routes(self) -> list[web.RouteDef]:
        """The one address."""
        return [web.get(PREFIX + r"{id:\d+}", self.fetch)]

    async def fetch(self, request: web.Request) -> web.Response:
        """The archive; 400 with a token, 403 for an address that is not or no longer good."""
        if "Authorization" in request.headers:
            return web.Response(status=400, text="InvalidAuthenticationInfo\n")
        found = self._find(int(request.match_info["id"]))
        until = request.query.get("until", "")
        if found is None or not until.isdecimal():
            return web.Response(status=404, text="BlobNotFound\n")
        is_signed = request.query.get("sig") == _signature(self.world, found, int(until))
        if not is_signed or self.world.timeline.callers_now().timestamp() > int(until):
            return web.Response(status=403, text="AuthenticationFailed\n")
        return web.Response(body=found.packed, content_type="application/zip")

    def _find(self, number: int) -> Artifact | None:
        for repository in self.world.repositories.values():
            for run in repository.workflow_runs:
                for artifact in run.artifacts:
                    if artifact.id == number:
                        return artifact
        return None

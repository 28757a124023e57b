"""Artifacts of workflow runs, opened one at a time: what they hold may be large."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from bot.github import limits
from bot.github.downloads import Downloads
from bot.github.line import Line
from bot.github.wire import REDIRECTS, Broken
from service.provider import archives
from service.provider.archives import Archive, NoArchive
from service.provider.ci import Artifact
from service.provider.errors import Unavailable

EXPIRED = NoArchive("The artifact has expired.")
GONE = NoArchive("The artifact is gone.")


class Artifacts:
    """Made inside the running loop; `close` lets go of connections."""

    def __init__(self, downloads: Downloads) -> None:
        self._downloads = downloads
        self._place = asyncio.Semaphore(1)

    async def close(self) -> None:
        """Close every connection."""
        await self._downloads.close()

    @asynccontextmanager
    async def opened(self, line: Line, artifact: Artifact) -> AsyncIterator[Archive | NoArchive]:
        """See `Provider.ci_artifact`."""
        if artifact.is_expired:
            yield EXPIRED
        elif artifact.size > archives.PACKED_MAX:
            yield NoArchive(archives.TOO_LARGE)
        else:
            async with self._place:
                packed = await self._packed(line, artifact)
                if isinstance(packed, bytes):
                    yield await asyncio.to_thread(archives.read, packed)
                else:
                    yield packed

    async def _packed(self, line: Line, artifact: Artifact) -> bytes | NoArchive:
        expects = (404, 410, *REDIRECTS)
        answer = await line.get(f"/actions/artifacts/{artifact.id}/zip", expects=expects)
        if answer.status == 410:
            return EXPIRED
        if answer.status == 404:
            await line.get("")
            return GONE
        try:
            return await self._downloads.fetch(answer.headers.get("location", ""))
        except Broken as failure:
            later = line.clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
            raise Unavailable(f"GitHub cannot be used now: {failure.message}.", later) from failure

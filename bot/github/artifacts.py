"""Artifacts of workflow runs, downloaded from another host, to which our token is never sent.

The address comes from GitHub's own answer and is valid for a minute. A download is one request
without redirects, bounded in bytes and time. The public hosts may only name public addresses; an
Enterprise Server stores its archives in its own network. A proxy resolves the name itself.
"""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from bot.github import limits
from bot.github.client import RepositoryClient
from bot.github.options import GitHubOptions, is_run_by_github
from bot.github.wire import CONNECT_S, REDIRECTS, Broken
from service.provider import archives
from service.provider.archives import NoArchive
from service.provider.ci import Artifact
from service.provider.errors import Unavailable

DOWNLOAD_S = 60.0
# A public address by its number; in fact a service of the cloud inside each of its machines.
CLOUD_SERVICES = ipaddress.IPv4Address("168.63.129.16")
PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
PART_BYTES = 1024 * 1024
EXPIRED = NoArchive("The artifact has expired.")
GONE = NoArchive("The artifact is gone.")
UNSAFE = NoArchive("GitHub keeps it at an address that is not called.")


class PublicOnly(AbstractResolver):
    """Resolves names; refuses a name when one of its addresses is not public.

    `proxy` is the name of the deployment's own proxy, which may have any address.
    """

    def __init__(self, finder: AbstractResolver, proxy: str | None = None) -> None:
        self._finder = finder
        self._proxy = proxy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises OSError."""
        found = await self._finder.resolve(host, port, family)
        if host != self._proxy and not all(is_public(each["host"]) for each in found):
            raise OSError(f"{host} has an address that is not public")
        return found

    async def close(self) -> None:
        """Close the resolver behind this one."""
        await self._finder.close()


class Artifacts:
    """Opens one artifact at a time, and one that is awaited, since the content may be large.

    The other one may wait for GitHub's limits, and must not delay the one that is awaited.
    Create it inside the running event loop.
    """

    def __init__(self, options: GitHubOptions) -> None:
        self._places = {is_awaited: asyncio.Semaphore(1) for is_awaited in (False, True)}
        self._agent = options.user_agent
        self._scheme = urlsplit(options.addresses.api).scheme
        self._is_public = is_run_by_github(options)
        self._proxies = options.proxies
        proxy = urlsplit(options.proxies.of(options.addresses.api) or "").hostname
        resolver = PublicOnly(ThreadedResolver(), proxy) if self._is_public else None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=resolver, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @asynccontextmanager
    async def opened(
        self, client: RepositoryClient, artifact: Artifact, *, is_awaited: bool
    ) -> AsyncIterator[bytes | NoArchive]:
        """See `Provider.ci_artifact`."""
        if artifact.is_expired:
            yield EXPIRED
        elif artifact.size > archives.PACKED_MAX:
            yield NoArchive(archives.TOO_LARGE)
        else:
            async with self._places[is_awaited]:
                yield await self._packed(client, artifact)

    async def _packed(self, client: RepositoryClient, artifact: Artifact) -> bytes | NoArchive:
        expects = (404, 410, *REDIRECTS)
        answer = await client.get(f"/actions/artifacts/{artifact.id}/zip", expects=expects)
        if answer.status == 410:
            return EXPIRED
        if answer.status == 404:
            await client.check_repository()
            return GONE
        try:
            return await self.fetch(answer.headers.get("location", ""))
        except Broken as failure:
            later = client.clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)
            raise Unavailable(f"GitHub cannot be used now: {failure.message}.", later) from failure

    async def fetch(self, url: str) -> bytes | NoArchive:
        """Download an archive, up to the size limit of archives. Raises Broken."""
        if not self._may_call(url):
            return UNSAFE
        request = self._session.get(
            url,
            headers={"user-agent": self._agent, "accept-encoding": "identity"},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=DOWNLOAD_S, sock_connect=CONNECT_S),
            proxy=self._proxies.of(url),
        )
        try:
            async with request as response:
                if response.status != 200:
                    raise Broken(f"the archive was answered with {response.status}", sent=True)
                return await _read(response.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise Broken(f"no archive: {type(failure).__name__}", sent=True) from failure

    def _may_call(self, url: str) -> bool:
        """Allow a named host, as secure as GitHub's; a numeric one would bypass the resolver."""
        parts = urlsplit(url)
        if parts.scheme not in ("https", self._scheme) or not parts.hostname or parts.username:
            return False
        return not self._is_public or not _is_number(parts.hostname)


async def _read(content: aiohttp.StreamReader) -> bytes | NoArchive:
    packed = bytearray()
    async for part in content.iter_chunked(PART_BYTES):
        packed += part
        if len(packed) > archives.PACKED_MAX:
            return NoArchive(archives.TOO_LARGE)
    return bytes(packed)


def is_public(address: str) -> bool:
    """Return whether it is a global address without another one embedded."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        carries_another = found.sixtofour is not None or found.teredo is not None
        if carries_another or found not in PUBLIC_6:
            return False
    return found.is_global and not found.is_multicast and found != CLOUD_SERVICES


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.replace(".", "").isdecimal()
    return True

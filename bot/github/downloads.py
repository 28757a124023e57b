"""Archives from where GitHub keeps them: another host, to which our token never goes.

The address comes from GitHub's own answer and holds for a minute. One exchange, no further
redirect, bounded in bytes and time (RELIABILITY.md 8.4). For the public hosts only public
addresses are connected to; an Enterprise Server keeps its archives in its own network.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from bot.github.options import GitHubOptions, is_run_by_github
from bot.github.wire import CONNECT_S, Broken
from service.provider import archives
from service.provider.archives import NoArchive

DOWNLOAD_S = 60.0
# Looks public, and is the cloud's own service inside each machine there.
CLOUD_SERVICES = ipaddress.IPv4Address("168.63.129.16")
PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
PART_BYTES = 1024 * 1024
UNSAFE = NoArchive("GitHub keeps it at an address that is not called.")


class PublicOnly(AbstractResolver):
    """Finds addresses of names, and none when one of them is not public."""

    def __init__(self, finder: AbstractResolver) -> None:
        self._finder = finder

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name. Raises OSError."""
        found = await self._finder.resolve(host, port, family)
        if not all(is_public(each["host"]) for each in found):
            raise OSError(f"{host} has an address that is not public")
        return found

    async def close(self) -> None:
        """Let go of the finder."""
        await self._finder.close()


class Downloads:
    """Made inside the running loop; `close` lets go of connections."""

    def __init__(self, options: GitHubOptions) -> None:
        self._agent = options.user_agent
        self._scheme = urlsplit(options.addresses.api).scheme
        self._is_public = is_run_by_github(options)
        resolver = PublicOnly(ThreadedResolver()) if self._is_public else None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=resolver, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def fetch(self, url: str) -> bytes | NoArchive:
        """What stands at the address, up to the limit of archives. Raises Broken."""
        if not self._may_call(url):
            return UNSAFE
        request = self._session.get(
            url,
            headers={"user-agent": self._agent, "accept-encoding": "identity"},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=DOWNLOAD_S, sock_connect=CONNECT_S),
        )
        try:
            async with request as response:
                if response.status != 200:
                    raise Broken(f"the archive was answered with {response.status}", sent=True)
                return await _read(response.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise Broken(f"no archive: {type(failure).__name__}", sent=True) from failure

    def _may_call(self, url: str) -> bool:
        """An address by a name, as safe as GitHub's own; a number would pass the resolver by."""
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
    """Whether it is a global address that carries no other inside (RELIABILITY.md 8.5)."""
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

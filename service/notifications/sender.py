"""Attempts over the network, to vetted addresses alone (docs/design/security.md 5).

The host is resolved once an attempt, by threads of its own; what was found acceptable is what
the client connects to, also through a proxy of the deployment: the proxy gets the address and not
the name, which it would resolve again. No redirect, no cookie, no connection is used twice.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cached_property, partial
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from service.notifications import addresses
from service.notifications.addresses import Address, Rules, Target
from service.runtime import Outgoing, PostResult

TIMEOUT_S = 15.0
ANSWER_BYTES_MAX = 65_536
"""Bytes of an answer that are read, to reach its end; they are not kept."""

FETCH_S = 5.0
FETCHED_MAX = 128 * 1024
"""Seconds for reading an address, and bytes of its answer."""

RESOLVING_AT_ONCE = 64
"""Threads that wait for names: what is slow here may not hold up the provider's names.

As many as there are attempts at once, so that one tenant's names hold up no other's.
"""

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Every address of a host. Raises OSError when it has none."""

ProxyOf = Callable[[str, Sequence[str]], str | None]
"""The proxy for a URL whose host has these addresses, None for a direct request."""


def _no_proxy(_url: str, _addresses: Sequence[str]) -> None:
    """Return None: every request is direct."""


class HttpSender:
    """Posts to receivers; implements `service.runtime.Sender`."""

    def __init__(
        self,
        rules: Rules,
        resolve: Resolve | None = None,
        timeout_s: float = TIMEOUT_S,
        proxy_of: ProxyOf = _no_proxy,
    ) -> None:
        self._rules = rules
        self._proxy_of = proxy_of
        self._threads = ThreadPoolExecutor(RESOLVING_AT_ONCE, "webhook-names")
        self._resolve = resolve or self._by_the_system
        self._timeout_s = timeout_s

    async def refusal(self, url: str) -> str | None:
        """See `Sender.refusal`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._vetted(url)
        except _AddressRefused as refused:
            return str(refused)
        except TimeoutError:
            return "Its host could not be resolved in time."
        return None

    async def post(self, outgoing: Outgoing) -> PostResult:
        """See `Sender.post`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                vetted = await self._vetted(outgoing.url)
                return await self._posted(outgoing, vetted)
        except _AddressRefused as refused:
            return PostResult(None, str(refused))
        except TimeoutError:
            return PostResult(None, f"No answer within {self._timeout_s:g} s.")
        except aiohttp.ClientSSLError as failed:
            return PostResult(None, f"TLS failed: {_reason(failed)}.")
        except aiohttp.ClientHttpProxyError as refused:
            return PostResult(None, f"The outbound proxy answered {refused.status}.")
        except aiohttp.ClientProxyConnectionError as failed:
            why = _reason(failed)
            return PostResult(None, f"The outbound proxy cannot be reached: {why}.")
        except aiohttp.ClientConnectorError as failed:
            return PostResult(None, f"The connection failed: {_reason(failed)}.")
        except aiohttp.ClientError as failed:
            return PostResult(
                None, f"The answer broke off or was no HTTP ({type(failed).__name__})."
            )

    async def fetched(self, url: str) -> tuple[int, bytes]:
        """Return status and body of an address that a user named; the body of status 200 alone.

        Raises ValueError for one that may not be called or a body that is too large, TimeoutError,
        and aiohttp.ClientError.
        """
        async with asyncio.timeout(FETCH_S):
            try:
                vetted = await self._vetted(url)
            except _AddressRefused as refused:
                raise ValueError(str(refused)) from refused
            async with self._answer("GET", Outgoing(url, {}, b""), vetted) as answer:
                body = b""
                while answer.status == 200 and (part := await answer.content.read(FETCHED_MAX)):
                    body += part
                    if len(body) > FETCHED_MAX:
                        raise ValueError("too large")
                return answer.status, body

    def close(self) -> None:
        """Stop the threads; the sender cannot post any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _vetted(self, url: str) -> "_Vetted":
        """Return where the URL leads now, each address acceptable. Raises _AddressRefused."""
        target = addresses.target_of(url, self._rules)
        if isinstance(target, str):
            raise _AddressRefused(target)
        try:
            found = [target.literal] if target.literal else await self._resolve(*_asked(target))
        except OSError as failed:
            raise _AddressRefused(f"{target.host} cannot be resolved.") from failed
        refusal = addresses.refusal(found, target, self._rules)
        if refusal is not None:
            raise _AddressRefused(refusal)
        return _Vetted(found)

    @asynccontextmanager
    async def _answer(
        self, method: str, outgoing: Outgoing, vetted: "_Vetted"
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request to a vetted address. Raises aiohttp.ClientError."""
        # As it was vetted: nothing of it is spelled anew.
        url = URL(outgoing.url, encoded=True)
        send = partial(
            aiohttp.ClientSession.request,
            method=method,
            data=outgoing.body or None,
            allow_redirects=False,
        )
        # Plain http is for this machine alone, whose addresses are the proxy's own over there.
        is_plain = url.scheme == "http"
        proxy = None if is_plain else self._proxy_of(outgoing.url, vetted.addresses)
        if proxy is None:
            async with (
                self._session(vetted) as session,
                send(session, url=url, headers=outgoing.headers) as answer,
            ):
                yield answer
            return
        async with self._session(None) as session:
            host = url.raw_host or ""
            headers = {**outgoing.headers, "Host": url.raw_authority}
            ask = partial(send, session, headers=headers, proxy=proxy, server_hostname=host)
            async with await _first_reached(ask, url, vetted.addresses) as answer:
                yield answer

    def _session(self, resolver: "_Vetted | None") -> aiohttp.ClientSession:
        """Return a session for one request; without a resolver it may find the proxy alone."""
        connector = aiohttp.TCPConnector(
            resolver=resolver, use_dns_cache=False, force_close=True, ssl=self._tls
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def _posted(self, outgoing: Outgoing, vetted: "_Vetted") -> PostResult:
        async with self._answer("POST", outgoing, vetted) as answer:
            left = ANSWER_BYTES_MAX
            while left > 0 and (part := await answer.content.read(left)):
                left -= len(part)
            return PostResult(
                answer.status, _error(answer.status), answer.headers.get("Retry-After")
            )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def _by_the_system(self, host: str, port: int) -> Sequence[Address]:
        asked = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, asked)
        return [ip_address(str(where[0])) for *_, where in found]


class _AddressRefused(Exception):
    """The address may not be called; the text says why."""


class _Vetted(AbstractResolver):
    """Answers every name with the addresses that were found acceptable."""

    def __init__(self, found: Sequence[Address]) -> None:
        self._found = found
        self.addresses = [str(address) for address in found]

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the vetted addresses, whatever the name would lead to now."""
        del family
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._found
        ]

    async def close(self) -> None:
        """Do nothing: it has no resources."""


async def _first_reached(
    ask: Callable[..., Awaitable[aiohttp.ClientResponse]], url: URL, addresses: Sequence[str]
) -> aiohttp.ClientResponse:
    """Return the answer by the first address to which the proxy connects.

    A proxy that refuses to connect has passed on nothing of the request.
    """
    *others, last = addresses
    for address in others:
        try:
            return await ask(url=_at(url, address))
        except aiohttp.ClientHttpProxyError:
            continue
    return await ask(url=_at(url, last))


def _at(url: URL, address: str) -> URL:
    """Return the URL with an address in place of the host's name."""
    parts = urlsplit(str(url))
    host = f"[{address}]" if ":" in address else address
    return URL(parts._replace(netloc=f"{host}:{url.port}").geturl(), encoded=True)


def _asked(target: Target) -> tuple[str, int]:
    return target.host, target.port


def _error(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"It answered {status}; redirects are not followed."
    return f"It answered {status}."


def _reason(failed: aiohttp.ClientError) -> str:
    """Return the system's own words, without the address."""
    cause = failed.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message.rstrip(".")
    if isinstance(cause, ssl.SSLError) or not isinstance(cause, OSError) or cause.errno is None:
        return type(cause or failed).__name__
    return os.strerror(cause.errno).lower()

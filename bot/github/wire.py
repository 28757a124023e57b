"""One exchange with GitHub: headers, timeouts, decoding. No retry, no meaning.

It uses gidgethub for the request headers and for a success with its next page. `limits.py` says
what an answer means, `client.py` what follows from it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import aiohttp
from gidgethub import sansio

from bot.github.options import GitHubOptions
from bot.github.reading import Fields, Unreadable
from bot.github.troubles import HostTroubles
from service import tracing
from service.telemetry import SILENT, Meter
from service.tracing import Side

TOTAL_S = 15.0
CONNECT_S = 5.0
ANSWER_BYTES_MAX = 32 * 1024 * 1024  # the largest that are asked for have some 10 MiB
REQUESTS_MAX = 60  # of this process at once, without landings; GitHub allows 100
REDIRECTS = frozenset({301, 302, 307, 308})
REDIRECTS_MAX = 3


class Broken(Exception):
    """No readable answer. `sent` False: the request never left this machine."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with a bearer token, which is the App's own if `is_app`; `body` is JSON.

    An empty `bearer` is not sent. One of a landing waits for no other request.
    """

    method: str
    url: str
    bearer: str
    is_app: bool
    body: Mapping[str, object] | None = None
    etag: str | None = None
    within_s: float = TOTAL_S
    is_landing: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: header names in lower case; `content` decoded JSON, None when empty."""

    status: int
    headers: Mapping[str, str]
    content: object
    next_page: str | None = None

    @property
    def fields(self) -> Fields:
        """The content as one object. Raises Unreadable for anything else."""
        return Fields(self.content)

    @property
    def listed(self) -> list[object]:
        """The content as a list. Raises Unreadable for anything else."""
        if not isinstance(self.content, list):
            raise Unreadable("answer: not a list")
        return self.content

    @property
    def size(self) -> int:
        """Return how many members the page of a list has; 0 for anything else."""
        content = self.content
        lists = [content, *(content.values() if isinstance(content, dict) else ())]
        return max((len(each) for each in lists if isinstance(each, list)), default=0)

    @property
    def objects(self) -> list[Fields]:
        """The content as a list of objects. Raises Unreadable for anything else."""
        return [Fields(each) for each in self.listed]

    @property
    def message(self) -> str:
        """GitHub's message, with those of all single errors."""
        if not isinstance(self.content, dict):
            return ""
        words = [self.content.get("message"), *_errors_of(self.content.get("errors"))]
        return "; ".join(dict.fromkeys(word for word in words if isinstance(word, str) and word))

    @property
    def request_id(self) -> str:
        """GitHub's name for the request, for its support and our evidence."""
        return self.headers.get("x-github-request-id", "")


Observer = Callable[[Exchange, Answer], None]


class Wire:
    """The connections to one host. Create it inside the running event loop.

    `observer` sees each exchange that had an answer.
    """

    def __init__(
        self, options: GitHubOptions, troubles: HostTroubles, telemetry: Meter = SILENT
    ) -> None:
        self.observer: Observer | None = None
        self._telemetry = telemetry
        self._troubles = troubles
        self._agent = options.user_agent
        self._api_version = options.api_version
        self._root = options.addresses.api + "/"
        self._proxies = options.proxies
        self._room = asyncio.Semaphore(REQUESTS_MAX)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            middlewares=(_once,),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def send(self, exchange: Exchange, *, follows: bool = False) -> Answer:
        """Send a request and return its answer, whatever its status. Raises Broken.

        `follows`: the request may be sent again after redirects on the same host.
        """
        answer = await self._counted(exchange)
        for _ in range(REDIRECTS_MAX if follows else 0):
            location = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not location.startswith(self._root):
                break
            answer = await self._counted(replace(exchange, url=location))
        return answer

    async def _counted(self, exchange: Exchange) -> Answer:
        """Send one request and count it by the status of its answer."""
        if not tracing.is_under_way():
            return await self._answered(exchange)
        path = urlsplit(exchange.url).path
        fields = {"http.request.method": exchange.method, "url.path": path}
        with tracing.inside(f"{exchange.method} provider", fields, Side.OUTGOING):
            answer = await self._answered(exchange)
            tracing.note(**{"http.response.status_code": answer.status})
        return answer

    async def _answered(self, exchange: Exchange) -> Answer:
        try:
            answer = await self._sent(exchange)
        except Broken as failure:
            self._telemetry.count("headgate_provider_requests_total", "none")
            self._troubles.failed(failure.message)
            raise
        if self.observer is not None:
            self.observer(exchange, answer)
        self._telemetry.count("headgate_provider_requests_total", str(answer.status))
        if answer.status == 401:
            kind = "app" if exchange.is_app else "installation"
            self._telemetry.count("headgate_credentials_rejected_total", kind)
        if answer.status >= 500:
            self._troubles.failed(f"it answers {answer.status}")
        else:
            self._troubles.answered()
        return answer

    async def _sent(self, exchange: Exchange) -> Answer:
        token = {"jwt" if exchange.is_app else "oauth_token": exchange.bearer}
        headers = sansio.create_headers(self._agent, **(token if exchange.bearer else {}))
        headers["accept"] = "application/vnd.github+json"
        headers["x-github-api-version"] = self._api_version
        if exchange.etag is not None:
            headers["if-none-match"] = exchange.etag
        body = None
        if exchange.body is not None:
            body = json.dumps(exchange.body).encode()
            headers["content-type"] = "application/json"
        timeout = aiohttp.ClientTimeout(total=exchange.within_s, sock_connect=CONNECT_S)
        room = nullcontext() if exchange.is_landing else self._room
        try:
            async with (
                room,
                self._session.request(
                    exchange.method,
                    exchange.url,
                    headers=headers,
                    data=body,
                    allow_redirects=False,
                    timeout=timeout,
                    proxy=self._proxies.of(exchange.url),
                ) as response,
            ):
                raw = await _body_of(response)
                names = {name.lower(): value for name, value in response.headers.items()}
                return _answer_of(response.status, names, raw)
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise Broken(f"no answer: {type(failure).__name__}", sent=True) from failure


async def _body_of(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer. Raises Broken if it is too large."""
    raw = bytearray()
    async for part in response.content.iter_any():
        raw += part
        if len(raw) > ANSWER_BYTES_MAX:
            raise Broken("the answer is too large", sent=True)
    return bytes(raw)


async def _once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request one time.

    By itself aiohttp sends PUT and DELETE again after a lost connection, as HTTP allows; but a
    merge call whose answer was lost must not be sent twice.
    """
    try:
        return await handler(request)
    except aiohttp.ClientHttpProxyError as failure:
        why = f"the outbound proxy answered {failure.status}"
        raise Broken(f"cannot connect: {why}", sent=False) from failure
    except aiohttp.ClientConnectorError as failure:
        raise Broken(f"cannot connect: {why_not_connected(failure)}", sent=False) from failure
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as failure:
        raise Broken(f"no answer: {type(failure).__name__}", sent=True) from failure


def why_not_connected(failure: aiohttp.ClientConnectorError) -> str:
    """Return the reason, without an address; a proxy's could have a password."""
    why = failure.strerror
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        found = failure.certificate_error
        why = getattr(found, "verify_message", "") or type(found).__name__
        why = f"its certificate is not trusted ({why})"
    elif isinstance(failure, aiohttp.ClientSSLError):
        why = "TLS failed"
    is_proxy = isinstance(failure, aiohttp.ClientProxyConnectionError)
    return f"the outbound proxy: {why}" if is_proxy else str(why)


def _answer_of(status: int, headers: Mapping[str, str], raw: bytes) -> Answer:
    if status >= 300:
        return Answer(status, headers, _lenient(raw))
    try:
        content, _, more = sansio.decipher_response(status, headers, raw)
    except (ValueError, LookupError, RecursionError) as failure:
        raise Broken("the answer is not JSON", sent=True) from failure
    if isinstance(content, str | bytes) or (raw and content is None and raw.strip() != b"null"):
        raise Broken("the answer is not JSON", sent=True)
    return Answer(status, headers, content, more)


def _lenient(raw: bytes) -> object:
    """Return the body of a refusal; None for the HTML of a proxy."""
    try:
        found: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found


def _errors_of(errors: object) -> list[object]:
    if not isinstance(errors, list):
        return [errors]
    found: list[object] = []
    for error in errors:
        if not isinstance(error, dict):
            found.append(error)
        elif isinstance(error.get("message"), str):
            found.append(error["message"])
        else:
            found.append(" ".join(str(error[key]) for key in ("field", "code") if key in error))
    return found

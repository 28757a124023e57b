"""HTTP requests to the service, with the standard library alone; transient failures are retried."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.message import Message
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

from bot.uploader import proxies

Json = dict[str, object]

UPLOAD_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
OVER_BUDGET = "over_budget"
"""The code of a refusal that lasts for hours: asking again soon does not help."""

PAUSE_MAX_S = 60.0
# The service may wait 30 s for a place and 30 s for a parser, and read for 20 s.
TIMEOUT_S = 100.0
UPLOAD = "/flaky-tests/upload-test-results"
CHUNK_BYTES = 65_536
RESPONSE_BYTES_MAX = 16 * 1024 * 1024
ERROR_TEXT_BYTES_MAX = 4_000
REASON_MAX = 200
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
TLS = "tls"
TOO_LARGE = "body_too_large"


class RequestFailed(Exception):
    """A request without a usable response.

    `code` and `text` are those of the refusal, if the service refused; `wait_s` is the pause
    that it asked for.
    """

    def __init__(self, reason: str, *, code: str = "", text: str = "", wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.text = text
        self.wait_s = wait_s


class Transient(RequestFailed):
    """One attempt failed, and another may succeed."""


class TimedOut(Transient):
    """The service did not answer in time."""


class Response(NamedTuple):
    """A response; `is_whole` False: the connection broke before the announced length."""

    status: int
    headers: Message
    body: bytes
    is_whole: bool


class Clock(NamedTuple):
    """The system's clock; tests replace it."""

    sleep: Callable[[float], object] = time.sleep
    monotonic_s: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time


class Request(NamedTuple):
    """One request, the same in every attempt; with a body it is a POST.

    `on_sent` receives the number of body bytes sent so far.
    """

    path: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    on_sent: Callable[[int], object] = bool


class ReturnEveryResponse(urllib.request.HTTPErrorProcessor):
    """Return responses of every status; the library would raise, or follow a redirect.

    Redirects are not followed: a POST would become a GET, and another host would see the token.
    """

    def http_response(
        self,
        request: urllib.request.Request,  # noqa: ARG002 - the library's signature
        response: http.client.HTTPResponse,
    ) -> http.client.HTTPResponse:
        """Return the response unchanged."""
        return response

    https_response = http_response


class Service(NamedTuple):
    """The service as upload commands use it; `log` receives a line for each retry.

    Without a token `fork_run` names the CI run that the request comes from. `repository` is that
    to which a setting binds the token of another CI system, as `github.com/octo/widgets`.
    """

    url: str
    token: str
    log: Callable[[str], object]
    clock: Clock = Clock()
    timeout_s: float = TIMEOUT_S
    fork_run: str = ""
    repository: str = ""

    def send(self, request: Request, pauses_s: Sequence[float] | None = None) -> Json:
        """Send a request and return the response's JSON object. Raises RequestFailed.

        Retries transient failures after `UPLOAD_PAUSES_S`, or other pauses; a service that times
        out is not asked again.
        """
        headers = {"User-Agent": "headgate-upload", **_authorization_of(self), **request.headers}
        with_headers = request._replace(headers=headers)
        pauses = UPLOAD_PAUSES_S if pauses_s is None else pauses_s
        retries = Retries(pauses, self.timeout_s, self.log, self.clock.sleep)
        return send(self.url, with_headers, retries, lambda each: _content_of(self.url, each))


class Retries(NamedTuple):
    """The pauses between attempts, and how long each may take; `log` receives a line for each."""

    pauses_s: Sequence[float]
    timeout_s: float
    log: Callable[[str], object]
    sleep: Callable[[float], object]
    after_timeout: bool = False


def send(url: str, request: Request, retries: Retries, parse: Callable[[Response], Json]) -> Json:
    """Send a request until `parse` accepts a response. Raises RequestFailed after the last.

    A service that asks for a pause of more than a minute is not asked again.
    """
    for attempt in range(len(retries.pauses_s) + 1):
        is_last = attempt == len(retries.pauses_s)
        try:
            return parse(_exchange(url, request, retries.timeout_s))
        except Transient as failed:
            is_too_late = isinstance(failed, TimedOut) and not retries.after_timeout
            if is_last or is_too_late or failed.wait_s > PAUSE_MAX_S:
                raise
            pause_s = max(retries.pauses_s[attempt], failed.wait_s)
            retries.log(f"{url}: {failed.reason}; trying again in {pause_s:.0f} s")
            retries.sleep(pause_s)
    raise AssertionError("the loop ends by return or raise")


def _authorization_of(service: Service) -> dict[str, str]:
    """Return the header that identifies the caller. Raises RequestFailed."""
    if service.token.startswith("eyJ"):
        named = {"x-headgate-repository": service.repository} if service.repository else {}
        return {"Authorization": f"Bearer {header_token(service.token)}", **named}
    if service.token or not service.fork_run:
        return {"x-api-token": header_token(service.token)}
    return {"x-forked-workflow-run-id": service.fork_run}


def _exchange(url: str, request: Request, timeout_s: float) -> Response:
    """Send one request to `/v1` of the service at `url`. Raises Transient.

    Raises RequestFailed for an address that cannot be requested.
    """
    root = root_of(url)
    body = request.body
    headers = dict(request.headers)
    if body is not None:
        headers["Content-Length"] = str(len(body))
    prepared = urllib.request.Request(  # noqa: S310 - `root_of` has checked the scheme
        f"{root}/v1{request.path}",
        data=None if body is None else _chunks(body, request.on_sent),
        headers=headers,
    )
    return open_within(root, prepared, timeout_s)


def open_within(root: str, request: urllib.request.Request, timeout_s: float) -> Response:
    """Send a request by the way that the environment names. Raises Transient, RequestFailed.

    The time is measured around the whole exchange: a socket's own timeout begins anew with each
    byte, so a server that drips would keep us for ever. A thread that is late is left behind and
    ends with the process.
    """
    opener = opener_of(urlsplit(root).scheme, proxy_of(root))
    outcomes: list[Response | RequestFailed] = []

    def run() -> None:
        try:
            outcomes.append(_open_once(opener, request, timeout_s))
        except RequestFailed as failed:
            outcomes.append(failed)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(min(timeout_s, threading.TIMEOUT_MAX))
    if thread.is_alive():
        raise TimedOut(f"no answer within {timeout_s:g} s")
    if not outcomes:
        raise RuntimeError("a request ended without a response and without a reason")
    if isinstance(outcomes[0], RequestFailed):
        raise outcomes[0]
    return outcomes[0]


def _open_once(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout_s: float
) -> Response:
    """Return the response to one request. Raises Transient, RequestFailed."""
    try:
        with opener.open(request, timeout=timeout_s) as response:
            body = response.read(RESPONSE_BYTES_MAX)
            is_whole = not response.length or len(body) == RESPONSE_BYTES_MAX
            return Response(response.status, response.headers, body, is_whole)
    except (OSError, http.client.HTTPException) as failed:
        cause = getattr(failed, "reason", failed)
        if isinstance(cause, ssl.SSLError):
            raise RequestFailed(_tls_reason(cause), code=TLS) from failed
        if isinstance(cause, TimeoutError):
            raise TimedOut(f"no answer within {timeout_s:g} s") from failed
        text = str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
        raise Transient(" ".join(text.lower().split())[:REASON_MAX]) from failed
    except (ValueError, OverflowError) as invalid:
        # A host name or a port that cannot exist.
        raise RequestFailed(f"the address cannot be used: {invalid}") from invalid


def _tls_reason(failed: ssl.SSLError) -> str:
    """Return why TLS failed, which another attempt does not change, and what to do."""
    if isinstance(failed, ssl.SSLCertVerificationError):
        why = failed.verify_message
        return f"its certificate is not trusted ({why}); SSL_CERT_FILE names a private authority"
    if failed.reason in NO_TLS:
        return "it does not speak TLS on this port; is its address an http:// one"
    return f"TLS failed ({failed.reason or type(failed).__name__})"


@lru_cache
def opener_of(scheme: str, proxy: str | None) -> urllib.request.OpenerDirector:
    """Return an opener that uses this proxy alone, whatever the environment says."""
    by_scheme = {} if proxy is None else {scheme: proxy}
    return urllib.request.build_opener(ReturnEveryResponse, urllib.request.ProxyHandler(by_scheme))


def proxy_of(root: str) -> str | None:
    """Return the proxy for the service with its scheme; None without one.

    Raises RequestFailed for an invalid one and does not show it: it may contain a password.
    """
    try:
        return proxies.in_environment(os.environ).of(root)
    except proxies.WrongProxy as wrong:
        raise RequestFailed(str(wrong)) from wrong


def root_of(url: str) -> str:
    """Return the service's web root; `url` may end with `/v1`.

    Raises RequestFailed for an invalid address, and for one with a user name: its password
    would appear in every message about it.
    """
    root = url.rstrip("/")
    root = root[: -len("/v1")] if root.endswith("/v1") else root
    if "@" in root.partition("://")[2].partition("/")[0]:
        raise RequestFailed("the address contains a user name; only the token is needed")
    if not proxies.is_http(root):
        raise RequestFailed(f"{url!r} is not an http address")
    return root


def header_token(token: str) -> str:
    """Return the token if a header can contain it. Raises RequestFailed, which does not show it."""
    if not token.isascii() or not token.isprintable():
        raise RequestFailed("the token contains characters that no token has")
    return token


def _chunks(body: bytes, on_sent: Callable[[int], object]) -> Iterator[bytes]:
    """Yield the body in pieces, and report each."""
    for start in range(0, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]
        on_sent(min(start + CHUNK_BYTES, len(body)))


def _content_of(url: str, response: Response) -> Json:
    """Return the JSON object of a success. Raises Transient, and RequestFailed for a refusal.

    A success that broke off is requested again; the service counts the same upload once.
    """
    if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        if not response.is_whole:
            raise Transient("the answer breaks off")
        content = json_object(response.body)
        if content is None:
            raise RequestFailed("the answer cannot be read: is it Headgate")
        return content
    if moved := response.headers.get("Location"):
        raise RequestFailed(f"{url} redirects to {moved[:REASON_MAX]!r}: use that address")
    raise_if_transient(response)
    raise _refusal_of(response)


def raise_if_transient(response: Response, codes: Sequence[str] = ()) -> None:
    """Raise Transient for a refusal that may pass, by its status or one of the codes.

    Its reason includes what the service says of it.
    """
    problem = json_object(response.body) or {}
    code = str(problem.get("code") or "")
    is_limited = response.status == HTTPStatus.TOO_MANY_REQUESTS and code != OVER_BUDGET
    is_transient = is_limited or response.status >= 500
    if is_transient or code in codes:
        retry_after = response.headers.get("Retry-After")
        # A date, or neither, counts as no pause.
        wait_s = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        said = str(problem.get("detail") or "").rstrip(".")[:ERROR_TEXT_BYTES_MAX]
        named = f"answered {response.status}" + (f" ({code})" if code else "")
        raise Transient(": ".join(filter(None, (named, said))), code=code, wait_s=wait_s)


def _refusal_of(response: Response) -> RequestFailed:
    """Return what a lasting refusal says."""
    problem = json_object(response.body) or {}
    text = response.body[:ERROR_TEXT_BYTES_MAX].decode("utf-8", "replace")
    if response.status == HTTPStatus.UNAUTHORIZED:
        reason = "the token is unknown, expired or revoked"
        return RequestFailed(f"{reason}: {text[:REASON_MAX]}" if text else reason, text=text)
    reason = str(problem.get("detail") or f"answered {response.status}")[:ERROR_TEXT_BYTES_MAX]
    code = str(problem.get("code"))
    if response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # A proxy in between may refuse first, without a code.
        code = TOO_LARGE
    return RequestFailed(reason, code=code, text=text)


def unique_id() -> str:
    """Return a new random id."""
    return uuid.uuid4().hex


def json_object(body: bytes) -> Json | None:
    """Return the JSON object in the bytes; None for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def array(value: object) -> list[object]:
    """Return the value, which must be an array. Raises TypeError."""
    if not isinstance(value, list):
        raise TypeError("not an array")
    return value


def objects(value: object) -> list[Json]:
    """Return the value, which must be an array of objects. Raises TypeError."""
    members = array(value)
    if not all(isinstance(each, dict) for each in members):
        raise TypeError("not an array of objects")
    return [each for each in members if isinstance(each, dict)]


def member(value: Json, name: str) -> Json:
    """Return a member of an object, which must be an object. Raises KeyError and TypeError."""
    return objects([value[name]])[0]

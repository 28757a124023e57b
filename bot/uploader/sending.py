"""Requests to the service: sent again while it is away, given up when it hangs or says no."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from email.message import Message
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

Json = dict[str, object]
Result = TypeVar("Result")

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
PAUSE_MAX_S = 60.0
# The service may wait 30 s for a place and 30 s for a parser, and read for 20 s.
TIMEOUT_S = 100.0
UPLOAD = "/flaky-tests/upload-test-results"
CHUNK_BYTES = 65_536
ANSWER_BYTES_MAX = 16 * 1024 * 1024
SAID_BYTES_MAX = 4_000
WHY_MAX = 200
TOO_LARGE = "body_too_large"
TOO_LARGE_STATUS = 413


class Unsent(Exception):
    """A request that has no answer; `code` and `said`: the refusal's, if somebody refused."""

    def __init__(self, why: str, *, code: str = "", said: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.code = code
        self.said = said


class Trouble(NamedTuple):
    """What went wrong in one try and may pass; `wait_s`: how long the service asks for."""

    why: str
    wait_s: float = 0.0


class Came(NamedTuple):
    """An answer; `is_whole` False: it broke off before the length that it names."""

    status: int
    headers: Message
    body: bytes
    is_whole: bool


class AsItCame(urllib.request.HTTPErrorProcessor):
    """Every answer is one, whatever its status; the library would raise, or go elsewhere.

    Nobody is followed: a POST would become a GET, and the token go to strangers.
    """

    def http_response(
        self,
        request: urllib.request.Request,  # noqa: ARG002 - the library's signature
        response: http.client.HTTPResponse,
    ) -> http.client.HTTPResponse:
        """The answer as it came."""
        return response

    https_response = http_response


class Request(NamedTuple):
    """What is asked, the same in every try; with a body it is a POST.

    `sent` hears how many bytes have left.
    """

    path: str
    body: bytes | None = None
    content_type: str = ""
    sent: Callable[[int], object] = bool


class Service(NamedTuple):
    """Where uploads go; `told` hears why a request is sent once more.

    Without a token `fork_run` names the CI run that the request comes from (API.md 2).
    """

    url: str
    token: str
    told: Callable[[str], object]
    sleep: Callable[[float], object] = time.sleep
    timeout_s: float = TIMEOUT_S
    fork_run: str = ""

    def ask(self, request: Request) -> Json:
        """The answer to a request; a service that hangs is not asked twice. Raises Unsent."""
        pause_s = 0.0
        for least_s in (*PAUSES_S, None):
            tried = once(self, request)
            if isinstance(tried, dict):
                return tried
            if least_s is None or tried.wait_s > PAUSE_MAX_S:
                raise Unsent(tried.why)
            pause_s = max(least_s, tried.wait_s)
            self.told(f"{self.url}: {tried.why}; trying again in {pause_s:.0f} s")
            self.sleep(pause_s)
        raise AssertionError("a loop over a constant ends by return or raise")


def once(service: Service, request: Request) -> Json | Trouble:
    """One try. Raises Unsent for what another try would not change."""
    headers = {"User-Agent": "headgate-upload"}
    if service.token.startswith("eyJ"):
        headers["Authorization"] = f"Bearer {token_of(service.token)}"
    elif service.token or not service.fork_run:
        headers["x-api-token"] = token_of(service.token)
    else:
        headers["x-forked-workflow-run-id"] = service.fork_run
    if request.body is not None:
        headers["Content-Type"] = request.content_type
        headers["Content-Length"] = str(len(request.body))
    root = address_of(service.url)
    asked = urllib.request.Request(  # noqa: S310 - `address_of` has looked at the scheme
        f"{root}/v1{request.path}",
        data=None if request.body is None else chunks(request.body, request.sent),
        headers=headers,
    )
    opener = opener_of(urlsplit(root).scheme, proxy_of(root))
    came = within(service.timeout_s, lambda: answer_of(opener, asked, service.timeout_s))
    if came is None:
        raise Unsent(f"no answer within {service.timeout_s:g} s")
    if isinstance(came, Unsent):
        raise came
    if isinstance(came, Trouble):
        return came
    if HTTPStatus.OK <= came.status < HTTPStatus.MULTIPLE_CHOICES:
        # Sent again it is answered again: the same upload counts once (FLAKY.md 2.4).
        return read_answer(came.body) if came.is_whole else Trouble("the answer breaks off")
    if moved := came.headers.get("Location"):
        raise Unsent(f"{service.url} leads to {moved[:WHY_MAX]!r}: give that address")
    return read_refusal(came.status, came.headers.get("Retry-After"), came.body)


def within(seconds: float, work: Callable[[], Result]) -> Result | None:
    """What comes of the work; None when it takes longer.

    A socket's own timeout begins anew with each byte, so that a server which drips would hold
    us for ever. Work that takes longer is left to itself, and ends with the process at the latest.
    """
    done: list[Result] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    if thread.is_alive():
        return None
    if not done:
        raise RuntimeError("a request ended without an answer and without a reason")
    return done[0]


def answer_of(
    opener: urllib.request.OpenerDirector, asked: urllib.request.Request, timeout_s: float
) -> Came | Trouble | Unsent | None:
    """What comes of one request; None: nothing for so long. Raises nothing: nobody would hear."""
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            body = answer.read(ANSWER_BYTES_MAX)
            is_whole = not answer.length or len(body) == ANSWER_BYTES_MAX
            return Came(answer.status, answer.headers, body, is_whole)
    except (OSError, http.client.HTTPException) as failed:
        reason = getattr(failed, "reason", failed)
        if isinstance(reason, TimeoutError):
            return None
        text = str(getattr(reason, "strerror", None) or reason) or type(reason).__name__
        return Trouble(" ".join(text.lower().split())[:WHY_MAX])
    except (ValueError, OverflowError) as odd:
        # A name that no host can have, or a port.
        return Unsent(f"it cannot be asked: {odd}")


@lru_cache
def opener_of(scheme: str, proxy: str | None) -> urllib.request.OpenerDirector:
    """What asks by this way alone, whatever the environment says."""
    proxies = {} if proxy is None else {scheme: proxy}
    return urllib.request.build_opener(AsItCame, urllib.request.ProxyHandler(proxies))


def proxy_of(root: str) -> str | None:
    """The proxy through which the service is asked, with its scheme; None: there is none.

    As `HTTP_PROXY` or `HTTPS_PROXY` and `NO_PROXY` say, in either letter case. Raises Unsent for
    one that cannot be asked, and shows it nowhere: it may hold a password.
    """
    parts = urlsplit(root)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        named = urlsplit(proxy)
        is_http = named.scheme in ("http", "https") and bool(named.hostname)
    except ValueError:
        is_http = False
    if not is_http:
        raise Unsent(f"{parts.scheme.upper()}_PROXY is no http address")
    return proxy


def address_of(url: str) -> str:
    """The service's web root, given with or without `/v1`.

    Raises Unsent for what is no address. One that names a user is none: its password would be
    in every message about it.
    """
    root = url.rstrip("/")
    root = root[: -len("/v1")] if root.endswith("/v1") else root
    if "@" in root.partition("://")[2].partition("/")[0]:
        raise Unsent("the address names a user, and needs none beside the token")
    try:
        parts = urlsplit(root)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unsent(f"{url!r} is no http address")
    return root


def token_of(token: str) -> str:
    """The token as a header can hold it. Raises Unsent, which does not show it."""
    if not token.isascii() or not token.isprintable():
        raise Unsent("the token holds characters no token has")
    return token


def chunks(body: bytes, sent: Callable[[int], object]) -> Iterator[bytes]:
    """The body in pieces; `sent` hears of each."""
    for at in range(0, len(body), CHUNK_BYTES):
        yield body[at : at + CHUNK_BYTES]
        sent(min(at + CHUNK_BYTES, len(body)))


def read_answer(body: bytes) -> Json:
    """The object of a success. Raises Unsent for what is none."""
    value = json_of(body)
    if value is None:
        raise Unsent("the answer cannot be read: is it Headgate")
    return value


def read_refusal(status: int, retry_after: str | None, body: bytes) -> Trouble:
    """What a refusal that may pass says. Raises Unsent for a lasting one."""
    problem = json_of(body) or {}
    said = body[:SAID_BYTES_MAX].decode("utf-8", "replace")
    code = problem.get("code")
    if status == 429 or status >= 500:
        wait_s = seconds_of(retry_after)
        return Trouble(f"answered {status}" + (f" ({code})" if code else ""), wait_s)
    if status == 401:
        why = "the token is unknown, expired or revoked"
        raise Unsent(f"{why}: {said[:WHY_MAX]}" if said else why, said=said)
    why = str(problem.get("detail") or f"answered {status}")[:SAID_BYTES_MAX]
    # A proxy in between may say so first, without a code.
    raise Unsent(why, code=TOO_LARGE if status == TOO_LARGE_STATUS else str(code), said=said)


def seconds_of(retry_after: str | None) -> float:
    """The pause that a `Retry-After` asks for; nothing for a date, or for what is neither."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else 0.0


def json_of(body: bytes) -> Json | None:
    """The JSON object that the bytes are, if they are one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def items(value: object) -> list[object]:
    """The value, which must be an array."""
    if not isinstance(value, list):
        raise TypeError("not an array")
    return value


def objects(value: object) -> list[Json]:
    """The value, which must be an array of objects."""
    found = items(value)
    if not all(isinstance(each, dict) for each in found):
        raise TypeError("not an array of objects")
    return [each for each in found if isinstance(each, dict)]


def member(value: Json, name: str) -> Json:
    """A member of an object, which must be an object."""
    return objects([value[name]])[0]

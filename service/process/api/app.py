"""The application: one way from a request to its answer, with every refusal in order.

The order of checks is docs/design/http.md 1. Routes given as extra, such as a provider's
deliveries, stand beside ours and keep their own rules.
"""

import asyncio
import contextlib
import functools
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import NamedTuple, assert_never

import structlog
from aiohttp import ETag, web
from aiohttp.http_exceptions import LineTooLong

from service import time_limits, tracing
from service.accounts import jobs, repeats
from service.accounts.api import auth, signing_keys
from service.accounts.api.admission import AccessRequest, Admission
from service.errors import ServiceError
from service.http import connections, errors, ignored, intake, limits, rates, replies, waiting
from service.http import repeats as keys
from service.http.addresses import address_of
from service.http.callers import Caches, Call, Caller
from service.http.errors import HttpRefused, Problem
from service.http.health import Readiness
from service.http.models import common
from service.http.models.common import Spelling
from service.http.replies import Replies, WholeAnswer
from service.http.route import (
    EVENT_STREAM,
    Document,
    Fetched,
    Look,
    Open,
    Posted,
    Route,
    Secured,
    Shown,
    Streamed,
)
from service.http.waiting import Waiting
from service.limits import EventLimit
from service.process.api import routes
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.tracing import Side

# A larger body is parsed on a thread: 64 KiB of objects take up to 10 ms.
THREAD_BYTES = 65_536

UNKNOWN = "unknown"
"""Label of the endpoint for every unknown path: no client may add labels."""
OF_ADDRESS = "reading: bytearray("
"""In the words of aiohttp's parser for a line that is too long: it is the first one."""
BROKEN_OFF = "none"
"""Label of the status for a request that was broken off without an answer."""

WRITE_S = 30.0
"""How long a client may take one event of a stream."""

VISITS_MAX, VISITS_WITHIN = 10, timedelta(minutes=1)
"""Requests of one address without a token (docs/design/security.md 1)."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
UnknownPage = Callable[[], web.Response]
Take = Callable[[web.Request, str], Awaitable[web.StreamResponse]]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _ForkRun:
    """A fork's CI run that asks without a token; `caller_of` finds out whether it is one."""

    run_id: str
    caller_of: Callable[..., Awaitable[Caller]]


class _Asking(NamedTuple):
    """A request that may be read: whose it is, and the key under which it may come again."""

    route: Posted
    request: web.Request
    request_id: str
    come: Caller | _ForkRun
    key: str | None


def build_app(
    runtime: Runtime,
    readiness: Readiness,
    extra: Sequence[web.AbstractRouteDef] = (),
    admission: Admission | None = None,
    unknown_page: UnknownPage | None = None,
) -> web.Application:
    """The application over these parts; `admission` is given where others let in by it too.

    `unknown_page` makes what a browser gets at an address outside /v1 that no route has.
    Until `readiness` says the recovery is over, every endpoint with a token answers 503.
    """
    app = web.Application()
    app.add_routes((*extra, *signing_keys.routes(runtime)))
    door = Door(runtime, readiness, admission, unknown_page)
    for route in routes.ROUTES:
        handler = measured(runtime, route.path, door.handler(route))
        app.router.add_route("*", route.path, handler, expect_handler=_read_later)
    unknown = measured(runtime, UNKNOWN, door.unknown)
    app.router.add_route("*", "/{path:.*}", unknown, expect_handler=_read_later)
    app.on_shutdown.append(door.stop_waiting)
    app[connections.BROKEN] = door.broken
    app[connections.PROXIES] = runtime.options.trusted_proxies
    return app


def measured(runtime: Runtime, endpoint: str, handler: Handler) -> Handler:
    """Return the handler, with its answers counted and timed (docs/reference/metrics.md)."""
    meter, clock = runtime.telemetry, runtime.clock

    async def answered(request: web.Request) -> web.StreamResponse:
        began_s = clock.monotonic_s()
        waiting.begin(request)
        # What a handler lets out is answered by `Door.broken`.
        status = "500"
        try:
            with runtime.traces.work(f"{request.method} {endpoint}", {}, Side.INCOMING):
                answer = await handler(request)
                status = str(answer.status)
                tracing.note(**{"http.response.status_code": answer.status})
        except asyncio.CancelledError:
            status = BROKEN_OFF
            raise
        except ConnectionError:
            if connections.has_left(request):
                status = BROKEN_OFF
            raise
        finally:
            meter.count("headgate_api_requests_total", endpoint, status)
            took_s = clock.monotonic_s() - began_s - waiting.waited_for_change_s()
            meter.observe("headgate_api_request_duration_seconds", took_s, endpoint)
        return answer

    return answered


async def _read_later(_: web.Request) -> None:
    """`Expect: 100-continue` is answered when the body is about to be read."""


class Door:
    """The entrance of every request of ours."""

    def __init__(
        self,
        runtime: Runtime,
        readiness: Readiness,
        admission: Admission | None = None,
        unknown_page: UnknownPage | None = None,
    ) -> None:
        self._runtime = runtime
        self._unknown_page = unknown_page
        self._readiness = readiness
        self._admission = admission or Admission(runtime, readiness)
        self._caches = Caches(runtime.options)
        self._replies = Replies(runtime)
        self._visits = EventLimit(VISITS_MAX, VISITS_WITHIN)
        self._bodies = limits.Bodies(runtime.clock, runtime.unproved)
        self._prefix = runtime.ids.uuid().replace("-", "")[:16]
        self._count = 0

    def handler(self, route: Route) -> Handler:
        """Return what aiohttp calls for one endpoint."""
        match route:
            case Posted():
                return self._refusing(functools.partial(self._posted, route), route.model.spelled)
            case Streamed():
                return self._refusing(functools.partial(self._streamed, route))
            case Fetched():
                return self._refusing(functools.partial(self._fetched, route))
            case Open():
                return self._refusing(functools.partial(self._open, route))
            case Document():
                return self._refusing(functools.partial(self._document, route))
            case _:
                assert_never(route)

    def _refusing(self, take: Take, spelled: Spelling = common.as_named) -> Handler:
        """Errors become answers here and nowhere else; `spelled` as the endpoint's fields are."""

        async def handler(request: web.Request) -> web.StreamResponse:
            request_id = self._request_id(request)
            time_limits.answer_soon()
            try:
                answer = await take(request, request_id)
            except (ServiceError, ProviderError) as error:
                answer = self._replies.refusal(request, error, request_id, spelled)
            answer.headers.update(request.get(rates.LIMITS, {}))
            if isinstance(answer, web.Response):
                replies.compress(request, answer)
            return answer

        return handler

    async def _posted(
        self, route: Posted, request: web.Request, request_id: str
    ) -> web.StreamResponse:
        if request.method != "POST":
            raise _wrong_method(route.path, "POST")
        come = await self._come(request, route, request_id)
        route.intake.check(request)
        intake.check_query(request)
        key = keys.key_of(request) if route.writes else None
        asking = _Asking(route, request, request_id, come, key)
        content = request.content
        if content.is_eof() and content.exception() is None:
            return await self._answered(asking, content.read_nowait(-1))
        arriving = (
            self._bodies.arriving(request, come.token_id or f"{come.org_id} {come.name}")
            if isinstance(come, Caller)
            else self._bodies.arriving_unproved(request, f"fork {self._address(request)}")
        )
        async with arriving as body:
            return await self._answered(asking, body)

    async def _answered(self, asking: _Asking, body: bytes) -> web.Response:
        """The answer to a request that has arrived. A CI run has no keys of its own."""
        if asking.key is not None and isinstance(asking.come, Caller) and asking.come.token_id:
            return await self._once(asking, asking.come, asking.key, body)
        return self._replies.success(200, await self._shown(asking, body), asking.request_id)

    async def _once(self, asking: _Asking, caller: Caller, key: str, body: bytes) -> web.Response:
        """As above, but what was answered before is answered again (docs/design/http.md 5)."""
        begun = await repeats.begin(self._runtime, caller, asking.route.path, key, body)
        if isinstance(begun, WholeAnswer):
            return begun.response(asking.request_id, keys.REPLAYED)
        lasts = False
        try:
            said, refused = await self._first(asking, body)
            lasts = refused is None or keys.lasts(refused)
            if lasts:
                await repeats.keep(self._runtime, begun, said)
        finally:
            if not lasts:
                await repeats.give_up(self._runtime, begun)
        headers = {} if refused is None else refused.headers
        return said.response(asking.request_id, headers)

    async def _first(self, asking: _Asking, body: bytes) -> tuple[WholeAnswer, Problem | None]:
        """Return what the request is answered, and why if that is a refusal."""
        try:
            shown = await self._shown(asking, body)
            return self._replies.encoded(200, shown), None
        except (ServiceError, ProviderError) as error:
            request, request_id = asking.request, asking.request_id
            spelled = asking.route.model.spelled
            problem = self._replies.logged_problem(request, error, request_id, spelled)
            return self._replies.encoded_problem(request, problem, request_id), problem

    async def _come(
        self, request: web.Request, route: Posted, request_id: str
    ) -> Caller | _ForkRun:
        """Return who asks, or whom they claim to be where a fork's CI run may ask."""
        if route.takes_oidc and jobs.is_oidc(auth.token_of(request.headers)):
            return await self._caller(request, route, request_id)
        run_id = auth.fork_run_of(request.headers) if route.forks is not None else None
        if run_id is None or route.forks is None or self._readiness.is_recovering:
            return await self._caller(request, route, request_id)
        rates.count_visit(self._visits, self._address(request), self._runtime.clock.now())
        return _ForkRun(run_id, route.forks)

    def _address(self, request: web.BaseRequest) -> str:
        return address_of(request, self._runtime.options.trusted_proxies)

    async def _shown(self, asking: _Asking, body: bytes) -> Shown:
        route, come = asking.route, asking.come
        if len(body) > THREAD_BYTES:
            asked = await asyncio.to_thread(route.intake.read, route.model, asking.request, body)
        else:
            asked = route.intake.read(route.model, asking.request, body)
        caller = (
            await come.caller_of(self._runtime, come.run_id, asked)
            if isinstance(come, _ForkRun)
            else come
        )
        call = Call(self._runtime, self._caches, caller)
        if not route.writes:
            return ignored.with_ignored_fields(await route.handler(call, asked), asked)
        # Bound for this call alone: the connection's next request runs in the same context.
        with structlog.contextvars.bound_contextvars(request_id=asking.request_id):
            shown = ignored.with_ignored_fields(await route.handler(call, asked), asked)
            self._runtime.crash_points.reach("api.before_answer")
            token = caller.token_id or caller.name
            log.info("request", endpoint=route.path, status=200, token=token)
        return shown

    async def _fetched(
        self, route: Fetched, request: web.Request, request_id: str
    ) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise _wrong_method(route.path, "GET, HEAD")
        caller = await self._caller(request, route, request_id)
        intake.check_query(request)
        asked = () if route.query is None else (intake.read_query(route.query, request.query),)
        shown = await route.handler(Call(self._runtime, self._caches, caller), *asked)
        answer = self._replies.success(200, shown, request_id)
        return _unless_known(request, answer, "private, no-cache")

    async def _streamed(
        self, route: Streamed, request: web.Request, request_id: str
    ) -> web.StreamResponse:
        """Answer by events until the stream ends, the client leaves, or its token ends."""
        if request.method != "GET":
            raise _wrong_method(route.path, "GET")
        caller = await self._caller(request, route, request_id)
        intake.check_query(request)
        asked = intake.read_query(route.query, request.query)
        call = Call(self._runtime, self._caches, caller)
        with call.cache(Waiting).place(caller.token_id):
            parts = await route.handler(call, asked, request.headers.get("Last-Event-ID"))
            answer = web.StreamResponse(
                headers={
                    **replies.HEADERS,
                    "Content-Type": EVENT_STREAM,
                    "X-Request-Id": request_id,
                }
            )
            answer.headers.update(request.get(rates.LIMITS, {}))
            began_s = self._runtime.clock.monotonic_s()
            await answer.prepare(request)
            with contextlib.suppress(ServiceError, ConnectionError, TimeoutError):
                async for part in parts:
                    if waiting.has_left(request):
                        break
                    async with asyncio.timeout(WRITE_S):
                        await answer.write(part)
                await answer.write_eof()
            waiting.note(self._runtime.clock.monotonic_s() - began_s)
        return answer

    async def _open(self, route: Open, request: web.Request, request_id: str) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise _wrong_method(route.path, "GET, HEAD")
        intake.check_query(request)
        status, shown = await route.handler(self._readiness, self._runtime.options.version)
        return self._replies.success(status, shown, request_id)

    async def _document(
        self, route: Document, request: web.Request, request_id: str
    ) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise _wrong_method(route.path, "GET, HEAD")
        intake.check_query(request)
        runtime = self._runtime
        look = Look(request.match_info, routes.CONTRACT, runtime.options, runtime.clock.now())
        page = route.handler(look)
        answer = self._replies.success(page.status, page, request_id)
        return _unless_known(request, answer) if answer.status == 200 else answer

    async def unknown(self, request: web.Request) -> web.StreamResponse:
        """404 for every path that no route has; a page for a browser, where there are pages."""
        if (
            self._unknown_page is not None
            and request.method in ("GET", "HEAD")
            and not request.path.startswith("/v1/")
            and errors.prefers("text/html", request.headers.get("Accept"))
        ):
            return self._unknown_page()
        path = request.path[:100]
        meant = routes.nearest(request.path)
        detail = f"There is no endpoint {path}."
        if meant is not None:
            detail += f" Did you mean {meant}?"
        members = {} if meant is None else {"did_you_mean": meant}
        error = HttpRefused("unknown_endpoint", detail, **members)
        return self._replies.refusal(request, error, self._request_id(request), common.as_named)

    async def stop_waiting(self, _app: web.Application) -> None:
        """Answer every request that waits for a change: the process is about to stop."""
        self._caches.of(Waiting).is_stopping = True

    def broken(
        self, request: web.BaseRequest, status: int, error: BaseException | None
    ) -> web.StreamResponse:
        """The answer to what is no HTTP, asks for no path, or failed as nobody expected."""
        request_id = self._request_id(request)
        if status == 405:
            refused = _wrong_method("an address", "GET, HEAD, POST")
        elif isinstance(error, LineTooLong):
            is_address = OF_ADDRESS in str(error)
            refused = HttpRefused(
                "address_too_long" if is_address else "header_too_long",
                f"{'The address' if is_address else 'A header'} has more than "
                f"{connections.LINE_BYTES_MAX} bytes.",
            )
        elif status < 500:
            refused = HttpRefused("bad_request", "The request is not HTTP as it should be.")
        elif isinstance(error, ConnectionError):
            # Its client has gone in the middle of the body, and nobody reads the answer.
            log.info("request_broken_off", request_id=request_id)
            return self._replies.problem(request, errors.unexpected(), request_id, closes=True)
        else:
            # A mistake of ours, answered with 500. Report the line with its stack.
            log.error("request_failed", request_id=request_id, exc_info=error)
            return self._replies.problem(request, errors.unexpected(), request_id, closes=True)
        problem = errors.problem_of(refused, self._runtime.clock.now())
        return self._replies.problem(request, problem, request_id, closes=True)

    async def _caller(self, request: web.Request, route: Secured, request_id: str) -> Caller:
        """Return who asks, if they may and not too often; raises as `Admission.caller`."""
        wanted = AccessRequest(route.path, route.role, route.rate, request_id)
        token = auth.token_of(request.headers)
        if isinstance(route, Posted | Fetched) and route.takes_oidc and jobs.is_oidc(token):
            return await self._admission.job(request, token, wanted)
        return await self._admission.caller(request, token, wanted)

    def _request_id(self, request: web.BaseRequest) -> str:
        """The client's own, if it is harmless, else a fresh one of 32 hex digits."""
        given = request.headers.get("X-Request-Id")
        if given is not None and _REQUEST_ID.fullmatch(given) is not None:
            return given
        self._count += 1
        return f"{self._prefix}{self._count:016x}"


def _unless_known(
    request: web.BaseRequest, answer: web.Response, kept: str = "no-cache"
) -> web.Response:
    """Return the answer with its ETag, or 304 to a client that has it (RFC 9110, 13.1.2)."""
    body = answer.body if isinstance(answer.body, bytes) else b""
    version = blake2b(body, digest_size=16).hexdigest()
    # Weak, because it is the same for the compressed bytes.
    answer.etag = ETag(version, is_weak=True)
    if answer.headers["Cache-Control"] == replies.HEADERS["Cache-Control"]:
        answer.headers["Cache-Control"] = kept
    if any(each.value in (version, "*") for each in request.if_none_match or ()):
        answer.set_status(304)
        answer.body = None
    return answer


def _wrong_method(path: str, allowed: str) -> HttpRefused:
    error = HttpRefused("method_not_allowed", f"Ask {path} by {allowed}.")
    error.headers = {"Allow": allowed}
    return error

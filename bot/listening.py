"""The addresses on which the process listens, and the signals that stop it."""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from pydantic import BaseModel

from bot import forms
from bot.settings import PREFIX, Settings
from service.errors import StartRefused
from service.http import connections, health
from service.http.health import Readiness
from service.mergequeue.operations import watch
from service.metrics import exposition
from service.process import presence
from service.runtime import DashboardAuth, Runtime

DRAIN_S = 1.0

NOT_ON_THIS_MACHINE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Errors of one address of a host name, such as `::1` for `localhost` without IPv6."""

log = structlog.get_logger()


class Address:
    """The address of the service, on which one server listens after another.

    It is opened by the first one and stays open in between: a connection of that time waits for the
    next server. The set-up pages and the service follow each other in this way.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._sockets: tuple[socket.socket, ...] = ()

    async def listen(self, runner: web.AppRunner) -> str:
        """Let a server listen; return the URL. Raises StartRefused for a port or host in use."""
        await runner.setup()
        if not self._sockets:
            self._sockets = await _opened(self.settings)
        for each in self._sockets:
            # A server closes its sockets at its end.
            await web.SockSite(runner, each.dup()).start()
        return _url_of(runner)

    def close(self) -> None:
        """Refuse connections from here on, once no server listens any more."""
        for each in self._sockets:
            each.close()
        self._sockets = ()


async def _opened(settings: Settings) -> tuple[socket.socket, ...]:
    """Return a listening socket for each address of the host. Raises StartRefused."""
    loop = asyncio.get_running_loop()
    opened: list[socket.socket] = []
    missing: OSError | None = None
    try:
        found = await loop.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in found:
            try:
                opened.append(socket.create_server(address, family=family))
            except OSError as failed:
                if failed.errno not in NOT_ON_THIS_MACHINE:
                    raise
                missing = failed
        if missing is not None and not opened:
            raise missing
    except socket.gaierror as unknown:
        raise StartRefused(
            f"{PREFIX}HOST: {settings.host} is no address of this machine. Use 127.0.0.1, or "
            "0.0.0.0 behind a proxy"
        ) from unknown
    except OSError as failed:
        for each in opened:
            each.close()
        raise StartRefused(_refused_address(failed, settings)) from failed
    return tuple(opened)


def readers_of(settings: Settings) -> DashboardAuth:
    """Return how readers of pages sign in.

    Raises StartRefused for a machine that others reach and where readers would not sign in.
    """
    if settings.dashboard_auth is None:
        return _default_readers(settings)
    if settings.dashboard_auth is DashboardAuth.LOOPBACK and not settings.is_for_this_machine:
        raise StartRefused(
            f"{PREFIX}DASHBOARD_AUTH: loopback lets in whoever comes, so {PREFIX}HOST and "
            f"{PREFIX}PUBLIC_URL must be of this machine, as http://127.0.0.1:8642. "
            "Set them so, or use token"
        )
    if settings.dashboard_auth is DashboardAuth.GITHUB and not _is_cookie_safe(settings):
        raise StartRefused(
            f"{PREFIX}DASHBOARD_AUTH: github needs an https address in {PREFIX}PUBLIC_URL, because "
            "the cookie of a session must not be readable on its way. Set it, or use token"
        )
    return settings.dashboard_auth


def _default_readers(settings: Settings) -> DashboardAuth:
    """Return the sign-in without a setting: with GitHub once the App's client secret is known."""
    if settings.is_for_this_machine:
        return DashboardAuth.LOOPBACK
    has_client = settings.github_client_id and settings.github_client_secret
    is_ready = settings.public_url and has_client and _is_cookie_safe(settings)
    return DashboardAuth.GITHUB if is_ready else DashboardAuth.TOKEN


def _is_cookie_safe(settings: Settings) -> bool:
    """Return whether a session's cookie cannot be read on its way to us."""
    parts = urlsplit(settings.public_url or "")
    return parts.scheme == "https" or forms.is_loopback(parts.hostname or "")


def _refused_address(failed: OSError, settings: Settings) -> str:
    """Return why the system does not let us listen there, and what to do."""
    if failed.errno == errno.EADDRINUSE:
        return (
            f"{PREFIX}PORT: {settings.port} on {settings.host} is in use. Stop what listens "
            "there, or give another --port"
        )
    if failed.errno == errno.EACCES:
        return f"{PREFIX}PORT: {settings.port} needs rights we lack. Give one above 1023"
    return f"{PREFIX}HOST: cannot listen on {settings.host} ({failed.strerror}). Give another"


def runner_for_operators(runtime: Runtime, readiness: Readiness) -> web.AppRunner:
    """Return the admin listener: metrics and health, without login and without tenants' data."""

    async def measure() -> None:
        await watch.measure_backlog(runtime)
        await presence.measure(runtime)

    levels = health.SharedWork(measure)

    async def metrics(_: web.Request) -> web.Response:
        await levels.wait()
        presence.measure_troubles(runtime)
        headers = {"Content-Type": exposition.CONTENT_TYPE, "Cache-Control": "no-store"}
        return web.Response(body=runtime.telemetry.text(), headers=headers)

    async def healthz(_: web.Request) -> web.Response:
        return _response(*await health.healthz(readiness, runtime.options.version))

    async def readyz(_: web.Request) -> web.Response:
        return _response(*await health.readyz(readiness, runtime.options.version))

    app = web.Application()
    for path, handler in (("/metrics", metrics), ("/healthz", healthz), ("/readyz", readyz)):
        app.router.add_get(path, handler, allow_head=False)
    app[connections.BROKEN] = broken
    return connections.runner(app, drain_s=DRAIN_S)


def _response(status: int, answer: BaseModel) -> web.Response:
    return web.json_response(answer.model_dump(mode="json", by_alias=True), status=status)


def broken(
    _request: web.BaseRequest, status: int, _error: BaseException | None
) -> web.StreamResponse:
    """Answer a request that is not HTTP."""
    return web.Response(status=status)


def refuse_the_rest(
    app: web.Application, check: Mapping[str, str], problem: Mapping[str, str], retry_after_s: int
) -> None:
    """Answer `/healthz` with ok, `/readyz` with a check, and what has no route with a problem."""

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        return web.json_response({"status": "not_ready", "checks": dict(check)}, status=503)

    async def refuse(_: web.Request) -> web.Response:
        answer = web.json_response({**problem, "status": 503}, status=503)
        answer.headers["Retry-After"] = str(retry_after_s)
        answer.content_type = "application/problem+json"
        return answer

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_route("*", "/{path:.*}", refuse)
    app[connections.BROKEN] = broken


@asynccontextmanager
async def health_for_operators(
    settings: Settings, check: Mapping[str, str], problem: Mapping[str, str], retry_after_s: int
) -> AsyncIterator[None]:
    """Serve the admin listener of a process that does not work yet: alive and not ready."""
    app = web.Application()
    refuse_the_rest(app, check, problem, retry_after_s)
    runner = connections.runner(app, drain_s=DRAIN_S)
    try:
        await listen_for_operators(runner, settings)
        yield
    finally:
        await runner.cleanup()


async def listen_for_operators(runner: web.AppRunner, settings: Settings) -> str | None:
    """Start the admin listener and return its address; None when it is off.

    Raises StartRefused for an address that cannot be used. Warns of one that others reach.
    """
    if settings.admin_listen == "off":
        return None
    host, _, port = settings.admin_listen.rpartition(":")
    host = host.strip("[]")
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port), reuse_address=True).start()
    except OSError as failed:
        raise StartRefused(
            f"{PREFIX}ADMIN_LISTEN: cannot listen on {settings.admin_listen} ({failed.strerror}). "
            "Give another HOST:PORT, or off"
        ) from failed
    url = _url_of(runner)
    if not forms.is_loopback(host):
        # HEADGATE_ADMIN_LISTEN is no address of this machine alone.
        log.warning("admin_listener_is_open", url=url, why="whoever reaches it needs no login")
    return url


def _url_of(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def until_stopped() -> AsyncIterator[asyncio.Event]:
    """Yield an event that the first SIGTERM or SIGINT sets; the next signal ends the process."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def forget() -> None:
        for each in signals:
            loop.remove_signal_handler(each)

    def stop_now(number: signal.Signals) -> None:
        log.info("stopping", signal=number.name)
        forget()
        stopping.set()

    for each in signals:
        loop.add_signal_handler(each, partial(stop_now, each))
    try:
        yield stopping
    finally:
        forget()

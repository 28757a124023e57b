"""The composition root: nothing else builds a service.

It creates the parts in the order of a start (docs/design/transactions.md 10): settings, database,
migrations, listening for deliveries alone, recovery, workers, all routes. A stop closes them in
reverse. It contains no rule of the queue.
"""

import asyncio
import os
import platform
import signal
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web
from pydantic import SecretStr

from bot import fingerprint, listening, starting, tracing
from bot.github import oidc, webhook
from bot.github import options as github_options
from bot.github.client import GitHubClient, RepositoryClient
from bot.github.oidc import OidcTokens
from bot.github.options import BuildMethod, GitHubOptions, MirrorOptions
from bot.github.pacing import Priority
from bot.github.provider import GitHubProvider
from bot.github.sign_in import GitHubSignIn, OAuthClient
from bot.keys import KeyRing, secret_key_in
from bot.listening import Address
from bot.oidc.issuer import fetched
from bot.oidc.other_ci import OtherCiTokens
from bot.program import VERSION
from bot.settings import PREFIX, FaultBoundary, Settings, Strike
from bot.setup import registering
from bot.setup.first_queue import FirstQueue
from bot.setup.sessions import Sessions, store_address
from bot.uploader import proxies
from bot.uploader.proxies import Proxies, WrongProxy
from service.accounts.api.admission import Admission
from service.clock import Clock, Ids, RandomIds, SystemClock
from service.crash_points import CrashPoints, NoCrashes
from service.dashboard import app as dashboard
from service.dashboard.streams import Streams
from service.database import database
from service.database.database import Store, StoreOptions, open_store
from service.database.wakeups import Wakeups
from service.errors import InvariantBroken, StartRefused
from service.evidence import links
from service.http import connections
from service.http.health import Readiness
from service.mergequeue.operations.watch import SeenQueues
from service.metrics.process_families import ProcessMeter
from service.notifications.addresses import Rules
from service.notifications.sender import HttpSender
from service.parsers import Parsers
from service.process import deliveries, presence
from service.process.api import app
from service.process.workers.supervisor import Workers
from service.provider.port import Provider
from service.runtime import (
    DashboardAuth,
    Options,
    Periods,
    Runtime,
    Translator,
)
from service.telemetry import SILENT, Meter
from service.vocabulary import RepoRef

# docs/design/transactions.md 9: an open landing permit is closed before the process ends.
STOP_WITHIN_S = 15.0
AUTHORITIES = "SSL_CERT_FILE"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class World:
    """The parts that tests replace: time, ids, and the points at which a crash test strikes.

    Pages of the origin `framed_by` may show ours in a frame: the demo's. `proxies` are those of
    the network, for all requests that go out.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    crash_points: CrashPoints = field(default_factory=NoCrashes)
    framed_by: str | None = None
    proxies: Proxies = field(default_factory=Proxies)


@dataclass(frozen=True, slots=True)
class Running:
    """A running service: its parts, its workers, and its address."""

    runtime: Runtime
    workers: Workers
    url: str


def world_of(settings: Settings) -> World:
    """Return the system's clock, ids and proxies, with a crash point that strikes if one is set.

    Raises StartRefused for a proxy that is no address.
    """
    planned = settings.fault_boundary
    crash_points = NoCrashes() if planned is None else Striking(planned)
    return World(crash_points=crash_points, proxies=proxies_here())


def proxies_here() -> Proxies:
    """Return the proxies that the environment of this process names.

    Raises StartRefused for one that is no address, and for a file of certification authorities
    that cannot be read, which TLS libraries pass over in silence.
    """
    found = proxies.in_environment(os.environ)
    try:
        found.check()
        if authorities := os.environ.get(AUTHORITIES):
            ssl.create_default_context(cafile=authorities)
    except WrongProxy as wrong:
        raise StartRefused(f"{wrong}. Name the proxy as http://HOST:PORT") from wrong
    except OSError as failed:
        why = "it has no certificate" if isinstance(failed, ssl.SSLError) else failed.strerror
        raise StartRefused(f"{AUTHORITIES}: {authorities} cannot be read ({why})") from failed
    return found


@asynccontextmanager
async def open_runtime(
    settings: Settings, world: World, address: Address, *, migrate: bool = True
) -> AsyncIterator[Runtime]:
    """Open every part of a service: database, keys, the provider.

    Takes the database's lock and migrates it, or with `migrate` false refuses one that is
    behind. Closes the address at the end. Raises StartRefused naming the setting that prevents it.
    """
    options = _github_options_of(settings, world.proxies)
    keys = key_ring(settings)
    async with AsyncExitStack() as stack:
        stack.callback(address.close)
        how = StoreOptions(migrate=migrate, pool=settings.database_pool)
        store = await starting.store_once_there(
            partial(_opened_store, stack, settings, world, how), address, world.clock
        )
        meter = ProcessMeter(VERSION, platform.python_version())
        provider = GitHubProvider(options, world.clock, meter, parsers := Parsers(), store.troubles)
        stack.push_async_callback(provider.close)
        translators = {options.host: provider.signals_of}
        sender = _opened_sender(stack, settings, world.proxies)
        job_tokens = _job_tokens_of(settings, options, world.clock)
        parts = Parts(store, keys, {options.host: provider}, translators, sender, meter, job_tokens)
        signing_in = sign_in_of(settings, options, world.clock)
        audience = settings.oidc_audience or settings.public_url
        other_ci = audience and OtherCiTokens(audience, world.clock, sender.fetched)
        made = _assembled(settings, world, parts)
        traces = await stack.enter_async_context(
            tracing.opened(settings.traces_url, made.instance, world.proxies, world.clock.now)
        )
        made = replace(made, traces=traces)
        yield replace(made, sign_in=signing_in, parsers=parsers, other_ci=other_ci or None)


@asynccontextmanager
async def open_administration(settings: Settings) -> AsyncIterator[Runtime]:
    """Open the parts for one short transaction beside a running service: database and keys.

    It has no provider, and migrates only if no service runs. Raises StartRefused.
    """
    world = World(proxies=proxies_here())
    keys = key_ring(settings)
    async with AsyncExitStack() as stack:
        how = StoreOptions(pool=1, alone=False)
        store = await _opened_store(stack, settings, world, how)
        sender = _opened_sender(stack, settings, world.proxies)
        yield _assembled(settings, world, Parts(store, keys, {}, {}, sender))


@asynccontextmanager
async def running(
    settings: Settings,
    world: World,
    *,
    migrate: bool = True,
    sessions: Sessions | None = None,
    address: Address | None = None,
) -> AsyncIterator[Running]:
    """Run a whole service, from its first connection to the last.

    `sessions` and `address` are those of the set-up pages that it follows.

    Listens as soon as the database is open, for deliveries alone; other requests are answered
    after the recovery. At the end: no new connections, no new work, an open landing is closed,
    then workers, connections, provider and database are closed.
    """
    own = address or Address(settings)
    async with open_runtime(settings, world, own, migrate=migrate) as runtime:
        readiness = Readiness(
            runtime.troubles,
            lambda: runtime.memory.of(SeenQueues).stalled,
            partial(presence.prove_writable, runtime),
        )
        readiness.mark("database", "ok")
        readiness.mark("schema", "ok")
        found = sessions or Sessions(settings, world.clock)
        runner = connections.runner(build_app(runtime, settings, readiness, found))
        operators = listening.runner_for_operators(runtime, readiness)
        try:
            url = await own.listen(runner)
            admin = await listening.listen_for_operators(operators, settings)
            store_address(settings, url)
            sign_in = runtime.options.dashboard_auth.value
            # The service accepts requests; it recovers before it works.
            log.info("listening", url=url, admin=admin, sign_in=sign_in)
            await starting.recover(runtime)
            readiness.mark("recovery", "ok")
            workers = Workers(runtime, is_working=settings.workers)
            beating = asyncio.create_task(workers.run())
            readiness.mark("workers", "ok")
            # The service works.
            log.info("ready", url=url, version=VERSION)
            try:
                yield Running(runtime, workers, url)
            finally:
                runtime.crash_points.reach("stop.before_drain")
                for site in list(runner.sites):
                    await site.stop()
                own.close()
                await stop(workers, beating)
        finally:
            runtime.crash_points.reach("stop.before_close")
            await runner.cleanup()
            await operators.cleanup()
            await presence.leave(runtime)
    # The process ends.
    log.info("stopped")


async def serve(settings: Settings, *, migrate: bool = True) -> None:
    """Run until SIGTERM or SIGINT, also while it starts; a second signal ends it at once.

    Without the App's credentials it waits for their registration first.
    """
    async with listening.until_stopped() as told:
        started = asyncio.Event()

        async def run_until_told() -> None:
            world = world_of(settings)
            sessions = Sessions(settings, world.clock)
            key_ring(settings)
            with closing(Address(settings)) as own:
                whole = await registering.registered(
                    settings, sessions, world.clock, own, world.proxies
                )
                async with running(whole, world, migrate=migrate, sessions=sessions, address=own):
                    started.set()
                    await told.wait()

        service = asyncio.create_task(run_until_told())
        telling = asyncio.create_task(told.wait())
        await asyncio.wait({service, telling}, return_when=asyncio.FIRST_COMPLETED)
        telling.cancel()
        if not started.is_set():
            service.cancel()
        with suppress(asyncio.CancelledError):
            await service


async def migrate(settings: Settings) -> None:
    """Bring the database up to date. Raises StartRefused when it is newer, or in use."""
    async with AsyncExitStack() as stack:
        await _opened_store(stack, settings, World(), StoreOptions(pool=1))


async def is_behind(settings: Settings) -> bool:
    """Return whether the schema is older than this program's, or absent. Raises StartRefused."""
    return await database.is_behind(settings.database_address)


async def back_up(settings: Settings, copy: Path) -> None:
    """Copy a SQLite database while it is in use. Raises StartRefused."""
    await database.back_up(settings.database_address, copy)


def app_client(settings: Settings, clock: Clock) -> GitHubClient:
    """Return a client of its own with the App's key; its user closes it. Raises StartRefused."""
    return GitHubClient(_github_options_of(settings, proxies_here()), clock)


def live_client(settings: Settings, repo: RepoRef, clock: Clock) -> RepositoryClient:
    """Return a client of its own for one repository, with the App's key; its user closes it."""
    return RepositoryClient(app_client(settings, clock), repo, Priority.BUILD)


def build_app(
    runtime: Runtime, settings: Settings, readiness: Readiness, sessions: Sessions
) -> web.Application:
    """Return the application: the service's routes, the provider's own, and the pages."""
    receive = webhook.receiver(
        webhook.Receiver(
            host=settings.github_host,
            secrets=webhook_secrets_of(settings),
            clock=runtime.clock,
            accept=partial(deliveries.accept, runtime),
            telemetry=runtime.telemetry,
            budget=runtime.unproved,
        )
    )
    setup = FirstQueue(runtime, settings, readiness, sessions).routes()
    return build_own_app(runtime, readiness, (web.post(webhook.PATH, receive), *setup))


def build_own_app(
    runtime: Runtime, readiness: Readiness, extra: Sequence[web.AbstractRouteDef] = ()
) -> web.Application:
    """Return the service's routes and the pages, which share one admission."""
    admission, streams = Admission(runtime, readiness), Streams(runtime)
    pages = dashboard.routes(runtime, admission, streams)
    unknown_page = dashboard.unknown_page(runtime)
    made = app.build_app(runtime, readiness, (*extra, *pages), admission, unknown_page)
    made.on_shutdown.append(streams.stop)
    return made


async def stop(workers: Workers, beating: "asyncio.Task[None]") -> None:
    """Accept no new work, let an open landing end, and wait for the loops."""
    try:
        async with asyncio.timeout(STOP_WITHIN_S):
            await workers.stop()
            await beating
    except TimeoutError:
        # Actions in progress stay in the outbox as sent; the next start reads them back.
        log.warning("stop_timed_out", seconds=STOP_WITHIN_S)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that differ between a service and its administration."""

    store: Store
    keys: KeyRing
    providers: Mapping[str, Provider]
    translators: Mapping[str, Translator]
    sender: HttpSender
    telemetry: Meter = SILENT
    job_tokens: OidcTokens | None = None


def _assembled(settings: Settings, world: World, parts: Parts) -> Runtime:
    """Return the runtime with these parts."""
    return Runtime(
        store=parts.store,
        providers=parts.providers,
        translators=parts.translators,
        clock=world.clock,
        ids=world.ids,
        wakeups=Wakeups(world.clock),
        crash_points=world.crash_points,
        keys=parts.keys,
        sender=parts.sender,
        telemetry=parts.telemetry,
        job_tokens=parts.job_tokens,
        links=links.build_links(),
        instance=world.ids.uuid(),
        options=Options(
            version=VERSION,
            fingerprint=fingerprint.fingerprint_of(settings, parts.keys),
            public_url=settings.public_url,
            auto_create_queues=settings.auto_create_queues,
            periods=periods_of(settings),
            enum_case=settings.enum_case,
            compatibility=settings.api_compatibility,
            rates=settings.rates,
            trusted_proxies=settings.trusted_proxies,
            main_host=settings.github_host,
            dashboard_auth=listening.readers_of(settings),
            admins=settings.admins,
            security_contact=settings.security_contact,
            framed_by=world.framed_by,
        ),
    )


def _job_tokens_of(settings: Settings, options: GitHubOptions, clock: Clock) -> OidcTokens | None:
    """Return the verifier of OIDC tokens of Actions jobs; None without an audience."""
    audience = settings.oidc_audience or settings.public_url
    if audience is None:
        return None
    issuer = settings.oidc_issuer or oidc.issuer_of(options)
    fetch = partial(fetched, proxy=options.proxies.of(issuer))
    return OidcTokens(options.host, issuer, audience, clock, fetch)


def sign_in_of(settings: Settings, options: GitHubOptions, clock: Clock) -> GitHubSignIn | None:
    """Return the sign-in of people; None if pages use another way.

    Raises StartRefused naming the setting that it lacks.
    """
    if listening.readers_of(settings) is not DashboardAuth.GITHUB:
        return None
    root, id_ = settings.public_url, settings.github_client_id
    secret = text_of(settings.github_client_secret)
    if root is None or id_ is None or secret is None:
        raise StartRefused(
            f"{PREFIX}DASHBOARD_AUTH: github needs {PREFIX}PUBLIC_URL, {PREFIX}GITHUB_CLIENT_ID "
            f"and {PREFIX}GITHUB_CLIENT_SECRET. Find the last two on the App's settings page"
        )
    return GitHubSignIn(options, OAuthClient(id_, secret, root), clock)


async def _opened_store(
    stack: AsyncExitStack, settings: Settings, world: World, how: StoreOptions
) -> Store:
    """Open the deployment's database; the stack closes it."""
    store = await open_store(
        settings.database_address,
        clock=world.clock,
        ids=world.ids,
        crash_points=world.crash_points,
        options=how,
    )
    stack.push_async_callback(store.close)
    return store


def _opened_sender(stack: AsyncExitStack, settings: Settings, proxies: Proxies) -> HttpSender:
    """Return the sender of notifications; the stack closes it."""
    rules = Rules(settings.webhook_ports, settings.webhook_allow_networks)
    sender = HttpSender(rules, proxy_of=proxies.of)
    stack.callback(sender.close)
    return sender


def periods_of(settings: Settings) -> Periods:
    """Return the periods of the sweeps."""
    return Periods(
        timers=timedelta(seconds=settings.period_timers_s),
        readback=timedelta(seconds=settings.period_readback_s),
        run_checks=timedelta(seconds=settings.period_run_checks_s),
        queues=timedelta(seconds=settings.period_queues_s),
        idle=timedelta(seconds=settings.period_idle_s),
        redelivery=timedelta(seconds=settings.period_redelivery_s),
        orphans=timedelta(seconds=settings.period_orphans_s),
        tests=timedelta(seconds=settings.period_tests_s),
        comments=timedelta(seconds=settings.period_comments_s),
    )


def key_ring(settings: Settings) -> KeyRing:
    """Return the keys; a SQLite deployment without a setting makes its own beside the database.

    PostgreSQL is refused without one: several instances must agree on it
    (docs/design/security.md 1).
    """
    previous = text_of(settings.secret_key_previous)
    present = text_of(settings.secret_key)
    if present is None and not settings.is_sqlite:
        raise StartRefused(
            f"{PREFIX}SECRET_KEY is not set, and PostgreSQL needs it. Make one with "
            "`openssl rand -base64 32` and give it to every instance"
        )
    return KeyRing(present or secret_key_in(settings.data_dir), previous)


def _github_options_of(settings: Settings, proxies: Proxies) -> GitHubOptions:
    """Return the App's credentials. Raises StartRefused naming the missing or wrong setting."""
    if settings.github_app_id is None:
        raise StartRefused(
            f"{PREFIX}GITHUB_APP_ID is not set. Give the App's number, with "
            f"{PREFIX}GITHUB_PRIVATE_KEY and {PREFIX}GITHUB_WEBHOOK_SECRET"
        )
    keys = given(settings, "github_private_key", "github_private_key_previous")
    if not keys:
        raise StartRefused(
            f"{PREFIX}GITHUB_PRIVATE_KEY is not set. Paste the App's PEM file, or give its path"
        )
    return GitHubOptions(
        host=settings.github_host,
        addresses=github_options.addresses_of(settings.github_host, settings.github_url),
        app_id=settings.github_app_id,
        private_keys=tuple(
            github_options.parse_private_key(text, f"{PREFIX}{name.upper()}")
            for name, text in keys.items()
        ),
        webhook_secrets=webhook_secrets_of(settings),
        write_spacing_ms=settings.github_write_spacing_ms,
        limits=settings.github_limits,
        api_version=settings.github_api_version,
        user_agent=f"headgate/{VERSION}",
        mirrors=MirrorOptions(
            BuildMethod(settings.build_method),
            settings.data_dir.absolute() / "mirrors",
            settings.mirrors_max_gb << 30,
            os.environ,
            proxies,
        ),
        proxies=proxies,
    )


def webhook_secrets_of(settings: Settings) -> tuple[str, ...]:
    """Return the webhook secrets, the present one first. Raises StartRefused."""
    secrets = given(settings, "github_webhook_secret", "github_webhook_secret_previous")
    return github_options.check_webhook_secrets(tuple(secrets.values()))


def given(settings: Settings, *names: str) -> dict[str, str]:
    """Return those of these secrets that are set, by name."""
    found = {name: text_of(getattr(settings, name)) for name in names}
    return {name: text for name, text in found.items() if text is not None}


def text_of(secret: SecretStr | None) -> str | None:
    """Return a secret's text, None if it is unset or empty."""
    return (secret.get_secret_value() or None) if secret is not None else None


class Striking:
    """A crash point that strikes once, for crash tests (docs/design/transactions.md 10)."""

    def __init__(self, planned: FaultBoundary) -> None:
        self.planned = planned
        self.passed: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        """Pass the crash point, or strike."""
        self.passed[name] += 1
        if (name, self.passed[name]) != (self.planned.name, self.planned.nth):
            return
        match self.planned.strike:
            case Strike.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Strike.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
            case Strike.RAISE:
                raise InvariantBroken("FAULT", f"planned at {name}")

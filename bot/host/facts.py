"""Everything the audits of this machine look at, read once."""

import os
import shutil
import ssl
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import aiohttp
from aiohttp import web

from bot import keys, listening
from bot.github import options, wire
from bot.github import webhook as receiver
from bot.github.told_times import skew_s
from bot.listening import Address
from bot.settings import APP_FILE, Settings
from bot.uploader.proxies import Proxies
from service.errors import StartRefused
from service.http import addresses, connections

CONNECT_S, TOTAL_S = 5.0, 15.0
STARTING = {"title": "Not started", "code": "not_started", "detail": "The doctor listens here."}
RETRY_AFTER_S = 5
DRAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class DataDirFacts:
    """The data directory; the rest is meaningless if it is not there.

    `open_files`: files of secrets that others than their owner may use.
    """

    path: Path
    is_there: bool
    is_writable: bool = False
    mode: int = 0
    bytes_free: int = 0
    open_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Authority:
    """A certification authority that has expired."""

    name: str
    until: str


@dataclass(frozen=True, slots=True)
class AuthorityFacts:
    """The certification authorities that TLS trusts; `source` is a file or folder.

    `expired` are those of a file that SSL_CERT_FILE names.
    """

    source: str
    has_any: bool
    expired: tuple[Authority, ...] = ()


@dataclass(frozen=True, slots=True)
class Visited:
    """An answer from an address; `trouble`: why there is none."""

    url: str
    trouble: str = ""
    status: int = 0
    kind: str = ""
    date: str | None = None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class GitHubFacts:
    """The answers of GitHub's API and web host; `proxied`: the addresses asked through a proxy."""

    visited: tuple[Visited, ...]
    proxied: frozenset[str]
    skew_s: float | None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request that came to this machine: its `Host`, and who sent it, a proxy if `is_passed_on`.

    `has_client`: it has `X-Forwarded-For`. `is_trusted`: HEADGATE_TRUSTED_PROXIES names the sender.
    """

    host: str
    sender: str
    is_passed_on: bool
    has_client: bool
    is_trusted: bool


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """The answers of HEADGATE_PUBLIC_URL, which is None if it is not set.

    `arrived`: the request as it came, known only while the service does not run.
    """

    url: str | None
    port: int
    trusts_proxies: bool
    health: Visited | None = None
    webhook: Visited | None = None
    arrived: Arrived | None = None


def read_data_dir(path: Path) -> DataDirFacts:
    """Read the folder and the modes of the secrets in it."""
    whole = path.absolute()
    if not whole.is_dir():
        return DataDirFacts(whole, is_there=False)
    secrets = [whole / name for name in (keys.KEY_FILE, APP_FILE)]
    return DataDirFacts(
        path=whole,
        is_there=True,
        is_writable=os.access(whole, os.W_OK | os.X_OK),
        mode=stat.S_IMODE(whole.stat().st_mode),
        bytes_free=shutil.disk_usage(whole).free,
        open_files=tuple(str(each) for each in secrets if each.exists() and _is_open(each)),
    )


def _is_open(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def read_authorities(now: datetime) -> AuthorityFacts:
    """Read the authorities as every TLS connection of this process does."""
    paths = ssl.get_default_verify_paths()
    context = ssl.create_default_context()
    loaded = context.get_ca_certs()
    folder = Path(paths.capath) if paths.capath else None
    # OpenSSL reads the files of a folder only when it needs one.
    in_folder = folder is not None and any(folder.glob("*.[0-9]"))
    # Systems keep authorities of old; what people put together themselves they use.
    own = loaded if os.environ.get(paths.openssl_cafile_env) else []
    expired = tuple(
        Authority(_name_of(each), str(each["notAfter"]))
        for each in own
        if ssl.cert_time_to_seconds(str(each["notAfter"])) < now.timestamp()
    )
    source = paths.cafile or paths.capath or paths.openssl_cafile
    return AuthorityFacts(source, bool(loaded) or in_folder, expired)


def _name_of(certificate: Mapping[str, object]) -> str:
    subject = certificate.get("subject")
    parts = subject if isinstance(subject, tuple) else ()
    names = {key: value for each in parts for key, value in each}
    return str(names.get("commonName") or names.get("organizationName") or "unnamed")


async def read_github(settings: Settings, proxies: Proxies, now: datetime) -> GitHubFacts:
    """Ask GitHub's API and web host for anything; an answer of any status is one."""
    found = options.addresses_of(settings.github_host, settings.github_url)
    urls = tuple(dict.fromkeys((found.api, found.web)))
    visited = tuple([await visit(url, proxies) for url in urls])
    date = next((each.date for each in visited if each.date), None)
    return GitHubFacts(
        visited,
        frozenset(url for url in urls if proxies.of(url)),
        None if date is None else skew_s(date, now),
    )


async def read_public(settings: Settings, proxies: Proxies) -> PublicFacts:
    """Ask the public address; while the service does not run, answer at its port meanwhile."""
    url, trusts = settings.public_url, bool(settings.trusted_proxies)
    if url is None:
        return PublicFacts(None, settings.port, trusts)
    async with _standing_in(settings) as arrived:
        health = await visit(f"{url}/healthz", proxies)
        webhook = await visit(f"{url}{receiver.PATH}", proxies)
    first = arrived[0] if arrived else None
    return PublicFacts(url, settings.port, trusts, health, webhook, first)


@asynccontextmanager
async def _standing_in(settings: Settings) -> AsyncIterator[list[Arrived]]:
    """Answer health checks at the service's port if nobody listens there; note what comes."""
    arrived: list[Arrived] = []

    async def note(request: web.Request, _: web.StreamResponse) -> None:
        sender = request.remote or ""
        arrived.append(
            Arrived(
                host=request.host,
                sender=sender,
                is_passed_on=addresses.is_passed_on(request),
                has_client="X-Forwarded-For" in request.headers,
                is_trusted=addresses.is_among(sender, settings.trusted_proxies),
            )
        )

    app = web.Application()
    listening.refuse_the_rest(app, {"service": "failed"}, STARTING, RETRY_AFTER_S)
    app.on_response_prepare.append(note)
    runner = connections.runner(app, drain_s=DRAIN_S)
    own = Address(settings)
    try:
        with suppress(StartRefused):  # the service runs there
            await own.listen(runner)
        yield arrived
    finally:
        await runner.cleanup()
        own.close()


async def visit(url: str, proxies: Proxies) -> Visited:
    """Return the answer to a GET, redirects not followed, through the proxy if there is one."""
    timeout = aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, allow_redirects=False, proxy=proxies.of(url)) as answer,
        ):
            body = await answer.content.read(connections.LINE_BYTES_MAX)
            kind, date = answer.content_type, answer.headers.get("date")
            return Visited(url, "", answer.status, kind, date, body)
    except aiohttp.ClientHttpProxyError as failure:
        return Visited(url, f"the outbound proxy answered {failure.status}")
    except aiohttp.ClientConnectorError as failure:
        return Visited(url, wire.why_not_connected(failure))
    except TimeoutError:
        return Visited(url, "it did not answer in time")
    except (aiohttp.ClientError, OSError) as failure:
        return Visited(url, f"no answer: {type(failure).__name__}")


def is_health(visited: Visited) -> bool:
    """Return whether it is the answer of Headgate to a health check."""
    text = visited.body.replace(b" ", b"")
    return visited.status == 200 and text.startswith(b'{"status":"ok"')


def is_problem(visited: Visited) -> bool:
    """Return whether it is a refusal in Headgate's form, which no proxy makes by itself."""
    return visited.kind == "application/problem+json"

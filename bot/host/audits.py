"""Audits of this machine: settings, data directory, database, network, public address, the App."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bot import forms, listening, wiring
from bot import settings as all_settings
from bot.github.audits import app
from bot.github.audits import audits as of_github
from bot.host import facts
from bot.host.facts import (
    AuthorityFacts,
    DataDirFacts,
    GitHubFacts,
    PublicFacts,
    Visited,
)
from bot.settings import Settings
from service.clock import SystemClock
from service.database import inspection
from service.database.inspection import DatabaseState
from service.errors import StartRefused
from service.provider import audits
from service.provider.audits import Finding, audit, error, fine, note, warning

GIB = 1 << 30
BYTES_WARNED, BYTES_NEEDED = 5 * GIB, GIB
"""The database, its copies before an upgrade, and mirrors share the disk."""
SETTINGS = "settings"
SETTINGS_MEND = "Correct it: `headgate serve` refuses to start with it."
DATABASE = "database"
DATABASE_MEND = "`headgate serve` waits for the database, or refuses it. Repair what it names."


@audit("data-directory", "The data directory is there, private, and has room.")
def data_directory(found: DataDirFacts) -> Iterator[Finding]:
    """Yield what is wrong with the folder, its files and its disk."""
    path = found.path
    if not found.is_there:
        yield note(f"There is no data directory {path} yet.", "`headgate serve` makes it.")
        return
    if not found.is_writable:
        yield error(
            f"This user may not write to {path}.",
            "Run the command as the user of the service, or give the folder to this user.",
        )
    if found.mode & 0o077:
        yield warning(
            f"{path} has mode {found.mode:04o}, so others may enter it.", f"chmod 700 {path}"
        )
    for file in found.open_files:
        yield error(f"Others may read the secret in {file}.", f"chmod 600 {file}")
    if found.bytes_free < BYTES_WARNED:
        severity = error if found.bytes_free < BYTES_NEEDED else warning
        yield severity(
            f"The disk of {path} has {found.bytes_free / GIB:.1f} GiB left. When it is full, "
            "nothing lands.",
            "Make room, or put HEADGATE_DATA_DIR on a larger disk.",
        )


@audit(DATABASE, "The database can be opened and has the schema of this version.")
def database(found: DatabaseState) -> Iterator[Finding]:
    """Yield a pending migration, and settings of a server that lose commits."""
    if found.revision is None:
        yield note(f"The database ({found.kind}) is empty.", "`headgate serve` makes its schema.")
    elif found.is_behind:
        yield note(
            f"The database ({found.kind}) has schema {found.revision}, which is older than that of "
            "this version.",
            "`headgate serve` migrates it; with `--no-migrate`, run `headgate migrate` first.",
        )
    for risk in found.risks:
        yield warning(
            f"The server of the database has `{risk}`: after a crash it may have lost what it "
            "confirmed.",
            f"Set `{risk.split(' ')[0]} = on` there.",
        )


@audit("authorities", "There are certification authorities, and none has expired.")
def authorities(found: AuthorityFacts) -> Iterator[Finding]:
    """Yield an error without any, a warning for each that has expired."""
    if not found.has_any:
        yield error(
            f"No certification authority is trusted ({found.source}), so no HTTPS request works.",
            "Install the package `ca-certificates`, or set SSL_CERT_FILE.",
        )
    for each in found.expired:
        yield warning(
            f"The certification authority “{each.name}” of {found.source} expired on {each.until}.",
            "If your Enterprise Server or your outbound proxy uses it, put its successor there.",
        )


@audit("github-access", "This machine reaches GitHub.")
def github_access(found: GitHubFacts) -> Iterator[Finding]:
    """Yield an error for each address that does not answer."""
    for each in found.visited:
        if not each.trouble:
            continue
        host = urlsplit(each.url).netloc
        mend = f"Allow this machine connections to {host}, or set HTTPS_PROXY."
        if "certificate" in each.trouble:
            mend = "Name the authority that signed it by SSL_CERT_FILE."
        elif each.url in found.proxied:
            mend = f"Let the outbound proxy allow {host}, or name the host in NO_PROXY."
        yield error(f"{each.url} cannot be reached: {each.trouble}.", mend)


@audit("public-address", "The public address leads to the service.")
def public_address(found: PublicFacts) -> Iterator[Finding]:
    """Yield what keeps GitHub and people from reaching the service as it expects."""
    if found.url is None or found.health is None or found.webhook is None:
        yield warning(
            "HEADGATE_PUBLIC_URL is not set, so links and the webhook address are unknown.",
            "Set it to the address that people and GitHub use.",
        )
        return
    parts = urlsplit(found.url)
    if forms.is_loopback(parts.hostname or ""):
        yield note(f"{found.url} is an address of this machine, which GitHub cannot reach.")
    elif parts.scheme == "http":
        yield warning(
            f"{found.url} is not encrypted: API tokens can be read on their way.",
            "Terminate TLS at a proxy, and set HEADGATE_PUBLIC_URL to its https:// address.",
        )
    elif not found.trusts_proxies:
        yield warning(
            "HEADGATE_TRUSTED_PROXIES is not set, so the proxy that ends TLS counts as one client "
            "for all, and shares their rate limits.",
            "Set it to the network of your proxy, as 127.0.0.0/8.",
        )
    if found.health.trouble:
        yield warning(
            f"This machine cannot reach {found.url}: {found.health.trouble}.",
            "If GitHub cannot either, repair the name, the firewall or the certificate. Some "
            "networks keep a machine from its own public address; then nothing is to be done.",
        )
        return
    yield from _wrong_answers(found, found.health, found.webhook)
    yield from _wrong_headers(found)


def _wrong_answers(found: PublicFacts, health: Visited, webhook: Visited) -> Iterator[Finding]:
    mend = f"Let the proxy pass on every path, unchanged, to port {found.port} of this machine."
    if not facts.is_health(health):
        yield error(f"{health.url} is answered with {health.status}, not by Headgate.", mend)
    elif not facts.is_problem(webhook):
        what = webhook.trouble or f"is answered with {webhook.status}, not by Headgate"
        yield error(f"{webhook.url}, where GitHub sends webhooks, {what}.", mend)


def _wrong_headers(found: PublicFacts) -> Iterator[Finding]:
    """Yield what a proxy did to the request; known only while the service does not run."""
    arrived = found.arrived
    if arrived is None:
        return
    wanted = urlsplit(found.url or "").netloc
    if arrived.host != wanted:
        yield error(
            f"The proxy changes `Host` from `{wanted}` to `{arrived.host}`.",
            "Let it pass on `Host` as it came, with nginx by `proxy_set_header Host $http_host`.",
        )
    if not arrived.is_passed_on:
        return
    if not arrived.has_client:
        yield warning(
            "The proxy sets no `X-Forwarded-For`, so all clients share its rate limits.",
            "Let it set that header to the address of the client.",
        )
    elif found.trusts_proxies and not arrived.is_trusted:
        yield warning(
            f"The proxy has the address {arrived.sender}, which HEADGATE_TRUSTED_PROXIES does not "
            "name, so its `X-Forwarded-For` is ignored.",
            "Add this address or its network.",
        )


IDS = (
    *(SETTINGS, data_directory.id, database.id, authorities.id),
    *(github_access.id, public_address.id),
)
"""The audits that are of this machine alone, in the order of docs/reference/doctor.md."""


async def examine(data_dir: Path | None) -> Sequence[Finding]:
    """Run every audit, the worst findings first. Changes nothing."""
    try:
        settings = all_settings.read(data_dir=data_dir)
        listening.readers_of(settings)
        proxies = wiring.proxies_here()
    except StartRefused as refused:
        return [error(refused.detail, SETTINGS_MEND, audit=SETTINGS)]
    now = SystemClock().now()
    github = await facts.read_github(settings, proxies, now)
    found = [
        fine("The settings can be read.", SETTINGS),
        *data_directory.findings(facts.read_data_dir(settings.data_dir)),
        *await _of_database(settings),
        *authorities.findings(facts.read_authorities(now)),
        *github_access.findings(github),
        *public_address.findings(await facts.read_public(settings, proxies)),
    ]
    if github.skew_s is not None:
        found += app.clock_skew.findings(github.skew_s)
    return audits.ordered([*found, *await _of_app(settings)])


async def _of_database(settings: Settings) -> Sequence[Finding]:
    try:
        return database.findings(await inspection.inspect(settings.database_address))
    except StartRefused as refused:
        return [error(refused.detail, DATABASE_MEND, audit=DATABASE)]


async def _of_app(settings: Settings) -> Sequence[Finding]:
    if not settings.has_app:
        words = "No App is registered yet."
        return [note(words, "`headgate serve` prints the address.", audit=of_github.APP_KEY)]
    clock = SystemClock()
    try:
        client = wiring.app_client(settings, clock)
    except StartRefused as refused:
        return [error(refused.detail, SETTINGS_MEND, audit=SETTINGS)]
    try:
        return await of_github.run_of_app(client, settings.public_url, clock.now())
    finally:
        await client.close()

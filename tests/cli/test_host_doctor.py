"""`headgate doctor --host`: each audit of this machine with a fine case and its faults."""

import json
import os
import subprocess
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import pytest
from aiohttp import web

from bot.cli import app
from bot.cli.exits import Exit
from bot.host import audits, facts
from bot.sandbox.app import SandboxOptions, running
from service.database import migrate, sqlite_file
from service.provider.audits import Severity
from tests.harness import databases, proxy
from tests.harness.machine import free_port
from tests.harness.needs import needs
from tests.harness.small_disk import mounted
from tests.harness.world import WorldOptions, hosting, serving

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _machine(monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("HEADGATE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("HEADGATE_PORT", str(free_port()))
    monkeypatch.setenv("HEADGATE_GITHUB_URL", "http://127.0.0.1:1")


async def found(audit):
    """What the doctor says of one audit, as (severity, found, mend)."""
    examined = await audits.examine(None)
    return [(one.severity, one.found, one.mend) for one in examined if one.audit == audit]


@asynccontextmanager
async def answering(answer):
    """The address of a server on loopback with one handler for everything."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def github_at(moment):
    """GitHub, with its clock there."""

    async def answer(_):
        return web.json_response({}, headers={"Date": format_datetime(moment, usegmt=True)})

    return answering(answer)


def passing_on(change):
    """A proxy in front of the service's port; `change` gets the headers of each request."""
    upstream = f"http://127.0.0.1:{os.environ['HEADGATE_PORT']}"

    async def answer(request):
        headers = {"Host": request.host, "X-Forwarded-For": request.remote or ""}
        change(headers)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{upstream}{request.path}", headers=headers) as there,
        ):
            body = await there.read()
            return web.Response(body=body, status=there.status, content_type=there.content_type)

    return answering(answer)


def make_read_only(folder):
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


async def test_settings_that_serve_would_refuse_are_the_only_finding(monkeypatch):
    assert (await found("settings"))[0][0] is Severity.OK
    monkeypatch.setenv("HEADGATE_PUBLC_URL", "x")
    (one,) = await audits.examine(None)
    assert (one.audit, one.severity) == ("settings", Severity.ERROR)
    assert "did you mean HEADGATE_PUBLIC_URL?" in one.found
    monkeypatch.delenv("HEADGATE_PUBLC_URL")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1")
    ((severity, words, _),) = await found("settings")
    assert severity is Severity.ERROR
    assert "HTTPS_PROXY is not an http address" in words


async def test_a_data_directory_is_fine_or_its_fault_is_named(tmp_path):
    (tmp_path / "secret.key").touch(0o600)
    assert (await found("data-directory"))[0][0] is Severity.OK
    tmp_path.chmod(0o755)
    (tmp_path / "secret.key").chmod(0o644)
    secret, rights = await found("data-directory")
    assert rights[::2] == (Severity.WARNING, f"chmod 700 {tmp_path}")
    assert secret[::2] == (Severity.ERROR, f"chmod 600 {tmp_path / 'secret.key'}")


async def test_a_data_directory_that_is_not_there_is_made_later(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADGATE_DATA_DIR", str(tmp_path / "later"))
    ((severity, words, _),) = await found("data-directory")
    assert (severity, words) == (
        Severity.NOTE,
        f"There is no data directory {tmp_path / 'later'} yet.",
    )
    assert not (tmp_path / "later").exists()


async def test_a_folder_that_cannot_be_written_to_is_an_error(monkeypatch, tmp_path):
    needs("mount")
    folder = tmp_path / "small"
    with mounted(folder, 8):
        make_read_only(folder)
        monkeypatch.setenv("HEADGATE_DATA_DIR", str(folder))
        first, *_ = await found("data-directory")
    assert first[:2] == (Severity.ERROR, f"This user may not write to {folder}.")


async def test_a_disk_that_is_nearly_full_is_an_error(monkeypatch, tmp_path):
    needs("mount")
    with mounted(tmp_path / "small", 8):
        monkeypatch.setenv("HEADGATE_DATA_DIR", str(tmp_path / "small"))
        ((severity, words, mend),) = await found("data-directory")
    assert severity is Severity.ERROR
    assert words == (
        f"The disk of {tmp_path / 'small'} has 0.0 GiB left. When it is full, nothing lands."
    )
    assert "Make room" in mend


async def test_a_database_of_this_version_is_fine(monkeypatch, database_url):
    monkeypatch.setenv("HEADGATE_DATABASE_URL", database_url)
    monkeypatch.setenv("HEADGATE_SECRET_KEY", "s" * 43)
    opened = await databases.opened_at(database_url)
    await opened.close()
    # The server of the tests saves what a real one must not.
    assert {one for one, _, mend in await found("database") if " = on" not in mend} <= {Severity.OK}


async def test_an_empty_database_is_filled_later(tmp_path):
    ((severity, words, _),) = await found("database")
    assert (severity, words.endswith(" is empty.")) == (Severity.NOTE, True)
    assert list(tmp_path.iterdir()) == []


async def test_the_schema_of_another_version_is_named(monkeypatch, sqlite_url):
    monkeypatch.setenv("HEADGATE_DATABASE_URL", sqlite_url)
    opened = await databases.opened_at(sqlite_url)
    await opened.close()
    for revision, severity, words in (
        (migrate.REVISIONS[-2], Severity.NOTE, "older than that of this version"),
        ("9999", Severity.ERROR, "does not run on the newer one"),
    ):
        with databases.connected(sqlite_url) as connection:
            connection.exec_driver_sql("UPDATE schema_compatibility SET runs_from = '9999'")
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
        ((found_severity, said, _),) = await found("database")
        assert found_severity is severity
        assert words in said


async def test_a_database_that_cannot_be_opened_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "headgate.db").write_bytes(b"no database" * 99)
    ((severity, words, _),) = await found("database")
    assert (severity, "file is not a database" in words) == (Severity.ERROR, True)
    monkeypatch.setenv("HEADGATE_DATABASE_URL", "postgresql://x:secret@127.0.0.1:1/x")
    ((severity, words, _),) = await found("database")
    assert severity is Severity.ERROR
    assert "secret" not in words


async def test_a_sqlite_file_on_a_network_disk_is_an_error(monkeypatch, tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"36 35 98:0 / {tmp_path} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(sqlite_file, "MOUNTS", mounts)
    ((severity, words, _),) = await found("database")
    assert (severity, "network file system (nfs4" in words) == (Severity.ERROR, True)


async def test_a_server_that_may_lose_commits_is_a_warning(monkeypatch, postgres_url):
    monkeypatch.setenv("HEADGATE_DATABASE_URL", postgres_url)
    monkeypatch.setenv("HEADGATE_SECRET_KEY", "s" * 43)
    opened = await databases.opened_at(postgres_url)
    await opened.close()
    for value in ("off", "on"):
        with databases.connected(postgres_url) as connection:
            name = connection.exec_driver_sql("SELECT current_database()").scalar()
            connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET synchronous_commit = {value}')
            connection.commit()
        warned = [words for _, words, _ in await found("database")]
        assert any("`synchronous_commit = off`" in words for words in warned) is (value == "off")


def test_authorities_are_there_and_one_of_ones_own_that_expired_is_named(monkeypatch, tmp_path):
    proxy.authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "corporate-ca.pem"))
    (one,) = audits.authorities.findings(facts.read_authorities(NOW))
    assert one.severity is Severity.OK
    later = facts.read_authorities(NOW + timedelta(days=2))
    (one,) = audits.authorities.findings(later)
    assert one.severity is Severity.WARNING
    assert one.found.startswith("The certification authority “Corporate CA” of ")


def test_a_machine_without_authorities_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    (one,) = audits.authorities.findings(facts.read_authorities(NOW))
    assert one.severity is Severity.ERROR
    assert "ca-certificates" in one.mend


async def test_github_is_reached_or_the_reason_is_named(monkeypatch):
    (severity, words, mend), *_ = await found("github-access")
    assert severity is Severity.ERROR
    assert "Connect call failed" in words or "refused" in words.lower()
    assert mend == "Allow this machine connections to 127.0.0.1:1, or set HTTPS_PROXY."
    async with github_at(datetime.now(UTC)) as url:
        monkeypatch.setenv("HEADGATE_GITHUB_URL", url)
        ((severity, _, _),) = await found("github-access")
    assert severity is Severity.OK


async def test_github_is_asked_through_the_proxy_whose_refusal_is_named(monkeypatch):
    monkeypatch.setenv("HEADGATE_GITHUB_URL", "http://localhost:1")
    async with github_at(datetime.now(UTC)) as url:
        leads = {"localhost:1": int(url.rpartition(":")[2])}
        async with proxy.proxying(leads) as way:
            monkeypatch.setenv("HTTP_PROXY", way.url)
            assert (await found("github-access"))[0][0] is Severity.OK
    async with proxy.proxying({}, answer=403) as way:
        monkeypatch.setenv("HTTP_PROXY", way.url)
        monkeypatch.setenv("HEADGATE_GITHUB_URL", "https://github.localhost")
        monkeypatch.setenv("HTTPS_PROXY", way.url)
        first, *_ = await found("github-access")
    assert first[0] is Severity.ERROR
    assert "the outbound proxy answered 502" in first[1]
    assert first[2].startswith("Let the outbound proxy allow github.localhost")


@pytest.mark.parametrize(
    ("ahead_s", "severity"), [(0, Severity.OK), (45, Severity.WARNING), (-3600, Severity.ERROR)]
)
async def test_the_clock_is_compared_with_githubs(monkeypatch, ahead_s, severity):
    async with github_at(datetime.now(UTC) - timedelta(seconds=ahead_s)) as url:
        monkeypatch.setenv("HEADGATE_GITHUB_URL", url)
        ((said, _, _),) = await found("clock-skew")
    assert said is severity


async def test_a_public_address_that_leads_to_the_port_has_no_fault(monkeypatch):
    ((severity, words, _),) = await found("public-address")
    assert (severity, "is not set" in words) == (Severity.WARNING, True)
    monkeypatch.setenv("HEADGATE_TRUSTED_PROXIES", "127.0.0.0/8")
    async with passing_on(lambda _: None) as url:
        monkeypatch.setenv("HEADGATE_PUBLIC_URL", url)
        ((severity, words, _),) = await found("public-address")
    assert (severity, words) == (
        Severity.NOTE,
        f"{url} is an address of this machine, which GitHub cannot reach.",
    )


async def test_the_service_itself_is_known_by_its_answers(monkeypatch, tmp_path):
    options = WorldOptions()
    async with hosting(options) as host, serving(tmp_path / "state", options, *host) as world:
        monkeypatch.setenv("HEADGATE_PUBLIC_URL", world.url)
        monkeypatch.setenv("HEADGATE_PORT", world.url.rpartition(":")[2])
        ((severity, _, _),) = await found("public-address")
    assert severity is Severity.NOTE


@pytest.mark.parametrize(
    ("change", "trusted", "words"),
    [
        (lambda headers: headers.update(Host="127.0.0.1:8642"), "127.0.0.0/8", "changes `Host`"),
        (
            lambda headers: headers.update({"X-Forwarded-For": "192.0.2.7"}),
            "10.0.0.0/8",
            "has the address 127.0.0.1, which HEADGATE_TRUSTED_PROXIES does not name",
        ),
        (
            lambda headers: (headers.pop("X-Forwarded-For"), headers.update(Via="1.1 x")),
            "127.0.0.0/8",
            "sets no `X-Forwarded-For`",
        ),
    ],
    ids=["host", "untrusted", "no client"],
)
async def test_what_a_proxy_does_to_headers_is_named(monkeypatch, change, trusted, words):
    monkeypatch.setenv("HEADGATE_TRUSTED_PROXIES", trusted)
    async with passing_on(change) as url:
        monkeypatch.setenv("HEADGATE_PUBLIC_URL", url)
        first, *_ = await found("public-address")
    assert words in first[1]


async def test_a_proxy_that_answers_by_itself_is_an_error(monkeypatch):
    async def refuse(_):
        return web.Response(status=502)

    async def only_health(request):
        is_health = request.path == "/healthz"
        return web.json_response({"status": "ok"}) if is_health else web.Response(status=404)

    for answer, words in (
        (refuse, "/healthz is answered with 502, not by Headgate"),
        (only_health, "where GitHub sends webhooks, is answered with 404"),
    ):
        async with answering(answer) as url:
            monkeypatch.setenv("HEADGATE_PUBLIC_URL", url)
            (severity, said, mend), *_ = await found("public-address")
        assert severity is Severity.ERROR
        assert words in said
        assert os.environ["HEADGATE_PORT"] in mend


async def test_a_public_address_that_is_away_or_plain_is_a_warning(monkeypatch):
    monkeypatch.setenv("HEADGATE_PUBLIC_URL", "http://queue.invalid")
    plain, away = await found("public-address")
    assert (plain[0], away[0]) == (Severity.WARNING, Severity.WARNING)
    assert "is not encrypted" in plain[1]
    assert away[1].startswith("This machine cannot reach http://queue.invalid: ")
    monkeypatch.setenv("HEADGATE_PUBLIC_URL", "https://queue.invalid")
    assert "HEADGATE_TRUSTED_PROXIES is not set" in (await found("public-address"))[0][1]


@pytest.fixture
async def sandbox(monkeypatch):
    async with running(SandboxOptions(has_example=True)) as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HEADGATE_DASHBOARD_AUTH", "token")
        yield made


async def test_the_app_is_examined_on_every_account(sandbox):
    assert (await found("app-key"))[0][0] is Severity.OK
    assert (await found("app-permissions"))[0][0] is not Severity.ERROR
    (installed,) = sandbox.world.installations.values()
    installed.permissions["contents"] = "read"
    (first, *_) = await found("app-permissions")
    assert first[0] is Severity.ERROR
    assert first[1].startswith(f"{installed.account.login}: The App asks for `contents: write`")
    installed.suspended_at = NOW
    ((severity, words, _),) = await found("installation")
    assert (severity, "is suspended" in words) == (Severity.ERROR, True)
    sandbox.world.installations.clear()
    assert (await found("installation"))[0][1] == "The App is installed nowhere."


async def test_the_webhook_and_the_events_of_the_app_are_examined(sandbox, monkeypatch):
    monkeypatch.setenv("HEADGATE_PUBLIC_URL", "https://queue.invalid")
    ((severity, words, _),) = [each for each in await found("webhook") if "webhook URL" in each[1]]
    assert severity is Severity.ERROR
    assert "webhook URL" in words
    assert (await found("app-events"))[0][0] is Severity.OK


async def test_a_key_that_github_refuses_is_an_error(sandbox, monkeypatch):
    monkeypatch.setenv("HEADGATE_GITHUB_APP_ID", "4711")
    ((severity, _, mend),) = await found("app-key")
    assert severity is Severity.ERROR
    assert "make a new private key" in mend


def test_the_command_prints_and_ends_as_the_doctor_of_a_repository(capsys):
    assert app.run(["doctor", "--host"]) == Exit.FALSE
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["this machine", "", "Errors (2)"]
    assert said[3].startswith("  github-access: ")
    assert app.run(["doctor", "--host", "--json"]) == Exit.FALSE
    answer = json.loads(capsys.readouterr().out)
    assert (answer["branch"], answer["passed"]) == (None, False)
    assert {one["audit"] for one in answer["findings"]} == {*audits.IDS, "app-key"}


def test_the_machine_is_examined_alone(capsys):
    assert app.run(["doctor", "octo/widgets", "--host"]) == Exit.USAGE
    assert "Give it alone" in capsys.readouterr().err

"""`serve`, `sandbox`, `migrate`, `token` as processes: how they start, refuse and end."""

import json
import signal
import socket
import sqlite3
import urllib.error
import urllib.parse
import urllib.request

import pytest

from bot.cli import app
from tests.cli import processes

KEY = "k" * 43


SETTINGS = (
    "HEADGATE_GITHUB_URL",
    "HEADGATE_GITHUB_HOST",
    "HEADGATE_GITHUB_APP_ID",
    "HEADGATE_GITHUB_PRIVATE_KEY",
    "HEADGATE_GITHUB_WEBHOOK_SECRET",
    "HEADGATE_GITHUB_CLIENT_ID",
    "HEADGATE_GITHUB_CLIENT_SECRET",
)


@pytest.fixture(name="lines", scope="module")
def _lines(tmp_path_factory):
    """The lines of a sandbox which runs for all tests of this file, and ends when asked to."""
    folder = tmp_path_factory.mktemp("sandbox")
    with processes.started("sandbox", "--port", "0", cwd=folder) as child:
        yield [child.stdout.readline().strip() for _ in SETTINGS]
        child.send_signal(signal.SIGTERM)
        assert child.wait(processes.END_TIMEOUT_S) == 0


@pytest.fixture(name="github", scope="module")
def _github(lines):
    """Settings that lead to that sandbox."""
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(name="served", scope="module")
def _served(tmp_path_factory, github):
    """A service that runs for all tests of this file that act beside it, and its folder.

    Its log must contain no token.
    """
    folder = tmp_path_factory.mktemp("served")
    with processes.serving(folder, **github) as service:
        yield service, folder
        assert service.stop() == 0
    assert "hgt_" not in "".join(service.log)


@pytest.fixture(name="service")
def _service(monkeypatch, served):
    """That service; commands run in its folder."""
    service, folder = served
    monkeypatch.chdir(folder)
    return service


@pytest.fixture(name="headgate")
def _headgate(monkeypatch, capsys):
    """A command run in this process, with these settings: exit code, stdout, stderr."""

    def run(*arguments, **settings):
        with monkeypatch.context() as patched:
            for name, value in settings.items():
                patched.setenv(name, value)
            code = app.run(list(arguments))
        return code, *capsys.readouterr()

    with processes.log_kept():
        yield run


@pytest.fixture(name="refused")
def _refused(headgate):
    """What `serve` says when it does not start."""

    def run(*arguments, **settings):
        code, out, err = headgate("serve", *arguments, **settings)
        assert (code, out) == (8, "")
        said = [line for line in err.splitlines() if not line.startswith("{")]
        assert len(said) == 1
        assert said[0].startswith("headgate: ")
        return said[0]

    return run


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
def test_serve_starts_answers_keeps_its_state_to_itself_and_ends_with_0(tmp_path, github, number):
    with processes.serving(tmp_path, "--data-dir", "state", **github) as service:
        with urllib.request.urlopen(f"{service.url}/readyz") as answer:
            assert answer.status == 200
        assert service.stop(number) == 0
        assert json.loads(service.log[-1])["event"] == "stopped"
    found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
    assert set(found) >= {"headgate.db", "secret.key"}
    assert set(found.values()) == {0o600}
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_serve_works_and_ends_though_nobody_takes_its_log_any_more(tmp_path, github):
    with processes.serving(tmp_path, HEADGATE_LOG_LEVEL="debug", **github) as service:
        service.child.stderr.close()
        for _ in range(2):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{service.url}/v1/tokens/self")
        with urllib.request.urlopen(f"{service.url}/readyz") as answer:
            assert answer.status == 200
        service.child.send_signal(signal.SIGTERM)
        assert service.child.wait(processes.END_TIMEOUT_S) == 0
        service.child.stderr = None


def test_a_second_serve_over_the_same_state_is_refused_with_the_first_ones_pid(
    service, refused, github
):
    said = refused("--port", "0", **github)
    assert str(service.child.pid) in said
    assert "HEADGATE_DATABASE_URL" in said


def test_a_port_in_use_is_refused(refused, github):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--port", str(taken.getsockname()[1]), **github)
    assert "HEADGATE_PORT" in said
    assert "in use" in said


def test_an_address_that_is_not_ours_is_refused(refused, github):
    assert "HEADGATE_HOST" in refused("--host", "192.0.2.1", "--port", "0", **github)


@pytest.mark.parametrize("name", ["GITHUB_APP_ID", "GITHUB_PRIVATE_KEY", "GITHUB_WEBHOOK_SECRET"])
def test_without_the_apps_credentials_nothing_starts(refused, github, name):
    settings = {key: value for key, value in github.items() if key != f"HEADGATE_{name}"}
    assert f"HEADGATE_{name}" in refused(**settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_PRIVATE_KEY", "MIIEvQIBADANBgkq"),
        ("GITHUB_WEBHOOK_SECRET", "short"),
        ("GITHUB_URL", "http://github.example.org"),
        ("DATABASE_URL", "mysql://db/x"),
        ("DATABASE_URL", "sqlite:////proc/none/headgate.db"),
        ("PORT", "80000"),
        ("PROT", "8642"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(refused, github, name, value):
    settings = github | {f"HEADGATE_{name}": value, "HEADGATE_SECRET_KEY": KEY}
    assert f"HEADGATE_{name}" in refused(**settings)


def test_postgresql_without_a_secret_key_is_refused(refused, github):
    url = "postgresql://127.0.0.1:1/none"
    assert "HEADGATE_SECRET_KEY" in refused("--database-url", url, **github)


def test_a_database_that_is_behind_is_refused_when_asked_to(refused, github):
    assert "headgate migrate" in refused("--no-migrate", "--port", "0", **github)


def test_a_newer_schema_is_refused(tmp_path, headgate, refused, github):
    headgate("migrate")
    database = sqlite3.connect(tmp_path / "headgate-data/headgate.db")
    with database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.execute("UPDATE schema_compatibility SET runs_from = '9998'")
    database.close()
    assert "9999" in refused("--port", "0", **github)


def test_migrate_brings_the_schema_up_to_date_and_check_only_looks(headgate):
    before = headgate("migrate", "--check")
    done = headgate("migrate")
    after = headgate("migrate", "--check")
    assert [each[0] for each in (before, done, after)] == [1, 0, 0]
    assert before[1] == "the schema is behind\n"
    assert done[1] == after[1] == "the schema is up to date\n"


@pytest.mark.usefixtures("service")
def test_a_backup_is_made_beside_serve_and_never_over_a_file(headgate):
    first = headgate("migrate", "--backup-to", "copy.db", "--json")
    second = headgate("migrate", "--backup-to", "copy.db")
    assert (first[0], second[0]) == (0, 8)
    assert json.loads(first[1]) == {"behind": False, "backup": "copy.db"}
    assert "copy.db" in second[2]
    copy = sqlite3.connect("copy.db")
    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    copy.close()


def asked(url, token):
    """The status with which the API answers somebody who holds this token."""
    request = urllib.request.Request(f"{url}/v1/tokens/self", headers={"x-api-token": token})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_tokens_are_made_rotated_and_revoked_beside_serve(service, headgate, github):
    host = {"HEADGATE_GITHUB_HOST": github["HEADGATE_GITHUB_HOST"]}

    def token(*arguments):
        code, out, err = headgate("token", *arguments, **host)
        assert code == 0, err
        return out

    limits = ("--open-entries", "6", "--ci-minutes", "600")
    made = token("create", "--org", "octo", "--role", "admin", "--name", "ci", *limits)
    first = made.strip()
    assert made == first + "\n"
    assert asked(service.url, first) == 200
    rotated = json.loads(token("rotate", first[4:14], "--overlap-hours", "0", "--json"))
    second = rotated["token"]
    assert (rotated["id"], rotated["role"]) == (second[4:14], "admin")
    assert asked(service.url, second) == 200
    assert asked(service.url, first) == 401
    assert token("revoke", second[4:14]) == f"Revoked {second[4:14]} (ci)\n"
    assert asked(service.url, second) == 401
    listed = json.loads(token("list", "--org", "octo", "--json"))["tokens"]
    assert [(each["id"], each["role"]) for each in listed] == [
        (first[4:14], "admin"),
        (second[4:14], "admin"),
    ]
    assert {(each["open_entries"], each["ci_minutes"]) for each in listed} == {(6, 600)}
    assert "6 PRs, 600 min a day" in token("list", "--org", "octo")
    assert first not in json.dumps(listed)


def test_a_database_that_a_token_command_makes_is_named(headgate, tmp_path):
    arguments = ("create", "--org", "octo", "--role", "read", "--name", "n", "--data-dir", "typo")
    said = f"headgate: a new database was created at {tmp_path / 'typo' / 'headgate.db'}.\n"
    first, second = headgate("token", *arguments), headgate("token", *arguments)
    assert first[2].startswith(said)
    assert said not in second[2]


def test_a_file_that_is_no_database_is_refused_in_one_plain_sentence(headgate, tmp_path):
    file = tmp_path / "x.db"
    file.write_text("nothing of a database in here")
    ended, _, err = headgate(
        "token", "list", "--org", "octo", "--database-url", f"sqlite:///{file}"
    )
    assert ended == 8
    assert err == f"headgate: The database {file} cannot be opened: file is not a database.\n"


def test_the_first_token_may_come_before_the_first_serve(headgate):
    arguments = ("token", "create", "--org", "octo", "--role", "read", "--name", "n")
    code, out, err = headgate(*arguments)
    assert code == 0
    assert out.startswith("hgt_")
    assert "octo on github.com is a new organization here" in err
    assert "a new organization" not in headgate(*arguments)[2]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "--org", "nobody"], 4),
        (["revoke", "0000000000"], 4),
        (["create", "--org", "octo", "--role", "owner", "--name", "n"], 2),
        (["create", "--org", "octo", "--role", "read", "--name", ""], 2),
        (["create", "--org", "", "--role", "read", "--name", "n"], 2),
        (["create", "--org", "octo/widgets", "--role", "read", "--name", "n"], 2),
        (["create", "--org", "octo", "--role", "read", "--name", "n", "--expires", "400"], 2),
        (["create", "--org", "octo", "--role", "read", "--name", "n", "--repo", "octo/none"], 4),
    ],
)
def test_a_token_command_that_cannot_be_done_says_why(headgate, arguments, code):
    ended, out, err = headgate("token", *arguments)
    assert (ended, out) == (code, "")
    assert err.startswith("headgate: ")


def test_the_sandbox_prints_the_settings_that_lead_to_it(lines):
    assert [line.partition("=")[0] for line in lines] == list(SETTINGS)


def test_the_sandbox_is_not_shown_to_other_machines_by_mistake(headgate):
    code, _, err = headgate("sandbox", "--host", "0.0.0.0", "--port", "0")
    assert code == 8
    assert "--expose" in err


def test_a_sandbox_on_a_taken_port_is_refused(headgate):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = headgate("sandbox", "--port", port)
    assert code == 8
    assert "--port" in err


def test_setup_url_prints_a_link_that_opens_the_set_up_pages_once(service, headgate):
    port = service.url.rpartition(":")[2]
    code, out, _ = headgate("setup-url", "--json", HEADGATE_PORT=port)
    assert code == 0
    link = json.loads(out)["url"]
    assert link.startswith(f"{service.url}/setup?token=")
    opened = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opened.open(link) as answer:
        assert b"Begin" in answer.read()
    form = urllib.parse.urlencode({"token": link.partition("token=")[2]}).encode()
    request = urllib.request.Request(f"{service.url}/setup/enter", form, {"Origin": service.url})
    with opened.open(request) as answer:
        assert (answer.status, answer.url) == (200, f"{service.url}/setup/queues")
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(link):
        pass
    with refused.value as answer:
        assert answer.code == 403


def test_setup_url_makes_no_link_for_a_folder_without_a_service(headgate, tmp_path):
    code, out, err = headgate("setup-url", "--data-dir", str(tmp_path / "none"))
    assert (code, out) == (8, "")
    assert f"{tmp_path / 'none'} does not exist" in err
    assert not (tmp_path / "none").exists()


def test_setup_mode_needs_a_folder_that_can_be_written(refused):
    assert "HEADGATE_DATA_DIR" in refused("--data-dir", "/proc/none", HEADGATE_SECRET_KEY=KEY)

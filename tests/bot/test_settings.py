"""What an operator sets, and how a wrong setting refuses the start."""

import pytest

from bot import forms, settings, wiring
from bot.settings import FaultBoundary, Strike
from service.errors import StartRefused
from service.limits import Rate

LONG_KEY = "k" * 43


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path):
    for name in settings.environment_of_headgate():
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_without_any_setting_it_is_sqlite_in_a_folder_here_and_listens_on_this_machine(tmp_path):
    chosen = settings.read()
    assert chosen.database_address == f"sqlite:///{tmp_path}/headgate-data/headgate.db"
    assert chosen.is_sqlite
    assert (chosen.host, chosen.port, chosen.workers) == ("127.0.0.1", 8642, True)
    assert (chosen.auto_create_queues, chosen.github_host) == (True, "github.com")


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("HEADGATE_PORT=1\nHEADGATE_HOST=::1\nHEADGATE_DATABASE_POOL=3\n")
    monkeypatch.setenv("HEADGATE_PORT", "2")
    monkeypatch.setenv("HEADGATE_HOST", "localhost")
    chosen = settings.read(port=3, host=None)
    assert (chosen.port, chosen.host, chosen.database_pool) == (3, "localhost", 3)


def test_settings_do_not_change_once_read():
    with pytest.raises(ValueError, match="frozen"):
        setattr(settings.read(), "port", 1)  # noqa: B010 - mypy knows already


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("PORT", "abc", "valid integer"),
        ("PORT", "70000", "less than or equal to 65535"),
        ("DATABASE_POOL", "0", "greater than or equal to 1"),
        ("DATABASE_URL", "mysql://db/x", "must begin with sqlite:/// or postgresql://"),
        ("PUBLIC_URL", "queue.example.org", "must be an http or https address"),
        ("PUBLIC_URL", "https://a@queue.example.org", "must have no user, query or fragment"),
        ("WORKERS", "perhaps", "valid boolean"),
        ("LOG_FORMAT", "xml", "'auto', 'json' or 'text'"),
        ("LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
        ("SECRET_KEY", "short", "at least 43 characters"),
        ("SECRET_KEY_PREVIOUS", "short", "at least 43 characters"),
        ("PERIOD_TIMERS_S", "0.5", "greater than or equal to 1"),
        ("PERIOD_ORPHANS_S", "3601", "less than or equal to 3600"),
        ("GITHUB_APP_ID", "headgate", "match pattern"),
        ("GITHUB_WRITE_SPACING_MS", "-1", "greater than or equal to 0"),
        ("API_RATE_READ", "200", "must be RATE/BURST, as 50/500, or 0 for no limit"),
        ("API_RATE_WRITE", "0/5", "must be RATE/BURST"),
        ("API_RATE_METRICS", "5/0", "must be RATE/BURST"),
        ("API_RATE_AUTH_FAILURE", "-1/5", "must be RATE/BURST"),
        ("API_ENUM_CASE", "upper", "'spec' or 'lower'"),
        ("API_COMPATIBILITY", "mergify", "'none' or 'trunk'"),
        ("TRUSTED_PROXIES", "10.0.0.0/8, proxy", "proxy is no network; give networks as"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "10.0.0.1/8 is no network"),
        ("ADMINS", "9001, al ice", "al ice is no account; give logins or the numbers of acc"),
        ("FAULT_BOUNDARY", "tx.turn.before_comit:1:kill", "did you mean tx.turn.before_commit?"),
        ("FAULT_BOUNDARY", "tx.turn.before_commit:0:kill", "NAME:N:kill"),
        ("FAULT_BOUNDARY", "tx.turn.before_commit:1:explode", "NAME:N:kill"),
    ],
)
def test_a_wrong_value_refuses_the_start_and_names_its_variable(monkeypatch, name, value, text):
    monkeypatch.setenv(f"HEADGATE_{name}", value)
    with pytest.raises(StartRefused) as refused:
        settings.read()
    assert refused.value.detail.startswith(f"HEADGATE_{name}: ")
    assert text in refused.value.detail


def test_a_rate_is_so_many_a_second_and_so_many_at_once(monkeypatch):
    monkeypatch.setenv("HEADGATE_API_RATE_READ", " 0.5/20 ")
    monkeypatch.setenv("HEADGATE_API_RATE_UPLOAD", "0")
    chosen = settings.read()
    assert (chosen.api_rate_read, chosen.api_rate_upload) == (Rate(0.5, 20), None)
    assert chosen.api_rate_write == Rate(50, 500)


def test_networks_stand_in_a_row_and_an_address_is_one_of_its_own(monkeypatch):
    monkeypatch.setenv("HEADGATE_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.7,fd00::/8,")
    shown = [str(network) for network in settings.read().trusted_proxies]
    assert shown == ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"]


@pytest.mark.parametrize("name", settings.SECRETS)
def test_no_refusal_repeats_a_secret(monkeypatch, name):
    monkeypatch.setenv(f"HEADGATE_{name.upper()}", "pa55word")
    try:
        shown = repr(settings.read())
    except StartRefused as refused:
        shown = refused.detail
    assert "pa55word" not in shown


def test_every_secret_is_on_the_list_of_secrets():
    hidden = {
        name
        for name, field in settings.Settings.model_fields.items()
        if "SecretStr" in f"{field.annotation}{field.metadata}"
    }
    assert hidden == set(settings.SECRETS)


def test_a_misspelled_name_is_refused_with_the_nearest_one(monkeypatch):
    monkeypatch.setenv("HEADGATE_GITHUB_APPID", "1")
    with pytest.raises(StartRefused, match="did you mean HEADGATE_GITHUB_APP_ID"):
        settings.read()


def test_a_misspelled_name_in_the_file_is_refused_too(tmp_path):
    (tmp_path / ".env").write_text("HEADGATE_PROT=1\n")
    with pytest.raises(StartRefused, match="HEADGATE_PROT is not a setting; did you mean"):
        settings.read()


def test_a_name_that_is_like_no_other_gets_no_hint(monkeypatch):
    monkeypatch.setenv("HEADGATE_FOO", "1")
    with pytest.raises(StartRefused, match=r"^HEADGATE_FOO is not a setting\. Unset it$"):
        settings.read()


KUBELET = {
    "HEADGATE_SERVICE_HOST": "10.96.0.12",
    "HEADGATE_SERVICE_PORT": "8642",
    "HEADGATE_SERVICE_PORT_HTTP": "8642",
    "HEADGATE_PORT": "tcp://10.96.0.12:8642",
    "HEADGATE_PORT_8642_TCP": "tcp://10.96.0.12:8642",
    "HEADGATE_PORT_8642_TCP_PROTO": "tcp",
    "HEADGATE_PORT_8642_TCP_PORT": "8642",
    "HEADGATE_PORT_8642_TCP_ADDR": "10.96.0.12",
    "HEADGATE_DATABASE_SERVICE_HOST": "10.96.0.13",
    "HEADGATE_DATABASE_SERVICE_PORT": "5432",
    "HEADGATE_DATABASE_SERVICE_PORT_POSTGRESQL": "5432",
    "HEADGATE_DATABASE_PORT": "tcp://10.96.0.13:5432",
    "HEADGATE_DATABASE_PORT_5432_TCP_ADDR": "10.96.0.13",
    "HEADGATE_DNS_SERVICE_HOST": "10.96.0.14",
    "HEADGATE_DNS_SERVICE_PORT": "53",
    "HEADGATE_DNS_PORT": "udp://10.96.0.14:53",
    "HEADGATE_DNS_PORT_53_UDP": "udp://10.96.0.14:53",
}
"""The variables of Services named `headgate`, `headgate-database` and `headgate-dns`:
https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
"""


def test_variables_that_kubernetes_adds_for_services_are_no_settings(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("HEADGATE_PORT=9000\n")
    for name, value in KUBELET.items():
        monkeypatch.setenv(name, value)
    assert settings.read().port == 9000
    assert settings.read(port=1).port == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "8642/tcp"),
        ("PORT", "tcp://10.96.0.12:8642"),
        ("PORT_TCP", "8642"),
        ("SERVICE", "x"),
        ("SERVICE_PORT", "9000"),
        ("SERVICE_HOST", "0.0.0.0"),
        ("PORTS", "tcp://10.96.0.12:1"),
    ],
)
def test_a_variable_that_kubernetes_does_not_add_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(f"HEADGATE_{name}", value)
    with pytest.raises(StartRefused, match=f"^HEADGATE_{name}"):
        settings.read()


def test_names_of_clients_and_tests_are_left_alone(monkeypatch):
    for name in settings.KNOWN_ELSEWHERE:
        monkeypatch.setenv(f"HEADGATE_{name}", "x")
    settings.read()


def test_an_empty_variable_is_as_good_as_none(monkeypatch):
    monkeypatch.setenv("HEADGATE_PORT", "")
    assert settings.read().port == 8642


def test_a_secret_may_stand_in_a_file(monkeypatch, tmp_path):
    file = tmp_path / "key"
    file.write_text(LONG_KEY + "\n")
    file.chmod(0o600)
    monkeypatch.setenv("HEADGATE_SECRET_KEY_FILE", str(file))
    key = settings.read().secret_key
    assert key is not None
    assert key.get_secret_value() == LONG_KEY


def test_a_secret_in_two_places_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADGATE_SECRET_KEY", LONG_KEY)
    monkeypatch.setenv("HEADGATE_SECRET_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(StartRefused, match="HEADGATE_SECRET_KEY_FILE are both set"):
        settings.read()


def test_a_secret_file_that_is_not_there_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADGATE_SECRET_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(StartRefused, match=r"HEADGATE_SECRET_KEY_FILE: .*No such file"):
        settings.read()


@pytest.mark.parametrize("variable", ["GITHUB_PRIVATE_KEY_FILE", "GITHUB_PRIVATE_KEY"])
def test_an_app_key_that_others_may_read_is_refused(monkeypatch, tmp_path, variable):
    file = tmp_path / "app.pem"
    file.write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    file.chmod(0o644)
    monkeypatch.setenv(f"HEADGATE_{variable}", str(file))
    with pytest.raises(StartRefused, match=rf"HEADGATE_{variable}: .*0644.*chmod 600"):
        settings.read()


def test_a_crash_test_needs_a_provider_on_this_machine(monkeypatch):
    monkeypatch.setenv("HEADGATE_FAULT_BOUNDARY", "act.land.after_send:2:kill")
    with pytest.raises(StartRefused, match="HEADGATE_FAULT_BOUNDARY: crash tests"):
        settings.read()
    monkeypatch.setenv("HEADGATE_GITHUB_URL", "http://127.0.0.1:8643")
    found = settings.read().fault_boundary
    assert found == FaultBoundary("act.land.after_send", 2, Strike.KILL)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("github.localhost", True),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_this_machine_is_known_by_its_names_and_addresses(host, expected):
    assert forms.is_loopback(host) is expected


APP = {
    "PUBLIC_URL": "https://queue.example.org",
    "GITHUB_HOST": "github.example.org",
    "GITHUB_APP_ID": "77",
    "GITHUB_PRIVATE_KEY": r"-----BEGIN\n-----END",
    "GITHUB_WEBHOOK_SECRET": "w" * 40,
    "GITHUB_CLIENT_ID": "Iv1",
    "GITHUB_CLIENT_SECRET": "s" * 40,
}


@pytest.fixture
def registered(tmp_path):
    """Writes the file of a registered App, without some names."""

    def write(*without, mode=0o600):
        path = tmp_path / "headgate-data" / settings.APP_FILE
        path.parent.mkdir(exist_ok=True)
        lines = [f'HEADGATE_{name}="{value}"\n' for name, value in APP.items()]
        path.write_text("".join(line for line in lines if not any(one in line for one in without)))
        path.chmod(mode)

    return write


def test_the_app_that_was_registered_is_found_in_the_data_directory(registered):
    registered()
    chosen = settings.read()
    assert (chosen.github_app_id, chosen.github_host) == ("77", "github.example.org")
    assert wiring.webhook_secrets_of(chosen) == ("w" * 40,)
    assert chosen.public_url == "https://queue.example.org"


def test_settings_win_over_the_registered_app(monkeypatch, registered):
    registered()
    monkeypatch.setenv("HEADGATE_PUBLIC_URL", "https://other.example.org")
    assert settings.read().public_url == "https://other.example.org"
    monkeypatch.setenv("HEADGATE_GITHUB_APP_ID", "5")
    chosen = settings.read()
    assert (chosen.github_app_id, chosen.github_webhook_secret) == ("5", None)
    assert chosen.github_host == "github.com"


def test_the_registered_app_must_be_whole_and_closed_to_others(registered):
    registered("WEBHOOK_SECRET")
    with pytest.raises(StartRefused, match="lacks HEADGATE_GITHUB_WEBHOOK_SECRET"):
        settings.read()
    registered(mode=0o644)
    with pytest.raises(StartRefused, match="others may read it"):
        settings.read()


def test_the_registered_app_belongs_to_one_host(monkeypatch, registered):
    registered()
    monkeypatch.setenv("HEADGATE_GITHUB_HOST", "github.com")
    with pytest.raises(StartRefused, match=r"is registered on github\.example\.org"):
        settings.read()

"""Addresses, keys and secrets before anything is called (docs/design/provider.md 4)."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bot.github import options
from bot.github.options import Addresses, GitHubOptions
from service.errors import StartRefused
from tests.github.table import a_key


def pem_of(key):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture(scope="module", name="pem")
def _pem():
    """A private key as text."""
    return pem_of(a_key())


@pytest.mark.parametrize(
    ("host", "url", "addresses"),
    [
        (
            "github.com",
            None,
            Addresses(
                "https://api.github.com", "https://api.github.com/graphql", "https://github.com"
            ),
        ),
        (
            "Acme.GHE.com",
            None,
            Addresses(
                "https://api.acme.ghe.com",
                "https://api.acme.ghe.com/graphql",
                "https://acme.ghe.com",
            ),
        ),
        (
            "git.example.org",
            None,
            Addresses(
                "https://git.example.org/api/v3",
                "https://git.example.org/api/graphql",
                "https://git.example.org",
            ),
        ),
        (
            "github.localhost",
            "http://127.0.0.1:8643/",
            Addresses(
                "http://127.0.0.1:8643/api/v3",
                "http://127.0.0.1:8643/api/graphql",
                "http://127.0.0.1:8643",
            ),
        ),
    ],
)
def test_addresses_follow_from_the_host_or_the_override(host, url, addresses):
    assert options.addresses_of(host, url) == addresses


@pytest.mark.parametrize(
    ("host", "url", "named"),
    [
        ("https://github.com", None, "HEADGATE_GITHUB_HOST"),
        ("", None, "HEADGATE_GITHUB_HOST"),
        ("github.com", "http://github.example.org", "HEADGATE_GITHUB_URL"),
        ("github.com", "http://10.0.0.1", "HEADGATE_GITHUB_URL"),
        ("github.com", "ftp://127.0.0.1", "HEADGATE_GITHUB_URL"),
        ("github.com", "github.example.org", "HEADGATE_GITHUB_URL"),
        ("github.com", "https://me:secret@github.example.org", "HEADGATE_GITHUB_URL"),
    ],
)
def test_an_unsafe_or_odd_address_is_refused_by_name(host, url, named):
    with pytest.raises(StartRefused, match=f"^{named}: ") as refused:
        options.addresses_of(host, url)
    assert "secret" not in refused.value.detail


@pytest.mark.parametrize("url", ["http://localhost:1", "http://[::1]:1", "http://127.9.9.9"])
def test_plain_http_is_fine_on_this_machine(url):
    assert options.addresses_of("github.localhost", url).web == url


def test_a_key_is_text_a_path_or_base64(tmp_path, pem):
    file = tmp_path / "app.pem"
    file.write_text(pem)
    encoded = base64.b64encode(pem.encode()).decode()
    for given in (pem, str(file), encoded, pem.replace("\n", "\\n"), f"  {pem}\n\n"):
        assert pem_of(options.parse_private_key(given)).strip() == pem.strip()


def test_a_key_that_is_none_is_refused_without_being_shown(pem):
    body = "".join(pem.splitlines()[1:-1])
    with pytest.raises(StartRefused) as refused:
        options.parse_private_key(body)
    assert refused.value.detail == (
        f'HEADGATE_GITHUB_PRIVATE_KEY: not a PEM private key (starts with "{body[:4]}"). Paste '
        "the whole file including the BEGIN line, or give its path, or its base64."
    )


@pytest.mark.parametrize("given", ["/nope.pem", "./secrets/key", "~nobody/app.pem", "app.key"])
def test_a_path_of_a_key_that_cannot_be_read_is_named(monkeypatch, tmp_path, given):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StartRefused) as refused:
        options.parse_private_key(given)
    assert refused.value.detail.startswith(f"HEADGATE_GITHUB_PRIVATE_KEY: {given} cannot be read (")


def test_a_missing_key_file_is_refused_with_the_reason():
    with pytest.raises(
        StartRefused, match=r"/nope\.pem cannot be read \(No such file or directory\)"
    ):
        options.parse_private_key("/nope.pem")


def test_a_file_without_a_key_is_named(tmp_path):
    file = tmp_path / "app.pem"
    file.write_bytes(b"\xff no key")
    with pytest.raises(StartRefused, match=rf"{file} holds no PEM private key"):
        options.parse_private_key(str(file))


def test_a_line_of_a_key_is_not_taken_for_a_path():
    line = "/" + "a" * 63
    with pytest.raises(StartRefused) as refused:
        options.parse_private_key(line)
    assert "aaaaaa" not in refused.value.detail


def test_a_broken_key_and_another_kind_of_key_are_refused(pem):
    broken = pem.replace("A", "!")
    with pytest.raises(StartRefused, match=r"^NAME: the PEM private key cannot be read"):
        options.parse_private_key(broken, "NAME")
    with pytest.raises(StartRefused, match=r"^NAME: not an RSA key"):
        options.parse_private_key(pem_of(ec.generate_private_key(ec.SECP256R1())), "NAME")


def test_one_or_two_long_secrets_are_needed():
    long, longer = "x" * 32, "y" * 40
    assert options.check_webhook_secrets([long]) == (long,)
    assert options.check_webhook_secrets([long, longer]) == (long, longer)
    for wrong in ([], ["x" * 31], [long, "y"], [long, longer, long]):
        with pytest.raises(StartRefused, match=r"^HEADGATE_GITHUB_WEBHOOK_SECRET"):
            options.check_webhook_secrets(wrong)


def test_writes_are_spaced_on_public_hosts_only_unless_told():
    def spacing(host, given=None):
        made = GitHubOptions(host, options.addresses_of(host), "1", (), (), given)
        return options.write_spacing_s(made)

    assert spacing("github.com") == 1.0
    assert spacing("acme.ghe.com") == 1.0
    assert spacing("git.example.org") == 0.0
    assert spacing("github.com", 250) == 0.25


def test_limits_follow_the_host_unless_told():
    def limited(host, given=None):
        made = GitHubOptions(host, options.addresses_of(host), "1", (), (), limits=given)
        return options.is_limited(made), options.is_run_by_github(made)

    assert limited("github.com") == (True, True)
    assert limited("git.example.org") == (False, False)
    assert limited("git.example.org", True) == (True, False)
    assert limited("github.com", False) == (False, True)


def test_options_do_not_show_their_secrets(pem):
    made = GitHubOptions("github.com", options.addresses_of("github.com"), "1", (pem,), ("s3cr3t",))
    assert "s3cr3t" not in repr(made)
    assert "BEGIN" not in repr(made)

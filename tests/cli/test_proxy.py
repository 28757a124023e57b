"""The way to the service: all commands that ask it take the proxy of the environment, or none."""

from pathlib import Path

import pytest

from bot.cli import app, exits
from tests.cli import service
from tests.cli.service import an_upload

UPLOAD = "/flaky-tests/upload-test-results"
LISTED = "/flaky-tests/list-tests"
QUEUES = "/listQueues"
COMMANDS = [
    ["upload", "--junit", "*.xml", "--sha", "a" * 40, "--strict"],
    ["tests", "list"],
    ["queue", "show", "--json"],
]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    Path("a.xml").write_bytes(b"<testsuite/>")


@pytest.fixture(name="api")
def _api(api):
    api.says("/tokens/self", {"organization": {"slug": "octo", "host": "github.com"}})
    api.says(UPLOAD, an_upload())
    api.says(LISTED, {"tests": [], "page": {"next_page_token": ""}})
    api.says(QUEUES, {"queues": [{"branch": "main"}]})
    api.says("/getQueue", service.a_queue())
    return api


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
def test_every_command_asks_through_the_proxy(api, monkeypatch, arguments):
    monkeypatch.setenv("HTTP_PROXY", api.url)
    assert app.run([*arguments, "--url", "http://queue.example"]) == 0
    assert {headers["Host"] for _, _, headers in api.asked} == {"queue.example"}


def test_tls_on_a_plain_port_is_told_once_in_words_of_people(api, capsys):
    secure = api.url.replace("http://", "https://")
    assert app.run(["queue", "show", "--url", secure]) == exits.Exit.UNREACHABLE
    said = capsys.readouterr().err
    assert said == (
        f"headgate: {secure}: it does not speak TLS on this port; is its address an http:// one. "
        "Give its address with --url or HEADGATE_URL.\n"
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
def test_no_command_asks_through_a_proxy_that_is_not_for_the_service(api, monkeypatch, arguments):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "elsewhere.example,127.0.0.1")
    assert app.run(arguments) == 0


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
@pytest.mark.parametrize("proxy", ["socks5://bob:secret@127.0.0.1:1", "http://["])
def test_a_proxy_that_cannot_be_asked_is_named_without_its_password(
    api, monkeypatch, capsys, arguments, proxy
):
    monkeypatch.setenv("HTTP_PROXY", proxy)
    assert app.run(arguments) in (70, exits.Exit.USAGE)
    said = capsys.readouterr().err
    assert "HTTP_PROXY is not an http address" in said
    assert "secret" not in said
    assert api.asked == []

"""The job's own OIDC token, asked of GitHub's CI where there is no API token."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from bot.cli.app import main
from bot.uploader import __main__ as uploader
from bot.uploader import ci
from bot.uploader.transport import RequestFailed
from tests.cli import service
from tests.cli.service import an_upload

UPLOAD = "/flaky-tests/upload-test-results"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJhIjoxfQ.c2ln"


class Actions(HTTPServer):
    """GitHub's endpoint for tokens of a job; `seen` are address and credential of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str]] = []
        self.status = 200

    @property
    def environ(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server_port}/token?api-version=2.0"
        return {ci.URL: url, ci.TOKEN: "of-the-job"}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Actions)
        self.server.seen.append((self.path, self.headers["Authorization"]))
        body = json.dumps({"value": JWT, "count": 1}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def actions() -> Iterator[Actions]:
    server = Actions()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def reports(tmp_path, monkeypatch, actions):
    (tmp_path / "a.xml").write_bytes(b"<testsuite><testcase name='a'/></testsuite>")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADGATE_TOKEN", raising=False)
    given = {
        **actions.environ,
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "octo/widgets",
        "GITHUB_SERVER_URL": "https://github.com",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)


def test_a_job_asks_for_a_token_of_this_service(actions):
    assert ci.fetch_token(actions.environ, "https://queue.example.org/v1") == JWT
    ((path, credential),) = actions.seen
    assert path == "/token?api-version=2.0&audience=https%3A%2F%2Fqueue.example.org"
    assert credential == "Bearer of-the-job"


def test_without_the_permission_there_is_none(actions):
    assert ci.fetch_token({}, "https://queue.example.org") == ""
    actions.status = 500
    with pytest.raises(RequestFailed):
        ci.fetch_token(actions.environ, "https://queue.example.org")


def test_the_action_uploads_with_the_jobs_own_token(reports, actions, capsys):
    with service.served() as api:
        api.says(UPLOAD, an_upload(0, 0, 0))
        arguments = ["upload", f"--url={api.url}", "--org=octo", "--junit=*.xml"]
        assert uploader.main(arguments) == 0
        ((_, _, headers),) = api.asked
    assert headers["Authorization"] == f"Bearer {JWT}"
    assert "x-api-token" not in headers


def test_headgate_upload_names_the_owner_as_the_organization(reports, actions, monkeypatch):
    with service.served() as api:
        api.says(UPLOAD, an_upload(0, 0, 0))
        arguments = ["upload", "--url", api.url, "--junit", "*.xml", "--sha", "a" * 40]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        ((path, asked, _),) = api.asked
    assert (path, asked["org_url_slug"]) == (UPLOAD, "octo")


def test_a_job_of_another_ci_sends_its_token_and_names_its_repository(reports, monkeypatch):
    monkeypatch.setenv(ci.GIVEN, JWT + "1")
    with service.served() as api:
        api.says(UPLOAD, an_upload(0, 0, 0))
        arguments = ["upload", "--url", api.url, "--junit", "*.xml", "--sha", "a" * 40]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        ((_, asked, headers),) = api.asked
    assert headers["Authorization"] == f"Bearer {JWT}1"
    assert headers["x-headgate-repository"] == "github.com/octo/widgets"
    assert asked["org_url_slug"] == "octo"


def test_a_given_token_that_is_none_is_refused_by_name():
    with pytest.raises(RequestFailed, match="HEADGATE_OIDC_TOKEN is not an OIDC token"):
        ci.given_token({ci.GIVEN: "$(buildkite-agent oidc request-token)"})

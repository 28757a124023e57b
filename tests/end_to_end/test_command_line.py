"""Sandbox and service as two processes, and the command line as a person or a script uses it."""

import json
import os
import urllib.request

import pytest

from bot.cli import app
from tests.cli import processes
from tests.harness.machine import free_port

CI = """
triggers: { push: ["headgate/merge/**"], pull_request: true }
checks:
  - name: test
    seconds: 1
    rules:
      - { exists: [good.txt, bad.txt], conclusion: failure }
"""


def posted(url, body):
    """The answer of the sandbox's control plane."""
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def seeded(sandbox):
    """A repository with #1, which is good, and #2, which fails once #1 is in."""
    control = f"{sandbox}/_sandbox"
    files = {"README.md": "hi\n", ".sandbox/ci.yml": CI}
    repository = {"full_name": "octo/widgets", "files": files, "required_checks": ["test"]}
    posted(f"{control}/seed", {"repositories": [repository]})
    for name in ("good", "bad"):
        change = {"head": name, "files": {f"{name}.txt": name}, "title": f"The {name} one"}
        posted(f"{control}/acts", {"as": "alice", "act": "open", "repo": "octo/widgets"} | change)
    moved = {"act": "push", "branch": "main", "files": {"later.txt": "x"}, "bypass": True}
    posted(f"{control}/acts", {"as": "alice", "repo": "octo/widgets"} | moved)


@pytest.fixture(name="headgate")
def _headgate(tmp_path, monkeypatch, capsys):
    """Commands against a running service, whose repository is the one of the environment."""
    for name in [name for name in os.environ if name.startswith(("HEADGATE_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    speed = ("--speed", "5", "--webhook-url", f"{url}/webhooks/github")

    def run(*arguments):
        code = app.run(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    with processes.log_kept(), processes.sandbox(tmp_path, *speed) as github:
        seeded(github["HEADGATE_GITHUB_URL"])
        with processes.serving(tmp_path, "--port", str(port), **github):
            host = ("--host", github["HEADGATE_GITHUB_HOST"])
            create = ("token", "create", "--org", "octo", "--role", "admin", "--name", "test")
            monkeypatch.setenv("HEADGATE_TOKEN", run(*create, *host)[1].strip())
            monkeypatch.setenv("HEADGATE_URL", url)
            monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
            yield run


def test_a_pull_request_is_landed_from_the_command_line(headgate):
    assert headgate("land", "1") == (
        4,
        "",
        'headgate: branch "main" has no queue. Make one: headgate queue create --branch BRANCH.\n',
    )
    code, out, err = headgate("queue", "create", "--branch", "main", "--json")
    assert code == 0, err
    made = json.loads(out)
    assert (made["concurrency"], made["directMergeMode"]) == (5, "ALWAYS")
    assert made["effectiveRequiredStatuses"] == ["test"]
    assert headgate("queue", "create", "--branch", "main")[0] == 6
    assert headgate("status", "1")[0] == 4

    code, out, err = headgate("land", "1", "--json", "--timeout", "40s")
    assert code == 0, err
    landed = json.loads(out)
    assert (landed["state"], landed["outcome"]) == ("MERGED", "merged")
    assert landed["explanation"]["prNumber"] == 1
    assert headgate("land", "1")[0] == 0

    code, out, err = headgate("land", "2", "--json", "--timeout", "40s")
    assert code == 1, err
    failed = json.loads(out)
    assert (failed["outcome"], failed["reason"]) == ("failed", "required_status_failed")
    assert failed["conclusion"]["failedStatuses"] == ["test"]
    assert headgate("cancel", "2")[0] == 4
    assert "FAILED" in headgate("status", "2")[1]


def test_a_queue_is_paused_changed_held_and_deleted_from_the_command_line(headgate):
    assert headgate("queue", "create", "--branch", "main")[0] == 0
    code, out, err = headgate("queue", "pause", "--reason", "release freeze", "--json")
    assert code == 0, err
    assert (json.loads(out)["state"], json.loads(out)["stateReason"]) == (
        "PAUSED",
        "release freeze",
    )
    assert headgate("submit", "1")[0] == 0
    assert headgate("explain", "1")[0] == 0
    assert headgate("queue", "delete")[0] == 6
    assert headgate("cancel", "1")[0] == 0
    assert headgate("queue", "resume")[0] == 0
    assert headgate("queue", "update", "--set", "concurrency=0")[0] == 6
    code, out, err = headgate("queue", "update", "--set", "concurrency=2", "--json")
    assert (code, json.loads(out)["concurrency"]) == (0, 2), err
    code, out, err = headgate("queue", "hold", "--reason", "release", "--json")
    assert code == 0, err
    hold = json.loads(out)["hold"]["id"]
    assert hold in headgate("queue", "show")[1]
    assert headgate("queue", "release", str(hold), "--reason", "released")[0] == 0
    assert headgate("queue", "delete") == (0, "Deleted the queue for main\n", "")

"""`upload`, `test` and the action against a service that runs: every exit but the absent ones."""

import json
import sys
import urllib.request
from pathlib import Path

import pytest

from bot.cli import app
from tests.cli import test_action
from tests.contract import instance as instances

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"


@pytest.fixture(name="instance", scope="module")
def _instance(tmp_path_factory):
    with instances.started(tmp_path_factory.mktemp("instance")) as own:
        yield own


@pytest.fixture(name="place")
def _place(instance, monkeypatch):
    """The environment of a job of the repository `octo/widgets`."""
    monkeypatch.setenv("HEADGATE_URL", instance.url)
    monkeypatch.setenv("HEADGATE_TOKEN", instance.ci_token)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    monkeypatch.setenv("GITHUB_SERVER_URL", f"https://{instance.host}")
    return instance


def ask(instance, name, **body):
    """What an admin is answered."""
    repo = {"host": instance.host, "owner": "octo", "name": "widgets"}
    asked = json.dumps({"repo": repo, "org_url_slug": "octo", **body}).encode()
    headers = {"x-api-token": instance.admin_token, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{instance.url}/v1/flaky-tests/{name}", asked, headers)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def a_report(*failing, passing=()):
    cases = [f'<testcase name="{name}"><failure message="no"/></testcase>' for name in failing]
    cases += [f'<testcase name="{name}"/>' for name in passing]
    return f"<testsuite>{''.join(cases)}</testsuite>"


def command(report, code):
    """A test command that writes a report and ends with the code."""
    program = f"open('a.xml', 'w').write({report!r}); raise SystemExit({code})"
    return [sys.executable, "-c", program]


def headgate(*behind, strict=False):
    options = ["--junit", "*.xml", "--sha", SHA, *(["--strict"] if strict else [])]
    return app.run(["test", *options, "--", *behind])


def test_what_passes_and_what_fails_is_told_apart(place, capsys):
    assert headgate(*command(a_report(passing=["a"]), 0)) == 0
    assert headgate(*command(a_report("b", passing=["a"]), 5)) == 5
    assert capsys.readouterr().err.endswith(
        "headgate: 1 failure, 0 quarantined, 1 not: exit code 5. Not quarantined: b\n"
    )
    # The command itself may not say that tests failed.
    assert headgate(*command(a_report("b"), 0)) == 1


def test_quarantined_failures_are_excused(place, capsys, monkeypatch):
    monkeypatch.setenv("HEADGATE_TOKEN", place.queue_token)
    Path("main.xml").write_text(a_report(passing=["a", "c", "d"]))
    assert app.run(["upload", "--junit", "main.xml", "--sha", SHA, "--branch", "main"]) == 0
    Path("main.xml").unlink()
    monkeypatch.setenv("HEADGATE_TOKEN", place.ci_token)
    Path("first.xml").write_text(a_report("c", "d"))
    assert app.run(["upload", "--junit", "first.xml", "--sha", SHA]) == 1
    ask(
        place,
        "update-settings",
        quarantine_enabled=True,
        quarantine_forgives="ANY_FAILURE",
        test_failure_exit_codes=["*=1"],
    )
    for test in ask(place, "check-quarantine", tests=[{"name": "c"}, {"name": "d"}])["tests"]:
        wish = {"override": "ALWAYS_QUARANTINE", "reason": "waits on the clock"}
        ask(place, "set-quarantine-override", test_id=test["test_id"], **wish)
    Path("first.xml").unlink()
    assert headgate(*command(a_report("c", "d", passing=["a"]), 1)) == 0
    assert "2 failures, all quarantined: exit code 0. c (until " in capsys.readouterr().err
    # A report that is cut may hide a failure.
    assert headgate(*command(a_report("c", passing=["a"])[:-14], 3)) == 3
    ask(place, "update-settings", quarantine_enabled=False)


def test_no_result_excuses_nothing(place, capsys):
    assert headgate(*command("<!DOCTYPE x><testsuite/>", 4), strict=True) == 4
    assert "No test report matched" in capsys.readouterr().err


def test_a_refused_token_excuses_nothing(place, capsys, monkeypatch):
    other = "y" if place.ci_token.endswith("x") else "x"
    monkeypatch.setenv("HEADGATE_TOKEN", place.ci_token[:-1] + other)
    assert headgate(*command(a_report("b"), 3)) == 3
    assert headgate(*command(a_report(passing=["a"]), 0), strict=True) == 70
    assert "the token is unknown, expired or revoked" in capsys.readouterr().err


def test_a_killed_command_ends_as_killed(place):
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    Path("a.xml").write_text(a_report("b"))
    assert headgate(sys.executable, "-c", dies) == 143


def test_the_action_uploads(place, tmp_path):
    (tmp_path / "b.xml").write_text(a_report("e", passing=["a"]))
    test_action.a_checkout_commit(tmp_path)
    done = test_action.run(
        tmp_path,
        INPUT_URL=place.url,
        HEADGATE_TOKEN=place.ci_token,
        GITHUB_SERVER_URL=f"https://{place.host}",
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert (tmp_path / "output").read_text() == "failed=1\nforgiven=0\n"

"""Attacks that would have `headgate test` end with 0 although more than a known test failed.

Real pytest runs under the real program, against a service that runs; exit codes judge.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import settings
from bot.cli import app
from tests.adversary import asked
from tests.contract import instance as instances
from tests.contract.instance import Instance

TESTS = """
import os
import pytest

def test_known():
    if "KNOWN" in os.environ:
        raise AssertionError("10.0 != 10.01")

def test_mail():
    if os.environ.get("MAIL") == "stop":
        pytest.exit("the database is gone", returncode=7)

def test_cart():
    assert os.environ.get("CART") != "broken"
"""
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider --junit-xml=r.xml tests.py"
INTERNAL = "-p broken_plugin"
PLUGIN = """
def pytest_runtest_logfinish(nodeid):
    if "test_mail" in nodeid:
        raise RuntimeError("the plugin is broken")
"""


@pytest.fixture(name="instance", scope="module")
def _instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with instances.started(tmp_path_factory.mktemp("instance")) as own:
        yield own


@pytest.fixture(name="ready", scope="module")
def _ready(instance: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """`unit` has reported three tests on `main`, and `test_known` is quarantined."""
    with pytest.MonkeyPatch.context() as patch:
        _go(patch, instance, tmp_path_factory.mktemp("first"))
        # Where the provider knows no run, only such a token vouches for a branch.
        patch.setenv("HEADGATE_TOKEN", instance.admin_token)
        assert headgate(PYTEST, branch="main", sha=asked.tip(instance)) == 0
        patch.setenv("HEADGATE_TOKEN", instance.ci_token)
        patch.setenv("KNOWN", "1")
        assert headgate(PYTEST) == 1
        asked.quarantine(instance, "test_known")
        yield instance


@pytest.fixture(name="place")
def _place(ready: Instance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Instance:
    """A checkout of a pull request in which the known test fails."""
    _go(monkeypatch, ready, tmp_path)
    monkeypatch.setenv("KNOWN", "1")
    return ready


def _go(patch: pytest.MonkeyPatch, instance: Instance, folder: Path) -> None:
    for name in settings.environment_of_headgate():
        patch.delenv(name, raising=False)
    patch.setenv("HEADGATE_URL", instance.url)
    patch.setenv("HEADGATE_TOKEN", instance.ci_token)
    patch.setenv("GITHUB_REPOSITORY", "octo/widgets")
    patch.setenv("GITHUB_SERVER_URL", f"https://{instance.host}")
    patch.chdir(folder)
    Path("tests.py").write_text(TESTS)
    Path("broken_plugin.py").write_text(PLUGIN)
    patch.setenv("PYTHONPATH", str(folder))
    # Loading what others install for pytest takes longer than such a run.
    patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def headgate(script: str, *, job: str = "unit", branch: str = "topic", sha: str = "c" * 40) -> int:
    """What `headgate test` ends with around a shell that runs the script."""
    about = ["--junit", "*.xml", "--sha", sha, "--branch", branch, "--job", job]
    return app.run(["test", *about, "--", "sh", "-c", script])


def test_a_known_failure_alone_is_excused(place: Instance) -> None:
    """Hurts authors: a rule so strict that no failure is ever excused would be a cheap defense."""
    assert headgate(PYTEST) == 0


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (f"{PYTEST}; exit 2", 2, "ended with 2"),
        (f"{PYTEST}; sh -c 'kill -SEGV $$'; exit $?", 139, "signal 11"),
        (f"MAIL=stop {PYTEST}", 7, "2 of 3 tests"),
        (f"{PYTEST} {INTERNAL}", 3, "exit code 3"),
        (f"{PYTEST}; kill -SEGV $$", 139, "exit code 139"),
        (f"{PYTEST} -k test_known", 1, "2 of 3 tests"),
        (f'{PYTEST}; sed -i \'s/tests="3"/tests="5"/\' r.xml; exit 1', 1, "2 tests more"),
        (f"CART=broken {PYTEST}", 1, "1 quarantined, 1 not"),
        (f"{PYTEST}; printf '<testsuite><testc' > s.xml; exit 1", 1, "not"),
    ],
    ids=[
        "coverage threshold",
        "second runner dies",
        "pytest.exit",
        "internal error",
        "shell killed",
        "most tests left out",
        "more tests declared",
        "another test broken",
        "second report cut off",
    ],
)
def test_a_command_that_did_more_than_fail_known_tests_fails(
    place: Instance, capfd: pytest.CaptureFixture[str], script: str, code: int, said: str
) -> None:
    """Hurts everybody who builds main: what broke beside a known failure turns its check green."""
    assert headgate(script) == code
    assert said in capfd.readouterr().err


def test_a_renamed_job_does_not_lose_what_is_expected_of_it(
    place: Instance, capfd: pytest.CaptureFixture[str]
) -> None:
    """Hurts everybody who builds main: under a new name the tests that are gone would not lack."""
    assert headgate(f"{PYTEST} -k test_known", job="unit 2") == 1
    assert "`unit 2` has not reported" in capfd.readouterr().err


def test_known_failures_alone_are_excused_by_their_text(
    place: Instance, capfd: pytest.CaptureFixture[str]
) -> None:
    """Hurts everybody who builds main: a real break looks like a flake by its test's name alone."""
    Path("tests.py").write_text(
        TESTS.replace('raise AssertionError("10.0 != 10.01")', "import gone")
    )
    assert headgate(PYTEST) == 1
    assert "fails in a new way" in capfd.readouterr().err

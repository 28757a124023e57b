"""Workers: each test is played once, what it says is told, and a worker that dies fails the run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import workers
from tests.tidy.tree import ROOT

pytest_plugins = ("pytester",)

PLAYED = """import os
import pytest

@pytest.fixture(scope="module", autouse=True)
def made():
    yield
    print("made undone")

@pytest.mark.parametrize("number", range(60))
def test_it(number, capfd):
    os.system(f"echo {number}")
    assert capfd.readouterr().out == f"{number}\\n"

def test_fails():
    print("what it said")
    assert False
"""
DIES = "import os\n\ndef test_dies():\n    os._exit({code})\n"


STOPS = """import pathlib
import pytest

@pytest.fixture(scope="module", autouse=True)
def made():
    yield
    pathlib.Path("undone").touch()

@pytest.mark.parametrize("number", range(60))
def test_it(number):
    pathlib.Path(f"played-{number}").touch()
    assert number != 1
"""


def item(file: str, *marks: str) -> Any:
    marked = dict.fromkeys(marks, True)
    return SimpleNamespace(path=Path(file), get_closest_marker=marked.get)


@pytest.fixture
def run(pytester, monkeypatch):
    """Plays a file of tests in two workers."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def play(text: str, *more: str):
        pytester.makepyfile(test_it=text)
        options = ("-p", "no:cacheprovider", "-p", "tests.harness.workers", "-n", "2")
        return pytester.runpytest_subprocess(*options, *more)

    return play


def test_each_test_is_played_once_and_output_is_its_own(run):
    result = run(PLAYED)
    result.assert_outcomes(passed=60, failed=1)
    result.stdout.fnmatch_lines(["*Captured stdout call*", "what it said"])


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_the_first_failure_ends_the_run_if_that_is_asked_for(run, pytester, option):
    result = run(STOPS, option, "-n", "1")
    result.assert_outcomes(passed=1, failed=1)
    assert {path.name for path in pytester.path.glob("played-*")} == {"played-0", "played-1"}
    assert (pytester.path / "undone").exists()


@pytest.mark.parametrize("code", [0, 3])
def test_a_worker_that_dies_fails_the_run_and_names_the_test(run, code):
    result = run(DIES.format(code=code))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*worker * ended with {code} during *test_dies*"])


@pytest.mark.parametrize("count", [1, 3, 40, 500])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_every_test_is_in_one_hand_and_a_hand_is_of_one_file(count, number):
    items = [*(item("long", "first") for _ in range(3)), *(item(f"{n % 7}") for n in range(count))]
    items.sort(key=lambda each: (not workers.is_long(each), each.path))
    hands = workers.hands_of(items, number)
    assert [place for hand in hands for place in hand] == list(range(len(items)))
    assert all(len({items[place].path for place in hand}) == 1 for hand in hands)
    assert [len(hand) for hand in hands[:3]] == [1, 1, 1]
    assert max(map(len, hands)) <= workers.HAND_MAX
    assert len(hands[-1]) == 1

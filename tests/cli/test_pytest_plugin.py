"""The plug-in of pytest under real pytest, its oldest and its newest version: what it says."""

import json
import os
import subprocess
import tomllib
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot import program
from bot.cli import live
from tests.cli.processes import environment
from tests.harness.needs import PYTESTS

CONFTEST = """
import os, pytest

@pytest.fixture(scope="session")
def shared():
    yield
    if "SHARED" in os.environ: raise OSError("gone")

@pytest.fixture
def own():
    yield
    if "OWN" in os.environ: raise OSError("gone")
"""
TESTS = """
import os, pytest

RUNS = []

def never_called():
    return 1

def test_again(shared):
    RUNS.append(1)
    assert "AGAIN" not in os.environ or len(RUNS) > 1

def test_total():
    assert "TOTAL" not in os.environ

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.xfail
def test_expected(): assert 0

def test_end():
    if "CRASH" in os.environ: os._exit(1)
    if "EXIT" in os.environ: pytest.exit("enough", returncode=1)
    if "INTERRUPT" in os.environ: raise KeyboardInterrupt

def test_last(shared, own):
    assert "HEADGATE_LIVE" not in os.environ
"""
COUNTS = {"planned": 6, "passed": 4, "failed": 0, "skipped": 2, "not_run": 0}
ONE_FAILED = {**COUNTS, "passed": 3, "failed": 1}
BUNDLED = ("-p", "headgate_pytest")
Told = list[dict[str, Any]]
Run = Callable[..., tuple[int, Told]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, needs: Callable[[str], None]) -> Path:
    """A Python without any plug-in of pytest."""
    needs("pytests")
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, symlinks=True)
    return home / "bin/python"


@pytest.fixture(params=["newest", pytest.param("oldest", marks=pytest.mark.soak)])
def run(request: pytest.FixtureRequest, python: Path, tmp_path: Path) -> Run:
    """Run pytest with a situation of the tests; its exit code, and the lines that it wrote."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_a.py").write_text(TESTS)
    places = (live.PYTEST_PLUGIN.parent, PYTESTS[request.param])

    def started(*options: str, by: Sequence[str] = BUNDLED, **situation: str) -> tuple[int, Told]:
        lines = tmp_path / "live"
        lines.write_text("")
        done = subprocess.run(
            [str(python), "-m", "pytest", "-q", *by, *options],
            check=False,
            cwd=tmp_path,
            env={
                **environment(PYTHONWARNINGS="", PYTHONPATH=os.pathsep.join(map(str, places))),
                "HEADGATE_LIVE": str(lines),
                **situation,
            },
            capture_output=True,
            text=True,
        )
        return done.returncode, [json.loads(line) for line in lines.read_text().splitlines()]

    return started


def ended(told: Told, *, of: int = 1) -> dict[str, Any]:
    """The end of a run, which is told once, behind its start."""
    starts = [each for each in told if each["event"] == "start"]
    ends = [each for each in told if each["event"] == "end"]
    assert (len(starts), len(ends)) == (of, of)
    assert starts[0]["run"] == ends[0]["run"]
    assert told.index(starts[0]) == 0
    return ends[0]


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_failed_tests_and_nothing_else(run: Run, workers: list[str]) -> None:
    code, told = run(*workers, TOTAL="1")
    assert (code, [each["name"] for each in told if each["event"] == "test"]) == (1, ["test_total"])
    end = ended(told)
    assert (end["reason"], end["exit_code"]) == ("tests_failed", 1)
    assert {name: end[name] for name in COUNTS} == ONE_FAILED
    assert (end["unloaded"], end["errors_outside"]) == ([], [])


def test_all_passed_and_nothing_to_run(run: Run) -> None:
    code, told = run("--splits", "2", "--group", "2")
    assert (code, ended(told)["reason"], ended(told)["shard"]) == (0, "passed", "2/2")
    code, told = run("-k", "nothing")
    assert (code, ended(told)["reason"]) == (5, "no_tests")
    assert run("--collect-only") == (0, [])
    assert run("--no-such-option") == (4, [])


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_files_that_are_named_twice(run: Run, workers: list[str]) -> None:
    code, told = run(*workers, "--keep-duplicates", "test_a.py", "test_a.py")
    assert (code, ended(told)["reason"]) == (0, "passed")
    assert {name: ended(told)[name] for name in COUNTS} == COUNTS


def test_a_file_that_does_not_load(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_b.py").write_text("import nope\n")
    file = {"file": "test_b.py", "message": "ModuleNotFoundError: No module named 'nope'"}
    for options, code in (([], 2), (["--continue-on-collection-errors"], 1), (["-n2"], 1)):
        found, told = run(*options, TOTAL="1")
        end = ended(told)
        assert (found, end["exit_code"], end["reason"]) == (code, code, "unloaded"), options
        assert end["unloaded"] == [file]


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_a_shared_fixture_that_fails_at_its_end(run: Run, workers: list[str]) -> None:
    code, told = run(*workers, SHARED="1")
    assert (code, ended(told)["reason"]) == (1, "error_outside")
    message = "session fixture shared: OSError: gone"
    # Each worker has a fixture of its own.
    assert {"file": "conftest.py", "message": message} in ended(told)["errors_outside"]


def test_a_fixture_of_one_test_that_fails_at_its_end(run: Run) -> None:
    code, told = run(OWN="1")
    assert (code, ended(told)["reason"], ended(told)["failed"]) == (1, "tests_failed", 1)


def test_coverage_that_is_too_low(run: Run) -> None:
    for percent, reason in ((100, "threshold"), (10, "tests_failed")):
        code, told = run("--cov=.", f"--cov-fail-under={percent}", TOTAL="1")
        assert (code, ended(told)["reason"]) == (1, reason)


def test_runs_that_stop(run: Run) -> None:
    code, told = run("-x", TOTAL="1")
    assert (code, ended(told)["reason"], ended(told)["not_run"]) == (1, "stopped_early", 4)
    # Nothing was left to run when the limit was reached.
    code, told = run("-x", "test_a.py::test_again", "test_a.py::test_total", TOTAL="1")
    assert (code, ended(told)["reason"], ended(told)["not_run"]) == (1, "tests_failed", 0)
    for how, expected in (("EXIT", 1), ("INTERRUPT", 2)):
        code, told = run(**{how: "1"})
        assert (code, ended(told)["reason"]) == (expected, "interrupted")
        assert ended(told)["not_run"] == 2


def test_a_run_that_is_killed_never_says_how_it_ended(run: Run) -> None:
    code, told = run(CRASH="1")
    assert (code, [each["event"] for each in told]) == (1, ["start"])


def test_a_worker_that_crashes(run: Run) -> None:
    code, told = run("-n2", CRASH="1")
    end = ended(told)
    assert (code, end["reason"], end["failed"]) == (1, "error_outside", 1)
    assert "of pytest-xdist crashed" in end["errors_outside"][0]["message"]


def test_an_attempt_that_is_repeated(run: Run) -> None:
    code, told = run("--reruns", "1", AGAIN="1", TOTAL="1")
    tests = [(each["name"], each["final"]) for each in told if each["event"] == "test"]
    assert tests == [("test_again", False), ("test_total", False), ("test_total", True)]
    assert (code, {name: ended(told)[name] for name in COUNTS}) == (1, ONE_FAILED)


def test_without_the_variable_and_with_a_file_that_is_gone_nothing_changes(run: Run) -> None:
    assert run(HEADGATE_LIVE="", TOTAL="1") == (1, [])
    assert run(HEADGATE_LIVE="/nowhere/live", TOTAL="1") == (1, [])


def test_much_is_told_in_a_line_that_can_be_read(run: Run, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"test_{number}.py").write_text(f"raise OSError({'é' * 400!r})\n")
    _, told = run("--continue-on-collection-errors")
    end = ended(told)
    assert len(end["unloaded"]) + end["unloaded_more"] == 30
    assert 0 < len(end["unloaded"]) <= 20
    assert all(len(each["message"]) <= 300 for each in end["unloaded"])


def test_the_installed_package_is_loaded_without_an_option_and_once(
    run: Run, tmp_path: Path
) -> None:
    info = tmp_path / f"headgate_pytest-{program.VERSION}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: headgate-pytest\nVersion: {program.VERSION}\n")
    project = tomllib.loads((live.PYTEST_PLUGIN.with_name("pyproject.toml")).read_text())
    ((name, module),) = project["project"]["entry-points"]["pytest11"].items()
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")
    for by in ((), BUNDLED):
        assert ended(run(by=by)[1])["reason"] == "passed"


REPEATED = """
import os, pathlib, unittest, pytest

def note(word):
    with open("notes", "a") as notes: notes.write(word + "\\n")

@pytest.fixture(scope="module")
def shared():
    note("shared")

@pytest.fixture
def own(shared):
    note("own")
    yield
    note("end")

RUNS = []

def test_every_third(own):
    assert "HEADGATE_ONLY" not in os.environ
    RUNS.append(1)
    assert len(RUNS) % 3

class TestIt(unittest.TestCase):
    def test_unit(self): pass

class TestOwn:
    def test_own(self):
        assert not hasattr(self, "seen")
        self.seen = True

@pytest.mark.parametrize("word", ["a", "b"])
def test_word(word): pass

def test_skipped(): pytest.skip("not here")

def test_other(): note("other")
"""


def only(folder: Path, *tests: tuple[str, str, int]) -> str:
    """The file that names the only tests to run, and how often."""
    names = [
        {"name": name, "classname": place, "parent": "pytest", "file": "", "times": times}
        for name, place, times in tests
    ]
    path = folder / "only.json"
    path.write_text(json.dumps({"v": 1, "tests": names}))
    return str(path)


def rounds(told: Told) -> dict[int, str]:
    """The letters of each test by its place."""
    letters: dict[int, str] = {}
    for each in told:
        assert each["event"] == "repeat"
        letters[each["at"]] = letters.get(each["at"], "") + each["outcome"][0]
    return letters


def test_single_tests_run_again_as_often_as_asked_and_nothing_else(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "test_b.py").write_text(REPEATED)
    (tmp_path / "r.xml").write_text("of the first run")
    asked = only(
        tmp_path,
        ("test_every_third", "test_b", 7),
        ("test_unit", "test_b.TestIt", 2),
        ("test_word[b]", "test_b", 2),
        ("test_skipped", "test_b", 2),
        ("test_gone", "test_b", 2),
        ("test_other", "test_b", 0),
        ("test_own", "test_b.TestOwn", 2),
    )
    # A limit of failures, coverage and reruns are those of the first run.
    code, told = run("-x", "--junit-xml=r.xml", "--reruns=2", HEADGATE_ONLY=asked)
    assert code == 0
    assert rounds(told) == {0: "ppfppfp", 1: "pp", 2: "pp", 6: "pp"}
    assert (tmp_path / "r.xml").read_text() == "of the first run"
    notes = (tmp_path / "notes").read_text().split()
    assert notes == ["shared", *["own", "end"] * 7], "its own fixtures anew, shared ones kept"


def test_what_a_plug_in_does_around_a_test_is_done_around_each_run(
    run: Run, tmp_path: Path
) -> None:
    # As plug-ins do that limit the time of a test: here to one run.
    limit = """
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.used = 0
    yield
"""
    (tmp_path / "conftest.py").write_text(f"{CONFTEST}{limit}")
    (tmp_path / "test_b.py").write_text("""
def test_it(request):
    request.node.used += 1
    assert request.node.used == 1, "too slow"
""")
    _, told = run(HEADGATE_ONLY=only(tmp_path, ("test_it", "test_b", 4)))
    assert rounds(told) == {0: "pppp"}


def test_two_tests_of_one_name_do_not_run_again(run: Run, tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_same.py").write_text("def test_it(): pass\n")
    asked = only(tmp_path, ("test_it", "", 3))
    _, told = run("--import-mode=importlib", HEADGATE_ONLY=asked)
    assert told == []


def test_a_runner_says_whether_it_can_run_single_tests_again(run: Run) -> None:
    for options, can_repeat in (([], True), (["-n2"], False)):
        _, told = run(*options)
        assert told[0]["repeats"] is can_repeat

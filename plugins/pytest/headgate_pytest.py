"""A plug-in of pytest for `headgate test`: say what happened, run suspected tests first or again.

pytest finds it by its entry point where the package is installed. Without that, `headgate test`
puts this file on PYTHONPATH: `headgate test … -- pytest -p headgate_pytest`. It does nothing
without the variables that `headgate test` sets, and whatever goes wrong in it changes neither the
outcome nor the exit code of pytest. The lines that it writes are described in
docs/reference/live-tests.md of Headgate.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Generator
from contextlib import suppress
from typing import Any, Protocol

import pytest

VERSION = "0.9.0"

LIVE, SUSPECTS, ONLY = "HEADGATE_LIVE", "HEADGATE_SUSPECTS", "HEADGATE_ONLY"
LINE_BYTES_MAX = 16_384
READ_MAX = 1_000_000
LISTED_MAX = 20
MESSAGE_MAX = 300
FILE_MAX = 300

_TRIED_AGAIN = frozenset({"rerun", "retried"})
"""What plug-ins call an attempt that failed and is repeated."""

_PHASES = frozenset({"setup", "call", "teardown"})
_WORKER = "headgate"
_OUTSIDE = "headgate_outside"
_RANK = {"skipped": 0, "passed": 1, "failed": 2}
_INTERNAL, _USAGE, _INTERRUPTED, _TESTS_FAILED, _NO_TESTS = 3, 4, 2, 1, 5


class Report(Protocol):
    """The end of one phase of a test, or of the collection of a file."""

    nodeid: str
    outcome: str
    when: str
    longreprtext: str


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Measure no coverage of tests that run again: its reports are those of the first run."""
    with suppress(Exception):
        if os.environ.get(ONLY):
            early_config.known_args_namespace.no_cov = True
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take part if `headgate test` has started this pytest.

    The tests do not get the variables: a runner that they start would speak in our name.
    """
    with suppress(Exception):
        worker = getattr(config, "workerinput", None)
        if worker is not None:
            if worker.get(_WORKER):
                config.pluginmanager.register(_Fixtures(), "headgate-fixtures")
            return
        live, suspects = os.environ.pop(LIVE, ""), os.environ.pop(SUSPECTS, "")
        only = os.environ.pop(ONLY, "")
        if only:
            config.option.xmlpath = None
            config.pluginmanager.register(_Again(config, only, live), "headgate-again")
        elif live:
            config.pluginmanager.register(_Run(config, live), "headgate-run")
            config.pluginmanager.register(_Fixtures(), "headgate-fixtures")
        if suspects and not only:
            config.pluginmanager.register(_SuspectsFirst(suspects), "headgate-suspects")
        given = {LIVE: live, SUSPECTS: suspects, ONLY: only}
        config.add_cleanup(lambda: os.environ.update({k: v for k, v in given.items() if v}))


class _SuspectsFirst:
    """Moves suspected tests to the front, the most suspected first; others keep their order."""

    def __init__(self, path: str) -> None:
        self._ranks = _ranks(path)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._ranks:
            items.sort(key=lambda item: _rank(self._ranks, item.nodeid))


class _Again:
    """Runs some tests only, each many times, and writes one line for each run.

    It tells pytest nothing of their outcomes, so no report, no cache and no limit of failures knows
    them. A test that ran before keeps the fixtures that it shares, and gets its own anew, and a new
    object of its class.
    """

    def __init__(self, config: pytest.Config, only: str, live: str) -> None:
        self._config = config
        self._live = live
        self._ranks = _ranks(only)
        self._wanted = _times(only)
        self._places: dict[str, int] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all other tests, and those that two tests may be; list each for every run.

        So what another plug-in does around a test, a limit of its time, is done around each run.
        """
        found: dict[int, list[pytest.Item]] = {}
        for item in items:
            found.setdefault(_rank(self._ranks, item.nodeid), []).append(item)
        found.pop(len(self._ranks), None)
        chosen = {at: same[0] for at, same in found.items() if len(same) == 1}
        self._places = {item.nodeid: at for at, item in chosen.items()}
        items[:] = [chosen[at] for at in sorted(chosen) for _ in range(self._wanted[at])]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test once, and note the outcome."""
        at = self._places[item.nodeid]
        runner: Any = self._config.pluginmanager.get_plugin("runner")
        if isinstance(item.parent, pytest.Class):
            for name in ("_instance", "_obj"):
                item.__dict__.pop(name, None)
        if hasattr(item, "_initrequest"):
            item._initrequest()
        following = item.parent if nextitem is item else nextitem
        reports = runner.runtestprotocol(item, nextitem=following, log=False)
        outcomes = {report.when: report.outcome for report in reports}
        if "failed" in outcomes.values():
            self._write(at, "failed")
        elif outcomes.get("call") == "passed":
            self._write(at, "passed")
        return True

    def _write(self, at: int, outcome: str) -> None:
        content = _bytes_of({"event": "repeat", "at": at, "outcome": outcome})
        opened = os.open(self._live, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(opened, content)
        finally:
            os.close(opened)


class _Fixtures:
    """Notes in the report of a tear-down that a fixture failed which tests share.

    pytest books such an error to the test that ran last. The note goes with the report from a
    worker of pytest-xdist to the process that leads it.
    """

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, Any, None]:
        outcome = yield
        with suppress(Exception):
            if call.when == "teardown" and call.excinfo is not None:
                found = _shared_fixture(call.excinfo.value, str(item.config.rootpath))
                if found is not None:
                    setattr(outcome.get_result(), _OUTSIDE, found)


class _Run:
    """One run of pytest: reports failed tests as they end, and at the end how it ended."""

    def __init__(self, config: pytest.Config, live: str) -> None:
        self._config = config
        self._live = live
        self._process = os.getpid()
        self._about: dict[str, object] = {"run": uuid.uuid4().hex, "runner": "pytest"}
        self._session: pytest.Session | None = None
        self._planned: int | None = None
        self._outcomes: dict[str, str] = {}
        self._failures = 0
        self._unloaded: dict[str, str] = {}
        self._outside: list[dict[str, str]] = []
        self._is_internal = False
        self._is_interrupted = False
        self._failed = _failed_before(live)
        self._suite = "pytest"
        with suppress(KeyError, ValueError):
            self._suite = str(config.getini("junit_suite_name"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Say that a run begins; what only lists tests or fixtures is none."""
        with suppress(Exception):
            if self._config.option.collectonly:
                return
            self._session = session
            versions = {"runner_version": pytest.__version__, "plugin_version": VERSION}
            more = {**versions, "repeats": self._can_repeat(), **self._shard()}
            self._write({"event": "start", **self._about, **more})

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        with suppress(Exception):
            self._planned = len({item.nodeid for item in session.items})

    def pytest_collectreport(self, report: Report) -> None:
        with suppress(Exception):
            if report.outcome == "failed":
                self._failures += 1
                file = report.nodeid.partition("::")[0]
                self._unloaded.setdefault(file, _message_of(report))

    def pytest_runtest_logreport(self, report: Report) -> None:
        """Report a failed test, and one that passes after it had failed."""
        with suppress(Exception):
            self._count(report)
            names = _names_of(report.nodeid)
            if report.outcome in _TRIED_AGAIN:
                self._write(self._test(report, "failed", is_final=False))
            elif report.outcome == "failed" and names not in self._failed:
                self._failed.add(names)
                self._write(self._test(report, "failed"))
            elif report.outcome == "passed" and report.when == "call" and names in self._failed:
                self._failed.discard(names)
                self._write(self._test(report, "passed"))

    def pytest_internalerror(self) -> None:
        self._is_internal = True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell an interruption from outside, or by `pytest.exit`, from a stop by a limit."""
        with suppress(Exception):
            is_stop = excinfo.typename == "Interrupted"
            self._is_interrupted = not is_stop or "keyboard-interrupt" in str(excinfo.value)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Ask a worker of pytest-xdist to note what its reports do not say."""
        with suppress(Exception):
            node.workerinput[_WORKER] = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the tests that a worker has found; with `--keep-duplicates` some come twice."""
        with suppress(Exception):
            self._planned = len(set(ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Note a worker of pytest-xdist that has crashed."""
        with suppress(Exception):
            if error:
                message = f"the worker {node.gateway.id} of pytest-xdist crashed: {error}"
                self._outside.append({"file": "", "message": message})

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Say how the run ended: its exit code is settled now.

        A process that a test has forked, and that came this far, says nothing.
        """
        with suppress(Exception):
            if self._session is not None and os.getpid() == self._process:
                self._write(self._end(self._session))

    def _count(self, report: Report) -> None:
        """Count a test by the worst of its phases, in its last attempt."""
        if report.outcome == "failed" and not hasattr(report, "wasxfail"):
            self._failures += 1
        told = getattr(report, _OUTSIDE, None)
        if told is not None:
            self._outside.append(told)
        if report.outcome in _TRIED_AGAIN:
            self._outcomes.pop(report.nodeid, None)
        elif report.outcome in _RANK and (report.when == "call" or report.outcome != "passed"):
            before = self._outcomes.get(report.nodeid, "skipped")
            worst = max(before, report.outcome, key=_RANK.__getitem__)
            self._outcomes[report.nodeid] = worst

    def _end(self, session: pytest.Session) -> dict[str, object]:
        code = int(session.exitstatus)
        counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
        for outcome in self._outcomes.values():
            counts[outcome] += 1
        planned = session.testscollected if self._planned is None else self._planned
        reason = self._reason(session, code, planned)
        unloaded = [{"file": file, "message": said} for file, said in self._unloaded.items()]
        line = {
            "event": "end",
            **self._about,
            "reason": reason,
            "exit_code": code,
            "planned": planned,
            **counts,
            "not_run": max(0, planned - len(self._outcomes)),
            "unloaded": unloaded,
            "errors_outside": self._outside,
            **self._shard(),
        }
        return _bounded(line)

    def _reason(self, session: pytest.Session, code: int, planned: int) -> str:
        """Return the first reason that is true (docs/reference/live-tests.md)."""
        if self._is_internal or code == _INTERNAL:
            return "internal"
        if code == _USAGE:
            return "usage"
        if self._is_interrupted:
            return "interrupted"
        is_stopped = bool(session.shouldfail or session.shouldstop)
        has_failed = "failed" in self._outcomes.values()
        usual = _TESTS_FAILED if has_failed else 0 if planned else _NO_TESTS
        is_usual = code in (0, usual) or is_stopped or bool(self._unloaded)
        is_short = is_stopped and planned > len(self._outcomes)
        is_below = session.testsfailed > self._failures
        if not is_usual and not is_below:
            said = f"a plug-in ended pytest with {code}, which would have ended with {usual}"
            self._outside.append({"file": "", "message": said})
        rules = (
            ("unloaded", bool(self._unloaded)),
            ("error_outside", bool(self._outside)),
            ("threshold", is_below),
            ("stopped_early", is_short or code == _INTERRUPTED),
            ("tests_failed", has_failed),
            ("no_tests", planned == 0),
        )
        return next((reason for reason, is_true in rules if is_true), "passed")

    def _can_repeat(self) -> bool:
        """Return whether this pytest could run single tests again: not in several processes."""
        return not self._config.pluginmanager.hasplugin("dsession")

    def _shard(self) -> dict[str, str]:
        """Return the part of the tests that pytest-split or pytest-shard has chosen."""
        option = self._config.option
        for options, first in ((("splits", "group"), 1), (("num_shards", "shard_id"), 0)):
            of, at = (getattr(option, each, None) for each in options)
            if isinstance(of, int) and isinstance(at, int) and of > 1:
                return {"shard": f"{at - first + 1}/{of}"}
        return {}

    def _test(self, report: Report, outcome: str, *, is_final: bool = True) -> dict[str, object]:
        name, classname = _names_of(report.nodeid)
        return {
            "event": "test",
            "name": name,
            "classname": classname,
            "parent": self._suite,
            "file": report.nodeid.partition("::")[0],
            "outcome": outcome,
            "final": is_final,
        }

    def _write(self, line: dict[str, object]) -> None:
        """Append one line at once, so that lines of several processes do not mix."""
        content = _bytes_of(line)
        if len(content) > LINE_BYTES_MAX:
            return
        opened = os.open(self._live, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(opened, content)
        finally:
            os.close(opened)


def _bytes_of(line: dict[str, object]) -> bytes:
    return (json.dumps({"v": 1, **line}) + "\n").encode()


def _bounded(line: dict[str, object]) -> dict[str, object]:
    """Return the line with as much of its lists as fits; what is left out is counted."""
    found = {name: line[name] for name in ("unloaded", "errors_outside")}
    for shown in range(LISTED_MAX, -1, -1):
        short = dict(line)
        for name, errors in found.items():
            listed = [_short(each) for each in errors[:shown]]  # type: ignore[index]
            short[name] = listed
            more = len(errors) - len(listed)  # type: ignore[arg-type]
            if more:
                short[f"{name}_more"] = more
        if len(_bytes_of(short)) <= LINE_BYTES_MAX:
            return short
    return short


def _short(error: dict[str, str]) -> dict[str, str]:
    return {"file": error["file"][:FILE_MAX], "message": error["message"][:MESSAGE_MAX]}


def _message_of(report: Report) -> str:
    """Return the line that says what went wrong; pytest begins these with `E`."""
    lines = [line.strip() for line in report.longreprtext.splitlines() if line.strip()]
    said = [line[1:].strip() for line in lines if re.match(r"E\s", line)]
    return (said or lines or [""])[-1]


def _shared_fixture(error: BaseException, root: str) -> dict[str, str] | None:
    """Return file and message of an error that the end of a shared fixture has raised.

    pytest ends a fixture in the method `finish` of its definition: the innermost one has failed.
    Several errors come as a group. None: the failing fixture is of one test, or not known.
    """
    found: dict[str, str] | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        local: Any = trace.tb_frame.f_locals.get("self")
        fixture: Any = local if code.co_name == "finish" else None
        if hasattr(fixture, "argname"):
            found = None if fixture.scope == "function" else _about_fixture(fixture, error, root)
        trace = trace.tb_next
    inner = (_shared_fixture(each, root) for each in getattr(error, "exceptions", ()))
    return found or next((each for each in inner if each is not None), None)


def _about_fixture(fixture: Any, error: BaseException, root: str) -> dict[str, str]:
    said = f"{fixture.scope} fixture {fixture.argname}: {type(error).__name__}: {error}"
    code = getattr(fixture.func, "__code__", None)
    path = os.path.relpath(code.co_filename, root) if code is not None else ""
    is_inside = bool(path) and not path.startswith("..") and not os.path.isabs(path)
    return {"file": path.replace(os.sep, "/") if is_inside else "", "message": said}


def _failed_before(live: str) -> set[tuple[str, str]]:
    """Return name and class of the tests whose failures this command has told and not taken back.

    An earlier pytest of the same command may have told them. A line that is no test, or not whole,
    hides none of those behind it.
    """
    failed: set[tuple[str, str]] = set()
    with suppress(OSError), open(live, "rb") as file:
        for line in file.read(READ_MAX).split(b"\n"):
            with suppress(KeyError, RecursionError, TypeError, ValueError):
                told = json.loads(line)
                if told["event"] == "test" and told["final"]:
                    names = (str(told["name"]), str(told["classname"]))
                    (failed.add if told["outcome"] == "failed" else failed.discard)(names)
    return failed


def _names_of(nodeid: str) -> tuple[str, str]:
    """Return name and class of a test as pytest's JUnit reports have them."""
    path, bracket, parameters = nodeid.partition("[")
    names = path.split("::")
    names[0] = re.sub(r"\.py$", "", names[0].replace("/", "."))
    names[-1] += bracket + parameters
    return names[-1], ".".join(names[:-1])


def _ranks(path: str) -> dict[tuple[str, str], tuple[int, str]]:
    """Return place and file of each suspected test, by its name and its class."""
    try:
        with open(path, encoding="utf-8") as file:
            tests = json.load(file)["tests"]
        ranks: dict[tuple[str, str], tuple[int, str]] = {}
        for at, each in enumerate(tests):
            key = (str(each["name"]), str(each.get("classname", "")))
            ranks.setdefault(key, (at, str(each.get("file", ""))))
        return ranks
    except (KeyError, OSError, TypeError, ValueError):
        return {}


def _times(path: str) -> list[int]:
    """Return how often each test of a file is to run; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return [int(each["times"]) for each in json.load(file)["tests"]]
    except (KeyError, OSError, TypeError, ValueError):
        return []


def _rank(ranks: dict[tuple[str, str], tuple[int, str]], nodeid: str) -> int:
    """Return the place of a test among the suspected ones, or one behind them all."""
    name, classname = _names_of(nodeid)
    file = nodeid.partition("::")[0]
    for key in ((name, classname), (name, "")):
        at, named = ranks.get(key, (-1, ""))
        is_file = not named or f"/{file}".endswith(f"/{named}") or f"/{named}".endswith(f"/{file}")
        if at >= 0 and is_file:
            return at
    return len(ranks)

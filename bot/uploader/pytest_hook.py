"""A pytest plug-in for `headgate test`: report failed tests as they end, run suspects first.

`headgate test` copies this file to the module `headgate_pytest`, which pytest's own environment
finds by PYTHONPATH: `headgate test … -- pytest -p headgate_pytest`. It needs nothing but the
standard library, and does nothing without the variables that `headgate test` sets. The protocol is
in docs/reference/live-tests.md.
"""

from __future__ import annotations

import json
import os
import re
from typing import Protocol

LIVE, SUSPECTS = "HEADGATE_LIVE", "HEADGATE_SUSPECTS"
LINE_BYTES_MAX = 16_384
READ_MAX = 1_000_000


class Config(Protocol):
    """pytest's settings; pytest is not installed with us."""

    def getini(self, name: str) -> object:
        """Return a setting of pytest's file. Raises ValueError, KeyError."""


class Item(Protocol):
    """A collected test."""

    nodeid: str


class Report(Protocol):
    """The end of one phase of a test."""

    nodeid: str
    outcome: str
    when: str


_failed: set[tuple[str, str]] = set()
"""Name and class of each test that has failed, also in an earlier pytest of the same command."""

_suite = {"name": "pytest"}


def pytest_configure(config: Config) -> None:
    """Note what pytest's own reports call the suite, and which tests have failed before."""
    _failed.update(_failed_before())
    try:
        _suite["name"] = str(config.getini("junit_suite_name"))
    except (KeyError, ValueError):
        return


def pytest_collection_modifyitems(items: list[Item]) -> None:
    """Move suspected tests to the front, the most suspected first; the others keep their order."""
    ranks = _ranks()
    if ranks:
        items.sort(key=lambda item: _rank(ranks, item.nodeid))


def pytest_runtest_logreport(report: Report) -> None:
    """Report a failed test, and one that passes after it had failed.

    Plug-ins that try a test again call its attempts `rerun` or `retried`, so what is `failed` is
    the last one. The workers of pytest-xdist leave this to the process that leads them.
    """
    path = os.environ.get(LIVE)
    if not path or "PYTEST_XDIST_WORKER" in os.environ:
        return
    names = _names_of(report.nodeid)
    if report.outcome == "failed" and names not in _failed:
        _failed.add(names)
        _write(path, report, "failed")
    elif report.outcome == "passed" and report.when == "call" and names in _failed:
        _failed.discard(names)
        _write(path, report, "passed")


def _failed_before() -> set[tuple[str, str]]:
    """Return the tests whose failures this command has reported and not taken back.

    A line that is no test, or not whole, hides none of those behind it.
    """
    failed: set[tuple[str, str]] = set()
    try:
        with open(os.environ[LIVE], "rb") as file:
            lines = file.read(READ_MAX).split(b"\n")
    except (KeyError, OSError):
        return failed
    for line in lines:
        told = _test_in(line)
        if told is not None:
            names, outcome = told
            (failed.add if outcome == "failed" else failed.discard)(names)
    return failed


def _test_in(line: bytes) -> tuple[tuple[str, str], str] | None:
    """Return name, class and outcome of the test of a line; None if there is none."""
    try:
        told = json.loads(line)
        return (str(told["name"]), str(told["classname"])), str(told["outcome"])
    except (KeyError, RecursionError, TypeError, ValueError):
        return None


def _write(path: str, report: Report, outcome: str) -> None:
    """Append one line at once, so that lines of several processes do not mix."""
    name, classname = _names_of(report.nodeid)
    line = {
        "v": 1,
        "event": "test",
        "name": name,
        "classname": classname,
        "parent": _suite["name"],
        "file": report.nodeid.partition("::")[0],
        "outcome": outcome,
        "final": True,
    }
    content = (json.dumps(line) + "\n").encode()
    if len(content) > LINE_BYTES_MAX:
        return
    try:
        opened = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(opened, content)
        finally:
            os.close(opened)
    except OSError:
        return


def _names_of(nodeid: str) -> tuple[str, str]:
    """Return name and class of a test as pytest's JUnit reports have them."""
    path, bracket, parameters = nodeid.partition("[")
    names = path.split("::")
    names[0] = re.sub(r"\.py$", "", names[0].replace("/", "."))
    names[-1] += bracket + parameters
    return names[-1], ".".join(names[:-1])


def _ranks() -> dict[tuple[str, str], tuple[int, str]]:
    """Return place and file of each suspected test, by its name and its class."""
    try:
        with open(os.environ[SUSPECTS], encoding="utf-8") as file:
            tests = json.load(file)["tests"]
        ranks: dict[tuple[str, str], tuple[int, str]] = {}
        for at, each in enumerate(tests):
            key = (str(each["name"]), str(each.get("classname", "")))
            ranks.setdefault(key, (at, str(each.get("file", ""))))
        return ranks
    except (KeyError, OSError, TypeError, ValueError):
        return {}


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

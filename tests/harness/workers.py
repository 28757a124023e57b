"""Worker processes of a test run, forked once the tests are collected.

`-n 4` or `-n auto` plays the tests in workers. They have what the first process has imported,
collected and read, which takes longer than many tests do. A worker takes the tests of a file,
or a part of a long file, whenever it has none left, so fixtures of a module are made seldom twice.
"""

import gc
import multiprocessing
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from ctypes import c_bool, c_int
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from _pytest.config import create_terminal_writer
from _pytest.unraisableexception import collect_unraisable

FORKS = multiprocessing.get_context("fork")
WAITING_WORKERS = 2
HAND_MAX = 25
"""Tests that a worker takes at once; of the last ones fewer, so that all workers end together."""
PLACE_BYTES = 4
NAME = "TESTS_WORKER"


@dataclass(frozen=True, slots=True)
class Played:
    """What a worker sends of each test when it has ended."""

    nodeid: str
    location: tuple[str, int | None, str]
    reports: list[dict[str, Any]]


class Hooks:
    """What other plugins may do before workers are forked."""

    @pytest.hookspec
    def pytest_prepare_workers(self) -> None:
        """Read what many tests read, and start what all workers share."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `-n`."""
    # The public function keeps short options to pytest itself.
    parser.getgroup("headgate")._addoption(
        "-n", dest="workers", default="0", metavar="WORKERS",
        help="processes that play the tests: a number, 0 for this one alone, or auto",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Play the tests in workers, if there are to be any."""
    count = count_of(session.config.getoption("workers"))
    if count == 0 or session.config.option.collectonly or session.testsfailed:
        return None
    Run(session, count).play()
    return True


def count_of(wanted: str) -> int:
    """How many workers: `auto` is two more than cores, as stories of real processes wait often."""
    return (os.cpu_count() or 1) + WAITING_WORKERS if wanted == "auto" else int(wanted)


def hands_of(items: Sequence[pytest.Item], workers: int) -> list[range]:
    """Deal the tests: each hand is of one file, and the last ones are short."""
    found: list[range] = []
    place = 0
    for _, of_file in groupby(items, key=lambda item: (item.path, is_long(item))):
        end = place + len(list(of_file))
        while place < end:
            share = (len(items) - place) // (2 * workers)
            size = 1 if is_long(items[place]) else min(HAND_MAX, max(1, share))
            found.append(range(place, min(end, place + size)))
            place = found[-1].stop
    return found


def is_long(item: pytest.Item) -> bool:
    """Whether a test is marked `first`."""
    return item.get_closest_marker("first") is not None


@dataclass(slots=True)
class Worker:
    """One worker, as the first process sees it."""

    name: str
    process: BaseProcess
    incoming: Connection
    place: c_int
    """Of the test that it plays; -1: it plays none."""


class Run:
    """A run in several workers, led by the first process."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self.session = session
        self.count = count
        self.ours: list[Connection] = []
        self.hands = hands_of(session.items, count)
        self.over = FORKS.RawValue(c_bool, False)
        # A pipe is a queue that several processes can read: each number goes to one of them.
        self.taking, giving = os.pipe()
        for place in range(len(self.hands)):
            os.write(giving, place.to_bytes(PLACE_BYTES))
        os.close(giving)

    def play(self) -> None:
        """Play all tests; return when the last worker has ended."""
        prepare(self.session)
        workers = [self._begin(str(number)) for number in range(self.count)]
        try:
            self._follow(workers)
        finally:
            for worker in workers:
                worker.process.terminate()
        os.close(self.taking)
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _follow(self, workers: list[Worker]) -> None:
        while workers:
            ready = connection.wait([worker.incoming for worker in workers])
            for worker in [each for each in workers if each.incoming in ready]:
                try:
                    self._note(worker.incoming.recv())
                except EOFError:
                    workers.remove(worker)
                    self._end(worker)

    def _begin(self, name: str) -> Worker:
        incoming, outgoing = FORKS.Pipe(duplex=False)
        self.ours.append(incoming)
        place = FORKS.RawValue(c_int, -1)
        process = FORKS.Process(target=self._work, args=(outgoing, place, name))
        process.start()
        outgoing.close()
        return Worker(name, process, incoming, place)

    def _work(self, outgoing: Connection, place: c_int, name: str) -> None:
        """The body of a worker's process: it ends when nobody reads what it sends."""
        for incoming in self.ours:
            incoming.close()
        config = self.session.config
        os.environ[NAME] = name
        random.seed()
        share_forkserver()
        part_output(config)
        config.pluginmanager.register(Reporter(config, outgoing), "workers-reporter")
        work(self.session, self._next, place, lambda: self.over.value)

    def _next(self) -> range:
        """Take the next hand; an empty one is the end."""
        number = os.read(self.taking, PLACE_BYTES)
        return self.hands[int.from_bytes(number)] if number else range(0)

    def _note(self, played: Played) -> None:
        hook, config = self.session.config.hook, self.session.config
        hook.pytest_runtest_logstart(nodeid=played.nodeid, location=played.location)
        for data in played.reports:
            report = hook.pytest_report_from_serializable(config=config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=played.nodeid, location=played.location)
        if self.session.shouldfail or self.session.shouldstop:
            self._take_back()

    def _end(self, worker: Worker) -> None:
        worker.process.join()
        place = worker.place.value
        if worker.process.exitcode != 0 or place >= 0:
            during = "no test" if place < 0 else self.session.items[place].nodeid
            self.session.shouldfail = (
                f"worker {worker.name} ended with {worker.process.exitcode} during {during}"
            )
            self._take_back()

    def _take_back(self) -> None:
        """Take all hands that are left, so that workers end."""
        self.over.value = True
        while self._next():
            pass


def prepare(session: pytest.Session) -> None:
    """Make this process ready to be forked."""
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # once for all
    session.config.hook.pytest_prepare_workers()
    assert threading.active_count() == 1, "a process with threads cannot be forked"
    gc.freeze()
    sys.stdout.flush()
    sys.stderr.flush()


def work(
    session: pytest.Session, take: Callable[[], range], running: c_int, is_over: Callable[[], bool]
) -> None:
    """Play hands in a worker until there are none; `running` shows where it is.

    `-x` and `--maxfail` end it within a hand: by failures of its own, or once the run is over.
    """
    hand = take()
    while hand:
        later = range(0)
        for place in hand:
            if place + 1 == hand.stop:
                later = take()
            following = [*hand[place + 1 - hand.start :], *later][:1]
            next_item = session.items[following[0]] if following else None
            running.value = place
            session.config.hook.pytest_runtest_protocol(
                item=session.items[place], nextitem=next_item
            )
            running.value = -1
            if is_over() or session.shouldfail or session.shouldstop:
                session._setupstate.teardown_exact(None)
                later = range(0)
                break
        hand = later
    gc.collect()
    collect_unraisable(session.config)


def share_forkserver() -> None:
    """Let this worker fork from the server that the first process has started."""

    def ensure_running() -> None:
        """Nothing to do: it runs as long as the first process."""

    server: Any = forkserver
    if server._forkserver._forkserver_pid is not None:
        server._forkserver.ensure_running = server.ensure_running = ensure_running


def part_output(config: pytest.Config) -> None:
    """Capture output in files of this process; the first process alone writes to the terminal."""
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    # It is open as long as the process.
    terminal._tw = create_terminal_writer(config, open(os.devnull, "w"))  # noqa: SIM115
    if config.option.capture != "fd":
        return
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.resume_global_capture()
    for stream in (sys.stdout, sys.stderr):
        with tempfile.TemporaryFile() as own:
            os.dup2(own.fileno(), stream.fileno())
    capture.suspend_global_capture()


class Reporter:
    """Sends what came of each test to the first process."""

    def __init__(self, config: pytest.Config, outgoing: Connection) -> None:
        self._config = config
        self._outgoing = outgoing
        self._reports: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report until the test has ended."""
        hook = self._config.hook
        self._reports.append(hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send the reports of a test."""
        self._outgoing.send(Played(nodeid, location, self._reports))
        self._reports = []

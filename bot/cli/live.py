"""Follow a test command while it runs: report failed tests, and name the tests to run first.

Nothing here changes how the command ends. The service is asked for suspected tests for at most
`START_MAX_S` before the command starts, and a report that is under way when it ends is awaited for
at most `END_MAX_S`.
"""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bot.cli import live_lines, output, runner_ends, suspects
from bot.cli.job_service import FreshToken, JobService
from bot.cli.live_lines import EndedTest, LiveFile, ReportFiles
from bot.uploader import transport
from bot.uploader.transport import Json, Request, RequestFailed
from service.testhealth.early_failures import FAILURES_MAX

START_MAX_S = 3.0
END_MAX_S = 2.0
POLL_S = 0.2
SEND_TIMEOUT_S = 10.0
REPORT = "/flaky-tests/report-early-failure"

LIVE, SUSPECTS = "HEADGATE_LIVE", "HEADGATE_SUSPECTS"
"""The variables that a command gets (docs/reference/live-tests.md)."""

PYTEST_MODULE = "headgate_pytest.py"
_PLACES = (Path(__file__).parent, Path(__file__).parents[2] / "plugins/pytest")
PYTEST_PLUGIN = next(path for place in _PLACES if (path := place / PYTEST_MODULE).exists())
"""The plug-in of pytest: in the package, or in the checkout."""

FIELDS = ("sha", "branch", "pr_number", "run_id", "run_attempt", "job", "source_root")
"""Metadata of an upload that an early report has as well."""

UNPROVED = "unproved"
NEVER_COUNTS = frozenset({"no_test_run", UNPROVED, "over"})
"""Answers about the job itself: no other test of it would count either."""


class Job(NamedTuple):
    """A job that runs tests: its service, its metadata, and the reports that it writes."""

    service: JobService
    metadata: Json
    globs: Sequence[str]
    reports_are_final: bool = False


class Followed(NamedTuple):
    """A command that is followed: the variables that it gets, and how its runners ended.

    What the runners say is known when the block has ended. `spoken` has a word for each that began:
    whether it can run single tests again.
    """

    variables: dict[str, str]
    runner_ends: list[Json]
    spoken: list[bool]


@contextmanager
def followed(job: Job, started_s: float) -> Iterator[Followed]:
    """Follow the command that runs in the block.

    A command that cannot be followed runs all the same, without variables.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="headgate-"))
    except OSError:
        yield Followed({}, [], [])
        return
    try:
        token = FreshToken(job.service)
        followed = Followed(_prepare(folder, job, token), [], [])
        follower = _Follower(_Reporter(job, token), sources_of(job, folder, started_s))
        follower.start()
        try:
            yield followed
        finally:
            follower.end()
            followed.runner_ends.extend(runner_ends.read(folder / "live"))
            followed.spoken.extend(live_lines.begun_in(folder / "live"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sources_of(job: Job, folder: Path, started_s: float) -> list[LiveFile | ReportFiles]:
    """Return what is read while the command runs: reports only if their failures are final."""
    lines = LiveFile(folder / "live")
    return [lines, ReportFiles(job.globs, started_s)] if job.reports_are_final else [lines]


def _prepare(folder: Path, job: Job, token: FreshToken) -> dict[str, str]:
    """Write what the command reads and writes; return the variables that name it."""
    variables = plugin_variables(folder)
    found = _suspects_within(job, token)
    if found:
        path = folder / "suspects.json"
        path.write_text(json.dumps(suspects.document(found)), "utf-8")
        variables[SUSPECTS] = str(path)
    return variables


def plugin_variables(folder: Path) -> dict[str, str]:
    """Put the plug-in of pytest and a file for lines into a folder; return the variables."""
    (folder / "live").touch(mode=0o600)
    shutil.copyfile(PYTEST_PLUGIN, folder / PYTEST_MODULE)
    before = os.environ.get("PYTHONPATH")
    return {
        LIVE: str(folder / "live"),
        "PYTHONPATH": os.pathsep.join((str(folder), before)) if before else str(folder),
    }


def _suspects_within(job: Job, token: FreshToken) -> list[Json]:
    """Return the tests to run first; empty where they do not arrive within `START_MAX_S`."""
    found: list[Json] = []

    def ask() -> None:
        try:
            service = job.service.connect(token.get(), bool, START_MAX_S)
            answer = service.send(suspects.request_of(job.service, str(job.metadata["sha"])), ())
            found.extend(suspects.tests_of(answer)[: suspects.LIMIT])
        except RequestFailed:
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(START_MAX_S)
    return list(found)


class _Follower(threading.Thread):
    """Reads what the runner tells, and hands it on, until the command has ended."""

    def __init__(self, reporter: "_Reporter", sources: Sequence[LiveFile | ReportFiles]) -> None:
        super().__init__(daemon=True)
        self._reporter = reporter
        self._sources = sources
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(POLL_S) and not self._reporter.is_done:
            for source in self._sources:
                for ended in source.read():
                    if not self._ended.is_set() and not self._reporter.is_done:
                        self._reporter.take(ended)

    def end(self) -> None:
        """Stop; a report that is being sent is awaited for a moment, and left behind then."""
        self._ended.set()
        self.join(END_MAX_S)


class _Reporter:
    """Sends failed tests until one counts, and takes that back if the test passes after all."""

    def __init__(self, job: Job, token: FreshToken) -> None:
        self._job = job
        self._token = token
        self._org = ""
        self._sent: set[tuple[str, str, str, str]] = set()
        self._last_counted: EndedTest | None = None
        self.is_done = False

    def take(self, ended: EndedTest) -> None:
        """Send a test if it changes what the service knows; one that cannot be sent is left out."""
        if self.is_done:
            return
        if ended.has_passed:
            if self._last_counted is not None and ended.names == self._last_counted.names:
                self._send(ended)
                self._last_counted = None
                output.log(f"headgate: {_shown(ended)} passed when it was tried again")
            return
        is_full = len(self._sent) >= FAILURES_MAX
        if self._last_counted is not None or ended.names in self._sent or is_full:
            return
        self._sent.add(ended.names)
        answer = self._send(ended)
        standing = str(answer.get("standing", "")).lower()
        if standing == "counts":
            self._last_counted = ended
            output.log(f"headgate: {_shown(ended)} failed; the test run is judged by it")
        elif standing == UNPROVED:
            output.log(
                f"headgate: {_shown(ended)} failed; not judged early: {answer.get('message', '')}"
            )
        self.is_done = self.is_done or standing in NEVER_COUNTS

    def _send(self, ended: EndedTest) -> Json:
        """Send one test once; return the answer, empty if the service was not reached."""
        try:
            service = self._job.service.connect(self._token.get(), bool, SEND_TIMEOUT_S)
            self._org = self._org or self._job.service.organization_of(service)
            answer = service.send(_request_of(self._job, self._org, ended), ())
        except RequestFailed as failed:
            # The service has refused: it would refuse the next one as well.
            self.is_done = not isinstance(failed, transport.Transient)
            return {}
        return answer


def _request_of(job: Job, org: str, ended: EndedTest) -> Request:
    metadata = {name: job.metadata[name] for name in FIELDS if job.metadata.get(name)}
    repository = job.service.repository
    body: Json = {
        "repo": {"host": repository.host, "owner": repository.owner, "name": repository.name},
        "org_url_slug": org,
        **metadata,
        "name": ended.name,
        "classname": ended.classname,
        "parent": ended.parent,
        "file_path": ended.file,
        "final": True,
        "passed": ended.has_passed,
    }
    return Request(REPORT, {"Content-Type": "application/json"}, json.dumps(body).encode())


def _shown(ended: EndedTest) -> str:
    place = ended.file or ended.classname
    return f"{place}::{ended.name}" if place else ended.name

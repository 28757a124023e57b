"""Read what a test runner tells while it runs: lines of a protocol, and report files.

The protocol is in docs/reference/live-tests.md. What cannot be read is passed over: the whole
report follows, and decides.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bot.uploader import files, transport
from bot.uploader.transport import Json
from service.testhealth.early_failures import NAME_MAX

_CLOCK = transport.Clock()

VERSION = 1
LINE_BYTES_MAX = 16_384
FILE_BYTES_MAX = 16 * 1024 * 1024
REPORT_BYTES_MAX = 16 * 1024 * 1024

LOOK_S = 1.0
"""Report files are looked for this often; less often where a look takes long."""

LOOK_SHARE = 20
"""A pause between two looks lasts at least this many times as long as a look."""


class EndedTest(NamedTuple):
    """The end of a test, as its runner tells it: one that failed is not tried again."""

    name: str
    classname: str
    parent: str
    file: str
    has_passed: bool

    @property
    def names(self) -> tuple[str, str, str, str]:
        """Return what identifies the test."""
        return self.name, self.classname, self.parent, self.file


def parse(line: bytes) -> EndedTest | None:
    """Parse one line; None for another version, another event, or what is not the protocol.

    A name with NUL or half a surrogate pair is none: no report has it, and the service refuses it.
    A failure that the runner may try again moves no test run, and is none as well.
    """
    value = transport.json_object(line)
    if value is None or value.get("v") != VERSION or value.get("event") != "test":
        return None
    name, outcome = value.get("name"), value.get("outcome")
    if not isinstance(name, str) or not name or outcome not in ("failed", "passed"):
        return None
    texts = [value.get(each, "") for each in ("classname", "parent", "file")]
    classname, parent, file = (each[:NAME_MAX] if isinstance(each, str) else "" for each in texts)
    names = (name[:NAME_MAX], classname, parent, file)
    if not all(map(_is_text, names)):
        return None
    has_passed = outcome == "passed"
    return EndedTest(*names, has_passed) if has_passed or value.get("final") is True else None


def _is_text(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= each <= "\udfff" for each in name)


def lines_in(path: Path) -> list[Json]:
    """Return all lines of this version in a file; what cannot be read is passed over."""
    try:
        with path.open("rb") as file:
            lines = file.read(FILE_BYTES_MAX).split(b"\n")
    except OSError:
        return []
    values = (transport.json_object(each) for each in lines if len(each) <= LINE_BYTES_MAX)
    return [each for each in values if each is not None and each.get("v") == VERSION]


def begun_in(path: Path) -> list[bool]:
    """Return, for each runner that began, whether it can run single tests again."""
    return [each.get("repeats") is True for each in lines_in(path) if each.get("event") == "start"]


class LiveFile:
    """The file to which runners append lines; read from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""

    def read(self) -> list[EndedTest]:
        """Return the tests of all lines that have ended since the last call."""
        if self._at >= FILE_BYTES_MAX:
            return []
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                content = file.read(FILE_BYTES_MAX - self._at)
        except OSError:
            return []
        self._at += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        self._rest = self._rest[: LINE_BYTES_MAX + 1]
        ended = (parse(line) for line in lines if len(line) <= LINE_BYTES_MAX)
        return [each for each in ended if each is not None]


class ReportFiles:
    """Report files that appear or change while the command runs, as Gradle and Maven write them.

    A file is read when its content is whole, and again after it has changed. The runner tries none
    of its tests again.
    """

    def __init__(self, globs: Sequence[str], since_s: float) -> None:
        self._globs = globs
        self._since_s = since_s
        self._seen: dict[str, tuple[int, int]] = {}
        self._next_s = 0.0

    def read(self) -> list[EndedTest]:
        """Return the failed tests of new files, if it is time for a look."""
        began_s = _CLOCK.monotonic_s()
        if began_s < self._next_s:
            return []
        ended = [each for path in self._changed() for each in self._read(path)]
        took_s = _CLOCK.monotonic_s() - began_s
        self._next_s = began_s + took_s + max(LOOK_S, LOOK_SHARE * took_s)
        return ended

    def _changed(self) -> Iterator[str]:
        for pattern in self._globs:
            for path in files.matching(pattern):
                try:
                    stat = os.stat(path)
                except OSError:
                    continue
                state = (stat.st_mtime_ns, stat.st_size)
                is_new = stat.st_mtime >= self._since_s and self._seen.get(path) != state
                if is_new and 0 < stat.st_size <= REPORT_BYTES_MAX:
                    self._seen[path] = state
                    yield path

    def _read(self, path: str) -> list[EndedTest]:
        # Late: most commands write no report before their end.
        from service.testhealth.reports import reports
        from service.testhealth.reports.reading import ReadOptions
        from service.testhealth.reports.results import CaseKind, FileStatus, Outcome

        try:
            report = reports.read(Path(path).read_bytes(), None, ReadOptions())
        except OSError:
            return []
        if report.status is not FileStatus.ACCEPTED:
            return []
        return [
            EndedTest(
                case.name,
                case.classname,
                case.parent,
                case.file,
                has_passed=case.outcome is Outcome.PASSED,
            )
            for case in report.cases
            if case.kind is CaseKind.TEST and case.outcome is not Outcome.SKIPPED
        ]

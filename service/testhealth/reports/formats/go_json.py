"""The event lines of `go test -json` to cases."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from service.testhealth.reports.capture import Captured
from service.testhealth.reports.durations import bounded
from service.testhealth.reports.formats import shapes
from service.testhealth.reports.reading import CASES_MAX, TOO_MANY, Reading, ReadOptions
from service.testhealth.reports.results import (
    Attempt,
    CaseKind,
    CaseResult,
    Format,
    Outcome,
    ReportFile,
    WarningCode,
)
from service.testhealth.reports.text import Text
from service.testhealth.reports.xml import Stopped

PACKAGE_FAILURE = "(package)"
TERMINALS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}
ACTION = "Action"
# Go before 1.24 says in a plain line alone that it could not build a package or its tests.
NOT_BUILT = re.compile(r"FAIL\s+(\S{1,1000}) (\[(?:build|setup) failed\])\s*")
# What the compiler says of a package follows a line with its name, up to another one.
BUILT = re.compile(r"# (\S{1,1000})(?: \[\S{1,1000}\])?\s*")
OUTPUT_CHARACTERS_MAX = 8_000
LINE_CHARACTERS_MAX = 1024 * 1024
# Output of a build between the events, empty lines included; each takes its time.
OTHER_LINES_MAX = 1_000_000
# So many packages of a build that failed keep what the compiler said.
PACKAGES_MAX = 1_000
TOO_MANY_LINES = f"More than {OTHER_LINES_MAX:,} lines are no events of a test run."
# Lines the go command writes itself around what a test printed.
FRAMING = ("=== ", "--- ", "FAIL", "ok  \t", "exit status ")


@dataclass(slots=True)
class Seen:
    """One (package, test) so far: its finished attempts, and what it printed since the last.

    `is_open`: it has begun and not ended. `has_failed_inside`: a subtest of it failed since it
    began; `has_spoken`: it printed something of its own.
    """

    attempts: list[Attempt] = field(default_factory=list)
    is_open: bool = False
    has_failed_inside: bool = False
    has_spoken: bool = False
    printed: Captured = field(default_factory=lambda: Captured(0, OUTPUT_CHARACTERS_MAX))


@dataclass(slots=True)
class Build:
    """Packages that were not built, and what the compiler said of each."""

    failed: dict[str, str] = field(default_factory=dict)
    said: dict[str, Captured] = field(default_factory=dict)
    _package: str = ""

    def note(self, line: str) -> bool:
        """Take a plain line; whether it speaks of a build."""
        if match := NOT_BUILT.fullmatch(line):
            if len(self.failed) < CASES_MAX:
                self.failed[match[1]] = match[2]
            self._package = ""
            return True
        if match := BUILT.fullmatch(line):
            self._package = match[1]
            return True
        if self._package and line.strip():
            if self._package not in self.said and len(self.said) < PACKAGES_MAX:
                self.said[self._package] = Captured(0, OUTPUT_CHARACTERS_MAX)
            if self._package in self.said:
                self.said[self._package].add(f"{line}\n")
            return True
        return False

    def enter(self, seen: dict[tuple[str, str], Seen]) -> None:
        """Let each package that was not built fail, unless an event has said so."""
        for package, how in self.failed.items():
            each = seen.setdefault((package, ""), Seen())
            if not has_failed(each):
                said = self.said.get(package.removesuffix(".test"))
                stack = said.text() if said else f"{package} {how}"
                each.attempts.append(Attempt(Outcome.FAILED, None, stack=stack, is_error=True))


def read(text: Text, read_options: ReadOptions) -> ReportFile:
    """The report; lines that are no events are left out with a warning.

    A test that never ended is no case: its package's failure tells of it. A package that was not
    built is a failure of the package.
    """
    reading = Reading(Format.GO_JSON, read_options)
    seen: dict[tuple[str, str], Seen] = {}
    build = Build()
    others = 0
    for line in lines_of(text.pieces()):
        event = event_of(line)
        if event is not None:
            note(seen, event)
            if len(seen) > CASES_MAX:
                raise Stopped(TOO_MANY)
            continue
        if build.note(line):
            continue
        others += 1
        if others > OTHER_LINES_MAX:
            raise Stopped(TOO_MANY_LINES)
        if line.strip():
            reading.warn(WarningCode.SKIPPED_LINES)
    reading.is_interrupted = is_interrupted(seen)
    build.enter(seen)
    failed_packages = {
        package for (package, test), each in seen.items() if test and has_failed(each)
    }
    for (package, test), each in seen.items():
        if test and each.attempts:
            reading.add(_case_of(reading, test, package, each))
        elif not test and has_failed(each) and package not in failed_packages:
            case = _case_of(reading, PACKAGE_FAILURE, package, each)
            reading.add(case._replace(kind=CaseKind.SYNTHETIC))
    return reading.report(None)


def event_of(line: str) -> dict[str, object] | None:
    """The event that the line is, if it is one."""
    if not line.lstrip().startswith("{") or len(line) > LINE_CHARACTERS_MAX:
        return None
    try:
        read_line: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    event = shapes.record(read_line)
    return event if isinstance(event.get(ACTION), str) else None


def note(seen: dict[tuple[str, str], Seen], event: dict[str, object]) -> None:
    """Take one event."""
    key = (shapes.text(event, "Package"), shapes.text(event, "Test"))
    action = event[ACTION]
    if action == "output":
        each = seen.setdefault(key, Seen())
        printed = shapes.text(event, "Output")
        each.printed.add(printed)
        each.has_spoken = each.has_spoken or _is_own(printed)
    elif action in ("run", "start"):
        seen.setdefault(key, Seen()).is_open = True
    elif isinstance(action, str) and action in TERMINALS:
        each = seen.setdefault(key, Seen())
        outcome = TERMINALS[action]
        if outcome is Outcome.FAILED and _follows_subtests(seen, key):
            outcome = Outcome.PASSED
        elapsed = shapes.number(event, "Elapsed")
        printed = each.printed.text() if outcome is Outcome.FAILED else ""
        seconds = None if elapsed is None else bounded(elapsed)
        each.attempts.append(Attempt(outcome, seconds, stack=printed))
        each.printed = Captured(0, OUTPUT_CHARACTERS_MAX)
        each.is_open = each.has_spoken = each.has_failed_inside = False


def _follows_subtests(seen: Mapping[tuple[str, str], Seen], key: tuple[str, str]) -> bool:
    """Note a failure for the test around; whether it is that of subtests alone.

    Go fails each test whose subtest fails. A failure of its own is printed.
    """
    package, test = key
    parent = seen.get((package, test.rpartition("/")[0])) if "/" in test else None
    if parent is not None:
        parent.has_failed_inside = True
    each = seen[key]
    return bool(test) and each.has_failed_inside and not each.has_spoken


def _is_own(printed: str) -> bool:
    """Return whether a line is what a test says, and not what Go writes around it."""
    said = printed.strip()
    return bool(said) and not said.startswith(FRAMING)


def is_interrupted(seen: Mapping[tuple[str, str], Seen]) -> bool:
    """Return whether a test has begun and not ended, or a package whose tests ended has not."""
    if any(each.is_open for each in seen.values()):
        return True
    ended = {package for (package, test), each in seen.items() if not test and each.attempts}
    return any(package not in ended for package, _ in seen)


def has_failed(seen: Seen) -> bool:
    """Return whether any attempt failed."""
    return any(attempt.outcome is Outcome.FAILED for attempt in seen.attempts)


def _case_of(reading: Reading, name: str, package: str, seen: Seen) -> CaseResult:
    """The case of a (package, test) that ended at least once."""
    attempts = tuple(
        reading.failed(attempt._replace(message=_message_in(attempt.stack)))
        if attempt.outcome is Outcome.FAILED
        else attempt
        for attempt in seen.attempts
    )
    return shapes.passed_at_once(
        CaseResult(reading.name(name), package, "", "", explicit_attempts=attempts)
    )


def _message_in(printed: str) -> str:
    """The first line that the test itself printed, empty if there is none."""
    lines = (line.strip() for line in printed.split("\n"))
    return next((line for line in lines if line and not line.startswith(FRAMING)), "")


def lines_of(pieces: Iterable[str]) -> Iterator[str]:
    """Lines across pieces; one that passes its limit comes in parts, none of them an event."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).split("\n")
        yield from lines
        if len(rest) > LINE_CHARACTERS_MAX:
            yield rest
            rest = ""
    if rest:
        yield rest

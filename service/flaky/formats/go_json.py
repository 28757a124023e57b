"""The event lines of `go test -json` to cases."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from service.flaky.capture import Captured
from service.flaky.durations import bounded
from service.flaky.formats import shapes
from service.flaky.reading import CASES_MAX, TOO_MANY, Reading, Wishes, refused
from service.flaky.results import (
    Attempt,
    CaseKind,
    CaseResult,
    Fault,
    Format,
    Outcome,
    ReportFile,
    WarningCode,
)
from service.flaky.text import Text

PACKAGE_FAILURE = "(package)"
TERMINALS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}
ACTION = "Action"
OUTPUT_CHARACTERS_MAX = 8_000
LINE_CHARACTERS_MAX = 1024 * 1024
# Output of a build between the events, empty lines included; each takes its time.
OTHER_LINES_MAX = 1_000_000
TOO_MANY_LINES = f"More than {OTHER_LINES_MAX:,} lines are no events of a test run."
# Lines the go command writes itself around what a test printed.
FRAMING = ("=== ", "--- ", "FAIL", "ok  \t", "exit status ")


@dataclass(slots=True)
class Seen:
    """One (package, test) so far: its finished attempts, and what it printed since the last."""

    attempts: list[Attempt] = field(default_factory=list)
    printed: Captured = field(default_factory=lambda: Captured(0, OUTPUT_CHARACTERS_MAX))


def is_event(line: str) -> bool:
    """Whether the line is an event of a test run."""
    return event_of(line) is not None


def read(text: Text, wishes: Wishes) -> ReportFile:
    """The report; lines that are no events are left out with a warning.

    A test that never ended is no case: its package's failure tells of it.
    """
    reading = Reading(Format.GO_JSON, wishes)
    seen: dict[tuple[str, str], Seen] = {}
    others = 0
    for line in lines_of(text.pieces()):
        event = event_of(line)
        if event is not None:
            note(seen, event)
            if len(seen) > CASES_MAX:
                return refused(Fault(TOO_MANY), Format.GO_JSON)
            continue
        others += 1
        if others > OTHER_LINES_MAX:
            return refused(Fault(TOO_MANY_LINES), Format.GO_JSON)
        if line.strip():
            reading.warn(WarningCode.SKIPPED_LINES)
    failed_packages = {
        package for (package, test), each in seen.items() if test and has_failed(each)
    }
    for (package, test), each in seen.items():
        if test and each.attempts:
            reading.add(case_of(reading, test, package, each))
        elif not test and has_failed(each) and package not in failed_packages:
            case = case_of(reading, PACKAGE_FAILURE, package, each)
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
        seen.setdefault(key, Seen()).printed.add(shapes.text(event, "Output"))
    elif isinstance(action, str) and action in TERMINALS:
        each = seen.setdefault(key, Seen())
        outcome = TERMINALS[action]
        elapsed = shapes.number(event, "Elapsed")
        printed = each.printed.text() if outcome is Outcome.FAILED else ""
        seconds = None if elapsed is None else bounded(elapsed)
        each.attempts.append(Attempt(outcome, seconds, stack=printed))
        each.printed = Captured(0, OUTPUT_CHARACTERS_MAX)


def has_failed(seen: Seen) -> bool:
    """Whether any attempt failed."""
    return any(attempt.outcome is Outcome.FAILED for attempt in seen.attempts)


def case_of(reading: Reading, name: str, package: str, seen: Seen) -> CaseResult:
    """The case of a (package, test) that ended at least once."""
    told = tuple(
        reading.failed(attempt._replace(message=message_in(attempt.stack)))
        if attempt.outcome is Outcome.FAILED
        else attempt
        for attempt in seen.attempts
    )
    return shapes.passed_at_once(CaseResult(reading.name(name), package, "", "", told=told))


def message_in(printed: str) -> str:
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

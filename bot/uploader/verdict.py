"""The exit code of an upload, and the sentence that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from bot.uploader import transport
from bot.uploader.files import Report
from bot.uploader.transport import Json, RequestFailed

# Error codes of the API.
NO_RESULTS = "no_results"
TOO_MUCH = (transport.TOO_LARGE, "limit_reached")
STRICT_EXIT = 70
NAMES_SHOWN = 10
NO_REPORT = "No test report matched"
# People's own text follows the colon; it may contain any date, also an impossible one.
QUARANTINE_END = re.compile(r"[A-Z_]+ until (\d{4}-\d\d-\d\d)")
EXIT_CODE_MAX = 255
# As shells show the end by a signal.
SIGNALS_FROM, SIGNALS_MAX = 128, 64
UPLOAD_FAILED = "the upload of test results failed ({reason}). No failure is excused in this run."


class Failure(NamedTuple):
    """A failed test; `reason` is None if it is not quarantined."""

    name: str
    full_name: str
    reason: str | None


class Answer(NamedTuple):
    """The service's answer to one upload; `is_whole`: every file was read to its end.

    `not_excused` says why quarantined failures count nevertheless, in this upload and earlier ones.
    """

    tests: int
    failed: int
    quarantined: int
    is_whole: bool
    exit_code: int
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    html_url: str
    not_excused: tuple[str, ...] = ()


class Outcome:
    """The answers to the uploads so far, parsed and as received, and what could not be uploaded.

    `unread` are names of unreadable files, `too_large` refusals for size, which say nothing
    about other uploads, and `failure` is the error that ended the uploading.
    """

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.received: list[Json] = []
        self.unread: list[str] = []
        self.too_large: list[RequestFailed] = []
        self.failure: RequestFailed | None = None

    @property
    def failed(self) -> int:
        """Return how many tests failed."""
        return sum(each.failed for each in self.answers)

    @property
    def quarantined(self) -> int:
        """Return how many of them are quarantined."""
        return sum(each.quarantined for each in self.answers)

    @property
    def is_whole(self) -> bool:
        """Return whether every report was read to its end, so that no failure can be hidden."""
        return not self.unread and all(each.is_whole for each in self.answers)

    def add(self, received: Json) -> Answer:
        """Add the answer to an upload. Raises RequestFailed if it is not one."""
        self.received.append(received)
        answer = _parse_answer(received)
        self.answers.append(answer)
        return answer

    def skip(self, batch: Sequence[Report], failed: RequestFailed) -> None:
        """Go on without an upload that has no results, or too many. Raises any other failure."""
        if failed.code not in (NO_RESULTS, *TOO_MUCH):
            raise failed
        self.unread.extend(each.name for each in batch)
        if failed.code in TOO_MUCH:
            self.too_large.append(failed)


class Ending(NamedTuple):
    """The exit code, and the sentence that explains it."""

    exit_code: int
    message: str


def _parse_answer(value: Json) -> Answer:
    """Parse the service's answer. Raises RequestFailed if it is not one to an upload."""
    try:
        quarantined = integer(value["quarantined_failures"])
        files = transport.objects(value["files"])
        not_excused = transport.array(value.get("not_excused_because", []))
        return Answer(
            tests=integer(transport.member(value, "counts")["tests"]),
            failed=quarantined + integer(value["unquarantined_failures"]),
            quarantined=quarantined,
            is_whole=all(each["status"] == "accepted" for each in files),
            exit_code=exit_code(transport.member(value, "verdict")["exit_code"]),
            failures=tuple(_parse_failure(each) for each in transport.objects(value["failures"])),
            warnings=tuple(str(each) for each in transport.array(value["warnings"])),
            html_url=str(value["html_url"] or ""),
            not_excused=tuple(str(each) for each in not_excused),
        )
    except (KeyError, TypeError, ValueError) as invalid:
        raise RequestFailed("the answer is not one to an upload: is it Headgate") from invalid


def _parse_failure(value: Json) -> Failure:
    """Parse one failed test, with the name that people search for."""
    name, file, classname = (str(value[each]) for each in ("name", "file_path", "classname"))
    full_name = f"{file}::{name}" if file else f"{classname}.{name}" if classname else name
    reason = str(value["quarantine_reason"] or "") if value["quarantined"] is True else None
    return Failure(name, full_name, reason)


def ending_of(outcome: Outcome, command_code: int, *, strict: bool) -> Ending:
    """Return how the uploads end.

    If one was not accepted: as the command did, unless `strict` asks for an exit code of its own;
    earlier answers count if they have failures that are not quarantined. Otherwise the answers with
    failures decide: an upload without failures does not bring back the command's code that another
    upload excuses; an unreadable file does. The last answer knows whether quarantined failures
    are excused.
    """
    failure = outcome.failure or (outcome.too_large[0] if outcome.too_large else None)
    answers = outcome.answers
    if failure is not None:
        failing = [each.exit_code for each in answers if each.failed > each.quarantined]
        code = max([command_code, *failing])
        code = STRICT_EXIT if strict and code == 0 else code
        return Ending(code, UPLOAD_FAILED.format(reason=failure.reason.rstrip(".")))
    if not answers:
        signal = command_code - SIGNALS_FROM
        why = f"; the command was ended by signal {signal}" if 0 < signal <= SIGNALS_MAX else ""
        return Ending(command_code, f"{NO_REPORT}{why}: exit code {command_code}.")
    codes = [
        each.exit_code for each in answers if each.failed > each.quarantined or not each.is_whole
    ]
    if outcome.quarantined:
        codes.append(answers[-1].exit_code)
    if outcome.unread:
        codes.append(command_code)
    code = max(codes, default=command_code)
    return Ending(code, message_of(outcome, code))


def message_of(outcome: Outcome, code: int) -> str:
    """Return `3 failures, 2 quarantined, 1 not: exit code 1. Not quarantined: …`."""
    answers, failed, quarantined = outcome.answers, outcome.failed, outcome.quarantined
    end = f"exit code {code}."
    if not failed:
        what = "no failed test, but the command failed" if code else "no failure"
        return f"{counted(sum(each.tests for each in answers), 'test')}, {what}: {end}"
    failures = [failure for each in answers for failure in each.failures]
    start = counted(failed, "failure")
    if quarantined == failed:
        names = [_with_end(each) for each in failures if each.reason is not None]
        limit = "" if outcome.is_whole else ", but not every report was read"
        if answers[-1].not_excused:
            limit = f", but not excused: {'; '.join(answers[-1].not_excused)}"
        return f"{start}, all quarantined{limit}: {end} {listed(names, quarantined)}"
    others = [each.full_name for each in failures if each.reason is None]
    shares = f"{quarantined} quarantined, {failed - quarantined} not"
    return f"{start}, {shares}: {end} Not quarantined: {listed(others, failed - quarantined)}"


def _with_end(failure: Failure) -> str:
    """Return `test_total (until 12 Dec)`, with the date if the quarantine's reason has one."""
    match = QUARANTINE_END.match(failure.reason or "")
    try:
        end = date.fromisoformat(match[1] if match else "")
    except ValueError:
        return failure.name
    return f"{failure.name} (until {end.day} {end:%b})"


def listed(names: Iterable[str], count: int) -> str:
    """Return the first ten names, and how many more there are."""
    shown = list(names)[:NAMES_SHOWN]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return ", ".join(shown) + more


def counted(number: int, noun: str) -> str:
    """Return `1 test`, `3 tests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summary_of(answers: Sequence[Answer], ending: Ending) -> str:
    """Return the summary for the job's page, as Markdown: figures and links, no reported text."""
    rows = [
        f"| {each.tests:,} | {each.failed - each.quarantined:,} | {each.quarantined:,} |"
        f" {f'[upload]({each.html_url})' if each.html_url else ''} |"
        for each in answers
    ]
    head = ["| Tests | Failed | Quarantined | |", "| ---: | ---: | ---: | --- |"]
    end = f"Exit code {ending.exit_code}."
    return "\n".join(["### Headgate", "", *([*head, *rows, ""] if rows else []), end, ""])


def integer(value: object) -> int:
    """Return the value, which must be a whole number. Raises TypeError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not an integer")
    return value


def exit_code(value: object) -> int:
    """Return the value, which must be a possible exit code: a larger one would wrap round to 0."""
    code = integer(value)
    if not 0 <= code <= EXIT_CODE_MAX:
        raise ValueError("not an exit code")
    return code

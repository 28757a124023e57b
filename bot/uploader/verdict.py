"""How an upload ends: its exit code and what is said of it (FLAKY.md 2.10, UX.md 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from bot.uploader import sending
from bot.uploader.files import Report
from bot.uploader.sending import Json, Unsent

# Codes of API.md 3.
NO_RESULTS = "no_results"
TOO_MUCH = (sending.TOO_LARGE, "limit_reached")
STRICT_EXIT = 70
NAMES_SHOWN = 10
NO_REPORT = "No test report matched"
# What people wrote of it stands behind the colon, and may name any day, or none there is.
ENDS = re.compile(r"[A-Z_]+ until (\d{4}-\d\d-\d\d)")
EXIT_CODE_MAX = 255
UNREAD = "could not read the quarantine list ({why}). No failure is forgiven in this run."


class Failure(NamedTuple):
    """A test that failed; `reason` None: it is not quarantined."""

    name: str
    full_name: str
    reason: str | None


class Answer(NamedTuple):
    """What the service said of one upload; `is_whole`: every file was read to its end.

    `not_excused`: why quarantined failures count all the same, in this upload and those before.
    """

    tests: int
    failed: int
    forgiven: int
    is_whole: bool
    exit_code: int
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    html_url: str
    not_excused: tuple[str, ...] = ()


class Told:
    """What the service said of each upload so far, and the names of files nobody could read.

    `refused`: the refusals of uploads for their size, which say nothing of other uploads.
    """

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.unread: list[str] = []
        self.refused: list[Unsent] = []

    @property
    def is_whole(self) -> bool:
        """Whether every report was read to its end, so that no failure can be hidden."""
        return not self.unread and all(each.is_whole for each in self.answers)


class Ending(NamedTuple):
    """The exit code, and the sentence that says why."""

    exit_code: int
    said: str


def answer_of(value: Json) -> Answer:
    """The service's answer, read. Raises Unsent when it is none."""
    try:
        forgiven = integer(value["quarantined_failures"])
        return Answer(
            tests=integer(sending.member(value, "counts")["tests"]),
            failed=forgiven + integer(value["unquarantined_failures"]),
            forgiven=forgiven,
            is_whole=all(each["status"] == "accepted" for each in sending.objects(value["files"])),
            exit_code=exit_code(sending.member(value, "verdict")["exit_code"]),
            failures=tuple(failure_of(each) for each in sending.objects(value["failures"])),
            warnings=tuple(str(each) for each in sending.items(value["warnings"])),
            html_url=str(value["html_url"] or ""),
            not_excused=tuple(
                str(each) for each in sending.items(value.get("not_excused_because", []))
            ),
        )
    except (KeyError, TypeError, ValueError) as unlike:
        raise Unsent("the answer is not one to an upload: is it Headgate") from unlike


def failure_of(value: Json) -> Failure:
    """One failed test, named as people look for it."""
    name, file, classname = (str(value[each]) for each in ("name", "file_path", "classname"))
    full_name = f"{file}::{name}" if file else f"{classname}.{name}" if classname else name
    reason = str(value["quarantine_reason"] or "") if value["quarantined"] is True else None
    return Failure(name, full_name, reason)


def ending_of(told: Told, command_code: int) -> Ending:
    """How uploads end that were all answered.

    Of several those count that say something: an upload without a failure does not make the
    command's code stand that another one forgives. A file that nobody could read does. Whether
    quarantined failures are excused is known with the last upload. Raises Unsent when one was
    too large.
    """
    if told.refused:
        raise told.refused[0]
    if not told.answers:
        return no_report_ending(command_code)
    answers = told.answers
    telling = [
        each.exit_code for each in answers if each.failed > each.forgiven or not each.is_whole
    ]
    if any(each.forgiven for each in answers):
        telling.append(answers[-1].exit_code)
    if told.unread:
        telling.append(command_code)
    code = max(telling, default=command_code)
    return Ending(code, sentence_of(told, code))


def sentence_of(told: Told, code: int) -> str:
    """`3 failures, 2 quarantined, 1 not: exit code 1. Not quarantined: …` (UX.md 5)."""
    answers = told.answers
    failed = sum(each.failed for each in answers)
    forgiven = sum(each.forgiven for each in answers)
    end = f"exit code {code}."
    if not failed:
        return f"{counted(sum(each.tests for each in answers), 'test')}, no failure: {end}"
    failures = [failure for each in answers for failure in each.failures]
    quarantined = [with_end(each) for each in failures if each.reason is not None]
    others = [each.full_name for each in failures if each.reason is None]
    start = counted(failed, "failure")
    if forgiven == failed:
        cut = "" if told.is_whole else ", but not every report was read"
        if answers[-1].not_excused:
            cut = f", but not excused: {'; '.join(answers[-1].not_excused)}"
        return f"{start}, all quarantined{cut}: {end} {listed(quarantined, forgiven)}"
    some = f"{forgiven} quarantined, {failed - forgiven} not"
    named = f"Not quarantined: {listed(others, failed - forgiven)}"
    return f"{start}, {some}: {end} {named}"


def unsent_ending(trouble: Unsent, told: Told, command_code: int, *, strict: bool) -> Ending:
    """How uploads end of which one was not taken: as the command did, unless `strict` says 70.

    What was said of others before stands as far as it forgives nothing.
    """
    failing = [each.exit_code for each in told.answers if each.failed > each.forgiven]
    code = max([command_code, *failing])
    code = STRICT_EXIT if strict and code == 0 else code
    return Ending(code, UNREAD.format(why=trouble.why.rstrip(".")))


def pass_over(told: Told, batch: Sequence[Report], trouble: Unsent) -> None:
    """Go on without an upload that holds no report, or too much. Raises any other trouble."""
    if trouble.code not in (NO_RESULTS, *TOO_MUCH):
        raise trouble
    told.unread.extend(each.name for each in batch)
    if trouble.code in TOO_MUCH:
        told.refused.append(trouble)


def no_report_ending(command_code: int) -> Ending:
    """How an upload of nothing ends."""
    return Ending(command_code, f"{NO_REPORT}: exit code {command_code}.")


def with_end(failure: Failure) -> str:
    """`test_total (until 12 Dec)`: a quarantined test, and until when if its reason says so."""
    found = ENDS.match(failure.reason or "")
    try:
        end = date.fromisoformat(found[1] if found else "")
    except ValueError:
        return failure.name
    return f"{failure.name} (until {end.day} {end:%b})"


def listed(names: Iterable[str], count: int) -> str:
    """Ten names, and how many more there are."""
    shown = list(names)[:NAMES_SHOWN]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return ", ".join(shown) + more


def counted(number: int, what: str) -> str:
    """`1 test`, `3 tests`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def summary_of(answers: Sequence[Answer], ending: Ending) -> str:
    """What the job's page shows, as Markdown: figures and links, no text of a report."""
    rows = [
        f"| {each.tests:,} | {each.failed - each.forgiven:,} | {each.forgiven:,} |"
        f" {f'[upload]({each.html_url})' if each.html_url else ''} |"
        for each in answers
    ]
    head = ["| Tests | Failed | Quarantined | |", "| ---: | ---: | ---: | --- |"]
    end = f"Exit code {ending.exit_code}."
    return "\n".join(["### Headgate", "", *([*head, *rows, ""] if rows else []), end, ""])


def integer(value: object) -> int:
    """The value, which must be a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not an integer")
    return value


def exit_code(value: object) -> int:
    """The value, which must be a code that a process can end with: more would wrap round to 0."""
    code = integer(value)
    if not 0 <= code <= EXIT_CODE_MAX:
        raise ValueError("not an exit code")
    return code

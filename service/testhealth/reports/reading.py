"""The basis of all readers: the repository's options, normalized fields, bounds, warnings."""

import re
from dataclasses import dataclass

from service.testhealth.reports.durations import SECONDS_MAX, seconds_of
from service.testhealth.reports.failures import first_meaningful_line
from service.testhealth.reports.identity import is_absolute, is_claim, masked_name, normalized_file
from service.testhealth.reports.results import (
    Attempt,
    CaseKind,
    CaseResult,
    Declared,
    Fault,
    FileStatus,
    Format,
    Outcome,
    ReportFile,
    Warned,
    WarningCode,
)
from service.testhealth.reports.text import without_escapes
from service.testhealth.reports.xml import Stopped

# docs/design/limits.md 5.
CASES_MAX = 500_000
# Each is stored with its texts, in one transaction. A run in which more fail is no evidence of
# any test, and is not excused anyway.
FAILURES_MAX = 100_000
MESSAGE_CHARACTERS_MAX = 8_000
ERROR_TYPE_CHARACTERS_MAX = 1_000
PROPERTIES_MAX = 50
PROPERTY_CHARACTERS_MAX = 255
# docs/design/reports.md 5: a case may exceed the job's wall time by so much before its unit is
# doubted.
WALL_SLACK_S = 60.0
# Files and classes repeat; of so many, each text is kept once.
REMEMBERED_MAX = 10_000
# Unknown words that one file's warning names, and what is kept of each.
WORDS_MAX = 20
WORD_CHARACTERS_MAX = 100

# unittest-xml-reporting ends the name of a suite with the second of its run: `-20261122203514`.
TIME_OF_RUN = re.compile(
    r"-20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d$"
)
BEFORE_TIME = "-_. "

UNNAMED = "(unnamed)"
SUITE_FAILURE = "(suite)"
TOO_MANY = f"The file holds more than {CASES_MAX:,} tests."
TOO_MANY_FAILURES = f"The file holds more than {FAILURES_MAX:,} failed attempts."

UNKNOWN_OUTCOMES = (
    "Outcomes that are not known: {words}. Their tests may not have passed, so the report excuses"
    " no failure."
)

TEXTS = {
    WarningCode.UNNAMED_TESTS: "Tests without a name: {n}. They are counted and are no evidence.",
    WarningCode.ABSOLUTE_PATH: "Absolute file paths: {n}. Give their root as `source_root`.",
    WarningCode.ODD_TIME: (
        "Durations that are negative, too long or unreadable: {n}. They are left out."
    ),
    WarningCode.MILLISECONDS: "Durations exceed the job's own; read as milliseconds.",
    WarningCode.NO_TESTS: "The file holds no tests.",
    WarningCode.UNEXPECTED_ROOT: "The root element is none of JUnit's; its tests were read.",
    WarningCode.COUNTS_DIFFER: "Suites that declare another number of tests than they hold: {n}.",
    WarningCode.UNREAD_FAILURES: (
        "Failures and errors that the file declares beyond those in it: {n}. Did a file of tests"
        " not load?"
    ),
    WarningCode.SKIPPED_LINES: "Lines that are no events of a test run: {n}. They are left out.",
    WarningCode.INTERRUPTED: "The runner stopped before its end; tests may be missing.",
    WarningCode.TEXT_CUT: "Messages longer than 8,000 characters: {n}. They are cut.",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a report, from the upload and its repository.

    `source_root` is cut off file paths; `name_masks` are the repository's setting; `wall_s` is
    how long the job had run when the upload ended, None when unknown.
    """

    source_root: str = ""
    name_masks: tuple[str, ...] = ()
    wall_s: float | None = None


class Reading:
    """One file being read: its cases so far and what was odd about them."""

    def __init__(self, report_format: Format, read_options: ReadOptions) -> None:
        self.cases: list[CaseResult] = []
        self._format = report_format
        self._read_options = read_options
        self._odd: dict[WarningCode, int] = {}
        self.has_masks = bool(read_options.name_masks)
        self._failures = 0
        # Paths as written to normalized ones.
        self.files = {"": ""}
        self.classnames = {"": ""}
        self.declared: Declared | None = None
        self.is_interrupted = False
        self.unread_failures = 0
        self._unknown_words: dict[str, None] = {}

    def warn(self, code: WarningCode) -> None:
        """Count one more oddity of a kind."""
        self._odd[code] = self._odd.get(code, 0) + 1

    def note_word(self, word: str) -> None:
        """Note a word or element for an outcome that is not known: nothing shows what it means."""
        if len(self._unknown_words) < WORDS_MAX:
            self._unknown_words[word[:WORD_CHARACTERS_MAX]] = None

    def name(self, name: str) -> str:
        """The name of a case as its identity uses it."""
        return masked_name(name, self._read_options.name_masks) if self.has_masks else name

    def suite(self, name: str, timestamp: str = "") -> str:
        """The name of a suite without the time of its run, which some runners put behind it."""
        if timestamp and name.endswith(timestamp) and len(name) > len(timestamp):
            return name[: -len(timestamp)].rstrip(BEFORE_TIME)
        return TIME_OF_RUN.sub("", name) if name[-1:].isdecimal() else name

    def file(self, file: str) -> str:
        """The normalized path."""
        if file in self.files:
            return self.files[file]
        normalized = normalized_file(file, self._read_options.source_root)
        if is_absolute(normalized):
            self.warn(WarningCode.ABSOLUTE_PATH)
        if len(self.files) < REMEMBERED_MAX:
            self.files[file] = normalized
        return normalized

    def classname(self, classname: str) -> str:
        """The same text, once for all cases of the class."""
        if len(self.classnames) < REMEMBERED_MAX:
            self.classnames[classname] = classname
        return classname

    def seconds(self, text: str) -> float | None:
        """The duration that a report's text gives in seconds; None, with a warning, if none."""
        try:
            seconds: float | None = float(text)
        except ValueError:
            seconds = seconds_of(text)
        # Also NaN, which compares as false.
        if seconds is not None and 0 <= seconds <= SECONDS_MAX:
            return seconds
        if text:
            self.warn(WarningCode.ODD_TIME)
        return None

    def claim(self, text: str) -> str:
        """The id that a report gives, if it is one of those that count.

        See docs/design/reports.md 7.
        """
        return text if text and is_claim(text) else ""

    def finished(self, attempt: Attempt) -> Attempt:
        """Return the attempt with the texts that are kept: a passed one has none."""
        if attempt.outcome is Outcome.FAILED:
            return self.failed(attempt)
        message = attempt.message if attempt.outcome is Outcome.SKIPPED else ""
        return Attempt(attempt.outcome, attempt.duration_s, self.bounded(without_escapes(message)))

    def failed(self, said: Attempt) -> Attempt:
        """The attempt with its texts cleaned, bounded and completed.

        A missing message becomes the first meaningful line of the stack. Raises Stopped beyond
        100,000 of them.
        """
        self._failures += 1
        if self._failures > FAILURES_MAX:
            raise Stopped(TOO_MANY_FAILURES)
        stack = without_escapes(said.stack)
        message = without_escapes(said.message)
        if not message.strip():
            message = first_meaningful_line(stack)
        return Attempt(
            said.outcome,
            said.duration_s,
            self.bounded(message),
            stack,
            said.error_type[:ERROR_TYPE_CHARACTERS_MAX],
            said.is_error,
        )

    def bounded(self, message: str) -> str:
        """The message at the length that is stored, with a warning if it was cut."""
        if len(message) > MESSAGE_CHARACTERS_MAX:
            self.warn(WarningCode.TEXT_CUT)
        return message[:MESSAGE_CHARACTERS_MAX]

    def add(self, case: CaseResult) -> None:
        """Take one more case; a missing name is replaced, with a warning.

        Raises Stopped beyond 500,000.
        """
        if not case.name:
            self.warn(WarningCode.UNNAMED_TESTS)
            case = case._replace(name=UNNAMED, kind=CaseKind.UNNAMED)
        if not self.cases:
            case = case._replace(is_first=True)
        elif len(self.cases) >= CASES_MAX:
            raise Stopped(TOO_MANY)
        self.cases.append(case)

    def report(self, fault: Fault | None, *before: Warned) -> ReportFile:
        """The file as far as it was read: accepted without a fault, else partial or refused."""
        cases = tuple(self.cases)
        if fault and not cases:
            return refused(fault, self._format)
        if self.is_interrupted:
            self.warn(WarningCode.INTERRUPTED)
        if self.takes_milliseconds():
            self.warn(WarningCode.MILLISECONDS)
            cases = tuple(map(_in_milliseconds, cases))
        if not cases:
            self.warn(WarningCode.NO_TESTS)
        if self.unread_failures:
            self._odd[WarningCode.UNREAD_FAILURES] = self.unread_failures
        words = tuple(self._unknown_words)
        warnings = [*before, *(_warned(code, n) for code, n in self._odd.items())]
        if words:
            text = UNKNOWN_OUTCOMES.format(words=", ".join(map(repr, words)))
            warnings.append(Warned(WarningCode.UNKNOWN_OUTCOME, text))
        marks = (self.declared, self.is_interrupted, self.unread_failures, words)
        if not fault:
            return ReportFile(
                self._format, FileStatus.ACCEPTED, cases, tuple(warnings), None, *marks
            )
        text = f"Whole tests read before the fault: {len(cases)}. {fault.message}"
        warnings.append(Warned(WarningCode.MALFORMED, text))
        return ReportFile(self._format, FileStatus.PARTIAL, cases, tuple(warnings), fault, *marks)

    def takes_milliseconds(self) -> bool:
        """Return whether a case took longer than its job, so that the unit must be another one."""
        wall_s = self._read_options.wall_s
        if wall_s is None:
            return False
        bound = wall_s + WALL_SLACK_S
        return any(seconds > bound for case in self.cases for seconds in _durations_of(case))


def _durations_of(case: CaseResult) -> list[float]:
    """The known durations of a case."""
    durations = (case.duration_s, *(attempt.duration_s for attempt in case.explicit_attempts))
    return [seconds for seconds in durations if seconds is not None]


def refused(fault: Fault, report_format: Format | None = None) -> ReportFile:
    """A file of which nothing can be used."""
    return ReportFile(report_format, FileStatus.REFUSED, fault=fault)


def _warned(code: WarningCode, count: int) -> Warned:
    """The sentence of an oddity that occurred so often."""
    return Warned(code, TEXTS[code].format(n=f"{count:,}"))


def _in_milliseconds(case: CaseResult) -> CaseResult:
    """The case with durations that were milliseconds all along."""
    attempts = (
        each._replace(duration_s=_thousandth(each.duration_s)) for each in case.explicit_attempts
    )
    return case._replace(duration_s=_thousandth(case.duration_s), explicit_attempts=tuple(attempts))


def _thousandth(value: float | None) -> float | None:
    """The value in a unit a thousand times larger."""
    return None if value is None else value / 1000

"""The content of a report, whatever its format: cases, their attempts, and how reading it went.

No reader and no rule stands here; formats/ makes these values, everything else takes them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """The ways in which one attempt ends; a failure and an error are both `failed`."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CaseKind(StrEnum):
    """The kinds of things behind a case.

    All but `test` are counted and listed, never evidence of disagreement: `several` are tests of
    one name, an `unnamed` one could be any test, a `synthetic` one is a failure outside of every
    test, of a suite or a package.
    """

    TEST = "test"
    SEVERAL = "several"
    UNNAMED = "unnamed"
    SYNTHETIC = "synthetic"


class Format(StrEnum):
    """The report formats, as the metadata field `format` names them."""

    JUNIT = "junit"
    GO_JSON = "go-json"
    CTRF = "ctrf"
    TRX = "trx"
    NUNIT = "nunit"
    XUNIT = "xunit"


class FileStatus(StrEnum):
    """The degrees to which a file can be read; a refused one gives no case."""

    ACCEPTED = "accepted"
    PARTIAL = "partial"
    REFUSED = "refused"


class WarningCode(StrEnum):
    """The oddities of a file that was read all the same (docs/design/reports.md 4, 5, 7)."""

    ENCODING_REPLACED = "encoding_replaced"
    LEADING_TEXT = "leading_text"
    TRAILING_TEXT = "trailing_text"
    UNEXPECTED_ROOT = "unexpected_root"
    NO_TESTS = "no_tests"
    COUNTS_DIFFER = "counts_differ"
    UNREAD_FAILURES = "unread_failures"
    UNKNOWN_OUTCOME = "unknown_outcome"
    UNNAMED_TESTS = "unnamed_tests"
    ABSOLUTE_PATH = "absolute_path"
    ODD_TIME = "odd_time"
    MILLISECONDS = "milliseconds"
    SKIPPED_LINES = "skipped_lines"
    INTERRUPTED = "interrupted"
    MALFORMED = "malformed"
    TEXT_CUT = "text_cut"
    DUPLICATE_IDENTITY = "duplicate_identity"
    IDENTITY_CLASH = "identity_clash"


# Attempts and cases are tuples with names: a report has up to 500,000 of each, and a frozen
# dataclass takes twice as long to make, which alone would cost the speed of
# docs/design/detector.md 13.
class Attempt(NamedTuple):
    """One execution of a test.

    `duration_s` is None when unknown or unreadable. `error_type` is the exception's or the
    assertion's type as the report names it, `message` what it says, `stack` the text below it
    (first 6,000 and last 2,000 characters); all empty unless the attempt failed, or was
    skipped with a message.
    """

    outcome: Outcome
    duration_s: float | None = None
    message: str = ""
    stack: str = ""
    error_type: str = ""
    is_error: bool = False


class CaseResult(NamedTuple):
    """One case of a report: which test, and its attempts in order; the last one decides.

    `duplicates.sorted_by_test` makes one of all cases of a test.

    Texts are as in the report, empty when missing; `file` is normalized (docs/design/reports.md 7).
    `parent` joins the enclosing suites by `/`; `outermost_suite` is the first of them where there
    are several, for the alias of docs/design/reports.md 7, else empty. `claimed_id` is the id that
    the report gives. `output` is what a failed case printed, at most its last 4,000 characters.
    `variant` is the project that it ran in where the report has several, as Playwright's.
    `is_first` is true where the case before it in the report is no attempt of the same test: the
    first case of each suite element, and each case of a runner that writes every test once.

    A case that passed at once, as nearly all do, has `explicit_attempts` empty and its `duration_s`
    here: one value less to make and to keep. Read `attempts` and `outcome`, which know both.
    """

    name: str
    classname: str
    parent: str
    file: str
    duration_s: float | None = None
    explicit_attempts: tuple[Attempt, ...] = ()
    line: int | None = None
    claimed_id: str = ""
    outermost_suite: str = ""
    kind: CaseKind = CaseKind.TEST
    properties: tuple[tuple[str, str], ...] = ()
    output: str = ""
    variant: str = ""
    is_first: bool = False

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt in order, at least one."""
        return self.explicit_attempts or (Attempt(Outcome.PASSED, self.duration_s),)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last attempt."""
        return self.explicit_attempts[-1].outcome if self.explicit_attempts else Outcome.PASSED

    @property
    def final_outcome(self) -> Outcome:
        """The outcome of the last attempt that was not skipped; skipped if all were."""
        ended = [each.outcome for each in self.attempts if each.outcome is not Outcome.SKIPPED]
        return ended[-1] if ended else Outcome.SKIPPED

    @property
    def is_comparable(self) -> bool:
        """Return whether attempts that differ are evidence: all of them are of one test."""
        return self.kind is CaseKind.TEST


@dataclass(frozen=True, slots=True)
class Fault:
    """Why reading stopped, and where: line and column from 1, None where a place says nothing."""

    message: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """One oddity of a file, said once however often it occurs."""

    code: WarningCode
    text: str


@dataclass(frozen=True, slots=True)
class Declared:
    """The number of tests a report says it holds, beside how many it does, each counted once.

    Attempts that a runner wrote as cases of their own are not counted. `short` is how many of its
    suites hold fewer tests than they declare.
    """

    tests: int
    held: int
    short: int = 0

    @property
    def is_short(self) -> bool:
        """Return whether tests that were declared are missing."""
        return self.short > 0


@dataclass(frozen=True, slots=True)
class ReportFile:
    """One file, read.

    `format` is None when none was recognized; `fault` is set unless the file was accepted.
    Cases are in document order. `declared` is None where the report declares no number of tests.
    `is_interrupted` is true where the report shows that its runner stopped before its end.
    `unread_failures` is how many failures and errors it declares beyond those in it, and
    `unknown_words` are words and elements for outcomes that no reader knows. `sha256` is the hex
    digest of its bytes without compression, empty if it was refused before they were read.
    """

    format: Format | None
    status: FileStatus
    cases: tuple[CaseResult, ...] = ()
    warnings: tuple[Warned, ...] = ()
    fault: Fault | None = None
    declared: Declared | None = None
    is_interrupted: bool = False
    unread_failures: int = 0
    unknown_words: tuple[str, ...] = ()
    name: str = ""
    sha256: str = ""

    @property
    def undelivered(self) -> int:
        """Return how many tests the file declares beyond those that it holds."""
        if self.declared is None or not self.declared.is_short:
            return 0
        return max(self.declared.tests - self.declared.held, self.declared.short)

    @property
    def is_whole(self) -> bool:
        """Return whether it was read to its end, and its runner wrote all that it had to."""
        is_short = self.declared is not None and self.declared.is_short
        return self.status is FileStatus.ACCEPTED and not self.is_interrupted and not is_short


@dataclass(frozen=True, slots=True)
class Counts:
    """Figures of an upload's files.

    `tests` are cases without the synthetic ones, which are `suite_failures`; `passed`,
    `failed` and `skipped` add up to `tests`, `errors` is the part of `failed` that reports call
    an error. `distinct` are tests by identity, at one variant. `test_time_ms` is the time of all
    attempts together, as far as reports name it.
    """

    files: int
    tests: int
    distinct: int
    passed: int
    failed: int
    errors: int
    skipped: int
    attempts: int
    suite_failures: int
    test_time_ms: int = 0


def counts_of(files: Iterable[ReportFile]) -> Counts:
    """The figures over all files, refused ones counted as files."""
    reports = tuple(files)
    cases = [case for report in reports for case in report.cases]
    synthetic = CaseKind.SYNTHETIC
    tests = [case for case in cases if case.kind is not synthetic]
    # Of nearly all tests one attempt passed and nothing is told; the few others are looked at.
    attempts_of_cases = [case.explicit_attempts for case in tests if case.explicit_attempts]
    lasts = [attempts[-1] for attempts in attempts_of_cases]
    outcomes = [last.outcome for last in lasts]
    failed, skipped = outcomes.count(Outcome.FAILED), outcomes.count(Outcome.SKIPPED)
    return Counts(
        files=len(reports),
        tests=len(tests),
        distinct=len(set(map(fields_of, tests))),
        passed=len(tests) - failed - skipped,
        failed=failed,
        errors=sum(last.is_error for last in lasts),
        skipped=skipped,
        attempts=len(tests) - len(attempts_of_cases) + sum(map(len, attempts_of_cases)),
        suite_failures=len(cases) - len(tests),
        test_time_ms=round(1000 * _seconds_in(tests)),
    )


def _seconds_in(tests: Iterable[CaseResult]) -> float:
    return sum(
        sum(attempt.duration_s or 0 for attempt in case.explicit_attempts)
        if case.explicit_attempts
        else case.duration_s or 0
        for case in tests
    )


def fields_of(case: CaseResult) -> tuple[str, ...]:
    """Return what tells tests of one repository and variant apart (docs/design/reports.md 7)."""
    fields = (case.claimed_id,) if case.claimed_id else case[:4]
    return (*fields, case.variant) if case.variant else fields

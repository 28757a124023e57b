"""The XML reports of .NET to cases: TRX, NUnit 3 and 2, xUnit.net.

All three have one element a test, its outcome in an attribute, and message and stack as the
text of elements inside it. What differs stands in one `Dialect` each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from service.testhealth.reports import capture, junit_words
from service.testhealth.reports.capture import Captured
from service.testhealth.reports.durations import clock_seconds_of
from service.testhealth.reports.formats.shapes import passed_at_once
from service.testhealth.reports.reading import SUITE_FAILURE, Reading, ReadOptions
from service.testhealth.reports.results import (
    Attempt,
    CaseKind,
    CaseResult,
    Format,
    Outcome,
    ReportFile,
)
from service.testhealth.reports.text import Text
from service.testhealth.reports.xml import read_xml

Attributes = dict[str, str]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words in which one format says what all of them say; outcomes not listed are skipped."""

    format: Format
    roots: tuple[str, ...]
    case: str
    name: str
    classname: Callable[[Attributes], str]
    seconds: Callable[[Reading, Attributes], float | None]
    outcome: str
    outcomes: Mapping[str, Outcome]
    # Elements that sum up a run or a part of it, and their attributes that count failures.
    sums: Mapping[str, tuple[str, ...]]
    errors: frozenset[str]
    message: str
    stack: str
    # The element that holds the failure, and its attribute with the exception's type.
    failure: str = ""
    error_type: str = ""
    # The element around tests, or beside them, that may fail by itself; whether this one did,
    # by its attributes, its message, and whether anything failed inside it.
    suite: str = ""
    failed_alone: Callable[[Attributes, str, bool], bool] = lambda *_: True


def counted(reading: Reading, attributes: Attributes) -> float | None:
    """Seconds as a number."""
    return reading.seconds(attributes.get("duration") or attributes.get("time") or "")


def _nunit_failed_alone(attributes: Attributes, message: str, has_failed_inside: bool) -> bool:
    """Return whether a suite failed in its own set-up or tear-down, or without any failed test.

    NUnit 3 names the place as `site`; NUnit 2 says it in the message alone.
    """
    if attributes.get("result") not in NUNIT_FAILED:
        return False
    is_own = attributes.get("site") in OWN_SITES or message.startswith(TORN_DOWN)
    return is_own or not has_failed_inside


PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
# What the summary of a TRX file says of a run that did not reach its end.
TRX_STOPPED = ("Aborted", "Disconnected", "InProgress", "Timeout")
NUNIT_FAILED = ("Failed", "Failure", "Error")
OWN_SITES = ("SetUp", "TearDown")
TORN_DOWN = "TearDown : "

TRX = Dialect(
    Format.TRX,
    roots=("TestRun",),
    case="UnitTestResult",
    name="testName",
    classname=lambda _: "",
    seconds=lambda _, attributes: clock_seconds_of(attributes.get("duration", "")),
    outcome="outcome",
    outcomes={
        **dict.fromkeys(("Passed", "PassedButRunAborted", "Warning", "Completed"), PASSED),
        **dict.fromkeys(("Failed", "Error", "Timeout", "Aborted"), FAILED),
        **dict.fromkeys(("NotExecuted", "NotRunnable", "Inconclusive", "Pending"), SKIPPED),
    },
    sums={"Counters": ("failed", "error", "timeout", "aborted")},
    errors=frozenset(("Error", "Timeout", "Aborted")),
    message="Message",
    stack="StackTrace",
    failure="ErrorInfo",
)
NUNIT = Dialect(
    Format.NUNIT,
    roots=("test-run", "test-results"),
    case="test-case",
    name="name",
    classname=lambda attributes: attributes.get("classname", ""),
    seconds=counted,
    outcome="result",
    outcomes={
        **dict.fromkeys(("Passed", "Success", "Warning"), PASSED),
        **dict.fromkeys(NUNIT_FAILED, FAILED),
        **dict.fromkeys(("Skipped", "Ignored", "NotRunnable", "Inconclusive", "Explicit"), SKIPPED),
    },
    sums={"test-run": ("failed",), "test-results": ("failures", "errors")},
    errors=frozenset(("Error",)),
    message="message",
    stack="stack-trace",
    failure="failure",
    suite="test-suite",
    failed_alone=_nunit_failed_alone,
)
XUNIT = Dialect(
    Format.XUNIT,
    roots=("assemblies", "assembly"),
    case="test",
    name="name",
    classname=lambda attributes: attributes.get("type", ""),
    seconds=counted,
    outcome="result",
    outcomes={"Pass": PASSED, "Fail": FAILED, "Skip": SKIPPED, "NotRun": SKIPPED},
    sums={"assembly": ("failed", "errors")},
    errors=frozenset(),
    message="message",
    stack="stack-trace",
    failure="failure",
    error_type="exception-type",
    suite="error",
)


@dataclass(slots=True)
class Open:
    """An open test or suite, with what was heard inside it.

    `failed_before`: how many failures there were when it began.
    """

    attributes: Attributes
    failed_before: int = 0
    has_inner: bool = False
    error_type: str = ""
    texts: dict[str, Captured] = field(default_factory=dict)


def read_with(dialect: Dialect) -> Callable[[Text, ReadOptions], ReportFile]:
    """The reader of a dialect; the root element is known to be one of its own."""

    def read(text: Text, read_options: ReadOptions) -> ReportFile:
        reading = Reading(dialect.format, read_options)
        elements = DotnetElements(dialect, reading)
        fault, warnings = read_xml(text, elements)
        elements.finish(is_whole=fault is None)
        return reading.report(fault, *warnings)

    return read


class DotnetElements:
    """Elements of one dialect to cases."""

    def __init__(self, dialect: Dialect, reading: Reading) -> None:
        self._dialect = dialect
        self._reading = reading
        self._open: list[Open] = []
        self._suites: list[Open] = []
        self._failures = 0
        # Failures of tests that held others, and all that the file declares.
        self._sums = self._declared = 0
        self._is_in_failure = False
        self._heard: Captured | None = None
        self._depth = 0
        # TRX defines the class of a test elsewhere in the file, by an id.
        self._defined = ""
        self._classes: dict[str, str] = {}
        self._without_class: list[tuple[str, CaseResult]] = []

    def start(self, name: str, attributes: Attributes) -> bool:
        """An element begins; the answer is whether its text is wanted."""
        dialect = self._dialect
        if name in dialect.sums:
            counted = (attributes.get(each, "") for each in dialect.sums[name])
            self._declared += sum(int(text) for text in counted if junit_words.is_count(text))
        if self._heard:
            self._depth += 1
        elif name == dialect.case:
            if self._open:
                self._open[-1].has_inner = True
            self._open.append(Open(attributes))
        elif self._open:
            self._hear(self._open[-1], name, attributes)
        elif name == dialect.suite:
            self._suites.append(Open(attributes, self._failures))
        elif self._suites and (self._is_in_failure or name == dialect.failure):
            self._hear(self._suites[-1], name, attributes)
        elif dialect is TRX:
            self._define(name, attributes)
        return self._heard is not None

    def end(self, name: str) -> bool:
        """An element ends; the answer is whether text is wanted behind it."""
        if self._heard and self._depth:
            self._depth -= 1
        elif self._heard:
            self._heard = None
        elif name == self._dialect.failure:
            self._is_in_failure = False
        elif name == self._dialect.case and self._open:
            self._close(self._open.pop())
        elif name == self._dialect.suite and self._suites and not self._open:
            self._close_suite(self._suites.pop())
        return self._heard is not None

    def text(self, piece: str) -> None:
        """Text of the wanted element."""
        if self._heard is not None:
            self._heard.add(piece)

    def finish(self, *, is_whole: bool) -> None:
        """Give the cases whose class stands elsewhere in the file.

        One without definition has no class where the file is whole: a failure must not be lost.
        In a file that was cut its class may have been what was cut, and so its identity.
        """
        unread = self._declared - self._failures - self._sums
        self._reading.unread_failures = max(0, unread)
        for definition, case in self._without_class:
            if is_whole or definition in self._classes:
                self._reading.add(case._replace(classname=self._classes.get(definition, "")))

    def _hear(self, case: Open, name: str, attributes: Attributes) -> None:
        dialect = self._dialect
        if name == dialect.failure:
            self._is_in_failure = True
            case.error_type = attributes.get(dialect.error_type, "")
        elif name == dialect.message or (name == dialect.stack and self._is_in_failure):
            self._heard = case.texts.setdefault(name, capture.stack())

    def _define(self, name: str, attributes: Attributes) -> None:
        """Note the class of a TRX test definition; assembly and version are cut off."""
        if name == "UnitTest":
            self._defined = attributes.get("id", "")
        elif name == "ResultSummary" and attributes.get("outcome") in TRX_STOPPED:
            self._reading.is_interrupted = True
        elif name == "TestMethod":
            self._classes[self._defined] = attributes.get("className", "").partition(",")[0]

    def _close(self, case: Open) -> None:
        """A test that held others is their sum, not one of them."""
        if case.has_inner:
            word = case.attributes.get(self._dialect.outcome, "")
            self._sums += self._dialect.outcomes.get(word) is FAILED
            return
        dialect, attributes = self._dialect, case.attributes
        result = passed_at_once(
            CaseResult(
                self._reading.name(attributes.get(dialect.name, "")),
                dialect.classname(attributes),
                "",
                "",
                explicit_attempts=(self._attempt(case),),
            )
        )
        if dialect is TRX:
            self._without_class.append((attributes.get("testId", ""), result))
        else:
            self._reading.add(result)

    def _close_suite(self, suite: Open) -> None:
        """Count what failed outside of every test as a failure all the same.

        See docs/design/reports.md 5.
        """
        dialect, attributes = self._dialect, suite.attributes
        message, stack = self._said(suite)
        has_failed_inside = self._failures > suite.failed_before
        if not dialect.failed_alone(attributes, message, has_failed_inside):
            return
        self._failures += 1
        names = (attributes.get(each, "") for each in ("fullname", "name", "type"))
        parent = next(filter(None, names), "")
        said = Attempt(FAILED, None, message, stack, suite.error_type, is_error=True)
        attempts = (self._reading.failed(said),)
        self._reading.add(
            CaseResult(
                SUITE_FAILURE, "", parent, "", explicit_attempts=attempts, kind=CaseKind.SYNTHETIC
            )
        )

    def _said(self, element: Open) -> tuple[str, str]:
        """Message and stack that were heard inside it, empty when there was none."""
        message, stack = (
            element.texts[name].text().strip() if name in element.texts else ""
            for name in (self._dialect.message, self._dialect.stack)
        )
        return message, stack

    def _attempt(self, case: Open) -> Attempt:
        dialect, attributes = self._dialect, case.attributes
        outcome_word = attributes.get(dialect.outcome, "")
        outcome = dialect.outcomes.get(outcome_word, SKIPPED)
        if attributes.get("executed", "").lower() == "false":
            outcome = SKIPPED
        elif outcome_word not in dialect.outcomes:
            self._reading.note_word(outcome_word or "no outcome")
        seconds = dialect.seconds(self._reading, attributes)
        message, stack = self._said(case)
        self._failures += outcome is FAILED
        is_error = outcome_word in dialect.errors or attributes.get("label") in dialect.errors
        return self._reading.finished(
            Attempt(outcome, seconds, message, stack, case.error_type, is_error)
        )

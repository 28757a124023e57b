"""JUnit XML in every dialect to cases (docs/design/reports.md 5).

Elements are taken as they come; nothing of the file is kept but the cases. Which numbers a
suite declares never matters: elements are counted.
"""

from dataclasses import dataclass, field

from service.testhealth.reports import capture, junit_words, retries
from service.testhealth.reports.capture import Captured
from service.testhealth.reports.junit_words import Attributes
from service.testhealth.reports.reading import (
    PROPERTIES_MAX,
    PROPERTY_CHARACTERS_MAX,
    SUITE_FAILURE,
    Reading,
    ReadOptions,
    refused,
)
from service.testhealth.reports.results import (
    Attempt,
    CaseKind,
    CaseResult,
    Declared,
    Fault,
    Format,
    Outcome,
    ReportFile,
    WarningCode,
)
from service.testhealth.reports.retries import SuiteCases
from service.testhealth.reports.text import Text, without_escapes
from service.testhealth.reports.xml import NO_FORMAT, read_xml

CASE = "testcase"
SUITE = "testsuite"
SUITES = "testsuites"
PROPERTY = "property"
STACK_TRACE = "stackTrace"
ROOTS = (SUITES, SUITE, CASE)

# What a case can hold that decides: the highest rank wins, of equal ones the first.
RANKS = {"skipped": 1, "failure": 2, "error": 3}
# A test of node:test that is still to be done: it may fail, and its run passes all the same.
PLANNED_RANK = 4
PLANNED = "todo"
RETRIES = ("flakyFailure", "flakyError", "rerunFailure", "rerunError")
FAILING = frozenset(("failure", "error", *RETRIES))
OUTPUTS = ("system-out", "system-err")
# The elements whose text is wanted, in a case and directly in a suite.
HEARD_IN_CASE = frozenset((*RANKS, *RETRIES, *OUTPUTS, PROPERTY))
HEARD_IN_SUITE = frozenset(("failure", "error", *OUTPUTS))


@dataclass(slots=True)
class Suite:
    """An open suite: the names of all open ones that have one, and what to compare at its end."""

    path: tuple[str, ...] = ()
    file: str = ""
    declared: str = ""
    tests_before: int = 0
    tests_nested: int = 0
    # The place of its first case, how many cases more than tests it declares, and its host.
    first: int = 0
    doubled: int = 0
    is_go: bool = False
    counts_flakes: bool = False
    # Failures and errors: declared, read before it, and declared too many by suites inside.
    declared_failures: int = 0
    failures_before: int = 0
    unread_nested: int = 0
    name: str = ""
    hostname: str = ""
    output: Captured | None = None


@dataclass(slots=True)
class Heard:
    """An open element whose text is wanted, and how many others are open inside it."""

    name: str
    attributes: Attributes
    text: Captured
    stack_trace: str = ""
    depth: int = 0


@dataclass(slots=True)
class CaseDetails:
    """The content of the elements inside a case."""

    retries: list[Attempt] = field(default_factory=list)
    decider: Heard | None = None
    rerun: str = ""
    properties: list[tuple[str, str]] = field(default_factory=list)
    output: Captured | None = None


def read(text: Text, read_options: ReadOptions) -> ReportFile:
    """The report; partial with its whole cases when it is malformed or ends early.

    Refused as no known format when neither the root nor any element is one of JUnit's.
    """
    reading = Reading(Format.JUNIT, read_options)
    elements = JUnitElements(reading)
    fault, warnings = read_xml(text, elements)
    if elements.root not in ROOTS:
        if not reading.cases:
            return refused(fault or Fault(NO_FORMAT))
        reading.warn(WarningCode.UNEXPECTED_ROOT)
    elements.finish()
    return reading.report(fault, *warnings)


class JUnitElements:
    """Elements of JUnit XML to cases."""

    def __init__(self, reading: Reading) -> None:
        self.root = ""
        self._reading = reading
        self._synthetic = 0
        self._suites = [Suite()]
        self._parent = ""
        self._outermost = ""
        self._suite_file = ""
        self._root_name = ""
        self._projects: list[SuiteCases] = []
        self._declared = self._held = self._short = 0
        self._failures = 0
        # Whether the next case is the first of its suite; whether every case is one.
        self._is_first = True
        self._writes_once = False
        self._is_pytest = False
        # The open case, and what was found in it: None while it is empty, as nearly all are.
        self._case: Attributes | None = None
        self._details: CaseDetails | None = None
        self._heard: list[Heard] = []
        # What is open around the innermost case: no producer nests them, some file will.
        self._around: list[tuple[Attributes | None, CaseDetails | None, list[Heard]]] = []

    def start(self, name: str, attributes: Attributes) -> bool:
        """An element begins; the answer is whether its text is wanted."""
        if name == CASE:
            if self._case is not None or self._heard:
                self._around.append((self._case, self._details, self._heard))
                self._details, self._heard = None, []
            self._case = attributes
        elif self._heard:
            self._start_inside(self._heard[-1], name, attributes)
            return True
        elif name in HEARD_IN_CASE:
            if self._case is not None or name in HEARD_IN_SUITE:
                self._heard.append(self._heard_of(name, attributes))
                return True
            if attributes.get("name") == retries.GO_VERSION:
                self._suites[-1].is_go = True
        elif name == SUITE:
            self._open_suite(attributes)
        elif self._case is not None and name not in junit_words.SILENT:
            self._reading.note_word(f"<{name}>")
        if not self.root:
            self._note_root(name, attributes)
        return False

    def end(self, name: str) -> bool:
        """An element ends; the answer is whether text is wanted behind it."""
        if self._heard:
            self._end_inside(self._heard[-1])
        elif self._case is not None and name == CASE:
            self._close_case(self._case)
        elif name == SUITE:
            self._close_suite()
        elif name == SUITES and self._compare(self._suites[0]):
            # What the root declares goes before the sum of its suites.
            self._declared = int(self._suites[0].declared)
            self._held = self._tests() - self._suites[0].doubled
        return bool(self._heard)

    def text(self, piece: str) -> None:
        """Text of the innermost wanted element."""
        self._heard[-1].text.add(piece)

    def _note_root(self, name: str, attributes: Attributes) -> None:
        self.root = name
        self._root_name = attributes.get("name", "")
        if name == SUITES:
            self._suites[0].declared = attributes.get("tests", "")
            self._suites[0].declared_failures = junit_words.declared_failures(attributes)

    def _open_suite(self, attributes: Attributes) -> None:
        around = self._suites[-1]
        name = attributes.get("name", "")
        if name and (name[-1].isdecimal() or "timestamp" in attributes):
            name = self._reading.suite(name, attributes.get("timestamp", ""))
        self._suites.append(
            Suite(
                (*around.path, name) if name else around.path,
                attributes.get("file") or attributes.get("filepath") or around.file,
                attributes.get("tests", ""),
                self._tests(),
                first=len(self._reading.cases),
                name=name,
                hostname=attributes.get("hostname", ""),
                counts_flakes="flakes" in attributes,
                declared_failures=junit_words.declared_failures(attributes),
                failures_before=self._failures,
            )
        )
        self._enter(self._suites[-1])

    def _close_suite(self) -> None:
        suite = self._suites.pop()
        if self._is_pytest:
            self._join_attempts(suite)
        elif suite.is_go:
            cases = self._reading.cases
            made = retries.joined_of_go(cases[suite.first :])
            suite.doubled += len(made) - (len(cases) - suite.first)
            cases[suite.first :] = made
        is_declared = self._compare(suite)
        tests = self._tests() - suite.tests_before
        if is_declared and len(self._suites) == 1:
            self._declared += int(suite.declared)
            self._held += tests - suite.doubled
        self._suites[-1].unread_nested += self._unread_in(suite)
        self._suites[-1].tests_nested += tests
        self._suites[-1].doubled += suite.doubled
        if suite.output and tests == 1:
            self._give_output(suite.output)
        if suite.hostname:
            end = len(self._reading.cases)
            self._projects.append(SuiteCases(suite.name, suite.hostname, suite.first, end))
        self._enter(self._suites[-1])

    def _join_attempts(self, suite: Suite) -> None:
        """Join what pytest's plugins for retries wrote as cases of their own."""
        cases = self._reading.cases
        declared = int(suite.declared) if junit_words.is_count(suite.declared) else None
        if len(cases) - suite.first > 1:
            made = retries.joined(cases[suite.first :], declared)
            cases[suite.first :] = made
            if declared is not None and len(made) != declared:
                suite.doubled = min(retries.doubled_in(made), max(0, len(made) - declared))

    def finish(self) -> None:
        """Do what only the whole report can tell; suites that the file has cut off end here."""
        reading = self._reading
        while len(self._suites) > 1:
            self._close_suite()
        reading.unread_failures = self._unread_in(self._suites[0])
        if self._declared or self._short:
            reading.declared = Declared(self._declared, self._held, self._short)
        if self._projects:
            reading.cases[:] = retries.with_projects(reading.cases, self._projects)
        if reading.has_masks:
            reading.cases[:] = [
                case._replace(name=reading.name(case.name)) for case in reading.cases
            ]

    def _enter(self, suite: Suite) -> None:
        self._is_first = True
        self._is_pytest = (
            suite.name == retries.PYTEST_SUITE or self._root_name == retries.PYTEST_ROOT
        )
        self._writes_once = self._root_name in retries.WRITES_ONCE_ROOTS or suite.name.startswith(
            retries.WRITES_ONCE_SUITE
        )
        self._parent = "/".join(suite.path)
        self._outermost = suite.path[0] if len(suite.path) > 1 else ""
        self._suite_file = suite.file

    def _tests(self) -> int:
        """Return how many cases there were so far, as elements."""
        return len(self._reading.cases) - self._synthetic

    def _compare(self, suite: Suite) -> bool:
        """Warn where a suite declares a number that is neither all its tests nor its own.

        Returns whether it declares one.
        """
        if not junit_words.is_count(suite.declared):
            return False
        tests = self._tests() - suite.tests_before
        declared = int(suite.declared) + suite.doubled
        if declared not in (tests, tests - suite.tests_nested):
            self._reading.warn(WarningCode.COUNTS_DIFFER)
            self._short += declared > tests
        return True

    def _unread_in(self, suite: Suite) -> int:
        """Return how many failures and errors a suite and inner ones declare beyond those read."""
        own = suite.declared_failures - (self._failures - suite.failures_before)
        return max(own, suite.unread_nested)

    def _give_output(self, output: Captured) -> None:
        """Give the output of a suite to its only case, if that failed and has none."""
        cases = self._reading.cases
        for at in range(len(cases) - 1, -1, -1):
            if cases[at].kind is not CaseKind.SYNTHETIC:
                if cases[at].outcome is Outcome.FAILED and not cases[at].output:
                    cases[at] = cases[at]._replace(output=without_escapes(output.text()))
                return

    def _heard_of(self, name: str, attributes: Attributes) -> Heard:
        """The element with room for as much of its text as is kept."""
        if name in OUTPUTS:
            return Heard(name, attributes, self._output())
        if name == PROPERTY:
            return Heard(name, attributes, Captured(PROPERTY_CHARACTERS_MAX, 0))
        return Heard(name, attributes, capture.stack())

    def _output(self) -> Captured:
        """Return where output goes: both streams of a case, or of a suite, share one place."""
        is_of_case = self._case is not None
        owner: CaseDetails | Suite = self._details_of_case() if is_of_case else self._suites[-1]
        if owner.output is None:
            owner.output = capture.output()
        return owner.output

    def _details_of_case(self) -> CaseDetails:
        if self._details is None:
            self._details = CaseDetails()
        return self._details

    def _start_inside(self, around: Heard, name: str, attributes: Attributes) -> None:
        """An element in one that is heard: its text is part of that, except in a retry."""
        if around.name in RETRIES and name == STACK_TRACE:
            self._heard.append(Heard(name, attributes, capture.stack()))
        elif around.name in RETRIES and name in OUTPUTS:
            self._heard.append(Heard(name, attributes, Captured(0, 0)))
        else:
            around.depth += 1

    def _end_inside(self, heard: Heard) -> None:
        if heard.depth:
            heard.depth -= 1
            return
        self._heard.pop()
        if self._heard:
            if heard.name == STACK_TRACE:
                self._heard[-1].stack_trace = heard.text.text()
        elif self._case is None:
            self._add_suite_failure(heard)
        else:
            self._note_detail(self._details_of_case(), heard)

    def _note_detail(self, details: CaseDetails, heard: Heard) -> None:
        """Note what an ended element says of its case."""
        self._failures += heard.name in FAILING
        if heard.name.startswith("rerun"):
            details.rerun = heard.name
        if heard.name in RANKS:
            if not details.decider or _rank_of(heard) > _rank_of(details.decider):
                details.decider = heard
        elif heard.name in RETRIES:
            details.retries.append(
                self._failure(heard, self._reading.seconds(heard.attributes.get("time", "")))
            )
        elif heard.name == PROPERTY and len(details.properties) < PROPERTIES_MAX:
            value = heard.attributes.get("value") or heard.text.text()
            name = heard.attributes.get("name", "")[:PROPERTY_CHARACTERS_MAX]
            details.properties.append((name, value[:PROPERTY_CHARACTERS_MAX]))

    def _failure(self, heard: Heard, seconds: float | None) -> Attempt:
        stack = heard.stack_trace if heard.stack_trace.strip() else heard.text.text()
        said = Attempt(
            Outcome.FAILED,
            seconds,
            heard.attributes.get("message", ""),
            stack if stack.strip() else "",
            heard.attributes.get("type", ""),
            heard.name in ("error", "flakyError", "rerunError"),
        )
        return self._reading.failed(said)

    def _add_suite_failure(self, heard: Heard) -> None:
        """A failure outside of every case: a failed test of the suite's own."""
        if heard.name in RANKS:
            self._synthetic += 1
            self._failures += 1
            self._reading.add(
                CaseResult(
                    SUITE_FAILURE,
                    "",
                    self._parent,
                    self._reading.file(self._suite_file),
                    explicit_attempts=(self._failure(heard, None),),
                    outermost_suite=self._outermost,
                    kind=CaseKind.SYNTHETIC,
                )
            )

    def _close_case(self, attributes: Attributes) -> None:
        """The hot place: once a case, so each thing is looked up once."""
        reading, get = self._reading, attributes.get
        line = get("line") or get("lineno")
        file = get("file") or get("filepath") or self._suite_file
        classname = get("classname") or get("class") or ""
        time = get("time")
        result = CaseResult(
            get("name") or "",
            reading.classnames.get(classname) or reading.classname(classname),
            self._parent,
            reading.files[file] if file in reading.files else reading.file(file),
            reading.seconds(time) if time else None,
            (),
            junit_words.line_of(line) if line else None,
            reading.claim(attributes["id"]) if "id" in attributes else "",
            self._outermost,
        )
        if self._details is not None:
            result = self._completed(result, attributes, self._details)
            self._details = None
        elif "status" in attributes or "result" in attributes:
            result = result._replace(
                explicit_attempts=self._by_attribute(attributes, result.duration_s)
            )
        if self._is_first:
            result = result._replace(is_first=True)
            self._is_first = self._writes_once
        if self._is_pytest and not (result.name or result.classname or result.explicit_attempts):
            # pytest leaves the test that it was in when it stopped, without its name.
            reading.is_interrupted = True
        else:
            reading.add(result)
        self._case = None
        if self._around:
            self._case, self._details, self._heard = self._around.pop()

    def _completed(
        self, result: CaseResult, attributes: Attributes, details: CaseDetails
    ) -> CaseResult:
        """The case with all that was found inside it."""
        attempts = (
            *details.retries,
            *self._own_attempts(attributes, details.decider, result.duration_s),
        )
        if details.retries and len(attempts) == len(details.retries):
            if details.rerun:
                # Surefire writes it beside the failure of a test that never passed.
                self._reading.note_word(f"<{details.rerun}> without <failure>")
            attempts = (*attempts, Attempt(Outcome.PASSED, result.duration_s))
        is_failed = bool(attempts) and attempts[-1].outcome is Outcome.FAILED
        return result._replace(
            explicit_attempts=attempts,
            claimed_id=result.claimed_id
            or self._reading.claim(dict(details.properties).get("id", "")),
            properties=tuple(details.properties),
            output=without_escapes(details.output.text()) if details.output and is_failed else "",
        )

    def _own_attempts(
        self, attributes: Attributes, decider: Heard | None, seconds: float | None
    ) -> tuple[Attempt, ...]:
        """The case's own attempt, or nothing where nothing says that it did not pass."""
        if decider is None:
            return self._by_attribute(attributes, seconds)
        if decider.name != "skipped":
            failed = self._failure(decider, seconds)
            # Firebase Test Lab and Flank write what a retry mended as a failure of the case, and
            # count it as a flake of the suite.
            is_mended = attributes.get("flaky") == "true" and self._suites[-1].counts_flakes
            return (failed, Attempt(Outcome.PASSED)) if is_mended else (failed,)
        message = decider.attributes.get("message") or decider.text.text()
        return (Attempt(Outcome.SKIPPED, seconds, self._reading.bounded(message.strip())),)

    def _by_attribute(self, attributes: Attributes, seconds: float | None) -> tuple[Attempt, ...]:
        """The attempt that the attributes of a case tell, or nothing; unknown words are noted."""
        attempts = junit_words.attempts_by_attribute(attributes, seconds)
        self._failures += bool(attempts) and attempts[0].outcome is Outcome.FAILED
        for word in () if attempts else junit_words.unknown_in(attributes):
            self._reading.note_word(word)
        return attempts


def _rank_of(heard: Heard) -> int:
    is_todo = heard.name == "skipped" and heard.attributes.get("type") == PLANNED
    return PLANNED_RANK if is_todo else RANKS[heard.name]

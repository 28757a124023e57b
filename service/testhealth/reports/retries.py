"""Cases of one JUnit suite that are attempts of one test, and suites that are projects of one file.

Some runners write each attempt as a case of its own, and some write one suite of a file for each
browser. Both look like several tests under one name until the suite around them is looked at.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from service.testhealth.reports import results
from service.testhealth.reports.results import Attempt, CaseKind, CaseResult, Outcome

# Runners that write a test once, however often they tried it: two cases of one name are two tests.
WRITES_ONCE_ROOTS = ("jest tests", "Mocha Tests")
WRITES_ONCE_SUITE = "rspec"
PYTEST_SUITE = "pytest"
PYTEST_ROOT = "pytest tests"
# A property of each suite that gotestsum and go-junit-report write.
GO_VERSION = "go.version"

# The places of cases in their suite that share an identity.
Places = list[int]


@dataclass(frozen=True, slots=True)
class SuiteCases:
    """The place of one suite's cases in its report: from `first` up to `end`, without `end`."""

    name: str
    hostname: str
    first: int
    end: int


def joined(cases: Sequence[CaseResult], declared: int | None) -> list[CaseResult]:
    """The cases of one suite of pytest, attempts joined to the test they belong to.

    Node ids are unique in a run of pytest, and its plugins for retries leave an attempt that
    failed without any child, as if it had passed. So of several cases of one id, each before the
    last that has no child is an attempt that failed. A run that declares as many tests as it has
    cases has not retried: several workers ran each test (`pytest-xdist --dist each`), and no case
    is an attempt of another.
    """
    groups = _repeated(cases)
    hidden = {at for group in groups for at in group[:-1] if _has_passed(cases[at])}
    tests = len(cases) - len(hidden)
    doubled = sum(len(group) - 1 for group in groups) - len(hidden)
    are_tests = declared in (len(cases), len(cases) - doubled)
    if not hidden or (are_tests and declared not in (tests, tests - doubled)):
        return _apart(cases, groups)
    before: dict[int, list[Attempt]] = {}
    for group in groups:
        waiting: list[Attempt] = []
        for at in group:
            if at in hidden:
                waiting.append(Attempt(Outcome.FAILED, cases[at].duration_s))
            elif waiting:
                before[at], waiting = waiting, []
    made = [
        case._replace(explicit_attempts=(*before[at], *case.attempts)) if at in before else case
        for at, case in enumerate(cases)
        if at not in hidden
    ]
    return [made[0]._replace(is_first=True), *made[1:]]


def joined_of_go(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """The cases of one package of Go, all attempts of a test joined in its first case.

    Names are unique in a package. gotestsum writes each attempt of `--rerun-fails` as a case, all
    failed ones before those that passed (https://github.com/gotestyourself/gotestsum/issues/384),
    and `go test -count` repeats each test.
    """
    groups = {group[0]: group for group in _repeated(cases)}
    later = {at for group in groups.values() for at in group[1:]}
    return [
        case._replace(explicit_attempts=tuple(_attempts_at(cases, groups[at])))
        if at in groups
        else case
        for at, case in enumerate(cases)
        if at not in later
    ]


def _attempts_at(cases: Sequence[CaseResult], places: Places) -> Iterator[Attempt]:
    for at in places:
        yield from cases[at].attempts


def _apart(cases: Sequence[CaseResult], groups: Iterable[Places]) -> list[CaseResult]:
    """The cases, those of one test made no attempts of each other where one of them passed."""
    apart = {at for group in groups if any(_has_passed(cases[at]) for at in group) for at in group}
    return [case._replace(is_first=True) if at in apart else case for at, case in enumerate(cases)]


def doubled_in(cases: Sequence[CaseResult]) -> int:
    """Return how many more cases than tests pytest's suite has: a call and its tear-down failed."""
    return sum(len(group) - 1 for group in _repeated(cases))


def _repeated(cases: Sequence[CaseResult]) -> list[Places]:
    """The places of tests that have several cases."""
    places: dict[tuple[str, ...], Places] = {}
    for at, case in enumerate(cases):
        if case.kind is CaseKind.TEST:
            places.setdefault(results.fields_of(case), []).append(at)
    return [group for group in places.values() if len(group) > 1]


def _has_passed(case: CaseResult) -> bool:
    return case.outcome is Outcome.PASSED


def with_projects(cases: list[CaseResult], suites: Iterable[SuiteCases]) -> list[CaseResult]:
    """The cases, each with the project it ran in where the report has several.

    Playwright writes a suite of each file for each project, which it names as the host. A report
    has projects if suites of one name and different hosts hold the same test.
    """
    named = [suite for suite in suites if suite.hostname and suite.end > suite.first]
    if not any(
        _are_projects(cases, list(group))
        for _, group in groupby(sorted(named, key=_name_of), key=_name_of)
    ):
        return cases
    made = list(cases)
    for suite in named:
        for at in range(suite.first, suite.end):
            # An inner suite ended before the one around it, and has told its own.
            if not made[at].variant:
                made[at] = made[at]._replace(variant=suite.hostname)
    return made


def _name_of(suite: SuiteCases) -> str:
    return suite.name


def _are_projects(cases: Sequence[CaseResult], suites: Sequence[SuiteCases]) -> bool:
    """Return whether these suites of one name hold one test under different hosts."""
    if len({suite.hostname for suite in suites}) < 2:
        return False
    host_of: dict[tuple[str, ...], str] = {}
    return any(
        host_of.setdefault(results.fields_of(cases[at]), suite.hostname) != suite.hostname
        for suite in suites
        for at in range(suite.first, suite.end)
    )

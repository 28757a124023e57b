"""Find the tests of an upload: cases to ids, ids to numbers, new tests entered.

Ids are described in docs/design/reports.md. New tests are entered before the upload counts, some
at a time; they are unlisted until it does.

The fields of a test are joined by `#` to make its id, so a `#` in a field can make two tests one.
The id belongs to the test that was seen first; the second is folded into it with a warning.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from service.database import bulk
from service.database.database import Tx
from service.testhealth.detector.evidence import is_mass_failure
from service.testhealth.reports import duplicates, identity
from service.testhealth.reports.duplicates import ResultsByTest
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.results import CaseKind, CaseResult, Outcome, WarningCode
from service.testhealth.store import cases as test_cases
from service.testhealth.store import numbers as test_numbers
from service.testhealth.store import uploads
from service.testhealth.store.cases import TEXT_MAX, Fields, Place
from service.testhealth.store.numbers import Numbers

ENTERED_AT_ONCE = 2000
"""Tests that one transaction enters."""

# Where names are full of `#`, as Ruby's are, so many are compared with those that are stored.
COMPARED_MAX = 2_000

SEPARATOR = "#"
CLASH = WarningCode.IDENTITY_CLASH.value + (
    ": Tests with the id of another: {n:,}, as {name!r}. `#` in their fields"
    " makes them equal. Give them other names, or an `id`."
)
NEW_NAMES_MIN, NEW_NAMES_SHARE, UPLOADS_BEFORE = 20, 0.2, 3
NEW_NAMES = (
    "names_change: {new:,} of {tests:,} tests are new, although this job has reported before."
    " A test whose name changes with each run gets no history: compare two reports with"
    " `headgate validate FIRST SECOND`."
)
CUT = "Names, classes, suites or files longer than 1,000 characters: {n:,}. They are shown cut."


@dataclass(frozen=True, slots=True)
class Lookup:
    """The repository whose tests are looked up, the variant of the tests, and when they ran."""

    place: Place
    variant: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Identified:
    """The results of an upload by test id, and the tests that exist.

    `failing` are those that failed in the end, `warnings` are about the names of its tests. It is
    stale once the repository has another `removal`; no test was added until one has a number above
    `last_no`.
    """

    results: ResultsByTest[str]
    existing: Numbers
    failing: Mapping[str, CaseResult]
    warnings: tuple[str, ...] = ()
    removal: int = 0
    last_no: int = 0

    @property
    def is_mass(self) -> bool:
        """Return whether so much failed that it says nothing about single tests."""
        return is_mass_failure(self.results.ran, len(self.failing))

    def new(self) -> dict[str, CaseResult]:
        """Return the first case of each test that does not exist, by id."""
        existing = self.existing.by_id
        if len(existing) == self.results.size:
            return {}
        both = (self.results.passed.items(), self.results.others.items())
        return {each: case for tests in both for each, case in tests if each not in existing}


def identified(
    session: Tx,
    lookup: Lookup,
    names: Sequence[RepositoryKey],
    cases: Sequence[CaseResult],
    job: str,
) -> Identified:
    """Find the tests of these cases, of a job, under each name that the repository has had.

    `names` begins with the present one, by which new tests get their ids.
    """
    ids = identity.ids_of(names[0], cases, lookup.variant)
    here = lookup.place.repository_id
    numbers = test_numbers.numbers_of(session, here, ids, lookup.at)
    for name in names[1:]:
        unknown = [n for n, each in enumerate(ids) if numbers.number_of(each) is None]
        older = identity.ids_of(name, [cases[n] for n in unknown], lookup.variant)
        matching = test_numbers.numbers_of(session, here, older, lookup.at)
        for n, each in zip(unknown, older, strict=True):
            if matching.number_of(each) is not None:
                ids[n] = each
        numbers.add(matching)
    own = numbers.own_ids
    tests = [own.get(each, each) for each in ids] if own else ids
    by_test = duplicates.sorted_by_test(tests, cases)
    others = by_test.others
    warnings = _warnings_of(session, here, ids, cases)
    warnings += _new_names(session, here, job, by_test.size, len(numbers.by_id))
    muddled = duplicates.duplicates_warned(others.values())
    shared = test_cases.shared_by(session, here)
    return Identified(
        results=by_test,
        existing=numbers,
        failing={
            each: case for each, case in others.items() if case.final_outcome is Outcome.FAILED
        },
        warnings=warnings if muddled is None else (*warnings, muddled.text),
        removal=shared.removal,
        last_no=shared.last_no,
    )


# New tests.


def aliases_of(
    new: Mapping[str, CaseResult], tests: Identified, name: RepositoryKey, variant: str
) -> dict[str, str]:
    """Return the id of each new test in nested suites → its other id, if it has one."""
    nested = {
        UUID(each): case
        for each, case in new.items()
        if case.outermost_suite and case.kind in (CaseKind.TEST, CaseKind.SEVERAL)
    }
    passed, others = tests.results
    return {
        str(test): other
        for alias, test in identity.aliases_of(name, nested, variant).items()
        if (other := str(alias)) not in passed and other not in others
    }


def chunks(new: Mapping[str, CaseResult]) -> Iterable[Sequence[tuple[str, CaseResult]]]:
    """Return the new tests with their first case, as many at a time as one transaction enters.

    By id, so that a transaction writes to a few pages of the indexes by id, not to all of them.
    """
    return bulk.parts(sorted(new.items()), ENTERED_AT_ONCE)


def enter(
    session: Tx,
    lookup: Lookup,
    under: tuple[RepositoryKey, int],
    new: Sequence[tuple[str, CaseResult]],
    aliases: Mapping[str, str],
) -> tuple[dict[str, int], int]:
    """Enter tests that do not exist, unlisted until an upload counts.

    Return id → number of tests that exist now, and the number given out last. `under`: the
    repository's present name, and the last number when the tests were looked up.
    """
    place, (name, looked_up_at) = lookup.place, under
    shared = test_cases.name_repository(session, place, name)
    last_no = test_cases.lock(session, place.repository_id).last_no
    existing: dict[str, int] = {}
    if last_no != looked_up_at:
        ids = [each for each, _ in new]
        numbers = test_numbers.numbers_of(session, place.repository_id, ids, lookup.at)
        existing = {each: no for each in ids if (no := numbers.number_of(each)) is not None}
    missing = [(each, case) for each, case in new if each not in existing]
    if not missing:
        return existing, looked_up_at
    first = test_cases.take_numbers(session, place.repository_id, len(missing))
    named_under = shared.names.index(name)
    groups: dict[str, list[test_cases.NewCase]] = {}
    for no, (each, case) in enumerate(missing, first):
        variant = identity.variant_of(case, lookup.variant)[:TEXT_MAX]
        groups.setdefault(variant, []).append((no, each, *_fields_of(case), case.line))
    for variant, some in groups.items():
        test_cases.add(session, place, (named_under, variant, lookup.at), some)
    entered = {each: no for no, (each, _) in enumerate(missing, first)}
    new_aliases = {aliases[each]: no for each, no in entered.items() if each in aliases}
    test_cases.add_aliases(session, place, new_aliases)
    # Tests that another upload has entered meanwhile may be among the chunks that follow.
    is_alone = last_no == looked_up_at
    last = first + len(missing) - 1 if is_alone else looked_up_at
    return existing | entered, last


# Warnings about names.


def _new_names(
    session: Tx, repository_id: int, job: str, tests: int, existing: int
) -> tuple[str, ...]:
    """Return a warning if a job that has reported before has too many new tests."""
    new = tests - existing
    if new < max(NEW_NAMES_MIN, NEW_NAMES_SHARE * tests):
        return ()
    if uploads.count_of_job(session, repository_id, job, UPLOADS_BEFORE) < UPLOADS_BEFORE:
        return ()
    return (NEW_NAMES.format(new=new, tests=tests),)


def _warnings_of(
    session: Tx, repository_id: int, ids: Sequence[str], cases: Sequence[CaseResult]
) -> tuple[str, ...]:
    """Return warnings about equal ids and long names; `ids` are those of the cases, in order."""
    said = []
    # There may be 500,000 cases: one look at all texts of a case finds the few that may be odd.
    odd = [
        (each, case)
        for each, case in zip(ids, cases, strict=True)
        if SEPARATOR in (texts := "".join(case[:4])) or len(texts) > TEXT_MAX
    ]
    clashing = _clashing(session, repository_id, odd)
    if clashing:
        said.append(CLASH.format(n=len(clashing), name=clashing[0][:TEXT_MAX]))
    long = sum(1 for _, case in odd if max(map(len, case[:4])) > TEXT_MAX)
    if long:
        said.append(CUT.format(n=long))
    return tuple(said)


def _clashing(session: Tx, repository_id: int, odd: Sequence[tuple[str, CaseResult]]) -> list[str]:
    """Return the names of cases whose id belongs to a test of other fields."""
    doubtful = [
        (each, case)
        for each, case in odd
        if case.kind is CaseKind.TEST
        and not case.claimed_id
        and any(SEPARATOR in text for text in case[:4])
    ]
    failed_first = sorted(doubtful, key=lambda each: each[1].outcome is not Outcome.FAILED)
    asked = list(dict.fromkeys(each for each, _ in failed_first))[:COMPARED_MAX]
    owners = test_cases.fields_of(session, repository_id, asked)
    clashing = (
        case.name
        for each, case in doubtful
        if owners.setdefault(each, _fields_of(case)) != _fields_of(case)
    )
    return list(dict.fromkeys(clashing))


def _fields_of(case: CaseResult) -> Fields:
    """Return name, class, suites and file at the length that is stored."""
    return tuple(text[:TEXT_MAX] for text in case[:4])

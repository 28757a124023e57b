"""Which tests an upload speaks of: cases to ids, ids to numbers, new tests entered (FLAKY.md 3).

New tests are entered before the upload counts, some at a time; nobody sees them until it does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from service.flaky import duplicates, identity
from service.flaky.duplicates import Result
from service.flaky.identity import RepositoryKey
from service.flaky.results import CaseKind, CaseResult
from service.operations import upload_names
from service.store import evidence, test_cases
from service.store.database import Tx
from service.store.evidence import Numbered
from service.store.test_cases import TEXT_MAX, Case, Place

ENTERED_AT_ONCE = 2000
"""Tests that one transaction enters (ARCHITECTURE.md 5)."""


@dataclass(frozen=True, slots=True)
class Identified:
    """The results of an upload by test id, in order of first sight, and the tests that exist.

    `warnings` are about the names of its tests.
    """

    results: Mapping[str, Result]
    numbers: Mapping[str, Numbered]
    warnings: tuple[str, ...] = ()

    @property
    def new(self) -> list[str]:
        """The ids of tests that do not."""
        return [each for each in self.results if each not in self.numbers]


def identified(
    session: Tx,
    repository_id: int,
    names: Sequence[RepositoryKey],
    variant: str,
    cases: Sequence[CaseResult],
) -> Identified:
    """The tests of these cases, by whichever name of the repository they were first seen under.

    `names` begins with the present one, which new tests get their ids by.
    """
    ids = [_id(names[0], case, variant) for case in cases]
    numbers = evidence.numbers_of(session, repository_id, ids)
    for name in names[1:]:
        unknown = [place for place, each in enumerate(ids) if each not in numbers]
        older = {place: _id(name, cases[place], variant) for place in unknown}
        found = evidence.numbers_of(session, repository_id, older.values())
        numbers |= found
        for place, each in older.items():
            if each in found:
                ids[place] = each
    meant = [numbers[each].id if each in numbers else each for each in ids]
    results = duplicates.results_of(zip(meant, cases, strict=True))
    warnings = upload_names.warnings_of(session, repository_id, ids, cases)
    return Identified(results, {found.id: found for found in numbers.values()}, warnings)


def _id(name: RepositoryKey, case: CaseResult, variant: str) -> str:
    return str(identity.id_of(name, identity.key_of(case), variant))


def aliases_of(found: Identified, name: RepositoryKey, variant: str) -> dict[str, str]:
    """Other ids of new tests in nested suites → their ids."""
    new = {UUID(each): found.results[each].case for each in found.new}
    tests = {test: case for test, case in new.items() if case.kind is CaseKind.TEST}
    others = identity.aliases_of(name, tests, variant)
    return {
        str(alias): str(test) for alias, test in others.items() if str(alias) not in found.results
    }


@dataclass(frozen=True, slots=True)
class Entrance:
    """Where new tests are entered: their repository under its present name, variant and time."""

    place: Place
    name: RepositoryKey
    variant: str
    at: datetime


def enter(
    session: Tx,
    entrance: Entrance,
    new: Sequence[tuple[str, CaseResult]],
    aliases: Mapping[str, str],
) -> dict[str, Numbered]:
    """Enter tests that are not there yet, as strangers' until an upload counts; all by id."""
    place = entrance.place
    shared = test_cases.name_repository(session, place, entrance.name)
    evidence.lock(session, place.repository_id)
    known = evidence.numbers_of(session, place.repository_id, (each for each, _ in new))
    missing = [(each, case) for each, case in new if each not in known]
    if not missing:
        return known
    first = test_cases.take_numbers(session, place.repository_id, len(missing))
    named_under = shared.names.index(entrance.name)
    cases = [
        _case(entrance, first + place_in, each, case, named_under)
        for place_in, (each, case) in enumerate(missing)
    ]
    test_cases.add(session, place, cases)
    numbers = {case.id: case.no for case in cases}
    found = {alias: numbers[each] for alias, each in aliases.items() if each in numbers}
    test_cases.add_aliases(session, place, found)
    return known | {case.id: Numbered(case.no, case.id, is_known=False) for case in cases}


def _case(entrance: Entrance, no: int, test_id: str, case: CaseResult, named_under: int) -> Case:
    return Case(
        no=no,
        id=test_id,
        named_under=named_under,
        name=case.name[:TEXT_MAX],
        classname=case.classname[:TEXT_MAX],
        parent=case.parent[:TEXT_MAX],
        file=case.file[:TEXT_MAX],
        variant=entrance.variant,
        owners=(),
        first_run_at=entrance.at,
        last_run_at=entrance.at,
        status_since=entrance.at,
        line=case.line,
        is_known=False,
    )


def chunks(found: Identified) -> Iterable[list[tuple[str, CaseResult]]]:
    """The new tests with their first case, as many at a time as one transaction enters.

    By id, so that a transaction writes to a few pages of the indexes by id, not to all of them.
    """
    new = [(each, found.results[each].case) for each in sorted(found.new)]
    return [new[start : start + ENTERED_AT_ONCE] for start in range(0, len(new), ENTERED_AT_ONCE)]

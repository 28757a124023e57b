"""Which tests an upload speaks of: cases to ids, ids to numbers, new tests entered (FLAKY.md 3).

New tests are entered before the upload counts, some at a time; nobody sees them until it does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from service.database.database import Tx
from service.testhealth.operations import upload_names
from service.testhealth.reports import duplicates, identity
from service.testhealth.reports.duplicates import Sorted
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.results import CaseKind, CaseResult
from service.testhealth.store import cases as test_cases
from service.testhealth.store import evidence_rows
from service.testhealth.store import numbers as test_numbers
from service.testhealth.store.cases import TEXT_MAX, Case, Own, Place
from service.testhealth.store.numbers import Numbered, Numbers

ENTERED_AT_ONCE = 2000
"""Tests that one transaction enters (ARCHITECTURE.md 5)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose tests are looked up, of which variant, and when they ran."""

    repository_id: int
    variant: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Identified:
    """The results of an upload by test id, and the tests that exist.

    `warnings` are about the names of its tests. What was found is stale once the repository has
    another `removal`; no test was added until one is given a number above `last_no`.
    """

    results: Sorted[str]
    known: Numbers
    warnings: tuple[str, ...] = ()
    removal: int = 0
    last_no: int = 0

    @property
    def numbers(self) -> Mapping[str, int]:
        """Id → number of the tests that exist."""
        return self.known.by_id

    def new(self) -> dict[str, CaseResult]:
        """The first cases of tests that do not."""
        known = self.numbers
        if len(known) == len(self.results.passed) + len(self.results.others):
            return {}
        passed = {each: case for each, case in self.results.passed.items() if each not in known}
        others = self.results.others.items()
        return passed | {each: did.case for each, did in others if each not in known}


def identified(
    session: Tx, asked: Asked, names: Sequence[RepositoryKey], cases: Sequence[CaseResult]
) -> Identified:
    """The tests of these cases, by whichever name of the repository they were first seen under.

    `names` begins with the present one, which new tests get their ids by.
    """
    ids = identity.ids_of(names[0], cases, asked.variant)
    numbers, meant = _looked_up(session, asked, ids)
    for name in names[1:]:
        known = numbers.by_id
        unknown = [n for n, each in enumerate(ids) if each not in known and each not in meant]
        older = identity.ids_of(name, [cases[n] for n in unknown], asked.variant)
        found, others = _looked_up(session, asked, older)
        for n, each in zip(unknown, older, strict=True):
            if each in found.by_id or each in others:
                ids[n] = each
        numbers = Numbers(
            known | found.by_id, numbers.unrun | found.unrun, numbers.unpassed | found.unpassed
        )
        meant |= others
    tests = [meant[each].id if each in meant else each for each in ids] if meant else ids
    results = duplicates.sorted_by_test(tests, cases)
    numbers.by_id.update((each.id, each.no) for each in meant.values())
    warnings = upload_names.warnings_of(session, asked.repository_id, ids, cases)
    shared = test_cases.shared_by(session, asked.repository_id)
    return Identified(results, numbers, warnings, shared.removal, shared.last_no)


def _looked_up(
    session: Tx, asked: Asked, ids: Sequence[str]
) -> tuple[Numbers, dict[str, Numbered]]:
    """Tests of these ids, and those that are known by them as well."""
    here, at = asked.repository_id, asked.at
    numbers = test_numbers.numbers_of(session, here, ids, at)
    unknown = [each for each in ids if each not in numbers.by_id]
    meant = test_numbers.aliased(session, here, unknown, at)
    numbers.unrun.update(meant.unrun)
    numbers.unpassed.update(meant.unpassed)
    return numbers, meant.by_id


def aliases_of(
    new: Mapping[str, CaseResult], found: Identified, name: RepositoryKey, variant: str
) -> dict[str, str]:
    """Id of each new test in nested suites → its other id, where it has one."""
    nested = {
        UUID(each): case
        for each, case in new.items()
        if case.outermost_suite and case.kind is CaseKind.TEST
    }
    others = identity.aliases_of(name, nested, variant)
    return {
        str(test): str(alias) for alias, test in others.items() if not found.results.has(str(alias))
    }


@dataclass(frozen=True, slots=True)
class Entrance:
    """Where new tests are entered: their repository under its present name, variant and time.

    They were looked up when `last_no` was the number given last.
    """

    place: Place
    name: RepositoryKey
    variant: str
    at: datetime
    last_no: int


class Entered(NamedTuple):
    """Id → number of tests that are there now, and the number given last."""

    numbers: dict[str, int]
    last_no: int


def enter(
    session: Tx,
    entrance: Entrance,
    new: Sequence[tuple[str, CaseResult]],
    aliases: Mapping[str, str],
) -> Entered:
    """Enter tests that are not there yet, as strangers' until an upload counts."""
    place = entrance.place
    shared = test_cases.name_repository(session, place, entrance.name)
    last_no = evidence_rows.lock(session, place.repository_id).last_no
    known: dict[str, int] = {}
    if last_no != entrance.last_no:
        asked = Asked(place.repository_id, entrance.variant, entrance.at)
        numbers, meant = _looked_up(session, asked, [each for each, _ in new])
        known = numbers.by_id | {each: test.no for each, test in meant.items()}
    missing = [(each, case) for each, case in new if each not in known]
    if not missing:
        return Entered(known, entrance.last_no)
    first = test_cases.take_numbers(session, place.repository_id, len(missing))
    named_under = shared.names.index(entrance.name)
    numbered = enumerate(missing, first)
    own = [Own(no, each, *_shown(case), case.line) for no, (each, case) in numbered]
    for variant, some in _by_variant(own, [case for _, case in missing], entrance.variant).items():
        test_cases.add(session, place, _alike(entrance, some[0], named_under, variant), some)
    entered = {each.id: each.no for each in own}
    found = {aliases[each]: no for each, no in entered.items() if each in aliases}
    test_cases.add_aliases(session, place, found)
    # What somebody else has entered meanwhile may be among those that follow, too.
    is_alone = last_no == entrance.last_no
    return Entered(known | entered, own[-1].no if is_alone else entrance.last_no)


def _shown(case: CaseResult) -> tuple[str, str, str, str]:
    """Name, class, suites and file at the length that is stored."""
    return (
        case.name[:TEXT_MAX],
        case.classname[:TEXT_MAX],
        case.parent[:TEXT_MAX],
        case.file[:TEXT_MAX],
    )


def _by_variant(
    own: Sequence[Own], cases: Sequence[CaseResult], variant: str
) -> dict[str, list[Own]]:
    """New tests by their variant, in order: the upload's, with the project that a test ran in."""
    groups: dict[str, list[Own]] = {}
    for each, case in zip(own, cases, strict=True):
        groups.setdefault(identity.variant_of(case, variant)[:TEXT_MAX], []).append(each)
    return groups


def _alike(entrance: Entrance, own: Own, named_under: int, variant: str) -> Case:
    return Case(
        **own._asdict(),
        named_under=named_under,
        variant=variant,
        owners=(),
        first_run_at=entrance.at,
        status_since=entrance.at,
        is_known=False,
    )


def chunks(new: Mapping[str, CaseResult]) -> Iterable[list[tuple[str, CaseResult]]]:
    """The new tests with their first case, as many at a time as one transaction enters.

    By id, so that a transaction writes to a few pages of the indexes by id, not to all of them.
    """
    by_id = sorted(new.items())
    starts = range(0, len(by_id), ENTERED_AT_ONCE)
    return (by_id[start : start + ENTERED_AT_ONCE] for start in starts)

"""What is odd about the names of an upload's tests: another's id, or more text than is kept.

The fields of a test are joined by `#` to make its id, so that one in a field can make two tests
one (FLAKY.md 3). The first sight owns the id, and the second is folded into it with a warning.
"""

from collections.abc import Iterable, Sequence

from service.database.database import Tx
from service.testhealth.reports.results import CaseKind, CaseResult, Outcome, WarningCode
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import TEXT_MAX, Fields

# Where names are full of `#`, as Ruby's are, so many are compared with those that are stored.
COMPARED_MAX = 2_000

SEPARATOR = "#"
CLASH = WarningCode.IDENTITY_CLASH.value + (
    ": {n:,} of the tests have the id of another, as {name!r}: `#` in their fields"
    " makes them equal. Give them other names, or an `id`."
)
CUT = "{n:,} names, classes, suites or files are longer than 1,000 characters; shown cut."


def warnings_of(
    session: Tx, repository_id: int, ids: Sequence[str], cases: Sequence[CaseResult]
) -> tuple[str, ...]:
    """The sentences about them; `ids` are those of the cases, in their order."""
    said = []
    # Asked of each of 500,000: one look at all its texts finds the few that may be odd.
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
    """The names of cases whose id belongs to a test of other fields."""
    doubtful = [
        (each, case)
        for each, case in odd
        if case.kind is CaseKind.TEST and not case.claimed_id and _has_separator(case)
    ]
    owners = _owners(session, repository_id, doubtful)
    found = (
        case.name
        for each, case in doubtful
        if owners.setdefault(each, _fields_of(case)) != _fields_of(case)
    )
    return list(dict.fromkeys(found))


def _has_separator(case: CaseResult) -> bool:
    return any(SEPARATOR in text for text in case[:4])


def _owners(
    session: Tx, repository_id: int, doubtful: Iterable[tuple[str, CaseResult]]
) -> dict[str, Fields]:
    """Id → the fields of the stored test; those that failed are looked up first."""
    failed_first = sorted(doubtful, key=lambda each: each[1].outcome is not Outcome.FAILED)
    asked = list(dict.fromkeys(each for each, _ in failed_first))[:COMPARED_MAX]
    return test_cases.fields_of(session, repository_id, asked)


def _fields_of(case: CaseResult) -> Fields:
    """As they are stored."""
    return Fields(*(text[:TEXT_MAX] for text in case[:4]))

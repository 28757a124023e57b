"""What an upload says of its tests, prepared before the transaction that stores it. Pure."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import failures, owners
from service.testhealth.reports.duplicates import Result, Sorted
from service.testhealth.reports.results import Attempt, Outcome
from service.testhealth.reports.uploads import LETTERS
from service.testhealth.store import bitmaps
from service.testhealth.store.bitmaps import PackedSet
from service.testhealth.store.uploads_rows import StoredAttempt

STACK_MAX = 8000
"""Characters of a failure's text (FLAKY.md 2.8)."""

Results = Sorted[int]
"""The results of an upload by the number of the test."""


class Unnoted(NamedTuple):
    """Tests whose run is news, as the first one or an earlier one; others whose pass is news."""

    ran: Set[int]
    passed: Set[int]


@dataclass(frozen=True, slots=True)
class Findings:
    """An upload's results: sets of tests with a single attempt that did not fail, others apart.

    `new_passed` and `new_skipped` are members of the sets whose test rows change. `letters` are
    the attempts of the tests apart, `attempts` theirs as they are stored, before it is known which
    are quarantined or trusted. `owners` has the owners of all tests; it is empty when the upload
    names none.
    """

    passed: PackedSet | None
    passed_size: int
    skipped: PackedSet | None
    new_passed: Sequence[int]
    new_skipped: Sequence[int]
    apart: Mapping[int, Result]
    letters: Mapping[int, str]
    attempts: tuple[StoredAttempt, ...]
    owners: Mapping[int, tuple[str, ...]]

    @property
    def changes(self) -> int:
        """How many test rows noting the upload changes, at most."""
        return len(self.new_passed) + len(self.new_skipped) + len(self.apart)


def findings_of(
    found: Results, unnoted: Unnoted, upload_id: str, ran_at: datetime, meta: UploadMeta
) -> Findings:
    """Take an upload's results apart."""
    passed, skipped = list(found.passed), []
    apart: dict[int, Result] = {}
    for no, result in sorted(found.others.items()):
        if not is_once(result):
            apart[no] = result
        elif result.attempts[0].outcome is Outcome.PASSED:
            passed.append(no)
        else:
            skipped.append(no)
    attempts = (
        attempt
        for no, result in apart.items()
        for attempt in _attempts(upload_id, ran_at, no, result, meta.source_root)
    )
    return Findings(
        passed=bitmaps.packed_set(passed),
        passed_size=len(passed),
        skipped=bitmaps.packed_set(skipped),
        new_passed=[no for no in passed if no in unnoted.ran or no in unnoted.passed],
        new_skipped=[no for no in skipped if no in unnoted.ran],
        apart=apart,
        letters={no: letters_of(result) for no, result in apart.items()},
        attempts=tuple(attempts),
        owners=_owners(found, meta.codeowners),
    )


def is_once(result: Result) -> bool:
    """Whether one attempt says it all, so that a place in a set is enough."""
    first = result.attempts[0].outcome
    return (
        len(result.attempts) == 1
        and first is not Outcome.FAILED
        and (result.is_comparable or first is Outcome.SKIPPED)
    )


def letters_of(result: Result) -> str:
    """Its attempts as evidence has them."""
    return "".join(LETTERS[each.outcome] for each in result.attempts)


def milliseconds(attempt: Attempt) -> int | None:
    """How long it took, None when nobody knows."""
    return None if attempt.duration_s is None else round(attempt.duration_s * 1000)


def _owners(found: Results, codeowners: str | None) -> Mapping[int, tuple[str, ...]]:
    """Number of each test → its owners; nothing when the upload names none."""
    if codeowners is None:
        return {}
    rules = owners.owners_in(codeowners)
    cases = found.first_cases()
    of_file = {file: rules.of(file) for file in {each.file for each in cases.values()}}
    return {no: of_file[case.file] for no, case in cases.items()}


def _attempts(
    upload_id: str, ran_at: datetime, no: int, result: Result, source_root: str
) -> Iterable[StoredAttempt]:
    for n, attempt in enumerate(result.attempts, 1):
        failed = attempt.outcome is Outcome.FAILED
        yield StoredAttempt(
            upload=upload_id,
            no=no,
            n=n,
            ran_at=ran_at,
            outcome=attempt.outcome,
            failure=failures.key_of(attempt, source_root) if failed else None,
            headline=failures.headline_of(attempt) if failed else None,
            stack=attempt.stack[:STACK_MAX] if failed and attempt.stack else None,
            duration_ms=milliseconds(attempt),
            is_comparable=result.is_comparable,
        )

"""What an upload says of its tests, made ready before the transaction that lets it count.

Nothing here asks the database: numbers of tests are given, and what is found is only written
down afterwards, so that nobody waits meanwhile.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from service.database import bulk
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import failures, owners
from service.testhealth.reports.duplicates import Result, Sorted
from service.testhealth.reports.results import Attempt, Outcome
from service.testhealth.reports.uploads import LETTERS
from service.testhealth.store import uncounted, uploads_rows
from service.testhealth.store.uncounted import Owned, Part
from service.testhealth.store.uploads_rows import PackedSet, StoredAttempt

STACK_MAX = 8000
"""Characters of a failure's text (FLAKY.md 2.8)."""

Results = Sorted[int]
"""The results of an upload by the number of the test."""


class Unnoted(NamedTuple):
    """Tests of which it is to be noted that they ran; others of which it is if they passed."""

    ran: Set[int]
    passed: Set[int]


@dataclass(frozen=True, slots=True)
class Findings:
    """An upload's results: those that one attempt says all of in sets, others apart.

    What is to be noted of the former is in `parts`, what is counted of the latter in
    `parts_apart`, as transactions take them. `letters` are the attempts of those apart,
    `attempts` theirs as they are stored, before anybody says which are quarantined or trusted.
    `owners` are those of tests apart. Of one that `is_large` the transaction that completes it
    takes no part.
    """

    passed: PackedSet | None
    passed_size: int
    skipped: PackedSet | None
    parts: tuple[Part, ...]
    parts_apart: tuple[Part, ...]
    is_large: bool
    apart: Mapping[int, Result]
    letters: Mapping[int, str]
    attempts: tuple[StoredAttempt, ...]
    owners: tuple[Owned, ...]


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
    passed.sort()
    attempts = (
        attempt
        for no, result in apart.items()
        for attempt in _attempts(upload_id, ran_at, no, result, meta.source_root)
    )
    of_test = _owners(found, meta.codeowners)
    new = (
        [no for no in passed if no in unnoted.ran or no in unnoted.passed] if any(unnoted) else [],
        [no for no in skipped if no in unnoted.ran] if unnoted.ran else [],
    )
    owned = [*passed, *skipped] if of_test else []
    parts = tuple(_parts(new, owned, of_test))
    return Findings(
        passed=uploads_rows.packed_set(passed),
        passed_size=len(passed),
        skipped=uploads_rows.packed_set(skipped),
        parts=parts,
        parts_apart=tuple(_parts_apart(list(apart), len(parts) + 1)),
        is_large=sum(map(len, new)) + len(owned) > uncounted.ROWS_MAX
        or len(apart) > uncounted.APART_MAX,
        apart=apart,
        letters={no: letters_of(result) for no, result in apart.items()},
        attempts=tuple(attempts),
        owners=_owned(apart, of_test),
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


def _parts(
    new: tuple[Sequence[int], Sequence[int]],
    owned: Sequence[int],
    of_test: Mapping[int, tuple[str, ...]],
) -> Iterable[Part]:
    """What transactions note: passed and skipped tests of which they should, and all owners."""
    n = 0
    for nos, is_passed in zip(new, (True, False), strict=True):
        for some in bulk.parts(nos, uncounted.ROWS_MAX):
            n, text = n + 1, bulk.text_of((no,) for no in some)
            yield Part(n, passed=text) if is_passed else Part(n, skipped=text)
    for some in bulk.parts(owned, uncounted.ROWS_MAX):
        n += 1
        yield Part(n, owners=_owned(some, of_test))


def _parts_apart(nos: Sequence[int], first_n: int) -> Iterable[Part]:
    for n, some in enumerate(bulk.parts(nos, uncounted.APART_MAX), first_n):
        yield Part(n, apart=bulk.text_of((no,) for no in some))


def _owners(found: Results, codeowners: str | None) -> Mapping[int, tuple[str, ...]]:
    """Number of each test → its owners; nothing when the upload names none."""
    if codeowners is None:
        return {}
    rules = owners.owners_in(codeowners)
    cases = found.first_cases()
    of_file = {file: rules.of(file) for file in {each.file for each in cases.values()}}
    return {no: of_file[case.file] for no, case in cases.items()}


def _owned(nos: Iterable[int], of_test: Mapping[int, tuple[str, ...]]) -> tuple[Owned, ...]:
    if not of_test:
        return ()
    grouped: dict[tuple[str, ...], list[int]] = {}
    for no in nos:
        grouped.setdefault(of_test[no], []).append(no)
    return tuple(Owned(names, tuple(group)) for names, group in grouped.items())


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

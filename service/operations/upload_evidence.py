"""What one upload changes of its repository's tests, in the transaction that completes it.

`count` makes it evidence and judges; `record` writes down single attempts and figures, which
say whether each failure was quarantined, and that is known only then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from service.flaky import failures, figures, owners
from service.flaky.duplicates import Result
from service.flaky.results import Attempt, Outcome
from service.flaky.standing import Standing
from service.flaky.uploads import FAILED, LETTERS, PASSED
from service.operations import judging
from service.operations.judging import Bench
from service.store import code_owners, evidence, test_cases, test_evidence, uploads
from service.store.test_evidence import Day, SeenFailure, StoredAttempt, Upload

STACK_MAX = 8000
"""Characters of a failure's text (FLAKY.md 2.8)."""

Results = Mapping[int, Result]
"""The results of an upload by the number of the test."""


def count(
    bench: Bench, draft: Upload, found: Results, codeowners: str | None, *, has_new: bool
) -> tuple[Upload, Standing | None]:
    """Let the upload count, unless nobody trusts it: the upload with its sets, how tests stand.

    `has_new`: some of its tests were not there before.
    """
    session, place = bench.session, bench.place
    letters = {no: letters_of(result) for no, result in found.items()}
    passed = test_evidence.put_set(session, place, _once(found, Outcome.PASSED), draft.ran_at)
    skipped = test_evidence.put_set(session, place, _once(found, Outcome.SKIPPED), draft.ran_at)
    upload = replace(draft, passed=passed, skipped=skipped)
    here = place.repository_id
    if not upload.is_eligible:
        evidence.note_strangers(session, here, found, upload.ran_at)
        test_cases.note_change(session, place.repository_id)
        return upload, None
    won = {no for no, word in letters.items() if PASSED in word}
    evidence.note_runs(session, here, won, upload.ran_at, passed=True)
    evidence.note_runs(session, here, letters.keys() - won, upload.ran_at, passed=False)
    failed = [no for no, word in letters.items() if FAILED in word]
    evidence.note_failed(session, here, failed, upload.ran_at)
    _own(bench, upload, found, codeowners, has_new=has_new)
    apart = {no: word for no, word in letters.items() if word and not is_once(found[no])}
    muddled = frozenset(no for no in apart if not found[no].is_comparable)
    passed_size = sum(1 for _ in _once(found, Outcome.PASSED))
    told = uploads.evidence_of(upload, apart, muddled, passed_size)
    return upload, judging.judge(bench, [told])


def letters_of(result: Result) -> str:
    """Its attempts as evidence has them."""
    if len(result.attempts) == 1:
        return LETTERS[result.attempts[0].outcome]
    return "".join(LETTERS[each.outcome] for each in result.attempts)


def is_once(result: Result) -> bool:
    """Whether one attempt says it all, so that a place in a set is enough."""
    first = result.attempts[0].outcome
    return (
        len(result.attempts) == 1
        and first is not Outcome.FAILED
        and (result.is_comparable or first is Outcome.SKIPPED)
    )


def _once(found: Results, outcome: Outcome) -> Iterable[int]:
    return (
        no
        for no, result in found.items()
        if is_once(result) and result.attempts[0].outcome is outcome
    )


def _own(
    bench: Bench, upload: Upload, found: Results, codeowners: str | None, *, has_new: bool
) -> None:
    """Note the owners of its tests: the repository's own file says so, if it has one.

    Else the newest upload of each test that sends one along. Tests that are new get theirs by
    the repository's own with the next sweep: it may be long, and they may be many.
    """
    session, place = bench.session, bench.place
    path = code_owners.path_of(session, place.repository_id)
    if path is None:
        code_owners.begin(session, place, bench.home.now)
    if path:
        if has_new:
            code_owners.look_sooner(session, place.repository_id, bench.home.now)
        return
    if codeowners is None:
        return
    rules = owners.owners_in(codeowners)
    files = {result.case.file for result in found.values()}
    of_file = {file: rules.of(file) for file in files}
    wanted = {no: of_file[result.case.file] for no, result in found.items()}
    evidence.put_owners(session, place.repository_id, wanted, upload.ran_at)


def record(
    bench: Bench, upload: Upload, found: Results, quarantined: set[int], source_root: str
) -> None:
    """Write down the upload, its attempts, and what they add to figures."""
    session, place = bench.session, bench.place
    test_evidence.record_upload(session, place, upload)
    attempts = [
        attempt
        for no, result in found.items()
        if not is_once(result)
        for attempt in _attempts(upload, no, result, source_root)
    ]
    attempts = [
        replace(each, is_quarantined=True)
        if each.no in quarantined and each.outcome is Outcome.FAILED
        else each
        for each in attempts
    ]
    test_evidence.record_attempts(session, place, attempts)
    seen = [
        SeenFailure(each.no, each.failure, each.headline or "", each.stack or "", each.ran_at)
        for each in attempts
        if each.failure is not None
    ]
    hit = {each.no for each in seen}
    if upload.is_eligible:
        day = figures.day_of(upload.ran_at)
        days = [
            _day(upload, day, no, result, is_quarantined=no in quarantined)
            for no, result in found.items()
        ]
        test_evidence.add_days(session, place, days)
        test_evidence.note_failures(session, place, seen)
    else:
        hit = evidence.known_among(session, place.repository_id, hit)
    impacts = [(no, pr) for no in hit for pr in upload.prs]
    test_evidence.note_impact(session, place, impacts, upload.ran_at, bench.home.now)


def _attempts(upload: Upload, no: int, result: Result, source_root: str) -> Iterable[StoredAttempt]:
    for n, attempt in enumerate(result.attempts, 1):
        failed = attempt.outcome is Outcome.FAILED
        yield StoredAttempt(
            upload=upload.id,
            no=no,
            n=n,
            ran_at=upload.ran_at,
            outcome=attempt.outcome,
            failure=failures.key_of(attempt, source_root) if failed else None,
            headline=failures.headline_of(attempt) if failed else None,
            stack=attempt.stack[:STACK_MAX] if failed and attempt.stack else None,
            duration_ms=_milliseconds(attempt),
            is_eligible=upload.is_eligible,
            is_comparable=result.is_comparable,
        )


def _milliseconds(attempt: Attempt) -> int | None:
    return None if attempt.duration_s is None else round(attempt.duration_s * 1000)


def _day(upload: Upload, day: int, no: int, result: Result, *, is_quarantined: bool) -> Day:
    if is_once(result) and not upload.is_mass:
        return _plain_day(day, no, result.attempts[0])
    outcomes = [each.outcome for each in result.attempts]
    failed, passed = outcomes.count(Outcome.FAILED), outcomes.count(Outcome.PASSED)
    counts = result.is_comparable and not upload.is_mass
    return Day(
        no=no,
        day=day,
        results=int(failed + passed > 0),
        passing_results=int(counts and passed > 0),
        passed=passed,
        failed=failed,
        skipped=outcomes.count(Outcome.SKIPPED),
        quarantined=failed if is_quarantined else 0,
        duration_ms=sum(_milliseconds(each) or 0 for each in result.attempts),
    )


def _plain_day(day: int, no: int, attempt: Attempt) -> Day:
    """What nearly every result adds: one attempt that passed or was skipped."""
    duration_ms = _milliseconds(attempt) or 0
    if attempt.outcome is Outcome.SKIPPED:
        return Day(no, day, skipped=1, duration_ms=duration_ms)
    return Day(no, day, 1, 1, 1, duration_ms=duration_ms)

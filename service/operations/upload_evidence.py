"""What one upload changes of its repository's tests, in the transaction that completes it.

`count` makes it evidence and judges; `record` writes down single attempts and figures, which
say whether each failure was quarantined, and that is known only then. Of a large upload the
results that one attempt says all of are left to be counted in parts (`upload_counting.py`).
"""

from dataclasses import replace

from service.flaky import figures
from service.flaky.duplicates import Result
from service.flaky.results import Outcome
from service.flaky.standing import Standing
from service.flaky.uploads import FAILED, PASSED
from service.operations import judging, upload_counting, upload_findings
from service.operations.judging import Bench
from service.operations.upload_findings import Findings
from service.store import code_owners, evidence, test_cases, test_evidence, uncounted, uploads
from service.store.test_evidence import Day, SeenFailure, Upload


def count(
    bench: Bench, draft: Upload, found: Findings, *, has_new: bool
) -> tuple[Upload, Standing | None]:
    """Let the upload count, unless nobody trusts it: the upload with its sets, how tests stand.

    `has_new`: some of its tests were not there before.
    """
    session, place = bench.session, bench.place
    passed = test_evidence.put_set(session, place, found.passed, draft.ran_at)
    skipped = test_evidence.put_set(session, place, found.skipped, draft.ran_at)
    upload = replace(draft, passed=passed, skipped=skipped)
    if found.is_large:
        uncounted.put(session, place, upload.id, found.parts)
    else:
        for part in found.parts:
            upload_counting.count(session, place, upload, part)
    here = place.repository_id
    if not upload.is_eligible:
        evidence.note_strangers(session, here, found.apart, upload.ran_at)
        test_cases.note_change(session, here)
        return upload, None
    won = {no for no, word in found.letters.items() if PASSED in word}
    evidence.note_runs(session, here, won, upload.ran_at, passed=True)
    evidence.note_runs(session, here, found.apart.keys() - won, upload.ran_at, passed=False)
    failed = [no for no, word in found.letters.items() if FAILED in word]
    evidence.note_failed(session, here, failed, upload.ran_at)
    _look_after_owners(bench, has_new=has_new)
    upload_counting.own(session, place, found.owners, upload)
    letters = {no: word for no, word in found.letters.items() if word}
    muddled = frozenset(no for no in letters if not found.apart[no].is_comparable)
    told = uploads.evidence_of(upload, letters, muddled, found.passed_size)
    return upload, judging.judge(bench, [told])


def _look_after_owners(bench: Bench, *, has_new: bool) -> None:
    """See to it that the repository's own CODEOWNERS is read.

    Tests that are new get their owners by it with the next sweep: it may be long, and they may
    be many.
    """
    session, place = bench.session, bench.place
    path = code_owners.path_of(session, place.repository_id)
    if path is None:
        code_owners.begin(session, place, bench.home.now)
    elif path and has_new:
        code_owners.look_sooner(session, place.repository_id, bench.home.now)


def record(bench: Bench, upload: Upload, found: Findings, quarantined: set[int]) -> None:
    """Write down the upload, its attempts, and what they add to figures."""
    session, place = bench.session, bench.place
    test_evidence.record_upload(session, place, upload)
    attempts = [
        replace(
            each,
            is_eligible=upload.is_eligible,
            is_quarantined=each.no in quarantined and each.outcome is Outcome.FAILED,
        )
        for each in found.attempts
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
            for no, result in found.apart.items()
        ]
        test_evidence.add_days(session, place, days)
        test_evidence.note_failures(session, place, seen)
    else:
        hit = evidence.known_among(session, place.repository_id, hit)
    impacts = [(no, pr) for no in hit for pr in upload.prs]
    test_evidence.note_impact(session, place, impacts, upload.ran_at, bench.home.now)


def _day(upload: Upload, day: int, no: int, result: Result, *, is_quarantined: bool) -> Day:
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
        duration_ms=sum(upload_findings.milliseconds(each) or 0 for each in result.attempts),
    )

"""What one upload changes of its repository's tests, in the transaction that completes it.

`count` makes it evidence and judges; `record` writes down single attempts, which say whether
each failure was quarantined, and that is known only then. Of tests that passed or were skipped at
once the upload's sets say it all; what else figures say of a large upload is left to be counted
in parts (`upload_counting.py`).
"""

from dataclasses import replace

from service.testhealth.detector.standing import Standing
from service.testhealth.operations import judging, upload_counting
from service.testhealth.operations.judging import Bench
from service.testhealth.operations.upload_counting import Desk
from service.testhealth.operations.upload_findings import Findings
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import FAILED, PASSED
from service.testhealth.store import (
    cases,
    code_owners,
    evidence_rows,
    tallies,
    uncounted,
    uploads,
    uploads_rows,
)
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.uploads_rows import Upload


def count(
    bench: Bench, draft: Upload, found: Findings, *, has_new: bool
) -> tuple[Upload, Standing | None]:
    """Let the upload count, unless nobody trusts it: the upload with its sets, how tests stand.

    `has_new`: some of its tests were not there before.
    """
    session, place = bench.session, bench.place
    passed = uploads_rows.put_set(session, place, found.passed, draft.ran_at)
    skipped = uploads_rows.put_set(session, place, found.skipped, draft.ran_at)
    for each in (found.passed, found.skipped):
        if each is not None:
            bench.sets.keep(each)
    upload = replace(draft, passed=passed, skipped=skipped)
    desk = _desk(bench)
    if found.is_large:
        uncounted.put(session, place, upload.id, found.parts + found.parts_apart)
    else:
        for part in found.parts:
            upload_counting.count(desk, upload, part)
    here = place.repository_id
    if not upload.is_eligible:
        evidence_rows.note_strangers(session, here, found.apart, upload.ran_at)
        cases.note_change(session, here)
        return upload, None
    tallies.put(session, place, upload)
    won = {no for no, word in found.letters.items() if PASSED in word}
    evidence_rows.note_runs(session, here, won, upload.ran_at, passed=True)
    evidence_rows.note_runs(session, here, found.apart.keys() - won, upload.ran_at, passed=False)
    failed = [no for no, word in found.letters.items() if FAILED in word]
    evidence_rows.note_failed(session, here, failed, upload.ran_at)
    _look_after_owners(bench, has_new=has_new)
    upload_counting.own(desk, found.owners, upload)
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
    """Write down the upload and its attempts, and count these unless they are many."""
    session, place = bench.session, bench.place
    uploads_rows.record_upload(session, place, upload)
    attempts = [
        replace(
            each,
            is_eligible=upload.is_eligible,
            is_quarantined=each.no in quarantined and each.outcome is Outcome.FAILED,
        )
        if not upload.is_eligible or each.no in quarantined
        else each
        for each in found.attempts
    ]
    uploads_rows.record_attempts(session, place, attempts)
    if not found.is_large:
        for part in found.parts_apart:
            upload_counting.count(_desk(bench), upload, part)


def _desk(bench: Bench) -> Desk:
    sets = bench.runtime.store.caches.of(OutcomeSets)
    return Desk(bench.session, sets, bench.place, bench.home.now)

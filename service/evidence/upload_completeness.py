"""Whether an upload proves enough to excuse the failures in it.

Reads the database only; the rule is in `testhealth/detector/completeness.py`. The queue checks all
uploads of a CI job (failed_tests.py), the answer to an upload those of one run of the sender.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.evidence.store import base_uploads, queue_facts
from service.provenance import Proof
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.testhealth.detector import completeness, excuses
from service.testhealth.detector.completeness import Expectation, JobReport, MissingTest, Part
from service.testhealth.detector.excuses import Suspect
from service.testhealth.operations import answers, failure_texts, records
from service.testhealth.operations.upload_values import UploadAnswer
from service.testhealth.reports.reading import SUITE_FAILURE, UNNAMED
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import listings, quarantine, uploads
from service.testhealth.store.cases import ASKED_AT_ONCE
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.uploads import Upload
from service.vocabulary import QuarantineForgives, RepoRef, Sha

POINTS_MAX, CLEAN_POINTS = 3, 2
"""Newest runs of a job on the branch that are examined, back to the second without a failure."""

NAMED_MAX = ASKED_AT_ONCE
"""If more tests are missing, none is looked up."""

FAILURES_MAX = 1000
"""Failures of one run of a sender that are examined, as in the answer to an upload."""

CHANGES_S = 2
"""Time for the provider to list what a pull request changes."""

NO_TESTS = frozenset({SUITE_FAILURE, UNNAMED, "(package)"})
"""Names in reports that are not tests."""

NEW_TEXT = "`{name}` is quarantined only for its known failures, and it fails in a new way"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A transaction that examines uploads of one repository.

    `needs` is what must prove a report that excuses failures of a test run.
    """

    session: Tx
    sets: StoredSets
    repository: RepositoryRecord
    needs: Proof

    @property
    def id(self) -> int:
        """The repository."""
        return self.repository.id


@dataclass(frozen=True, slots=True)
class ExcusedUpload:
    """What is asked of an answer: the reports, whom they test, and texts that are new."""

    reports: tuple[JobReport, ...]
    prs: tuple[int, ...]
    new_texts: tuple[str, ...]
    quarantined: int
    upload: Upload


async def check(
    runtime: Runtime,
    repository: RepositoryRecord,
    answer: UploadAnswer,
    *,
    is_of_many: bool = False,
) -> UploadAnswer:
    """Return the answer, with the reasons for which its quarantined failures are not excused.

    An upload that excuses nothing is answered as it is: nothing is read for it. `is_of_many`: its
    sender makes several uploads, and the last answer speaks for all of them.
    """
    excuses_something = answer.quarantined_failures > 0 or is_of_many
    if answer.upload_id is None or answer.unquarantined_failures or not excuses_something:
        return answer
    asked = await runtime.store.read(_asked, runtime, repository, answer.upload_id)
    if asked is None:
        return answer
    paths: frozenset[str] = frozenset()
    if any(each.expectation and each.expectation.missing for each in asked.reports):
        paths = await _changed(runtime, repository.ref, asked.prs)
    changed = [Suspect(0, paths)]
    gaps = [
        gap
        for each in asked.reports
        for gap in completeness.gaps_of(each, lambda test: excuses.touches(changed, test))
    ]
    reasons = tuple(dict.fromkeys((*gaps, *asked.new_texts)))
    code = asked.upload.command_exit_code
    verdict = answers.verdict_of(
        asked.quarantined, 0, code, not_excused=reasons, is_whole=answer.is_whole
    )
    account = asked.upload.account
    if account.exit_code is not None and account.answered != verdict.exit_code:
        account = replace(account, answered=verdict.exit_code)
        await runtime.store.run(uploads.note_account, asked.upload.id, account)
    return replace(answer, verdict=verdict, not_excused_because=reasons)


async def _changed(runtime: Runtime, ref: RepoRef, prs: Iterable[int]) -> frozenset[str]:
    """Return the paths that these pull requests change, as far as the provider tells in time."""
    provider = runtime.providers.get(ref.host)
    if provider is None:
        return frozenset()
    try:
        async with asyncio.timeout(CHANGES_S):
            changes = [await provider.changed_files(ref, pr) for pr in prs]
    except (ProviderError, TimeoutError):
        return frozenset()
    return frozenset(path for changed in changes for path in changed.paths)


def _asked(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, upload_id: str
) -> ExcusedUpload | None:
    stored = uploads.by_id(session, upload_id)
    if stored is None:
        return None
    upload = stored.upload
    sent = _sent_with(session, repository.id, upload)
    failed = test_attempts.failed_in(session, [each.id for each in sent], FAILURES_MAX)
    if not failed or not all(each.is_quarantined for each in failed):
        return None
    sets = StoredSets(session, runtime.store.caches.of(OutcomeSets), repository.id)
    settings = quarantine.settings_of(session, repository.id)
    lookup = Lookup(session, sets, repository, Proof[settings.excuse_proof.name])
    target = _target_of(session, repository, upload)
    reports = reports_of(lookup, target, sent, is_command=True)
    new_texts = _new_texts(lookup, runtime, upload)
    return ExcusedUpload(reports, upload.prs, new_texts, len(failed), upload)


def _sent_with(session: Tx, repository_id: int, upload: Upload) -> tuple[Upload, ...]:
    """Return the uploads of the same run of the sender; without one, of the same job's attempt.

    What another job has sent adds no test to a report.
    """
    if upload.account.session:
        near = uploads.of_sha(session, repository_id, upload.sha)
        sent = [each for each in near if each.account.session == upload.account.session]
    elif upload.run_id is None:
        return (upload,)
    else:
        near = uploads.of_run(session, repository_id, upload.run_id, upload.run_attempt)
        sent = [each for each in near if each.job == upload.job]
    return tuple(each for each in sent if each.account.check_run == upload.account.check_run)


def _target_of(session: Tx, repository: RepositoryRecord, upload: Upload) -> str:
    """Return the branch whose earlier results say what is expected."""
    if upload.kind == UploadClass.STABLE.value and upload.branch is not None:
        return upload.branch
    if upload.kind == UploadClass.QUEUE.value:
        sha = Sha(upload.sha)
        branch = queue_facts.tested_target(session, repository.id, sha, upload.branch)
        if branch is not None:
            return branch
    return repository.default_branch


def _new_texts(lookup: Lookup, runtime: Runtime, upload: Upload) -> tuple[str, ...]:
    """Return sentences about failures that the setting `quarantine_forgives` does not excuse."""
    home = records.home_of(lookup.session, runtime, lookup.repository, upload.received_at)
    if home.settings.quarantine_forgives is not QuarantineForgives.KNOWN_FAILURES:
        return ()
    attempts = test_attempts.attempts_of(lookup.session, upload.id)
    failed = failure_texts.failed(attempts)
    at = upload.ran_at
    keys_by_test = failure_texts.known_keys(lookup.session, lookup.id, failed, at, upload.prs)
    new = [
        no for no, tried in failed.items() if failure_texts.is_new(tried, keys_by_test.get(no, ()))
    ]
    cases = listings.records(lookup.session, lookup.id, sorted(new)[:NAMED_MAX])
    return tuple(NEW_TEXT.format(name=case.name) for case in cases)


def reports_of(
    lookup: Lookup, target: str, sent: Sequence[Upload], *, is_command: bool = False
) -> tuple[JobReport, ...]:
    """Return what was uploaded of each job, beside what it is expected to report.

    `is_command`: the uploads are those of one command. Of a job with several commands only this
    command's tests are expected, where the target branch knows the command.
    """
    jobs = dict.fromkeys(upload.job for upload in sent)
    branch = _branch_with_results(lookup, target, frozenset(upload.id for upload in sent))
    return tuple(
        _report_of(
            lookup,
            branch,
            [upload for upload in sent if upload.job == job],
            is_command=is_command,
        )
        for job in jobs
    )


def _branch_with_results(lookup: Lookup, target: str, but: frozenset[str]) -> str | None:
    """Return the target branch if it has results, else the default branch; None if neither has."""
    for branch in dict.fromkeys((target, lookup.repository.default_branch)):
        if base_uploads.are_there(lookup.session, lookup.id, branch, but):
            return branch
    return None


def _report_of(
    lookup: Lookup, branch: str | None, sent: Sequence[Upload], *, is_command: bool
) -> JobReport:
    job = sent[0].job
    parts = tuple(_part_of(each, lookup.needs) for each in sent)
    if branch is None:
        return JobReport(job, parts, None)
    own = {each.id for each in sent}
    base = [
        each
        for each in base_uploads.of_job(lookup.session, lookup.id, branch, job)
        if each.id not in own
    ]
    keys = {each.account.command_key for each in sent}
    if is_command and "" not in keys:
        base = [each for each in base if each.account.command_key in keys] or base
    return JobReport(job, parts, _expectation(lookup, newest_points(base), sent))


def _part_of(upload: Upload, needs: Proof) -> Part:
    is_of_queue = upload.kind == UploadClass.QUEUE.value
    needed = needs if is_of_queue else Proof.NONE
    return Part(upload.account, upload.failures, upload.is_partial, needed)


def newest_points(base: Sequence[Upload]) -> list[Upload]:
    """Return the uploads of the newest CI runs of a job, back to the second without a failure.

    All attempts of a run count together: a later attempt may repeat only the tests that failed. One
    run is not enough: it may have been canceled after half of its results, or still be reporting.
    Tests that were deleted since are in older runs alone.
    """
    points: dict[str, list[Upload]] = {}
    for upload in base:
        points.setdefault(upload.run_id or upload.id, []).append(upload)
    chosen: list[Upload] = []
    clean = 0
    for point in list(points.values())[:POINTS_MAX]:
        chosen += point
        last_attempt = max(each.run_attempt for each in point)
        clean += _is_clean([each for each in point if each.run_attempt == last_attempt])
        if clean == CLEAN_POINTS:
            break
    return chosen


def _is_clean(point: Sequence[Upload]) -> bool:
    parts = [Part(each.account, each.failures) for each in point]
    return completeness.is_sealed(parts) and not any(
        each.failures
        or each.is_partial
        or each.account.exit_code
        or each.account.unsent_files
        or each.account.undelivered
        or each.account.is_interrupted
        for each in point
    )


def _expectation(lookup: Lookup, base: Sequence[Upload], sent: Sequence[Upload]) -> Expectation:
    expected = base_uploads.tests_in(lookup.session, lookup.sets, base) if base else set()
    missing = expected - base_uploads.tests_in(lookup.session, lookup.sets, sent)
    named, others = _named(lookup, missing)
    return Expectation(
        expected=len(expected) - others,
        missing=len(missing) - others,
        named=named,
        has_exit_code=bool(base) and all(each.account.exit_code is not None for each in base),
    )


def _named(lookup: Lookup, missing: set[int]) -> tuple[tuple[MissingTest, ...], int]:
    """Return the missing tests by name, and how many of them are no tests."""
    if len(missing) > NAMED_MAX:
        return (), 0
    cases = listings.records(lookup.session, lookup.id, sorted(missing))
    tests = [case for case in cases if case.name not in NO_TESTS]
    named = tuple(MissingTest(case.name, case.file, case.classname) for case in tests)
    return named, len(cases) - len(tests)


def jobs_of_branch(
    lookup: Lookup, target: str, sent: Sequence[Upload], since: datetime
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the jobs that report on the target branch with those of `sent`, and all since then."""
    branch = _branch_with_results(lookup, target, frozenset(upload.id for upload in sent))
    if branch is None:
        return frozenset(), frozenset()
    runs_seen = {
        upload.run_id
        for job in {upload.job for upload in sent}
        for upload in newest_points(base_uploads.of_job(lookup.session, lookup.id, branch, job))
        if upload.run_id is not None
    }
    beside = base_uploads.jobs_of_runs(lookup.session, lookup.id, sorted(runs_seen))
    return beside, base_uploads.jobs_since(lookup.session, lookup.id, branch, since)

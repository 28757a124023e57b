"""Proof that an upload lacks nothing, so that the failures in it are all that failed.

Reads the database only; the rule is in `testhealth/detector/completeness.py`. The queue checks all
uploads of a CI job (failed_tests.py), the answer to an upload those of one run of the sender.
Exit codes that mean "tests failed and nothing else did" are learned from the job's own runs, or
named by a setting (docs/design/evidence.md 5).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from service import globs
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.evidence import expected_tests
from service.evidence.expected_tests import Lookup, Sent
from service.evidence.store import base_uploads, queue_facts
from service.provenance import Proof
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.testhealth.detector import completeness, excuses
from service.testhealth.detector.completeness import (
    GENERAL_CODE,
    SIGNALS_FROM,
    ExitCodes,
    JobReport,
    Part,
)
from service.testhealth.detector.excuses import Suspect
from service.testhealth.operations import answers, failure_texts, records
from service.testhealth.operations.upload_values import UploadAnswer
from service.testhealth.reports.jobs import PLATFORM
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.settings import FAILURE_WORD
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import listings, quarantine, uploads
from service.testhealth.store.cases import ASKED_AT_ONCE
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.uploads import Upload
from service.vocabulary import QuarantineForgives, RepoRef, Sha


@dataclass(frozen=True, slots=True)
class _Ended:
    """One command that ended: what it was, on which code, how, and how many tests failed."""

    key: str
    code_id: str
    exit_code: int
    failures: int


def _codes_of(lookup: Lookup, job: str, but: Set[int]) -> ExitCodes:
    """Return the exit codes of a job that mean failed tests; `but`: pull requests that teach none.

    A command has shown a code if it ended with it where tests failed, and with 0 on the same code
    where none did: so nothing but these tests can have failed. One end with the code and without
    a failed test takes that back. The code 1 is never learned.
    """
    named = quarantine.settings_of(lookup.session, lookup.id).test_failure_exit_codes
    words = {word for pattern, word in map(_parsed, named) if _is_called(job, pattern)}
    uploads = base_uploads.with_exit_code(lookup.session, lookup.id, job, lookup.before)
    taught = [each for each in uploads if but.isdisjoint(each.prs)]
    return ExitCodes(
        named=frozenset(int(word) for word in words if word != FAILURE_WORD),
        names_failure=FAILURE_WORD in words,
        learned=frozenset(_learned(_commands(lookup, taught))),
    )


def _parsed(item: str) -> tuple[str, str]:
    pattern, _, word = item.rpartition("=")
    return pattern, word


def _is_called(job: str, pattern: str) -> bool:
    """Return whether a pattern fits a job key, with or without its platform and its workflow."""
    plain = job.partition(PLATFORM)[0]
    return any(globs.matches(pattern, name) for name in (job, plain, plain.rpartition(" / ")[2]))


def _commands(lookup: Lookup, uploads: Iterable[Upload]) -> list[_Ended]:
    """Return each command once, of whose uploads all are whole and sent by the job itself."""
    by_command: defaultdict[str, list[Upload]] = defaultdict(list)
    for each in uploads:
        by_command[each.account.session or each.id].append(each)
    return [
        _Ended(
            sent[0].account.command_key,
            sent[0].code_id,
            sent[0].account.exit_code or 0,
            sum(each.failures for each in sent),
        )
        for sent in by_command.values()
        if expected_tests.is_whole(sent)
        and all(expected_tests.is_from_its_sender(lookup, each) for each in sent)
    ]


def _learned(ended: Sequence[_Ended]) -> Iterable[tuple[str, int]]:
    """Return the codes that each command has shown to mean failed tests."""
    passed = {(each.key, each.code_id) for each in ended if not each.exit_code | each.failures}
    contradicted = {(each.key, each.exit_code) for each in ended if not each.failures}
    for each in ended:
        code = (each.key, each.exit_code)
        is_distinct = GENERAL_CODE < each.exit_code < SIGNALS_FROM
        if is_distinct and (each.key, each.code_id) in passed and code not in contradicted:
            yield code


NAMED_MAX = ASKED_AT_ONCE
"""Tests with a new failure text that are named."""

FAILURES_MAX = 1000
"""Failures of one run of a sender that are examined, as in the answer to an upload."""

CHANGES_S = 2
"""Time for the provider to list what a pull request changes."""

OF_FIXTURE = (
    "`{name}` is quarantined, and a fixture failed that other tests may share, not the test itself"
)
NEW_TEXT = "`{name}` is quarantined only for its known failures, and it fails in a new way"


@dataclass(frozen=True, slots=True)
class ExcusedUpload:
    """The questions to an answer: the reports, and texts that are new.

    `prs` are the pull requests under test, `landed` those that landed between the results with
    which it is compared.
    """

    reports: tuple[JobReport, ...]
    prs: tuple[int, ...]
    new_texts: tuple[str, ...]
    quarantined: int
    upload: Upload
    landed: tuple[int, ...] = ()


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
    changed: list[Suspect] = []
    if not all(each.expectation is None or each.expectation.is_met for each in asked.reports):
        landed = [pr for pr in asked.landed if pr not in asked.prs]
        changed = await _changed(runtime, repository.ref, asked.prs)
        earlier = await _changed(runtime, repository.ref, landed)
        changed += [replace(each, paths=each.deleted) for each in earlier]
    changes = excuses.changes_of(changed)
    gaps = [gap for each in asked.reports for gap in completeness.gaps_of(each, changes)]
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


async def _changed(runtime: Runtime, ref: RepoRef, prs: Iterable[int]) -> list[Suspect]:
    """Return what these pull requests change, as far as the provider tells in time."""
    provider = runtime.providers.get(ref.host)
    if provider is None:
        return []
    try:
        async with asyncio.timeout(CHANGES_S):
            changes = [await provider.changed_files(ref, pr) for pr in prs]
    except (ProviderError, TimeoutError):
        return []
    return [Suspect(0, frozenset(each.paths), deleted=frozenset(each.deleted)) for each in changes]


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
    run = None
    if upload.kind == UploadClass.QUEUE.value:
        run = queue_facts.tested_run(session, repository.id, Sha(upload.sha), upload.branch)
    before = upload.received_at if run is None else run.created_at
    settings = quarantine.settings_of(session, repository.id)
    needs = Proof[settings.excuse_proof.name]
    lookup = Lookup(session, sets, repository, before, needs)
    target = _target_of(session, repository, upload)
    reports = reports_of(lookup, target, sent, is_command=True)
    new_texts = _new_texts(lookup, runtime, upload)
    landed = {pr for each in reports if each.expectation for pr in each.expectation.landed}
    return ExcusedUpload(reports, upload.prs, new_texts, len(failed), upload, tuple(sorted(landed)))


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
    """Return sentences about failures that are not excused: of fixtures, and by the setting."""
    context = records.context_of(lookup.session, runtime, lookup.repository, upload.received_at)
    knows_all = context.settings.quarantine_forgives is QuarantineForgives.ANY_FAILURE
    attempts = test_attempts.attempts_of(lookup.session, upload.id)
    failed = failure_texts.failed(attempts)
    at = upload.ran_at
    keys_by_test = failure_texts.known_keys(lookup.session, lookup.id, failed, at, upload.prs)
    sentences: dict[int, str] = {}
    for no, tried in failed.items():
        keys = keys_by_test.get(no, frozenset())
        if failure_texts.is_of_fixture(tried, keys):
            sentences[no] = OF_FIXTURE
        elif not knows_all and failure_texts.is_new(tried, keys):
            sentences[no] = NEW_TEXT
    cases = listings.listed_cases(lookup.session, lookup.id, sorted(sentences)[:NAMED_MAX])
    return tuple(sentences[case.no].format(name=case.name) for case in cases)


def reports_of(
    lookup: Lookup, target: str, sent: Sequence[Upload], *, is_command: bool = False
) -> tuple[JobReport, ...]:
    """Return what was uploaded of each job, beside what it is expected to report.

    `is_command`: the uploads are those of one command, whose CI run may go on.
    """
    jobs = dict.fromkeys(upload.job for upload in sent)
    branch = _branch_with_results(lookup, target, frozenset(upload.id for upload in sent))
    by_job = _whole_run(lookup, sent)
    return tuple(
        _report_of(
            lookup,
            branch,
            Sent(
                [upload for upload in sent if upload.job == job],
                {other: uploads for other, uploads in by_job.items() if other != job},
            ),
            is_command=is_command,
        )
        for job in jobs
    )


def _whole_run(lookup: Lookup, sent: Sequence[Upload]) -> dict[str, list[Upload]]:
    """Return what the jobs of the same CI run have sent themselves, in all of its attempts."""
    run_ids = sorted({each.run_id for each in sent if each.run_id is not None})
    by_job: dict[str, list[Upload]] = {}
    for each in base_uploads.of_runs(lookup.session, lookup.id, run_ids):
        if expected_tests.is_from_its_sender(lookup, each):
            by_job.setdefault(each.job, []).append(each)
    return by_job


def _branch_with_results(lookup: Lookup, target: str, but: frozenset[str]) -> str | None:
    """Return the target branch if it has results, else the default branch; None if neither has."""
    for branch in dict.fromkeys((target, lookup.repository.default_branch)):
        if base_uploads.are_there(lookup.session, lookup.id, branch, but):
            return branch
    return None


def _report_of(lookup: Lookup, branch: str | None, sent: Sent, *, is_command: bool) -> JobReport:
    parts = tuple(_part_of(each, lookup.needs) for each in sent.uploads)
    own = {pr for each in sent.uploads for pr in each.prs}
    codes = _codes_of(lookup, sent.job, own)
    if branch is None:
        return JobReport(sent.job, parts, None, codes=codes)
    expectation = expected_tests.expectation(lookup, branch, sent, is_command=is_command)
    return JobReport(sent.job, parts, expectation, codes=codes)


def _part_of(upload: Upload, needs: Proof) -> Part:
    is_of_queue = upload.kind == UploadClass.QUEUE.value
    needed = needs if is_of_queue else Proof.NONE
    return Part(
        upload.account,
        upload.failures,
        upload.is_partial,
        needed,
        tests=upload.counts.get("tests", 0),
        ends=upload.runner_ends,
    )


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
        for point in expected_tests.newest_points(
            expected_tests.proved_of_job(
                lookup, branch, Sent([each for each in sent if each.job == job], {})
            )
        )
        for upload in point
        if upload.run_id is not None
    }
    beside = base_uploads.jobs_of_runs(lookup.session, lookup.id, sorted(runs_seen))
    return beside, base_uploads.jobs_since(lookup.session, lookup.id, branch, since)

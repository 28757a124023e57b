"""Take in failed tests that CI jobs report while they run, and take them back.

A report is authenticated as an upload is. It moves a test run only with the token of the job
itself, and only if the runner has tried the test for the last time (docs/design/live-tests.md 2).
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from service.accounts import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid
from service.http.callers import Caller
from service.provenance import Proof
from service.runtime import Runtime
from service.testhealth import early_failures
from service.testhealth.early_failures import FAILURES_MAX, CaseNames, EarlyFailure, EarlyStanding
from service.testhealth.operations import classify
from service.testhealth.operations.classify import Doubts
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import identity
from service.testhealth.reports.results import CaseResult, Outcome
from service.testhealth.store import early_failures as stored
from service.testhealth.store.cases import TEXT_MAX, Place
from service.vocabulary import Actor

OF_RUN_MAX = 1000
"""Early failures of all jobs of one attempt of a CI run."""

KEY_DIGITS = 32


@dataclass(frozen=True, slots=True)
class EarlyReport:
    """A test that has ended: `meta` is that of an upload of the same job.

    `is_final`: the runner does not try the test again. `has_passed`: it passed after it had failed,
    which takes the earlier report back.
    """

    meta: UploadMeta
    test: CaseNames
    is_final: bool
    has_passed: bool = False


async def report(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, sent: EarlyReport
) -> EarlyFailure:
    """Store a report, and tell the queue of a failure that counts; repeating it changes nothing.

    Raises Invalid(conflicting_fields, limit_reached), Unauthenticated, and the provider's errors.
    """
    meta, doubts = await classify.checked(runtime, caller, repository, sent.meta)
    failed = _draft(runtime, meta, doubts, sent)
    queues = runtime.links.of(QueueLinks)
    if failed.standing is EarlyStanding.COUNTS:
        standing = await queues.early.standing_of(runtime, repository, failed)
        failed = replace(failed, standing=standing)
    kept = await runtime.store.run(_put, repository, caller.actor, failed)
    if kept.taken_back_at is None and failed.standing is kept.standing is EarlyStanding.COUNTS:
        await queues.early.tell(runtime, repository, kept)
    elif kept.taken_back_at is not None:
        await queues.early.take_back(runtime, repository, (kept,))
    return kept


async def compare(
    runtime: Runtime,
    repository: RepositoryRecord,
    about: tuple[UploadMeta, str],
    cases: Iterable[CaseResult],
) -> None:
    """Take back what the report of a job contradicts: tests that it reports, and that passed.

    `about` is the upload's metadata and the check run that its own token proves. Idempotent.
    """
    meta, check_run = about
    if not check_run or meta.run_id is None:
        return
    reported = await runtime.store.read(
        stored.of_job, repository.id, meta.run_id, meta.run_attempt, check_run
    )
    counting = [each for each in reported if each.standing is EarlyStanding.COUNTS]
    if not counting:
        return
    contradicted = _contradicted(counting, cases)
    if contradicted:
        now = runtime.clock.now()
        keys = [each.key for each in contradicted]
        await runtime.store.run(stored.take_back, repository.id, keys, now)
        queues = runtime.links.of(QueueLinks)
        await queues.early.take_back(runtime, repository, contradicted)


def _contradicted(
    reported: Sequence[EarlyFailure], cases: Iterable[CaseResult]
) -> tuple[EarlyFailure, ...]:
    """Return the failures whose tests are in a report and failed in none of its cases."""
    names = {each.name for each in reported}
    same = [case for case in cases if case.name in names]
    found = []
    for each in reported:
        meant = [
            case
            for case in same
            if early_failures.is_namesake(
                each.test, CaseNames(case.name, case.classname, case.parent, case.file)
            )
        ]
        if meant and all(case.outcome is not Outcome.FAILED for case in meant):
            found.append(each)
    return tuple(found)


def _draft(runtime: Runtime, meta: UploadMeta, doubts: Doubts, sent: EarlyReport) -> EarlyFailure:
    """Return the failure as far as its report alone decides; COUNTS: the queue is to be asked."""
    file = identity.normalized_file(sent.test.file, meta.source_root)
    test = replace(sent.test, file=file)
    run_id, check_run = meta.run_id or "", doubts.check_run
    # What only names a job must not be kept as what the job itself has proved.
    job = ("", meta.job) if not check_run else (check_run, "")
    names = (test.name, test.classname, test.parent, test.file)
    parts = (run_id, str(meta.run_attempt), *job, *names)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    now = runtime.clock.now()
    return EarlyFailure(
        key=digest[:KEY_DIGITS],
        sha=meta.sha,
        run_id=run_id,
        run_attempt=meta.run_attempt,
        check_run=check_run,
        job=meta.job,
        name=test.name[:TEXT_MAX],
        classname=test.classname[:TEXT_MAX],
        parent=test.parent[:TEXT_MAX],
        file=test.file[:TEXT_MAX],
        proof=doubts.proof,
        standing=_own_standing(doubts, sent),
        heard_at=now,
        taken_back_at=now if sent.has_passed else None,
    )


def _own_standing(doubts: Doubts, sent: EarlyReport) -> EarlyStanding:
    if sent.has_passed:
        return EarlyStanding.PASSED
    if doubts.of_fork or doubts.of_unknown or doubts.is_unseen:
        return EarlyStanding.UNPROVED
    if doubts.proof is not Proof.JOB or not doubts.check_run:
        return EarlyStanding.UNPROVED
    return EarlyStanding.COUNTS if sent.is_final else EarlyStanding.NOT_FINAL


def _put(
    session: Tx, repository: RepositoryRecord, actor: Actor, failed: EarlyFailure
) -> EarlyFailure:
    """Store a report; one that is known takes no place of its own. Raises Invalid.

    A copy that comes late says nothing new of a failure that counts or was taken back; only a pass
    does.
    """
    access.recheck(session, actor, failed.heard_at)
    place = Place(repository.org_id, repository.id)
    known = stored.by_key(session, repository.id, failed.key)
    if known is None:
        _check_number(session, repository.id, failed)
    elif failed.taken_back_at is None and (
        known.taken_back_at is not None or known.standing is EarlyStanding.COUNTS
    ):
        return known
    stored.put(session, place, failed)
    return failed


def _check_number(session: Tx, repository_id: int, failed: EarlyFailure) -> None:
    job = (failed.run_id, failed.run_attempt, failed.check_run)
    of_job = len(stored.of_job(session, repository_id, *job)) if failed.check_run else 0
    of_run = stored.count_of_run(session, repository_id, failed.run_id, failed.run_attempt)
    if of_job >= FAILURES_MAX or of_run >= OF_RUN_MAX:
        raise Invalid(
            f"This attempt of the job has reported {FAILURES_MAX} failed tests early, or its CI run"
            f" {OF_RUN_MAX:,}; the others follow with the test report.",
            code="limit_reached",
        )

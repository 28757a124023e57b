"""Checks that passed because all failures were quarantined, and whose jobs then reported more.

`headgate test` ends with 0 when all failures are quarantined, so the CI job passes. A failure that
arrives later must still count, as long as the run has not landed. A job whose sender never received
exit code 0 is not changed: its project decides which failures make it fail.
"""

from collections.abc import Sequence

from service.database.database import Tx
from service.evidence import other_ci
from service.mergequeue.engine.inputs import PassRevoked
from service.mergequeue.engine.model import Run
from service.provenance import Proof
from service.provider.ci import CiJob
from service.provider.port import Provider
from service.testhealth.detector import completeness
from service.testhealth.reports import jobs
from service.testhealth.reports.jobs import Job, Sent
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import uploads
from service.testhealth.store.uploads import Upload
from service.vocabulary import CheckOutcome, RepoRef

CI_ATTEMPTS_MAX = 20
"""Attempts of CI runs on one commit that are examined, those with the newest uploads."""

FAILURES_MAX = 1000
"""Failures of one upload that are examined, as in the answer to an upload."""

Doubt = tuple[Upload, Upload]
"""An upload whose failures were excused, and a later one with a failure that is not."""


def doubts_of(session: Tx, repository_id: int, run: Run) -> tuple[Doubt, ...]:
    """Return pairs of uploads of the same attempt of a CI run which may revoke a pass of the run.

    The later upload counts only if its sender is known to belong to the CI run, or knows the
    secret `session` of the excused one: a shared token names any run.
    """
    if run.sha is None:
        return ()
    sent = uploads.of_test_run(session, repository_id, run.sha, run.reported_since)
    excused = [each for each in sent if _was_excused(each)]
    doubts: list[Doubt] = []
    for later in sent if excused else ():
        earlier = [each for each in excused if _is_answered_by(each, later)]
        if earlier and _has_unexcused(session, later):
            doubts += [(each, later) for each in earlier]
    return tuple(doubts)


def _was_excused(upload: Upload) -> bool:
    """Return whether the sender received exit code 0 although its command failed."""
    return bool(upload.account.exit_code) and upload.account.answered == 0


def _is_answered_by(earlier: Upload, later: Upload) -> bool:
    # Two within a millisecond are in doubt.
    is_later = later.received_at >= earlier.received_at
    is_same_ci = (later.run_id, later.run_attempt) == (earlier.run_id, earlier.run_attempt)
    session = later.account.session
    is_same_sender = bool(session) and session == earlier.account.session
    is_bound = is_same_sender or completeness.is_enough(later.account.proof, Proof.RUN)
    return later.id != earlier.id and is_later and is_same_ci and is_bound


def _has_unexcused(session: Tx, upload: Upload) -> bool:
    failed = test_attempts.failed_in(session, [upload.id], FAILURES_MAX)
    return any(not each.is_quarantined for each in failed)


async def revoked_by(
    provider: Provider, repo: RepoRef, run: Run, doubts: Sequence[Doubt]
) -> PassRevoked | None:
    """Return the checks to revoke: those of the jobs to which both uploads of a pair belong.

    The provider says which jobs the CI run has; the id of a job is that of its check. Raises the
    provider's errors.
    """
    required = {one.name for one in run.required}
    revoked = set(other_ci.revoked_in(run, doubts))
    for run_id, attempt in _attempts(doubts):
        ran = [job_of(each) for each in await provider.ci_jobs(repo, run_id, attempt)]
        for job in ran:
            if job.name in required and any(_are_of(job, ran, pair) for pair in doubts):
                revoked.add(job.id)
    left = revoked - set(run.revoked)
    return PassRevoked(run.id, tuple(sorted(left))) if left else None


def _attempts(doubts: Sequence[Doubt]) -> list[tuple[str, int]]:
    attempts = {
        (later.run_id, later.run_attempt): None
        for _, later in doubts
        if later.run_id is not None and later.run_id.isdigit()
    }
    return list(attempts)[-CI_ATTEMPTS_MAX:]


def _are_of(job: Job, ran: Sequence[Job], pair: Doubt) -> bool:
    return all(jobs.is_of(job, ran, sent_of(each)) for each in pair)


def sent_of(upload: Upload) -> Sent:
    """Return an upload as the rules about jobs take it."""
    return Sent(upload.id, upload.job, upload.machine or "", upload.account.check_run)


def job_of(job: CiJob) -> Job:
    """Return the provider's job as the rules about uploads take it."""
    has_failed = job.outcome is CheckOutcome.FAILED
    return Job(job.id, job.name, job.workflow, job.runner, has_failed)

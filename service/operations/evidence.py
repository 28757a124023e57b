"""A queue's question why a run failed, answered by the results that its CI sent (FLAKY.md 10).

Acts; which upload is whose is decided by `flaky/jobs.py`, why a check failed by
`flaky/excuses.py`.
"""

from collections.abc import Mapping, Sequence

from service.flaky import excuses, jobs
from service.flaky.excuses import Suspect
from service.flaky.jobs import Job, Sent
from service.mergequeue import verdict
from service.mergequeue.inputs import EvidenceReported
from service.mergequeue.model import Run
from service.mergequeue.outputs import AskEvidence
from service.mergequeue.reported import Evidence
from service.operations import failed_tests, judging, test_records, turn
from service.operations.failed_tests import Began, LookedUp, Reported
from service.operations.judging import Bench
from service.provider.ci import CiJob
from service.provider.errors import Gone, GoneKind
from service.provider.port import Provider
from service.runtime import Runtime
from service.store import access, run_evidence
from service.store.database import Tx
from service.store.standings import KeptStanding
from service.store.test_evidence import Upload
from service.vocabulary import CheckOutcome, QueueRef, RepoRef

CI_ATTEMPTS_MAX = 20
"""Attempts of CI runs on one commit that are looked at, those with the newest uploads."""

Attempt = tuple[str, int]
"""A CI run by its id, and which attempt of it."""


async def answer(runtime: Runtime, queue: QueueRef, action: AskEvidence) -> None:
    """Explain the failed checks of a run to its queue, once each of them has its results.

    Until then nothing is said: the next upload asks again, and the queue goes on by itself.
    Safe to repeat. Raises the provider's errors.
    """
    run = (await turn.value(runtime, queue.id)).runs.get(action.run)
    failing = {} if run is None or run.attempt != action.attempt else failing_of(run)
    if run is None or run.sha is None or not failing or is_explained(run):
        return
    here = queue.repository_id
    sent = await runtime.store.read(run_evidence.of_run, here, run.sha, run.created_at)
    provider = runtime.providers[queue.repo.host]
    reported = await _reported(provider, queue.repo, failing, sent)
    if reported is None:
        return
    began = Began(run.created_at, queue.branch, {one.pr: one.head for one in run.entries})
    found, _ = await judging.alone(runtime, here, _looked_up, runtime, queue, reported, began)
    suspects = [
        Suspect(pr, await _paths(provider, queue.repo, pr), found.fails_alone.get(pr, frozenset()))
        for pr in run.prs
    ]
    told = EvidenceReported(run.id, _evidence(run, found, suspects))
    await turn.take(runtime, queue.id, [told])


def failing_of(run: Run) -> dict[str, frozenset[str]]:
    """Required status → the ids of its failed reports that count."""
    counting = verdict.newest(run.checks)
    failing: dict[str, frozenset[str]] = {}
    for one in verdict.standings_of(run):
        required = one.required
        if one.outcome is CheckOutcome.FAILED:
            failing[required.name] = failing.get(required.name, frozenset()) | {
                check.id
                for check in counting
                if check.name == required.name
                and required.source_id in (None, check.source_id)
                and check.outcome is CheckOutcome.FAILED
                and check.id not in run.rerun_ids
            }
    return failing


def is_explained(run: Run) -> bool:
    """Whether its present failures are explained already."""
    return run.evidence is not None and failing_of(run).keys() <= run.evidence.explanations.keys()


async def _reported(
    provider: Provider,
    repo: RepoRef,
    failing: Mapping[str, frozenset[str]],
    sent: Sequence[Upload],
) -> tuple[Reported, ...] | None:
    """The failed checks with the uploads of their jobs; None while one lacks them."""
    by_attempt: dict[Attempt, list[Upload]] = {}
    for each in sent:
        # Ids of other CI systems are the provider's by accident at most.
        if each.run_id is not None and each.run_id.isdigit():
            by_attempt.setdefault((each.run_id, each.run_attempt), []).append(each)
    of_job: dict[str, tuple[CiJob, tuple[Upload, ...]]] = {}
    for (run_id, attempt), of_attempt in list(by_attempt.items())[-CI_ATTEMPTS_MAX:]:
        ran = await provider.ci_jobs(repo, run_id, attempt)
        of_job |= {job.id: (job, _uploads_of(job, ran, of_attempt)) for job in ran}
    reported = []
    for name, checks in failing.items():
        found = [of_job[check] for check in sorted(checks) if check in of_job]
        if len(found) < len(checks) or not all(uploads for _, uploads in found):
            return None
        uploads = tuple({each.id: each for _, some in found for each in some}.values())
        reported.append(Reported(name, uploads, max(job.failed_steps for job, _ in found)))
    return tuple(reported)


def _uploads_of(job: CiJob, ran: Sequence[CiJob], uploads: Sequence[Upload]) -> tuple[Upload, ...]:
    chosen = jobs.uploads_of(
        _job(job),
        [_job(each) for each in ran],
        [Sent(each.id, each.job, each.machine or "") for each in uploads],
    )
    return tuple(each for each in uploads if each.id in chosen)


def _job(job: CiJob) -> Job:
    has_failed = job.outcome is CheckOutcome.FAILED
    return Job(job.id, job.name, job.workflow, job.runner, has_failed)


def _looked_up(
    session: Tx,
    runtime: Runtime,
    queue: QueueRef,
    reported: Sequence[Reported],
    began: Began,
) -> tuple[LookedUp, KeptStanding | None]:
    repository = access.repository(session, queue.repository_id)
    home = test_records.home_of(session, runtime, repository, runtime.clock.now())
    return failed_tests.look_up(Bench(session, runtime, home), reported, began)


async def _paths(provider: Provider, repo: RepoRef, pr: int) -> frozenset[str] | None:
    """The paths that a pull request changes; None: nobody knows all of them."""
    try:
        changed = await provider.changed_files(repo, pr)
    except Gone as gone:
        if gone.kind in (GoneKind.REPOSITORY, GoneKind.INSTALLATION):
            raise
        return None
    return frozenset(changed.paths) if changed.complete else None


def _evidence(run: Run, found: LookedUp, suspects: Sequence[Suspect]) -> Evidence:
    known = excuses.judge(
        found.checks,
        suspects,
        run.config.max_excused_failures,
        knows_flaky=run.config.flaky_knowledge_enabled,
    )
    return Evidence(
        run.attempt, known.explanations, known.fingerprint, known.own_head, known.weights
    )

"""A queue's question why a run failed, answered by the results that its CI sent (FLAKY.md 10).

Acts; which upload is whose is decided by `testhealth/reports/jobs.py`, why a check failed by
`testhealth/detector/excuses.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.accounts.store import access
from service.database.database import Tx
from service.evidence import failed_tests, revocations
from service.evidence.failed_tests import Began, LookedUp, Reported
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import EvidenceReported
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import AskEvidence
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.operations import turn
from service.provider.ci import CiJob, CiRun, CiTrigger
from service.provider.errors import Gone, GoneKind
from service.provider.port import Provider
from service.runtime import Runtime
from service.testhealth.detector import excuses
from service.testhealth.detector.completeness import Proof
from service.testhealth.detector.excuses import Rules, Standing, Suspect
from service.testhealth.operations import judge, records
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.reports import jobs
from service.testhealth.reports.jobs import Job, Sent
from service.testhealth.store import quarantine, uploads
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.uploads import Upload
from service.vocabulary import CheckOutcome, QuarantineForgives, QueueRef, RepoRef, Sha

CI_ATTEMPTS_MAX = 20
"""Attempts of CI runs on one commit that are looked at, those with the newest uploads."""

Attempt = tuple[str, int]
"""A CI run by its id, and which attempt of it."""


async def answer(runtime: Runtime, queue: QueueRef, action: AskEvidence) -> None:
    """Explain the failed checks of a run to its queue, once each of them has its results.

    Passes that were forgiven and then contradicted are revoked.

    Until then nothing is said: the next upload asks again, and the queue goes on by itself. A
    check whose reports are not complete is not explained either, but what is missing is said.
    Safe to repeat. Raises the provider's errors.
    """
    run = (await turn.value(runtime, queue.id)).runs.get(action.run)
    if run is None or run.sha is None:
        return
    await _revoke(runtime, queue, run)
    failing = failing_of(run) if run.attempt == action.attempt else {}
    if not failing:
        return
    here = queue.repository_id
    sent = await runtime.store.read(uploads.of_test_run, here, run.sha, run.created_at)
    provider = runtime.providers[queue.repo.host]
    sent = await _proved(provider, queue.repo, run.sha, sent)
    conclusions = {
        one.required.name: one.check.raw.lower()
        for one in verdict.standings_of(run)
        if one.check is not None
    }
    reported = await _reported(provider, queue.repo, failing, conclusions, sent)
    if reported is None:
        return
    began = Began(run.created_at, queue.branch, {one.pr: one.head for one in run.entries})
    found, _ = await judge.alone(runtime, here, _looked_up, runtime, queue, reported, began)
    suspects = [
        Suspect(pr, await _paths(provider, queue.repo, pr), found.fails_alone.get(pr, frozenset()))
        for pr in run.prs
    ]
    below = [
        Suspect(pr, await _paths(provider, queue.repo, pr))
        for pr in run.base_prs
        if _lacks_tests(found)
    ]
    rules = await _rules(runtime, queue, run)
    told = EvidenceReported(run.id, _evidence(run, found, suspects, below, rules))
    await turn.take(runtime, queue.id, [told])


async def _revoke(runtime: Runtime, queue: QueueRef, run: Run) -> None:
    """Let checks count as failed that passed by forgiveness, where more failed since."""
    doubts = await runtime.store.read(revocations.doubts_of, queue.repository_id, run)
    if not doubts:
        return
    provider = runtime.providers[queue.repo.host]
    told = await revocations.revoked_by(provider, queue.repo, run, doubts)
    if told is not None:
        await turn.take(runtime, queue.id, [told])


def failing_of(run: Run) -> dict[str, frozenset[str]]:
    """Required status → the ids of its failed reports that count, without revoked passes."""
    counting = verdict.newest(run.checks)
    failing: dict[str, frozenset[str]] = {}
    for one in verdict.standings_of(run):
        required = one.required
        if one.outcome is CheckOutcome.FAILED and not one.is_revoked:
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
    conclusions: Mapping[str, str],
    sent: Sequence[Upload],
) -> tuple[Reported, ...] | None:
    """The failed checks with the uploads of their jobs; None while one lacks them."""
    by_attempt: dict[Attempt, list[Upload]] = {}
    for each in sent:
        # Ids of other CI systems are the provider's by accident at most.
        if each.run_id is not None and each.run_id.isdigit():
            by_attempt.setdefault((each.run_id, each.run_attempt), []).append(each)
    of_job: dict[str, tuple[CiJob, tuple[Upload, ...]]] = {}
    accounted: dict[str, frozenset[str]] = {}
    for (run_id, attempt), of_attempt in list(by_attempt.items())[-CI_ATTEMPTS_MAX:]:
        ran = await provider.ci_jobs(repo, run_id, attempt)
        of_job |= {job.id: (job, _uploads_of(job, ran, of_attempt)) for job in ran}
        # A second attempt may run the failed jobs alone: the others reported in the first.
        whole = [each for each in sent if each.run_id == run_id]
        accounted |= {
            job.id: jobs.accounted(_job(job), list(map(_job, ran)), list(map(_sent, whole)))
            for job in ran
        }
    reported = []
    for name, checks in failing.items():
        found = [of_job[check] for check in sorted(checks) if check in of_job]
        if len(found) < len(checks) or not all(uploads for _, uploads in found):
            return None
        uploads = tuple({each.id: each for _, some in found for each in some}.values())
        others = frozenset[str]().union(*(accounted[job.id] for job, _ in found))
        steps = max(job.failed_steps for job, _ in found)
        reported.append(Reported(name, uploads, steps, conclusions.get(name, ""), others))
    return tuple(reported)


async def _proved(
    provider: Provider, repo: RepoRef, sha: Sha, sent: Sequence[Upload]
) -> tuple[Upload, ...]:
    """The uploads, with the proof that was not to be had when they arrived.

    The provider may have been slow or away then; it is asked again which CI run they name.
    """
    asked = dict.fromkeys(
        each.run_id
        for each in sent
        if each.account.proof is Proof.NONE and each.run_id is not None and each.run_id.isdigit()
    )
    proved = {
        run_id
        for run_id in list(asked)[-CI_ATTEMPTS_MAX:]
        if run_id is not None and _tested(await provider.ci_run(repo, run_id), sha)
    }
    return tuple(
        replace(each, account=replace(each.account, proof=Proof.RUN))
        if each.account.proof is Proof.NONE and each.run_id in proved
        else each
        for each in sent
    )


def _tested(run: CiRun | None, sha: Sha) -> bool:
    """Whether a CI run is known to have tested this commit, and no code of a fork."""
    if run is None or run.of_fork or run.trigger is CiTrigger.UNKNOWN:
        return False
    return run.head_sha == sha


def _uploads_of(job: CiJob, ran: Sequence[CiJob], uploads: Sequence[Upload]) -> tuple[Upload, ...]:
    chosen = jobs.uploads_of(
        _job(job),
        [_job(each) for each in ran],
        list(map(_sent, uploads)),
    )
    return tuple(each for each in uploads if each.id in chosen)


def _sent(upload: Upload) -> Sent:
    return Sent(upload.id, upload.job, upload.machine or "")


def _job(job: CiJob) -> Job:
    has_failed = job.outcome is CheckOutcome.FAILED
    return Job(job.id, job.name, job.workflow, job.runner, has_failed)


def _looked_up(
    session: Tx,
    runtime: Runtime,
    queue: QueueRef,
    reported: Sequence[Reported],
    began: Began,
) -> tuple[LookedUp, CachedIndex | None]:
    repository = access.repository(session, queue.repository_id)
    home = records.home_of(session, runtime, repository, runtime.clock.now())
    return failed_tests.look_up(RepositoryTests(session, runtime, home), reported, began)


async def _paths(provider: Provider, repo: RepoRef, pr: int) -> frozenset[str] | None:
    """The paths that a pull request changes; None: nobody knows all of them."""
    try:
        changed = await provider.changed_files(repo, pr)
    except Gone as gone:
        if gone.kind in (GoneKind.REPOSITORY, GoneKind.INSTALLATION):
            raise
        return None
    return frozenset(changed.paths) if changed.complete else None


def _lacks_tests(found: LookedUp) -> bool:
    """Whether tests are missing that a pull request below may have deleted."""
    reports = (report for check in found.checks for report in check.reports)
    return any(each.expectation is not None and each.expectation.missing for each in reports)


async def _rules(runtime: Runtime, queue: QueueRef, run: Run) -> Rules:
    """How much may be excused; a failure in a new way may be tried again once."""
    settings = await runtime.store.read(quarantine.settings_of, queue.repository_id)
    new_texts = Standing.FORGIVEN
    if settings.quarantine_forgives is QuarantineForgives.KNOWN_FAILURES:
        new_texts = Standing.KNOWN if run.attempt == 1 else Standing.OWN
    config = run.config
    return Rules(config.max_excused_failures, config.flaky_knowledge_enabled, new_texts)


def _evidence(
    run: Run,
    found: LookedUp,
    suspects: Sequence[Suspect],
    below: Sequence[Suspect],
    rules: Rules,
) -> Evidence:
    known = excuses.judge(found.checks, suspects, rules, below)
    return Evidence(
        run.attempt,
        known.explanations,
        known.fingerprint,
        known.own_head,
        known.weights,
        known.gaps,
        known.new_texts,
    )

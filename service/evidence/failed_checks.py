"""Explain to a queue why a run failed, by the results that its CI sent (docs/design/evidence.md 2).

`testhealth/reports/jobs.py` decides which upload belongs to which job,
`testhealth/detector/excuses.py` why a check failed.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from service import check_reports
from service.accounts.store import access
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import OutboxItem
from service.evidence import failed_tests, other_ci, revocations
from service.evidence.failed_tests import Findings, ReportedCheck, RunStart
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import EvidenceReported, Input, PassRevoked
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import AskEvidence
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.operations import naming, turn
from service.mergequeue.store import queues
from service.provenance import Proof
from service.provider.ci import CiJob, CiRun, CiTrigger
from service.provider.errors import Gone, GoneKind
from service.provider.port import Provider
from service.runtime import Runtime
from service.testhealth.detector import completeness, excuses
from service.testhealth.detector.excuses import EXCUSING, Relation, Rules, Suspect
from service.testhealth.operations import collected, judge, records
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.reports import jobs
from service.testhealth.store import quarantine, uploads
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.uploads import Upload
from service.vocabulary import (
    CheckOutcome,
    Explanation,
    QuarantineForgives,
    QueueRef,
    RepoRef,
    Sha,
)

LOST_MAX = 20
"""Attempts of CI runs without a delivery of which reports are requested at a time."""


async def answer(runtime: Runtime, queue: QueueRef, action: AskEvidence) -> None:
    """Explain the failed checks of a run to its queue, once each of them has its results.

    Revokes passes that were excused and then contradicted.

    Until then it reports nothing: the next upload asks again, and the queue continues by itself.
    A check is unexplained when its results have not come in the time that they have ever needed,
    and at once if they never come. One whose reports are incomplete is not explained; the queue
    receives what is missing.
    Idempotent. Raises the provider's errors.
    """
    run = (await turn.value(runtime, queue.id)).runs.get(action.run)
    if run is None or run.sha is None:
        return
    revoked = await _contradicted(runtime, queue, run)
    if revoked is not None:
        await turn.take(runtime, queue.id, [revoked])
    failing = failing_of(run) if run.attempt == action.attempt else {}
    if not failing:
        return
    reported = await _reported_of(runtime, queue, run)
    late = failing.keys() - {each.name for each in reported}
    if late and not await _are_overdue(runtime, queue, run, late):
        return
    evidence = await _explained(runtime, queue, run, reported)
    unexplained = dict.fromkeys(late, Explanation.UNEXPLAINED)
    explanations = {**evidence.explanations, **unexplained}
    evidence = replace(evidence, explanations=explanations, silent=tuple(sorted(late)))
    await turn.take(runtime, queue.id, [EvidenceReported(run.id, evidence)])


async def changed_since(runtime: Runtime, queue: QueueRef, run: Run) -> Sequence[Input]:
    """Return what results that were sent since a run passed take back: passes and excuses.

    Raises the provider's errors.
    """
    revoked = await _contradicted(runtime, queue, run)
    inputs: list[Input] = [revoked] if revoked is not None else []
    failing = failing_of(run)
    reported = await _reported_of(runtime, queue, run) if failing else ()
    if failing and failing.keys() == {each.name for each in reported}:
        evidence = await _explained(runtime, queue, run, reported)
        inputs.append(EvidenceReported(run.id, evidence))
    return inputs


async def explained_by_now(runtime: Runtime, queue: QueueRef, run: Run) -> bool:
    """Return whether each failed check of an ended run would be excused or known if it ended now.

    Its tests may have been found flaky, quarantined or red on the target since. Raises the
    provider's errors.
    """
    failing = failing_of(run)
    reported = await _reported_of(runtime, queue, run) if failing else ()
    if not failing or failing.keys() != {each.name for each in reported}:
        return False
    today = replace(run, created_at=runtime.clock.now())
    evidence = await _explained(runtime, queue, today, reported)
    unexplained = (None, Explanation.UNEXPLAINED)
    return all(evidence.explanations.get(name) not in unexplained for name in failing)


async def _reported_of(runtime: Runtime, queue: QueueRef, run: Run) -> tuple[ReportedCheck, ...]:
    """Return the failed checks of whose jobs there are uploads by now."""
    sha = run.sha
    if sha is None:
        return ()
    provider = runtime.providers[queue.repo.host]
    sent = await runtime.store.read(
        uploads.of_test_run, queue.repository_id, sha, run.reported_since
    )
    sent = await _proved(provider, queue.repo, sha, sent)
    conclusions = conclusions_of(run)
    settings = await runtime.store.read(quarantine.settings_of, queue.repository_id)
    needs = Proof[settings.excuse_proof.name]
    reported = await _reported(provider, queue.repo, run, sent, needs)
    return tuple(replace(each, conclusion=conclusions.get(each.name, "")) for each in reported)


def conclusions_of(run: Run) -> dict[str, str]:
    """Return how CI says that each required check has ended, by name.

    One that has not ended fails as the job did that dooms it, which may run still.
    """
    words = {one.id: one.raw.lower() for one in run.checks if one.outcome is CheckOutcome.FAILED}
    found: dict[str, str] = {}
    for one in verdict.standings_of(run):
        if one.doom is not None:
            found[one.required.name] = words.get(one.doom.check, "")
        elif one.check is not None:
            found[one.required.name] = one.check.raw.lower()
    return found


async def _explained(
    runtime: Runtime, queue: QueueRef, run: Run, reported: Sequence[ReportedCheck]
) -> Evidence:
    """Return why the checks failed, judged by all that is known now."""
    provider = runtime.providers[queue.repo.host]
    began = RunStart(run.created_at, queue.branch, {one.pr: one.head for one in run.entries})
    here = queue.repository_id
    findings, _ = await judge.run_serialized(
        runtime, here, _looked_up, runtime, queue, reported, began
    )
    suspects = [
        replace(
            await _changes(provider, queue.repo, pr),
            fails_alone=findings.fails_alone.get(pr, frozenset()),
        )
        for pr in run.prs
    ]
    below: list[Suspect] = []
    if _lacks_tests(findings):
        below = [await _changes(provider, queue.repo, pr) for pr in run.base_prs]
        landed = [await _changes(provider, queue.repo, pr) for pr in _landed_between(findings)]
        # What they touched is in the newest results already; what they deleted is in older ones.
        below += [replace(each, paths=each.deleted) for each in landed]
    evidence = _evidence(run, findings, suspects, below, await _rules(runtime, queue, run))
    excused = [each for each in reported if evidence.explanations.get(each.name) in EXCUSING]
    return replace(evidence, proofs={each.name: each.proof for each in excused})


async def _are_overdue(runtime: Runtime, queue: QueueRef, run: Run, late: AbstractSet[str]) -> bool:
    """Return whether results of none of these checks are awaited any longer.

    If they are, but not for the whole wait of the queue, it is asked again when they are overdue.
    """
    waits = await runtime.store.read(failed_tests.waits_of, queue.id)
    now = runtime.clock.now()
    wait = max(waits.get(name, verdict.EVIDENCE_WAIT) for name in late)
    due = (run.asked_evidence or now) + wait
    if due <= now:
        return not wait or not await _were_lost(runtime, queue)
    if wait < verdict.EVIDENCE_WAIT:
        names = tuple(sorted(failing_of(run)))
        item = turn.item(runtime, queue, AskEvidence(run.id, run.attempt, names), due)
        await runtime.store.run(_ask_later, queue, item)
        outbox.wake(runtime.wakeups, (item.lane,))
    return False


async def _were_lost(runtime: Runtime, queue: QueueRef) -> bool:
    """Return whether CI runs have ended of which no delivery told; their reports are requested."""
    repository = await runtime.store.read(access.repository, queue.repository_id)
    return bool(await collected.look_for_lost(runtime, repository, LOST_MAX, naming.run_id_of))


def _ask_later(session: Tx, queue: QueueRef, item: OutboxItem) -> None:
    head = queues.head_of(session, queue.id)
    if head is not None:
        outbox.append(session, queue.repository_id, queue.id, head.epoch, [item])


async def _contradicted(runtime: Runtime, queue: QueueRef, run: Run) -> PassRevoked | None:
    """Return passed checks whose failures were excused and that have failed further since."""
    doubts = await runtime.store.read(revocations.doubts_of, queue.repository_id, run)
    if not doubts:
        return None
    provider = runtime.providers[queue.repo.host]
    return await revocations.revoked_by(provider, queue.repo, run, doubts)


def failing_of(run: Run) -> dict[str, frozenset[str]]:
    """Return the failed reports that count by required status, without revoked passes.

    Of a check that cannot pass any more they are the jobs that show this.
    """
    counting = check_reports.counting(run.checks)
    failing: dict[str, frozenset[str]] = {}
    for one in verdict.standings_of(run):
        required = one.required
        if one.doom is not None:
            failing[required.name] = frozenset(
                doom.check for doom in run.doomed if doom.required == required.name
            )
        elif one.outcome is CheckOutcome.FAILED and not one.is_revoked:
            failing[required.name] = failing.get(required.name, frozenset()) | {
                check.id
                for check in required.counted(counting)
                if check.outcome is CheckOutcome.FAILED and check.id not in run.rerun_ids
            }
    return failing


def is_explained(run: Run) -> bool:
    """Return whether the present failures of the run are explained already."""
    return run.evidence is not None and failing_of(run).keys() <= run.evidence.explanations.keys()


async def _reported(
    provider: Provider,
    repo: RepoRef,
    run: Run,
    sent: Sequence[Upload],
    needs: Proof,
) -> tuple[ReportedCheck, ...]:
    """Return the failed checks of whose jobs there are uploads, with these.

    `needs` is what must prove those that excuse.
    """
    failing = failing_of(run)
    # An id of another CI system is a number of the provider only by accident.
    attempts = dict.fromkeys(
        (each.run_id, each.run_attempt)
        for each in sent
        if each.run_id is not None and each.run_id.isdigit()
    )
    of_job: dict[str, tuple[CiJob, tuple[Upload, ...]]] = {}
    accounted: dict[str, frozenset[str]] = {}
    for run_id, attempt in list(attempts)[-revocations.CI_ATTEMPTS_MAX :]:
        ran = await provider.ci_jobs(repo, run_id, attempt)
        every = list(map(revocations.job_of, ran))
        sent = [_under_own_key(each, every) for each in sent]
        own = [each for each in sent if (each.run_id, each.run_attempt) == (run_id, attempt)]
        of_job |= {job.id: (job, _uploads_of(job, ran, own)) for job in ran}
        # A second attempt may run only the failed jobs: the others reported in the first.
        # Only what is proved as reports must be says that another job has reported.
        whole = [
            each
            for each in sent
            if each.run_id == run_id and completeness.is_enough(each.account.proof, needs)
        ]
        here = list(map(revocations.sent_of, whole))
        accounted |= {job.id: jobs.accounted(revocations.job_of(job), every, here) for job in ran}
    failed = frozenset[str]().union(*failing.values()) - of_job.keys()
    left = [each for each in run.checks if each.id in failed]
    for id_, (job, some) in other_ci.jobs_of(left, sent).items():
        there = revocations.job_of(job)
        whole = [
            each
            for each in other_ci.builds_of(some, sent)
            if completeness.is_enough(each.account.proof, needs)
        ]
        of_job[id_] = (job, some)
        accounted[id_] = jobs.accounted(there, [there], list(map(revocations.sent_of, whole)))
    reported = []
    for name, checks in failing.items():
        matching = [of_job[check] for check in sorted(checks) if check in of_job]
        if len(matching) == len(checks) and _have_reported([some for _, some in matching]):
            steps = max(job.failed_steps for job, _ in matching)
            others = frozenset[str]().union(*(accounted[job.id] for job, _ in matching))
            uploads, contrary = _by_proof([some for _, some in matching], needs)
            reported.append(ReportedCheck(name, uploads, steps, others=others, contrary=contrary))
    return tuple(reported)


def _have_reported(of_jobs: Sequence[tuple[Upload, ...]]) -> bool:
    """Return whether each job has uploads; of several, each with a failure of its own."""
    if len(of_jobs) == 1:
        return bool(of_jobs[0])
    return all(any(each.failures for each in some) for some in of_jobs)


def _by_proof(
    of_jobs: Sequence[tuple[Upload, ...]], needs: Proof
) -> tuple[tuple[Upload, ...], tuple[Upload, ...]]:
    """Return the uploads that speak for the jobs of a check, and the others.

    Those that are proved enough speak for their job. If it has none, all of its uploads are
    examined, so that the answer says what is missing.
    """
    uploads: dict[str, Upload] = {}
    contrary: dict[str, Upload] = {}
    for some in of_jobs:
        enough = [one for one in some if completeness.is_enough(one.account.proof, needs)]
        uploads |= {each.id: each for each in enough or some}
        contrary |= {each.id: each for each in some if enough and each not in enough}
    return tuple(uploads.values()), tuple(contrary.values())


async def _proved(
    provider: Provider, repo: RepoRef, sha: Sha, sent: Sequence[Upload]
) -> tuple[Upload, ...]:
    """Return the uploads with the proof that was missing when they arrived.

    The provider may have been unavailable then; it is asked again which CI run they name.
    """
    asked = dict.fromkeys(
        each.run_id
        for each in sent
        if each.account.proof is Proof.NONE and each.run_id is not None and each.run_id.isdigit()
    )
    proved = {
        run_id
        for run_id in list(asked)[-revocations.CI_ATTEMPTS_MAX :]
        if run_id is not None and _tested(await provider.ci_run(repo, run_id), sha)
    }
    return tuple(
        _with_proof(each, Proof.TOKEN)
        if each.account.proof is Proof.NONE and each.run_id in proved
        else each
        for each in sent
    )


def _under_own_key(upload: Upload, ran: Sequence[jobs.Job]) -> Upload:
    """Return the upload, which proves nothing if its job key is that of another job."""
    named = jobs.named_instead(ran, revocations.sent_of(upload))
    return upload if named is None else _with_proof(upload, Proof.NONE)


def _with_proof(upload: Upload, proof: Proof) -> Upload:
    return replace(upload, account=replace(upload.account, proof=proof))


def _tested(run: CiRun | None, sha: Sha) -> bool:
    """Return whether a CI run tested this commit, and no code of a fork."""
    if run is None or run.of_fork or run.trigger is CiTrigger.UNKNOWN:
        return False
    return run.head_sha == sha


def _uploads_of(job: CiJob, ran: Sequence[CiJob], uploads: Sequence[Upload]) -> tuple[Upload, ...]:
    """Return the uploads of a job; if it has none, those that others made in its name.

    The latter prove nothing, and are only named as a reason.
    """
    here, every = revocations.job_of(job), [revocations.job_of(each) for each in ran]
    sent = list(map(revocations.sent_of, uploads))
    chosen = jobs.uploads_of(here, every, sent)
    if chosen:
        return tuple(each for each in uploads if each.id in chosen)
    claimed = jobs.claimed_for(here, every, sent)
    return tuple(_with_proof(each, Proof.NONE) for each in uploads if each.id in claimed)


def _looked_up(
    session: Tx,
    runtime: Runtime,
    queue: QueueRef,
    reported: Sequence[ReportedCheck],
    began: RunStart,
) -> tuple[Findings, CachedIndex | None]:
    repository = access.repository(session, queue.repository_id)
    context = records.context_of(session, runtime, repository, runtime.clock.now())
    return failed_tests.look_up(RepositoryTests(session, runtime, context), reported, began)


async def _changes(provider: Provider, repo: RepoRef, pr: int) -> Suspect:
    """Return what a pull request changes; its paths are None if they are not all known."""
    try:
        changed = await provider.changed_files(repo, pr)
    except Gone as gone:
        if gone.kind in (GoneKind.REPOSITORY, GoneKind.INSTALLATION):
            raise
        return Suspect(pr, None)
    if not changed.complete:
        return Suspect(pr, None)
    return Suspect(pr, frozenset(changed.paths), deleted=frozenset(changed.deleted))


def _lacks_tests(findings: Findings) -> bool:
    """Return whether tests are missing that a pull request in the base may have deleted."""
    reports = (report for check in findings.checks for report in check.reports)
    return any(each.expectation is not None and not each.expectation.is_met for each in reports)


def _landed_between(findings: Findings) -> tuple[int, ...]:
    """Return pull requests that have landed between the results with which a run is compared."""
    reports = (report for check in findings.checks for report in check.reports)
    landed = (pr for each in reports if each.expectation for pr in each.expectation.landed)
    return tuple(dict.fromkeys(landed))


async def _rules(runtime: Runtime, queue: QueueRef, run: Run) -> Rules:
    """Return how much may be excused; a failure in a new way is repeated once."""
    settings = await runtime.store.read(quarantine.settings_of, queue.repository_id)
    new_texts = Relation.EXCUSED
    if settings.quarantine_forgives is QuarantineForgives.KNOWN_FAILURES:
        new_texts = Relation.KNOWN if run.attempt == 1 else Relation.OWN
    config = run.config
    return Rules(config.max_excused_failures, config.flaky_knowledge_enabled, new_texts)


def _evidence(
    run: Run,
    findings: Findings,
    suspects: Sequence[Suspect],
    below: Sequence[Suspect],
    rules: Rules,
) -> Evidence:
    judged = excuses.judge(findings.checks, suspects, rules, below)
    return Evidence(
        run.attempt,
        judged.explanations,
        judged.fingerprint,
        judged.own_head,
        judged.weights,
        judged.gaps,
        judged.new_texts,
        failed_tests=judged.failed_tests,
        unexplained_tests=judged.unexplained_tests,
        red_on_base=judged.red_on_base,
    )

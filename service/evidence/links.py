"""The functions by which merge queues and test health call each other.

A failure that arrives after earlier ones of the same job were excused: while the run has not
landed, its queue takes the excuse back (`ask_again`). After that nothing can be undone: the pull
requests and the endpoints are notified, once for a run (`note_late_failures`).
"""

from collections.abc import Sequence
from datetime import timedelta

from service.accounts.jobs import ReportIssuers
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.evidence import (
    early_failures,
    failed_checks,
    revocations,
    run_failures,
    suspects,
    upload_completeness,
)
from service.evidence.run_failures import FAILED_MAX
from service.evidence.store import queue_facts
from service.mergequeue.engine.inputs import RepositoryChanged
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import AskEvidence
from service.mergequeue.operations import turn
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import flakes, landings, pull_requests, queues, runs
from service.mergequeue.wording import failed_tests
from service.provenance import Proof
from service.provider.values import Reply
from service.runtime import Links, Runtime
from service.testhealth.operations import messages
from service.testhealth.operations.messages import UploadSummary
from service.testhealth.operations.queue_links import EarlyFailureLinks, QueueLinks, TestedRun
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import listings, quarantine, uploads
from service.testhealth.store.uploads import Upload
from service.vocabulary import Sha

SENDING_FOR = timedelta(days=14)
"""A repository sends results as long as its newest upload is no older.

See docs/design/evidence.md 1.
"""


async def _note_sending(runtime: Runtime, repository_id: int | None = None) -> None:
    """Report to queues whether their repository sends results; of one repository, or of all.

    Queues that already know are skipped.
    """
    since = runtime.clock.now() - SENDING_FOR
    for queue in await runtime.store.read(queue_facts.uninformed_queues, since, repository_id):
        report = RepositoryChanged(sends_results=queue.sends_results)
        await turn.report(runtime, queue.queue_id, [report])


def ask_again(session: Tx, runtime: Runtime, repository: RepositoryRecord, sha: Sha) -> None:
    """Explain the failures of the live runs on this commit, if their queues asked.

    Also those that are explained already: a late upload may take an excuse back, and revoke a
    pass that was excused.
    """
    now = runtime.clock.now()
    for queue_id, run_id in queues.run_of_sha(session, repository.id, sha):
        run = runs.run(session, queue_id, run_id)
        head, queue = queues.head_of(session, queue_id), queues.ref_by_id(session, queue_id)
        if run is None or head is None or queue is None:
            continue
        if run.asked_evidence is None and not revocations.doubts_of(session, repository.id, run):
            continue
        names = tuple(sorted(failed_checks.failing_of(run)))
        item = turn.item(runtime, queue, AskEvidence(run.id, run.attempt, names), now)
        outbox.append(session, repository.id, queue_id, head.epoch, [item])


def _note_late_failures(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    upload: Upload,
    payload: UploadSummary,
) -> None:
    """Notify of an upload with failures that are not quarantined, if its run has landed."""
    if payload.failed <= payload.quarantined_failures:
        return
    run = queue_facts.tested_run(session, repository.id, Sha(upload.sha), upload.branch)
    if run is None or run.sha != upload.sha or not _was_excused(session, repository, run, upload):
        return
    prs = landings.landed_prs(session, run.id)
    if not prs:
        return
    names = _unexcused_names(session, repository, upload)
    now = runtime.clock.now()
    message = messages.failed_after_landing(payload, prs, names, now)
    messages.tell(session, runtime, repository, message)
    body = failed_tests.after_landing(upload.job, names, payload.html_url)
    items = [
        OutboxItem(
            Lane.NOTICE,
            f"reply/{repository.id}/{pr}/late-{run.id}",
            "reply",
            Reply(pr, f"late-{run.id}", body),
            next_at=now,
        )
        for pr in prs
    ]
    outbox.append(session, repository.id, None, 0, items)


def _was_excused(session: Tx, repository: RepositoryRecord, run: Run, upload: Upload) -> bool:
    """Return whether earlier results of the same job had failures, all quarantined."""
    sent = uploads.of_test_run(session, repository.id, Sha(upload.sha), run.reported_since)
    ids = [each.id for each in sent if each.job == upload.job and each.id != upload.id]
    failed = test_attempts.failed_in(session, ids, FAILED_MAX)
    return bool(failed) and all(each.is_quarantined for each in failed)


def _unexcused_names(session: Tx, repository: RepositoryRecord, upload: Upload) -> Sequence[str]:
    """Return the names of failed tests that are not quarantined, at most 1,000."""
    failed = test_attempts.failed_in(session, [upload.id], FAILED_MAX)
    nos = sorted({each.no for each in failed if not each.is_quarantined})
    return [
        run_failures.name_of(case) for case in listings.listed_cases(session, repository.id, nos)
    ]


def build_links() -> Links:
    """Return the links between both capabilities, for the runtime."""
    return Links(
        ReportIssuers(_report_issuers),
        RunFailures(
            named_in=run_failures.named_in,
            named_on=run_failures.named_on,
            listed_in=run_failures.listed_in,
            names_of=run_failures.names_of,
            changed_since=failed_checks.changed_since,
            explained_by_now=failed_checks.explained_by_now,
            excuse_proof=_excuse_proof,
            are_known_flaky=run_failures.are_known_flaky,
            killed_in=run_failures.killed_in,
        ),
        QueueLinks(
            tested_run=_tested_run,
            queue_branches=queue_facts.queue_branches,
            pull_requests_at=pull_requests.with_head,
            note_sending=_note_sending,
            explain_again=ask_again,
            check_answer=upload_completeness.check,
            note_late_failures=_note_late_failures,
            early=EarlyFailureLinks(
                standing_of=early_failures.standing_of,
                tell=early_failures.tell,
                take_back=early_failures.take_back,
            ),
            suspected_pull_requests=suspects.suspected_pull_requests,
            flaked_runs=flakes.flaked,
            is_testing=queue_facts.is_testing,
        ),
    )


def _excuse_proof(session: Tx, repository_id: int) -> Proof:
    return Proof[quarantine.settings_of(session, repository_id).excuse_proof.name]


def _report_issuers(session: Tx, repository_id: int) -> tuple[str, ...]:
    return quarantine.settings_of(session, repository_id).report_issuers


def _tested_run(session: Tx, repository_id: int, sha: Sha, branch: str | None) -> TestedRun | None:
    run = queue_facts.tested_run(session, repository_id, sha, branch)
    if run is None:
        return None
    tree = run.steps[-1].tree if run.steps else None
    return TestedRun(run.sha, tree, run.prs, run.created_at)

"""The functions by which merge queues and test health call each other."""

from service.accounts.jobs import ReportIssuers
from service.database.database import Tx
from service.evidence import failed_checks, run_failures, upload_completeness, upload_news
from service.evidence.store import queue_facts
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import pull_requests
from service.provenance import Proof
from service.runtime import Links
from service.testhealth.operations.queue_links import QueueLinks, TestedRun
from service.testhealth.store import quarantine
from service.vocabulary import Sha


def made() -> Links:
    """Return the links between both capabilities, for the runtime."""
    return Links(
        ReportIssuers(_report_issuers),
        RunFailures(
            named_in=run_failures.named_in,
            listed_in=run_failures.listed_in,
            names_of=run_failures.names_of,
            changed_since=failed_checks.changed_since,
            excuse_proof=_excuse_proof,
        ),
        QueueLinks(
            tested_run=_tested_run,
            queue_branches=queue_facts.queue_branches,
            pull_requests_at=pull_requests.with_head,
            note_sending=upload_news.note_sending,
            explain_again=upload_news.ask_again,
            check_answer=upload_completeness.check,
            note_late_failures=upload_news.note_late_failures,
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

"""Failures that arrive after earlier ones of the same job were forgiven and the run has landed.

While a run has not landed its queue takes the excuse back by itself (upload_news.py). After that
nothing can be undone: the pull requests and the endpoints are told, once for a run.
"""

from collections.abc import Sequence

from service.database import outbox
from service.database.database import Tx
from service.database.outbox import OutboxItem
from service.database.records import Lane, RepositoryRecord
from service.evidence import run_failures
from service.evidence.run_failures import FAILED_MAX
from service.evidence.store import queue_facts
from service.mergequeue.engine.model import Run
from service.mergequeue.store import landings
from service.mergequeue.wording import failed_tests
from service.provider.values import Reply
from service.runtime import Runtime
from service.testhealth.operations import messages
from service.testhealth.operations.messages import UploadTold
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import listings, uploads
from service.testhealth.store.uploads import Upload
from service.vocabulary import Sha


def note(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, upload: Upload, told: UploadTold
) -> None:
    """Tell of an upload with failures that are not quarantined, if it comes too late."""
    if told.failed <= told.quarantined_failures:
        return
    run = queue_facts.tested_run(session, repository.id, Sha(upload.sha), upload.branch)
    if run is None or run.sha != upload.sha or not _was_forgiven(session, repository, run, upload):
        return
    prs = landings.landed_prs(session, run.id)
    if not prs:
        return
    names = _failed_names(session, repository, upload)
    now = runtime.clock.now()
    message = messages.failed_after_landing(told, prs, names, now)
    messages.tell(session, runtime, repository, message)
    body = failed_tests.after_landing(upload.job, names, told.html_url)
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


def _was_forgiven(session: Tx, repository: RepositoryRecord, run: Run, upload: Upload) -> bool:
    """Whether earlier results of the same job had failures that all were quarantined."""
    sent = uploads.of_test_run(session, repository.id, Sha(upload.sha), run.created_at)
    ids = [each.id for each in sent if each.job == upload.job and each.id != upload.id]
    failed = test_attempts.failed_in(session, ids, FAILED_MAX)
    return bool(failed) and all(each.is_quarantined for each in failed)


def _failed_names(session: Tx, repository: RepositoryRecord, upload: Upload) -> Sequence[str]:
    """The failed tests that are not quarantined, at most 1,000."""
    failed = test_attempts.failed_in(session, [upload.id], FAILED_MAX)
    nos = sorted({each.no for each in failed if not each.is_quarantined})
    return [run_failures.name_of(case) for case in listings.records(session, repository.id, nos)]

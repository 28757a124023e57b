"""What queues hear of uploads: that there are any, and that one came of a run they wait for."""

from datetime import timedelta

from service.database import outbox
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.evidence import failed_checks, revocations
from service.evidence.store import queue_facts
from service.mergequeue.engine.inputs import RepositoryChanged
from service.mergequeue.engine.outputs import AskEvidence
from service.mergequeue.operations import turn
from service.mergequeue.store import queues, runs
from service.runtime import Runtime
from service.vocabulary import Sha

SENDING_FOR = timedelta(days=14)
"""A repository sends results as long as its newest upload is no older (FLAKY.md 10)."""


async def tell(runtime: Runtime, repository_id: int | None = None) -> None:
    """Tell queues whether their repository sends results; of one repository, or of all.

    Those that know are left alone.
    """
    since = runtime.clock.now() - SENDING_FOR
    for told in await runtime.store.read(queue_facts.uninformed_queues, since, repository_id):
        report = RepositoryChanged(sends_results=told.sends_results)
        await turn.take(runtime, told.queue_id, [report])


def ask_again(session: Tx, runtime: Runtime, repository: RepositoryRecord, sha: Sha) -> None:
    """Have the failures of the live runs on this commit explained, if their queues asked.

    Also those that are explained: an upload that comes late may take an excuse back, and revoke
    a pass that was forgiven.
    """
    now = runtime.clock.now()
    for queue_id, run_id in queues.run_of_sha(session, repository.id, sha):
        run = runs.run(session, queue_id, run_id)
        head = queues.head_of(session, queue_id)
        if run is None or head is None:
            continue
        if run.asked_evidence is None and not revocations.doubts_of(session, repository.id, run):
            continue
        names = tuple(sorted(failed_checks.failing_of(run)))
        item = turn.item(runtime, AskEvidence(run.id, run.attempt, names), now)
        outbox.append(session, repository.id, queue_id, head.epoch, [item])

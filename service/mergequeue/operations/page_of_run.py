"""A test run as its page shows it."""

from dataclasses import dataclass

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import NotFound
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.landing_records import LandingRecord
from service.mergequeue.operations import testing, turn
from service.mergequeue.operations.views import TestingView
from service.mergequeue.store import overviews, queues, runs
from service.runtime import Runtime
from service.vocabulary import QueueRef


@dataclass(frozen=True, slots=True)
class PageOfRun:
    """Everything on the page of a run; `landings` are what it brought onto the target branch."""

    queue: MergeQueue
    view: TestingView
    landings: tuple[LandingRecord, ...]


async def load_page(runtime: Runtime, repository: RepositoryRecord, run_id: str) -> PageOfRun:
    """Return the page of a run of this repository, also of one without a test branch.

    Raises NotFound(test_run_not_found).
    """
    queue = await _find_queue(runtime, repository, run_id)
    view = await testing.details(runtime, queue, run_id, only_built=False)
    rows = await runtime.store.read(overviews.landings_of, (run_id,))
    landed = tuple(row for row in rows if row.state in overviews.OF_LANDED)
    return PageOfRun(await turn.last_value(runtime, queue.id), view, landed)


async def version(runtime: Runtime, repository: RepositoryRecord, run_id: str) -> tuple[int, str]:
    """Return the number of the newest change of the run's queue, and the topic that changes wake.

    Raises as `read`.
    """
    queue = await _find_queue(runtime, repository, run_id)
    return (await turn.last_value(runtime, queue.id)).version, turn.topic_of(queue.id)


async def _find_queue(runtime: Runtime, repository: RepositoryRecord, run_id: str) -> QueueRef:
    queue = await runtime.store.read(_queue_of, repository.id, run_id)
    if queue is None:
        raise NotFound(f'There is no test run "{run_id}".', code="test_run_not_found")
    return queue


def _queue_of(session: Tx, repository_id: int, run_id: str) -> QueueRef | None:
    queue_id = runs.queue_of(session, repository_id, run_id)
    return None if queue_id is None else queues.ref_by_id(session, queue_id)

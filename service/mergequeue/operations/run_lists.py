"""The test runs of a queue, a part at a time (API.md 6.2)."""

from dataclasses import dataclass

from service.database.database import Tx
from service.mergequeue.engine.states import FINAL, RunStatus
from service.mergequeue.operations import naming
from service.mergequeue.operations.views import ListedRun, RunPart
from service.mergequeue.store import listings
from service.mergequeue.store.listings import RunFilter, RunFound
from service.runtime import Runtime
from service.vocabulary import QueueRef


@dataclass(frozen=True, slots=True)
class RunWish:
    """Which runs: None is any, `offset` of them are passed over."""

    pr: int | None
    status: RunStatus | None
    offset: int
    take: int


async def listed(runtime: Runtime, queue: QueueRef, wish: RunWish) -> RunPart:
    """Runs whose test branch is built, the newest first: those that details can be asked of."""
    return await runtime.store.read(_listed, queue, wish)


def _listed(session: Tx, queue: QueueRef, wish: RunWish) -> RunPart:
    wanted = RunFilter(wish.pr, wish.status)
    found = listings.built_runs(session, queue.id, wanted, wish.offset, wish.take)
    return RunPart(
        rows=tuple(_row(each) for each in found),
        total=listings.built_runs_count(session, queue.id, wanted),
    )


def _row(found: RunFound) -> ListedRun:
    return ListedRun(
        id=found.id,
        prs=found.prs,
        status=found.status,
        conclusion=found.first_state if found.first_state in FINAL else None,
        is_of_search=found.kind in naming.BISECTION,
        began_search=found.is_searched,
        cause=found.cause,
        created_at=found.created_at,
        finished_at=found.finished_at,
        sha=found.sha,
    )

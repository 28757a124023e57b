"""Find CI runs that ended without a delivery, and collect their reports.

A run that was delivered or listed before has been requested already and costs nothing more
(docs/design/reports.md 10; docs/design/transactions.md 8).
"""

from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.evidence import failed_checks
from service.mergequeue.operations import naming, turn
from service.mergequeue.store import queues
from service.runtime import Runtime
from service.testhealth.operations import collected
from service.testhealth.store import cases

ASKED_MAX = 100
"""Requests in one sweep, each at least one read; the rest waits for the next sweep."""


async def look_everywhere(runtime: Runtime) -> None:
    """Sweep: every repository that has a queue or tests."""
    left = ASKED_MAX
    for repository in await runtime.store.read(_watched):
        if left > 0:
            left -= await collected.look_for_lost(runtime, repository, left)


async def look_where_awaited(runtime: Runtime) -> None:
    """Sweep: the repositories with a failed test run that still waits for its results.

    A queue waits 90 s for them (docs/design/evidence.md 1), so this is to come more often.
    """
    waiting = set()
    for queue_id in await runtime.store.read(queues.live_queues):
        value = await turn.last_value(runtime, queue_id)
        if any(
            run.asked_evidence is not None and not failed_checks.is_explained(run)
            for run in value.runs.values()
        ):
            waiting.add(queue_id)
    refs = [await runtime.store.read(queues.ref_by_id, queue_id) for queue_id in sorted(waiting)]
    for repository_id in sorted({ref.repository_id for ref in refs if ref is not None}):
        repository = await runtime.store.read(access.repository, repository_id)
        await collected.look_for_lost(runtime, repository, ASKED_MAX, naming.run_id_of)


def _watched(session: Tx) -> tuple[RepositoryRecord, ...]:
    return tuple(
        each
        for each in access.repositories_of(session, None)
        if each.available
        and (queues.queues_of(session, each.id) or cases.shared_by(session, each.id).names)
    )

"""Find CI runs that ended without a delivery, and collect their reports.

A run that was delivered or listed before has been requested already and costs nothing more
(docs/design/reports.md 10; docs/design/transactions.md 8).
"""

from datetime import timedelta

import structlog

from service.accounts.store import access
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.evidence import failed_checks
from service.mergequeue.operations import turn
from service.mergequeue.store import queues
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.testhealth.operations import collected
from service.testhealth.operations import settings as test_settings
from service.testhealth.reports.collecting import CollectReports
from service.testhealth.store import cases

BEGUN_WITHIN = timedelta(days=1)
ATTEMPTS_MAX = 3
"""Newest attempts of one run: it may have been repeated before the sweep."""
ASKED_MAX = 100
"""Requests in one sweep, each at least one read; the rest waits for the next sweep."""

log = structlog.get_logger()


async def look_everywhere(runtime: Runtime) -> None:
    """Sweep: every repository that has a queue or tests."""
    left = ASKED_MAX
    for repository in await runtime.store.read(_watched):
        if left > 0:
            left -= await _look(runtime, repository, left)


async def look_where_awaited(runtime: Runtime) -> None:
    """Sweep: the repositories with a failed test run that still waits for its results.

    A queue waits 90 s for them (docs/design/evidence.md 1), so this is to come more often.
    """
    waiting = set()
    for queue_id in await runtime.store.read(queues.live_queues):
        value = await turn.value(runtime, queue_id)
        if any(
            run.asked_evidence is not None and not failed_checks.is_explained(run)
            for run in value.runs.values()
        ):
            waiting.add(queue_id)
    refs = [await runtime.store.read(queues.ref_by_id, queue_id) for queue_id in sorted(waiting)]
    for repository_id in sorted({ref.repository_id for ref in refs if ref is not None}):
        repository = await runtime.store.read(access.repository, repository_id)
        await _look(runtime, repository, ASKED_MAX)


def _watched(session: Tx) -> tuple[RepositoryRecord, ...]:
    return tuple(
        each
        for each in access.repositories_of(session, None)
        if each.available
        and (queues.queues_of(session, each.id) or cases.shared_by(session, each.id).names)
    )


async def _look(runtime: Runtime, repository: RepositoryRecord, at_most: int) -> int:
    """Request the reports of a repository's runs, newest first; return the number of attempts."""
    provider = runtime.providers.get(repository.ref.host)
    settings = await test_settings.read(runtime, repository)
    if provider is None or not settings.collect_artifacts:
        return 0
    since = (runtime.clock.now() - BEGUN_WITHIN).date()
    try:
        ended = await provider.ci_runs(repository.ref, since)
    except ProviderError as trouble:
        log.warning("lost_reports_postponed", repo=repository.ref.slug, why=trouble.message)
        return 0
    attempts = [
        CollectReports(run.id, attempt)
        for run in ended
        for attempt in range(run.attempt, max(run.attempt - ATTEMPTS_MAX, 0), -1)
    ]
    lost = await runtime.store.read(collected.unasked, repository.id, attempts)
    if lost:
        await collected.ask_for(runtime, repository, lost[:at_most])
        log.info("lost_reports", repo=repository.ref.slug, runs=len(lost))
    return min(len(lost), at_most)

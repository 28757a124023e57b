"""A queue as its page shows it: what is in it, what searches for causes, what left it last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.mergequeue.conflict_pairs import Foreseen
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.states import FINAL
from service.mergequeue.landing_records import LandingRecord
from service.mergequeue.operations import (
    breaks,
    queue_access,
    queue_views,
    radar,
    shadow_report,
    target_health,
    turn,
)
from service.mergequeue.operations.shadow_report import ShadowReport
from service.mergequeue.operations.target_health import TargetHealth
from service.mergequeue.operations.views import QueueView
from service.mergequeue.store import listings, overviews, runs
from service.mergequeue.store.listings import EndedSpan
from service.runtime import Runtime
from service.vocabulary import QueueRef

LEFT_MAX = 20
"""Submissions that left the queue on its page, the newest."""

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LeftEntry:
    """A submission that has ended; `landing` None: Headgate did not merge it."""

    entry: Entry
    landing: LandingRecord | None


@dataclass(frozen=True, slots=True)
class PageOfQueue:
    """Everything on a queue's page; `searched` are the runs of its searches by id.

    `shadow` is the report of a queue in shadow, None of any other; `target` the health of a target
    whose checks are watched.
    """

    view: QueueView
    left: tuple[LeftEntry, ...]
    searched: Mapping[str, Run]
    shadow: ShadowReport | None = None
    target: TargetHealth | None = None
    conflicts: Foreseen | None = None


async def load_page(runtime: Runtime, repository: RepositoryRecord, branch: str) -> PageOfQueue:
    """Return the page of the queue of this branch. Raises NotFound(queue_not_found)."""
    queue = await queue_access.queue_in(runtime, repository, branch)
    view = await queue_views.queue_view(runtime, queue)
    left, searched = await runtime.store.read(_rest, queue, view.value)
    report = None
    if view.value.config.shadow:
        report = await shadow_report.load_report(runtime, queue)
    target = None
    if breaks.is_watched(view.value):
        target = await target_health.load_health(runtime, queue)
    return PageOfQueue(view, left, searched, report, target)
    foreseen = await radar.foreseen(runtime, queue)
    return PageOfQueue(view, left, searched, report, foreseen)


async def version(runtime: Runtime, repository: RepositoryRecord, branch: str) -> tuple[int, str]:
    """Return the number of the queue's newest change, and the topic that changes wake.

    Raises NotFound(queue_not_found).
    """
    queue = await queue_access.queue_in(runtime, repository, branch)
    return (await turn.value(runtime, queue.id)).version, turn.topic_of(queue.id)


def _rest(
    session: Tx, queue: QueueRef, value: MergeQueue
) -> tuple[tuple[LeftEntry, ...], Mapping[str, Run]]:
    span = EndedSpan(FINAL, ALWAYS, (NEVER, 0))
    ended = listings.ended(session, queue.id, span, LEFT_MAX)
    wanted = _runs_of_searches(value)
    lacking = [run for run in wanted if run not in value.runs]
    found = {each.id: each for each in runs.runs_of(session, queue.id, lacking)}
    known = {run: value.runs[run] for run in wanted if run in value.runs}
    return with_landings(session, ended), {**found, **known}


def with_landings(session: Tx, ended: Sequence[Entry]) -> tuple[LeftEntry, ...]:
    """Return ended submissions with the landing that merged each."""
    ids = sorted({each.verified_by for each in ended if each.verified_by is not None})
    rows = overviews.landings_of(session, ids)
    merged = {(row.run, row.entry): row for row in rows if row.state in overviews.OF_LANDED}
    return tuple(LeftEntry(each, merged.get((each.verified_by or "", each.id))) for each in ended)


def _runs_of_searches(value: MergeQueue) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for search in value.bisections.values():
        failed = [run for each in search.reds.values() for run in each]
        found |= dict.fromkeys((search.run, *failed, *search.probes.values()))
    return tuple(found)

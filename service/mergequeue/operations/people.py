"""The pull requests of people, over all queues that somebody may see."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from service.database.database import Tx
from service.mergequeue.conflict_pairs import Foreseen
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.operations import overview, page_of_queue, queue_views, radar, turn
from service.mergequeue.operations.overview import DAY, Scope
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.operations.views import PullRequestView, QueueView
from service.mergequeue.store import listings, overviews
from service.runtime import Runtime
from service.vocabulary import QueueRef

LEFT_MAX = 2000
"""Submissions that left the queues of a scope within a day, among which those of people are."""

SHOWN_MAX = 50
"""Submissions in the queues that are shown, and likewise those that have left, the newest."""


@dataclass(frozen=True, slots=True)
class OpenSubmission:
    """A submission in a queue, with the queue's value and what it waits for.

    `conflicts`: other open pull requests with which it will conflict.
    """

    view: PullRequestView
    value: MergeQueue
    explained: Explained
    conflicts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftSubmission:
    """A submission that has left its queue, with the queue's value now."""

    queue: QueueRef
    value: MergeQueue
    left: LeftEntry


@dataclass(frozen=True, slots=True)
class Submissions:
    """Those in the queues by queue and place, and those that left within a day, the last first.

    `more`: how many others of these people are in the queues.
    """

    open: tuple[OpenSubmission, ...]
    left: tuple[LeftSubmission, ...]
    more: int = 0


def is_of(entry: Entry, logins: Collection[str]) -> bool:
    """Return whether one of the people, in lower case, wrote or submitted it."""
    return entry.facts.author.lower() in logins or entry.submitted_by.login.lower() in logins


async def load_submissions(runtime: Runtime, scope: Scope, logins: Collection[str]) -> Submissions:
    """Return the submissions of these people, whose logins are in lower case."""
    if not logins:
        return Submissions((), ())
    refs = {each.id: each for each in await overview.refs(runtime, scope)}
    since = runtime.clock.now() - DAY
    busy, ended = await runtime.store.read(_read, tuple(refs), since)
    found: list[OpenSubmission] = []
    for ref in (refs[each] for each in busy):
        value = await turn.last_value(runtime, ref.id)
        if any(is_of(each, logins) for each in value.entries.values()):
            view = await queue_views.last_queue_view(runtime, ref)
            found += _of_queue(runtime, view, logins, await radar.foreseen(runtime, ref))
    own = [(id_, entry) for id_, entry in ended if is_of(entry, logins)][:SHOWN_MAX]
    left = await runtime.store.read(page_of_queue.with_landings, [entry for _, entry in own])
    values = {id_: await turn.last_value(runtime, id_) for id_ in {id_ for id_, _ in own}}
    return Submissions(
        tuple(found[:SHOWN_MAX]),
        tuple(
            LeftSubmission(refs[id_], values[id_], one)
            for (id_, _), one in zip(own, left, strict=True)
        ),
        max(0, len(found) - SHOWN_MAX),
    )


def _read(
    session: Tx, queue_ids: tuple[int, ...], since: datetime
) -> tuple[tuple[int, ...], tuple[tuple[int, Entry], ...]]:
    """Return the queues that hold submissions, and what left any of them since a time."""
    counts = listings.counts_of(session, queue_ids)
    busy = tuple(each for each in queue_ids if counts[each])
    return busy, overviews.just_ended(session, queue_ids, since, LEFT_MAX)


def _of_queue(
    runtime: Runtime, view: QueueView, logins: Collection[str], foreseen: Foreseen
) -> Iterator[OpenSubmission]:
    own = [each for each in view.entries if is_of(each.entry, logins)]
    now = runtime.clock.now()
    explained = queue_views.explain_entries(view.value, [each.entry for each in own], now)
    for each in own:
        yield OpenSubmission(
            each, view.value, explained[each.entry.id], foreseen.others_of(each.entry.pr)
        )

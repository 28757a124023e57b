"""Explain why a pull request is not merged yet and what to do next, from the stored queue."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from service.database import instances
from service.errors import NotFound
from service.mergequeue.engine.explaining.conditions import (
    OWN,
    THROTTLED,
    UNANSWERED,
    Condition,
    ConditionCode,
)
from service.mergequeue.engine.explaining.explain import Explained, explain_entry, of_final
from service.mergequeue.engine.model import RequiredSet, Run
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations import notices, pull_requests, queue_views, radar, turn
from service.mergequeue.operations.next_steps import described_step
from service.mergequeue.operations.views import ExplainView
from service.mergequeue.store import backlog
from service.mergequeue.wording import next_steps
from service.mergequeue.wording.next_steps import DescribedStep, Place
from service.runtime import Runtime
from service.vocabulary import QueueRef


async def explain(runtime: Runtime, queue: QueueRef, number: int) -> ExplainView:
    """Return the conditions and the entries ahead and behind. Raises NotFound(never_submitted)."""
    view = await pull_requests.status(runtime, queue, number)
    value = await turn.value(runtime, queue.id)
    entry, repo = view.entry, queue.repo
    place = view.position
    line = [
        one.pr
        for one in queue_views.entries_in_order(value)
        if one.state is not EntryState.NOT_READY
    ]
    run = value.runs.get(entry.run or entry.verified_by or "")
    text = await notices.text_of(runtime, queue, number, entry.id)
    if text is None:
        raise NotFound(f"Pull request {number} was never submitted.", code="never_submitted")
    explained = explain_entry(value, entry, runtime.clock.now())
    if entry.state in FINAL:
        explained = of_final(entry, view.judged_by)
    explained = await _throttled(runtime, queue.id, run, explained)
    explained = await _unanswered(runtime, queue.id, explained)
    text = replace(text, explained=explained)
    return ExplainView(
        pull_request=view,
        explained=explained,
        ahead=tuple(line[: place - 1]) if place is not None else (),
        behind=tuple(line[place:]) if place is not None else (),
        depends_on=run.base_prs if run is not None else (),
        required=value.required or RequiredSet(),
        text=text,
        troubles=() if entry.state in FINAL else runtime.troubles.of(repo.host, repo.owner),
        conflicts=None if entry.state in FINAL else await radar.foreseen(runtime, queue),
        step=await runtime.store.read(described_step, runtime, queue, text),
    )


async def next_step(runtime: Runtime, queue: QueueRef, number: int) -> DescribedStep:
    """Return what a program does next about a pull request, submitted or not."""
    try:
        return (await explain(runtime, queue, number)).step
    except NotFound as missing:
        if missing.code != "never_submitted":
            raise
        return next_steps.never_submitted(Place(queue.repo, queue.branch, number))


async def _throttled(
    runtime: Runtime, queue_id: int, run: Run | None, explained: Explained
) -> Explained:
    """Add that a test branch or a landing waits for the provider's rate limit, and until when."""
    if run is None or not any(_may_be_throttled(one) for one in explained.conditions):
        return explained
    effects = (await runtime.store.read(backlog.open_effects)).get(queue_id, ())
    waits = [one.due_at for one in effects if one.run == run.id and one.throttled]
    if not waits:
        return explained
    return _delayed(explained, _may_be_throttled, THROTTLED, max(waits))


async def _unanswered(runtime: Runtime, queue_id: int, explained: Explained) -> Explained:
    """Add that the instance of a landing stopped, and when another takes over."""
    if not any(_waits_for_landing(one) for one in explained.conditions):
        return explained
    now = runtime.clock.now()
    at = await runtime.store.read(instances.silent_landing, queue_id, now)
    if at is None:
        return explained
    return _delayed(explained, _waits_for_landing, UNANSWERED, at)


def _delayed(
    explained: Explained, applies: Callable[[Condition], bool], word: str, at: datetime
) -> Explained:
    """Return the explanation with a word and a time in the conditions that apply."""
    conditions = tuple(
        replace(one, word=word, at=at) if applies(one) else one for one in explained.conditions
    )
    following = explained.next
    if following is not None and following.at is None:
        following = replace(following, at=at)
    return replace(explained, conditions=conditions, next=following)


def _waits_for_landing(condition: Condition) -> bool:
    return condition.code is ConditionCode.LANDING_FREE and not condition.met


def _may_be_throttled(condition: Condition) -> bool:
    """Return whether an effect of the entry's own run is what an open condition waits for."""
    is_landing = condition.code is ConditionCode.LANDING_FREE and condition.word == OWN
    return not condition.met and (condition.code is ConditionCode.BRANCH_BUILT or is_landing)

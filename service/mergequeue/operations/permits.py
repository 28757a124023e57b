"""Decide whether a landing may proceed at the moment of its permit.

Decides on the queue's newest value, which already contains the facts read for this landing.
"""

from datetime import datetime

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import LandMode, MergeQueue
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.state import holds
from service.mergequeue.engine.states import LANDS, EntryState, RunStatus


def against(value: MergeQueue, action: Land, now: datetime) -> str | None:
    """Return the reason against landing now, None if it may land."""
    if value.landing is None or value.landing.number != action.number:
        return "The queue does not ask for this landing any more."
    if value.state not in LANDS:
        return f"The queue is {value.state.value.lower()}."
    if holds.stops_landings(value, action.run):
        return "The queue is on hold."
    if value.tip != action.expected_tip or value.kept_move is not None:
        return "The target branch has moved."
    return _against_run(value, action, now) or _against_entries(value, action)


def _against_run(value: MergeQueue, action: Land, now: datetime) -> str | None:
    """Return the run must still be green, by all that is required now and by the newest reports."""
    run = value.runs.get(action.run)
    if run is None or run.status is not RunStatus.SUCCEEDED:
        return "The run is not green."
    if value.required is None or value.required.source is None:
        return "It is not known what must pass."
    if not landing.stands(value, run.id, now):
        return "What it was tested on is not what it would land on."
    ran = value.check_history.ran_lately(now)
    skippable = verdict.skippable_in(run, value.entries, ran)
    judged = verdict.verdict_of(run, now, value.sends_results, skippable)
    return None if judged.is_green else "A required status has not passed."


def _against_entries(value: MergeQueue, action: Land) -> str | None:
    for step in action.steps:
        entry = value.entries.get(step.pr)
        if entry is None or entry.id != step.entry or entry.head != step.head:
            return f"Pull request {step.pr} has another head."
        if entry.state is not EntryState.TESTS_PASSED or entry.cancel is not None:
            return f"Pull request {step.pr} must not land now."
        if entry.facts.in_stack and action.mode is LandMode.CAS:
            return f"Pull request {step.pr} has joined a stack."
        if entry.unmet:
            return f"Pull request {step.pr} is not ready: {entry.unmet[0].value}."
    return None

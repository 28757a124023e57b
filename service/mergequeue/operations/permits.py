"""The permit of a landing, decided at the last moment, and the provider's call that it permits.

The permit is decided on the queue's newest value, which contains the facts read for this landing.
The call is sent once, and read back if its answer may have been lost (docs/design/landing.md 2, 3).
"""

from dataclasses import dataclass, replace
from datetime import datetime

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import LandMode, MergeQueue
from service.mergequeue.engine.outputs import Land
from service.mergequeue.engine.planning import landing
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.engine.state import holds, waiting
from service.mergequeue.engine.states import LANDS, EntryState, RunStatus
from service.mergequeue.landing_records import LandingRecord
from service.mergequeue.operations.commit_values import CommitTexts
from service.provider.errors import Gone, GoneKind
from service.provider.values import AdvanceRequest, LandStop, Merged, MergeRequest
from service.runtime import Runtime
from service.vocabulary import QueueRef


@dataclass(frozen=True, slots=True)
class Attempt:
    """A landing in progress: the queue, the action, its rows, the run's branch."""

    queue: QueueRef
    action: Land
    records: tuple[LandingRecord, ...]
    branch: str

    @property
    def position(self) -> int:
        """The first position of the landing, by which its outcome is reported."""
        return self.action.steps[0].position


async def send(runtime: Runtime, attempt: Attempt, texts: CommitTexts) -> Merged | LandStop:
    """Send the call, once. Raises OutcomeUnknown and the provider's other errors."""
    provider = runtime.providers[attempt.queue.repo.host]
    if attempt.action.mode is LandMode.CAS:
        return await provider.advance(_advance_request(attempt))
    request = _merge_request(attempt)
    return await provider.merge(replace(request, title=texts.title, message=texts.body))


async def read_back(runtime: Runtime, attempt: Attempt) -> Merged | None:
    """Return what a call landed that may have been sent before; None if it landed nothing.

    Raises OutcomeUnknown while that cannot be known yet.
    """
    provider = runtime.providers[attempt.queue.repo.host]
    if attempt.action.mode is LandMode.CAS:
        return await provider.advanced(_advance_request(attempt))
    try:
        return await provider.merged(_merge_request(attempt))
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return None  # what landed of it shows as a move of the target


def _merge_request(attempt: Attempt) -> MergeRequest:
    action = attempt.action
    *below, step = action.steps
    return MergeRequest(
        repo=attempt.queue.repo,
        target=attempt.queue.branch,
        number=step.pr,
        head_sha=step.head,
        method=action.method,
        expect_parent=action.expected_tip.sha,
        below=tuple((one.pr, one.head) for one in below),
        sent_until=sent_until(attempt),
    )


def _advance_request(attempt: Attempt) -> AdvanceRequest:
    return AdvanceRequest(
        repo=attempt.queue.repo,
        target=attempt.queue.branch,
        expect=attempt.action.expected_tip.sha,
        to=attempt.action.steps[-1].commit,
        test_branch=attempt.branch,
        sent_until=sent_until(attempt),
    )


def sent_until(attempt: Attempt) -> datetime | None:
    """Return until when the same call may have been sent before; None if it was not."""
    permits = [row.permit_until for row in attempt.records if row.permit_until is not None]
    return max(permits, default=None)


def against(
    value: MergeQueue, action: Land, now: datetime, rules: tuple[EntryRule, ...]
) -> str | None:
    """Return the reason against landing now, None if it may land.

    By `rules` its pull requests were judged when they were read for this landing.
    """
    if value.landing is None or value.landing.number != action.number:
        return "The queue does not ask for this landing any more."
    if value.config.shadow:
        return "The queue is in shadow: it lands nothing."
    if value.state not in LANDS:
        return f"The queue is {value.state.value.lower()}."
    if holds.stops_landings(value, action.run):
        return "The queue is on hold."
    if value.tip != action.expected_tip or value.kept_move is not None:
        return "The target branch has moved."
    if value.config.rules != rules:
        return "The rules of the queue have changed."
    return _against_run(value, action, now) or _against_entries(value, action, now)


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


def _against_entries(value: MergeQueue, action: Land, now: datetime) -> str | None:
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
        if waiting.is_changed(entry, now):
            return f"Pull request {step.pr} waits from now on."
    return None

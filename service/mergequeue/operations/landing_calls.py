"""The provider's call of one landing: sent once, read back if its answer may have been lost.

See docs/design/landing.md 2 and 3.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from service.database.records import LandingRecord
from service.mergequeue.engine.model import LandMode
from service.mergequeue.engine.outputs import Land
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
        sent_until=_sent_until(attempt),
    )


def _advance_request(attempt: Attempt) -> AdvanceRequest:
    return AdvanceRequest(
        repo=attempt.queue.repo,
        target=attempt.queue.branch,
        expect=attempt.action.expected_tip.sha,
        to=attempt.action.steps[-1].commit,
        test_branch=attempt.branch,
        sent_until=_sent_until(attempt),
    )


def _sent_until(attempt: Attempt) -> datetime | None:
    """Return until when the same call may have been sent before; None if it was not."""
    permits = [row.permit_until for row in attempt.records if row.permit_until is not None]
    return max(permits, default=None)

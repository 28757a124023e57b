"""Messages to webhook endpoints about pull requests, test runs and queues."""

from typing import Annotated

from pydantic import BaseModel

from service.http.models.answers.common import (
    Count,
    Id,
    Number,
    Sha,
    SnakeAnswer,
    Time,
    open_word,
)
from service.mergequeue.api.models.answers.next_steps import (
    FailedCheckShown,
    FailedTestFields,
    NextStepFields,
    OwnerFields,
)
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from service.mergequeue.reasons.record import HoldScope
from service.notifications.api.models.answers.messages import RepositoryMessage
from service.vocabulary import ActorKind


class QueueMessage(RepositoryMessage):
    """A message about something of one queue."""

    target_branch: str
    """The branch of the queue. For example `main`."""


class MovedMessage(QueueMessage):
    """A pull request, or a batch, entered a state."""

    status: EntryState
    """The state that was entered."""
    http_details_url: str | None
    """Page of the pull request; null without pages. For example `https://queue.example.org/octo`"""
    is_bisection: bool
    """Whether the test run searches for the culprit of a failed batch."""
    test_branch: str | None
    """Test branch of its test run; null before one is built. For example `headgate/merge/pr-482`"""
    test_branch_sha: Sha | None
    """Commit of the test branch; null before one is built."""
    test_pr_number: Number | None
    """The draft pull request that carries the test branch; null without one."""
    reason: Annotated[str, open_word(Reason)]
    """Why, as a code."""
    reason_message: str
    """The same as a sentence. For example `test (3.12) failed.`"""
    verdict: Annotated[str, open_word(Cause)] | None
    """Why its test run failed; null if it did not."""
    retryable: bool
    """Whether submitting it again unchanged may help."""
    test_run_id: Id | None
    """The test run that it is in, or came from; null before its first one."""
    merged_sha: Sha | None
    """The commit that landed; null before."""


class PullRequestMessage(MovedMessage):
    """A pull request entered a state."""

    pr_number: Number
    """The pull request."""
    author: str
    """Login of its author. For example `alice`."""
    batched: bool
    """Whether its test run tests other pull requests as well."""
    entry_id: Id
    """The submission: the same in all of its states."""
    pr_sha: Sha
    """The head that is tested."""
    sequence: Number
    """Counts the states of the submission from 1: drop what is older than you have."""


class BatchMessage(MovedMessage):
    """All pull requests of a batch entered a state; each has a message of its own, too."""

    batch_id: Id
    """The batch: the id of its test run."""
    pr_numbers: list[Number]
    """All pull requests on the test branch, those ahead of the batch included."""
    pr_numbers_in_batch: list[Number]
    """The pull requests that are tested."""


class SubmittedReason(SnakeAnswer):
    """How it was submitted."""

    submitted_reason: str
    """The reason in the word of Trunk's webhooks. For example `MERGE_ITEM_SUBMITTED`."""


class QueuedReason(SnakeAnswer):
    """Why it waits for its turn."""

    queued_reason: str
    """The reason in the word of Trunk's webhooks. For example `MERGE_ITEM_NOW_READY`."""


class PassedReason(SnakeAnswer):
    """Why its tests count as passed."""

    passed_reason: str
    """The reason in the word of Trunk's webhooks. For example `PASSED_BY_OPTIMIZATION`."""


class FailureReason(SnakeAnswer):
    """Why it failed."""

    failure_reason: str
    """The reason in the word of Trunk's webhooks. For example `TEST_RUN_TIMEOUT`."""


class CancellationReason(SnakeAnswer):
    """Why it was taken out."""

    cancellation_reason: str
    """The reason in the word of Trunk's webhooks. For example `PR_PUSHED_TO`."""


class MergedReason(SnakeAnswer):
    """How it landed."""

    merged_reason: str
    """The reason in the word of Trunk's webhooks. For example `MANUAL_MERGE`."""


class PullRequestSubmitted(PullRequestMessage, SubmittedReason):
    """A submission of a pull request began."""


class PullRequestQueued(PullRequestMessage, QueuedReason):
    """A pull request waits for a test run; restarts bring it here again."""


class PullRequestPassed(PullRequestMessage, PassedReason):
    """The tests of a pull request passed."""


class FailedTestInMessage(FailedTestFields, SnakeAnswer):
    """A test that failed in the newest test run of a pull request."""


class FailuresInMessage(SnakeAnswer):
    """What failed, as `/explainPullRequest` says: the first checks and tests, as many as fit."""

    text: str
    """How the cause was found; empty while that is not known. For example
    `It failed in 2 test runs. No other PR was in its base.`
    """
    checks: list[FailedCheckShown]
    """The required checks that failed, at most 5."""
    tests: list[FailedTestInMessage]
    """The tests that failed, at most 5, new failures first."""
    failed_tests: Count
    """How many tests failed and are not excused."""
    excused_tests: Count
    """How many more failed and are quarantined."""


class WithFailures(SnakeAnswer):
    """What failed of a pull request that left."""

    failures: FailuresInMessage | None
    """What failed in its test run; null if nothing did."""


class OwnerInMessage(OwnerFields, SnakeAnswer):
    """A pull request with which another one conflicts."""


class NextStepInMessage(NextStepFields, SnakeAnswer):
    """What to do next, as `/getNextStep` says, with the failures that fit."""

    conflicts_with: list[OwnerInMessage]
    """The pull requests with which it conflicts, as far as known, and their authors."""
    failures: FailuresInMessage | None
    """What failed; null if nothing did."""


class NextStepChanged(QueueMessage):
    """What to do next about a pull request is of another kind than before, and not `WAIT`."""

    http_details_url: str | None
    """Page of the pull request; null without pages. For example `https://queue.example.org/octo`"""
    pr_number: Number
    """The pull request."""
    author: str
    """Login of its author. For example `alice`."""
    entry_id: Id
    """The submission: the same in all of its states."""
    pr_sha: Sha
    """The head that was submitted."""
    next_step: NextStepInMessage
    """What to do next."""


class PullRequestFailed(PullRequestMessage, FailureReason, WithFailures):
    """A pull request left the queue because it cannot land."""


class PullRequestCanceled(PullRequestMessage, CancellationReason, WithFailures):
    """A pull request was taken out of the queue."""


class PullRequestMerged(PullRequestMessage, MergedReason):
    """A pull request landed."""


class BatchSubmitted(BatchMessage, SubmittedReason):
    """A batch was formed."""


class BatchQueued(BatchMessage, QueuedReason):
    """The pull requests of a batch wait for another test run."""


class BatchFailed(BatchMessage, FailureReason):
    """A batch failed."""


class BatchCanceled(BatchMessage, CancellationReason):
    """A batch was given up."""


class BatchMerged(BatchMessage, MergedReason):
    """All pull requests of a batch landed."""


class TestRunMessage(QueueMessage):
    """A test run began on its test branch, or has a result."""

    __test__ = False

    status: RunStatus
    """Status of the test run."""
    http_details_url: str | None
    """Page of the test run; null without pages. For example `https://queue.example.org/octo`"""
    test_run_id: Id
    """The test run."""
    kind: RunKind
    """What the test run is for."""
    attempt: Number
    """Above 1: its checks were restarted."""
    test_branch: str | None
    """Its test branch. For example `headgate/merge/pr-482`"""
    test_branch_sha: Sha | None
    """Commit of the test branch."""
    test_pr_number: Number | None
    """The draft pull request that carries the test branch; null without one."""
    pr_numbers: list[Number]
    """All pull requests on the test branch, those ahead included."""
    pr_numbers_tested: list[Number]
    """The pull requests that it tests."""
    verdict: Annotated[str, open_word(Cause)] | None
    """Why it failed; null if it did not."""
    failed_statuses: list[str]
    """The required statuses that failed. For example `["unit"]`"""


class QueueActor(SnakeAnswer):
    """Who changed a queue."""

    kind: ActorKind
    """What kind of actor it is."""
    login: str | None
    """Login of a person, name of a token; null for Headgate itself. For example `bob`."""


class HoldInMessage(SnakeAnswer):
    """A hold that was placed or lifted."""

    id: Id
    """The hold."""
    reason: Annotated[str, open_word(HoldReason)]
    """Why the queue is held, as a code."""
    scope: HoldScope
    """What it stops."""
    message: str
    """Why the queue is held and who ends that, in sentences. For example `Held by bob.`"""
    text: str | None
    """What its placer wrote; null without. For example `release freeze`."""
    since: Time
    """When it was placed."""
    until: Time | None
    """When it ends by itself; null: never."""


class QueueChanged(QueueMessage):
    """A queue changed."""

    http_details_url: str | None
    """Page of the queue; null without pages. For example `https://queue.example.org/octo`"""
    status: QueueState
    """The state of the queue."""
    previous_status: QueueState | None
    """Its state before; null for a new queue."""
    reason: str | None
    """Why; null where nothing is known. For example `release freeze`."""
    actor: QueueActor
    """Who changed it."""
    changed_fields: list[str]
    """The settings that changed. For example `["concurrency"]`"""
    hold: HoldInMessage | None
    """The hold, where the event is about one."""
    version: Count
    """Counts the changes of the queue: drop what is older than you have."""


class TargetMessage(QueueMessage):
    """A watched check of a target branch turned red, was searched to its end, or is green again."""

    http_details_url: str | None
    """Page of the queue; null without pages. For example `https://queue.example.org/octo`"""
    check: str
    """Name of the check. For example `nightly`"""
    report_url: str
    """The failed report that began the search. For example `https://github.com/octo/widgets/runs/1`"""
    red_commit: Sha
    """The commit on which the check was seen red."""
    culprit_commit: Sha | None
    """The commit that broke it; null while it is not known."""
    culprit_pr_number: Number | None
    """The pull request that landed with that commit; null while it is not known."""
    revert_pr_number: Number | None
    """The pull request that reverts it; null without one."""
    suspects: list[Number]
    """Pull requests of which each may have broken it, if the search ended without a culprit."""
    reason_message: str
    """Where it stands, in sentences. For example `#12 broke it. Headgate opens a revert.`"""


class ConflictSide(SnakeAnswer):
    """A pull request of a conflict."""

    number: Number
    """Number of the pull request."""
    head: Sha
    """Its head."""
    author: str | None
    """Login of its author; null if it is not open any more. For example `bob`."""


class ConflictGone(QueueMessage):
    """Two pull requests do not conflict any more: one has moved, was closed or has landed."""

    pull_requests: list[ConflictSide]
    """Both pull requests, the lower number first."""
    paths: list[str]
    """The files in which they conflict. For example `["src/cart.py"]`."""


class ConflictForeseen(ConflictGone):
    """One of two open pull requests conflicts once the other has landed."""

    rebases: list[Number]
    """Which of both is to be rebased in the order with the fewest rebases."""
    advice: str | None
    """That order. For example `Land #4 first, then rebase #7: 1 rebase.`"""


QUEUE_MESSAGES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("pull_request.submitted", PullRequestSubmitted),
    ("pull_request.not_ready", PullRequestMessage),
    ("pull_request.queued", PullRequestQueued),
    ("pull_request.testing", PullRequestMessage),
    ("pull_request.tests_passed", PullRequestPassed),
    ("pull_request.pending_failure", PullRequestMessage),
    ("pull_request.failed", PullRequestFailed),
    ("pull_request.canceled", PullRequestCanceled),
    ("pull_request.merged", PullRequestMerged),
    ("pull_request_batch.submitted", BatchSubmitted),
    ("pull_request_batch.queued", BatchQueued),
    ("pull_request_batch.testing", BatchMessage),
    ("pull_request_batch.pending_failure", BatchMessage),
    ("pull_request_batch.failed", BatchFailed),
    ("pull_request_batch.canceled", BatchCanceled),
    ("pull_request_batch.merged", BatchMerged),
    ("next_step.changed", NextStepChanged),
    ("test_run.started", TestRunMessage),
    ("test_run.finished", TestRunMessage),
    ("queue.created", QueueChanged),
    ("queue.updated", QueueChanged),
    ("queue.deleted", QueueChanged),
    ("queue.state_changed", QueueChanged),
    ("queue.held", QueueChanged),
    ("queue.released", QueueChanged),
    ("queue.drained", QueueChanged),
    ("queue.landing_mismatch", QueueChanged),
    ("target.red", TargetMessage),
    ("target.culprit", TargetMessage),
    ("target.green", TargetMessage),
    ("conflict.foreseen", ConflictForeseen),
    ("conflict.gone", ConflictGone),
)
"""Events and their messages."""

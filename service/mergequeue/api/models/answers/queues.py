"""Answers of the queue endpoints."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.models.answers.common import (
    Actor,
    Answer,
    Count,
    Id,
    LeftOut,
    Meant,
    Number,
    RecordVersion,
    RepositoryShown,
    Time,
    WithIgnored,
    open_word,
)
from service.http.models.answers.troubles import TroubleShown
from service.http.models.shared import TAKE_MAX
from service.mergequeue.api.models.answers.pull_requests import ListedSubmission
from service.mergequeue.api.models.lists import EVENTS_MAX
from service.mergequeue.engine.config import Mode, SettingSource
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations.setting_types import shows_settings
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import RequiredSource


class HoldShown(Answer):
    """A reason why the queue starts or lands nothing."""

    id: Id
    """The hold."""
    reason: Annotated[str, open_word(HoldReason)]
    """Why the queue is held, as a code."""
    scope: HoldScope
    """What it stops."""
    text: str
    """The same as a sentence. For example `release freeze`."""
    by: Actor
    """Who placed it."""
    since: Time
    """When it was placed."""
    until: Time | None
    """When it ends by itself; null: never."""
    evidence_url: str | None
    """Where to see why; null without an address. For example
    `https://github.com/octo/widgets/commit/a1b2c3d`.
    """


class RuleNote(Answer):
    """A rule of the branch at the provider, and what it means for the queue."""

    rule: str
    """The rule, in the words of the provider. For example `required_signatures`."""
    text: str
    """What it means for the queue. For example `Commits must be signed.`"""


class FileFaultShown(Answer):
    """A mistake in the repository's file, and what to change."""

    path: str
    """The file. For example `.github/headgate.yml`."""
    line: Count | None
    """Its line, from 1; null for the whole file."""
    field: str
    """The field. For example `queue.concurrency`."""
    message: str
    """What is wrong, and what to write. For example `must be at least 1`."""


class RepositoryFileShown(Answer):
    """What the queue takes from the repository's file, and what is wrong with its newest version.

    With `faults` the settings of the version at `goodCommit` stay in force.
    """

    commit: str
    """The commit whose files were read last. For example
    `a1b2c3d4e5f60718293a4b5c6d7e8f9012345678`.
    """
    good_commit: str | None
    """The commit whose settings are in force; null without one. For example
    `a1b2c3d4e5f60718293a4b5c6d7e8f9012345678`.
    """
    required_path: str | None
    """The file that names required statuses; null if none does. For example
    `.github/headgate.yml`.
    """
    faults: list[FileFaultShown]
    """Mistakes in the newest version."""


class QueueLinks(Answer):
    """Where to read more, null without an address."""

    page: str | None
    """Page of the queue. For example `https://queue.example.org/octo/widgets/main`."""


@shows_settings
class QueueSettings(Answer):
    """The settings of a queue and its state."""

    branch: str
    """The branch that the queue protects. For example `main`."""
    state: QueueState
    """The state of the queue."""
    state_reason: str | None
    """Why it is paused or draining; null without a reason. For example `release freeze`."""


class Queue(QueueSettings):
    """A queue: its settings, its state and what follows from the rules of its branch."""

    version: Count
    """Rises with every change of the queue."""
    state_changed_at: Time | None
    """Since when it is in this state."""
    state_changed_by: Actor | None
    """Who set the state; null for a new queue."""
    test_branch_kind: Literal["DRAFT_PR", "PUSH"]
    """How test branches are shown to CI."""
    test_branch_kind_reason: str | None
    """Why Headgate chose that; null where a person did. For example `CI runs on pull requests
    alone.`
    """
    target_mode: Mode | None
    """The mode that it switches to; null while it does not."""
    holds: list[HoldShown]
    """Everything that holds the queue."""
    effective_required_statuses: list[str]
    """The statuses that a test run must pass now. For example `["unit"]`"""
    required_statuses_source: RequiredSource | None
    """Where these come from; null without any."""
    rule_notes: list[RuleNote]
    """Rules of the branch that matter to the queue."""
    setting_sources: dict[str, SettingSource]
    """Where a setting comes from, for those that are not at their default. For example
    `{"concurrency": "API"}`
    """
    repository_file: RepositoryFileShown | None
    """What the files of the repository set; null without files."""
    links: QueueLinks
    """Where to read more."""


class QueueCreated(Queue):
    """The new queue, and the names in the request that set nothing."""

    ignored_fields: list[str]
    """Fields of the request that set nothing: unknown ones, and those that a file of the repository
    sets. For example `["colour"]`
    """
    did_you_mean: LeftOut[Meant] = None
    """The known field that is nearest to an ignored one; left out if none is near. For example
    `{"concurency": "concurrency"}`
    """


ENQUEUED_MAX = 5_000


class QueueWithEntries(WithIgnored, Queue):
    """A queue with every submission that has not ended, in its order."""

    troubles: list[TroubleShown]
    """What keeps Headgate from working on the repository now, beside the holds of the queue; empty
    while all is well.
    """
    enqueued_pull_requests: Annotated[list[ListedSubmission], Field(max_length=ENQUEUED_MAX)]
    """Every submission that has not ended, in order."""
    enqueued_pull_requests_truncated: LeftOut[Literal[True]] = None
    """There are more than 5,000."""
    record_version: RecordVersion
    """Changes with the answer: send it as `sinceVersion` to wait for a change."""


class QueueDeleted(WithIgnored):
    """The queue is gone; its history stays."""

    deleted: Literal[True]
    """It is deleted."""
    branch: str
    """The branch of the queue. For example `main`."""


class HoldAdded(Answer):
    """The new hold."""

    hold: HoldShown
    """The new hold."""


class HoldReleased(Answer):
    """The hold is lifted."""

    released: Literal[True]
    """It is lifted."""
    hold_id: Id
    """The hold."""


class ListedQueue(Answer):
    """A queue among others; `depth` counts what is ready, `notReady` the rest."""

    repo: RepositoryShown
    """The repository of the queue."""
    branch: str
    """The branch of the queue. For example `main`."""
    state: QueueState
    """The state of the queue."""
    mode: Mode
    """The mode of the queue."""
    depth: Count
    """How many pull requests are ready."""
    not_ready: Count
    """How many pull requests are not ready yet."""
    testing: Count
    """How many pull requests are tested now."""
    version: Count
    """Rises with every change of the queue."""


class QueuesListed(Answer):
    """A part of a list; `nextCursor` is left out at its end."""

    queues: Annotated[list[ListedQueue], Field(max_length=TAKE_MAX)]
    """Queues, by repository and branch."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""


class QueueEvent(Answer):
    """One event of a queue; `from` and `to` are null where no state changed."""

    at: Time
    """When it happened."""
    event: str
    """What happened, as a word of a list that may grow. For example `EntryMoved`."""
    pr_number: Number | None
    """The pull request that it is about; null if it is about the queue or a test run."""
    origin: EntryState | QueueState | None = Field(alias="from")
    """The state before, of the pull request or of the queue."""
    to: EntryState | QueueState | None
    """The state after, of the pull request or of the queue."""
    reason: Annotated[str, open_word(Reason)] | None
    """Why, as a code; null where there is none."""
    message: str
    """What happened, as a sentence. For example `Its tests passed.`"""
    actor: Actor
    """Who did it."""
    test_run_id: Id | None
    """The test run that it is about; null without one."""


class QueueEventsListed(Answer):
    """Events of a queue, oldest first."""

    events: Annotated[list[QueueEvent], Field(max_length=EVENTS_MAX)]
    """Events behind the cursor of the request."""
    cursor: str
    """Send it for the events behind these; it is valid for 24 hours. For example `eyJrIjpbMV19`."""
    has_more: bool
    """Whether there are more events already."""

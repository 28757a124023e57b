"""Answers of the queue endpoints."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.models.answers.common import (
    Actor,
    Answer,
    Count,
    Id,
    LeftOut,
    RecordVersion,
    RepositoryShown,
    Time,
    open_word,
)
from service.http.models.shared import TAKE_MAX
from service.mergequeue.api.models.answers.pull_requests import ListedSubmission
from service.mergequeue.engine.config import Mode, SettingSource
from service.mergequeue.engine.reasons import HoldReason, HoldScope
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations.setting_types import shows_settings
from service.vocabulary import RequiredSource


class HoldShown(Answer):
    """A reason why the queue starts or lands nothing."""

    id: Id
    reason: Annotated[str, open_word(HoldReason)]
    scope: HoldScope
    text: str
    by: Actor
    since: Time
    until: Time | None
    evidence_url: str | None


class RuleNote(Answer):
    """A rule of the branch at the provider, and what it means for the queue."""

    rule: str
    text: str


class FileFaultShown(Answer):
    """A mistake in the repository's file, and what to change."""

    path: str
    line: Count | None
    field: str
    message: str


class RepositoryFileShown(Answer):
    """What the queue takes from the repository's file, and what is wrong with its newest version.

    With `faults` the settings of the version at `goodCommit` stay in force.
    """

    commit: str
    good_commit: str | None
    required_path: str | None
    faults: list[FileFaultShown]


class QueueLinks(Answer):
    """Where to read more, null without an address."""

    page: str | None


@shows_settings
class QueueSettings(Answer):
    """The settings of a queue and its state."""

    branch: str
    state: QueueState
    state_reason: str | None


class Queue(QueueSettings):
    """A queue: its settings, its state and what follows from the rules of its branch."""

    version: Count
    state_changed_at: Time | None
    state_changed_by: Actor | None
    test_branch_kind: Literal["DRAFT_PR", "PUSH"]
    test_branch_kind_reason: str | None
    target_mode: Mode | None
    holds: list[HoldShown]
    effective_required_statuses: list[str]
    required_statuses_source: RequiredSource | None
    rule_notes: list[RuleNote]
    setting_sources: dict[str, SettingSource]
    repository_file: RepositoryFileShown | None
    links: QueueLinks


class QueueCreated(Queue):
    """The new queue, and the names in the request that set nothing."""

    ignored_fields: list[str]


ENQUEUED_MAX = 5_000


class QueueWithEntries(Queue):
    """A queue with every submission that has not ended, in its order."""

    enqueued_pull_requests: Annotated[list[ListedSubmission], Field(max_length=ENQUEUED_MAX)]
    enqueued_pull_requests_truncated: LeftOut[Literal[True]] = None
    record_version: RecordVersion


class QueueDeleted(Answer):
    """The queue is gone; its history stays."""

    deleted: Literal[True]
    branch: str


class HoldAdded(Answer):
    """The new hold."""

    hold: HoldShown


class HoldReleased(Answer):
    """The hold is lifted."""

    released: Literal[True]
    hold_id: Id


class ListedQueue(Answer):
    """A queue among others; `depth` counts what is ready, `notReady` the rest."""

    repo: RepositoryShown
    branch: str
    state: QueueState
    mode: Mode
    depth: Count
    not_ready: Count
    testing: Count
    version: Count


class QueuesListed(Answer):
    """A part of a list; `nextCursor` is left out at its end."""

    queues: Annotated[list[ListedQueue], Field(max_length=TAKE_MAX)]
    next_cursor: LeftOut[str] = None

"""Answers of the queue endpoints (API.md 5)."""

from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from service.http.models.answers.common import (
    Actor,
    Answer,
    Count,
    Id,
    LeftOut,
    RepositoryShown,
    Time,
    open_word,
)
from service.http.models.shared import TAKE_MAX
from service.mergequeue.api.models.answers.pull_requests import ListedSubmission
from service.mergequeue.engine.config import (
    BatchSizing,
    ConfirmFailures,
    ForkPolicy,
    Hedging,
    Mode,
    OptimizationMode,
    TestBranchConstruction,
    Toggle,
)
from service.mergequeue.engine.reasons import HoldReason, HoldScope
from service.mergequeue.engine.states import QueueState
from service.vocabulary import MergeMethod, RequiredSource


class BatchingRuleShown(Answer):
    """Pull requests with a matching target travel alone."""

    target_pattern: str
    policy: Literal["ISOLATE"]


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


class QueueLinks(Answer):
    """Where to read more, null without an address."""

    page: str | None


def _whole_if_possible(hours: float) -> int | float:
    return int(hours) if hours.is_integer() else hours


Hours = Annotated[float, PlainSerializer(_whole_if_possible)]
"""A number of hours, written without a fraction if it has none."""


class Queue(Answer):
    """A queue: its settings, and how it stands."""

    branch: str
    state: QueueState
    mode: Mode
    concurrency: int
    bisection_concurrency: int
    testing_timeout_minutes: int
    can_optimistically_merge: bool
    pending_failure_depth: int
    batch: bool
    batching_max_wait_time_minutes: int
    batching_min_size: int
    batch_sizing: BatchSizing
    create_prs_for_testing_branches: bool
    comments_enabled: bool
    commands_enabled: bool
    status_check_enabled: bool
    label_commands_enabled: bool
    state_labels_enabled: bool
    extension_enabled: bool
    enqueueing_label: str
    required_statuses: list[str] | None
    direct_merge_mode: Toggle
    optimization_mode: OptimizationMode
    merge_method: MergeMethod
    test_branch_construction_mode: TestBranchConstruction
    not_ready_timeout_hours: Hours
    allowed_bot_submitters: list[str]
    batching_rules: list[BatchingRuleShown]
    state_reason: str | None
    skipped_statuses_pass: bool
    check_start_timeout_minutes: int
    fork_policy: ForkPolicy
    auto_retry_limit: int
    flaky_knowledge_enabled: bool
    max_excused_failures: int
    result_reuse_enabled: bool
    confirm_failures: ConfirmFailures
    hedging: Hedging
    hedge_threshold: float
    full_suite: bool
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
    setting_sources: dict[str, Literal["default", "repo_file", "api", "dashboard", "cli"]]
    links: QueueLinks


class QueueCreated(Queue):
    """The new queue, and the names in the request that set nothing."""

    ignored_fields: list[str]


ENQUEUED_MAX = 5_000


class QueueWithEntries(Queue):
    """A queue with every submission that has not ended, in its order."""

    enqueued_pull_requests: Annotated[list[ListedSubmission], Field(max_length=ENQUEUED_MAX)]
    enqueued_pull_requests_truncated: LeftOut[Literal[True]] = None


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

"""Answers of the pull request endpoints."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from service.http.models.answers.common import (
    Actor,
    Answer,
    Count,
    Id,
    LeftOut,
    Number,
    RecordVersion,
    Sha,
    Time,
    open_word,
)
from service.http.models.shared import TAKE_MAX
from service.mergequeue.api.models.lists import EVENTS_MAX
from service.mergequeue.engine.explaining.conditions import ConditionCode
from service.mergequeue.engine.reasons import Cause, Reason, WhoMustAct
from service.mergequeue.engine.states import EntryState
from service.vocabulary import RequiredSource

Priority = Annotated[int, Field(ge=0, le=255)]


class Readiness(Answer):
    """What a pull request needs before it may be tested."""

    has_impacted_targets: bool
    requires_impacted_targets: bool
    does_base_branch_match: bool
    git_hub_mergeability: Literal["UNSPECIFIED", "IN_PROGRESS", "MERGEABLE", "NOT_MERGEABLE"]


class TimeLeft(Answer):
    """When it probably lands."""

    earliest: Time
    latest: Time
    overdue: bool


class ConclusionShown(Answer):
    """How a submission ended."""

    at: Time
    cause: Annotated[str, open_word(Cause)] | None
    merged_sha: Sha | None
    test_run_id: Annotated[Id | None, Field(validation_alias=AliasChoices("testRunId", "run"))]
    failed_statuses: Annotated[
        list[str], Field(validation_alias=AliasChoices("failedStatuses", "failed"))
    ]


class SubmissionLinks(Answer):
    """Where to read more, null without an address."""

    page: str | None
    pull_request: str | None
    explain: str | None


class TimelineEntry(Answer):
    """One event of a submission's past; `from` and `to` are null where no state changed."""

    sequence: Number
    at: Time
    event: str
    origin: EntryState | None = Field(alias="from")
    to: EntryState | None
    reason: Annotated[str, open_word(Reason)] | None
    message: str
    actor: Actor
    test_run_id: Id | None


class SubmissionFacts(Answer):
    """What is submitted, and how."""

    id: Id
    state: EntryState
    state_changed_at: Time
    priority_value: Priority
    priority_name: Literal["urgent", "high", "medium", "low", "lowest"]
    used_default_priority_name: Literal["medium"]
    skip_the_line: bool
    no_batch: bool
    pr_title: str
    pr_number: Number
    pr_sha: Sha
    pr_base_branch: str
    pr_author: str


class SubmissionReadiness(SubmissionFacts):
    """Fields of the answer about a single submission."""

    readiness: Readiness
    force_enqueued: Literal[False]
    is_currently_submitted_to_queue: bool


class SubmissionCourse(Answer):
    """The state of a submission, its history and its end."""

    verified_by_test_run: Id | None
    test_run_id: Id | None
    reason: Annotated[str, open_word(Reason)]
    reason_message: str
    retryable: bool
    who_must_act: WhoMustAct
    position: Number | None
    queue_length: Count
    eta: TimeLeft | None
    submitted_at: Time
    submitted_by: Actor
    restarts: dict[str, Number]
    conclusion: ConclusionShown | None
    links: SubmissionLinks


class ListedSubmission(SubmissionCourse, SubmissionFacts):
    """A submission among others."""


class SubmissionAmongMany(ListedSubmission):
    """One of the submissions asked for by number; `timeline` where it was asked for."""

    timeline: LeftOut[list[TimelineEntry]] = None


class Submission(SubmissionAmongMany, SubmissionReadiness):
    """A submission by itself; `timeline` where it was asked for."""


class SubmissionFound(Submission):
    """A submission as it is now."""

    record_version: RecordVersion


class SubmissionMade(Submission):
    """A submission and the result of submitting it."""

    result: Literal["created", "updated", "unchanged"]


class SubmissionRestarted(Submission):
    """A submission and the result of restarting its tests."""

    result: Literal["restarted", "not_needed"]


class TargetsKept(Answer):
    """The impacted targets that were stored."""

    pr_number: Number
    pr_sha: Sha
    impacts_all: bool
    target_count: Count


class ConditionShown(Answer):
    """One thing that must hold before the pull request lands."""

    code: Annotated[str, open_word(ConditionCode)]
    met: bool
    text: str
    since: Time | None
    who_must_act: WhoMustAct
    pull_requests: list[Number]
    url: str | None


class NextNews(Answer):
    """What will change the first open condition."""

    what: str
    at: Time | None
    pull_requests: list[Number]


class Explanation(Answer):
    """Why a pull request has not landed yet."""

    pr_number: Number
    state: EntryState
    reason: Annotated[str, open_word(Reason)]
    summary: str
    conditions: list[ConditionShown]
    next: NextNews | None
    ahead: list[Number]
    behind: list[Number]
    depends_on: list[Number]
    required_statuses: list[str]
    required_statuses_source: RequiredSource | None
    eta: TimeLeft | None
    eta_unknown_reason: str | None


class CancelPreviewed(Answer):
    """What taking the pull request out would do."""

    pr_number: Number
    runs_interrupted: list[Id]
    pull_requests_restarted: list[Number]
    pull_requests_moved_up: list[Number]


class PriorityPreviewed(CancelPreviewed):
    """What another priority would do."""

    pull_requests_moved_back: list[Number]


class QueueFound(Answer):
    """The queue of a pull request."""

    pr_number: Number
    target_branch: str


class SubmissionsFound(Answer):
    """The newest submission of each number, and the numbers that have none."""

    pull_requests: list[SubmissionAmongMany]
    not_found: list[Number]


class SubmissionsListed(Answer):
    """A part of a list; `nextCursor` is left out at its end."""

    pull_requests: Annotated[list[ListedSubmission], Field(max_length=TAKE_MAX)]
    next_cursor: LeftOut[str] = None


class TimelineListed(Answer):
    """A part of a timeline, oldest first; `nextCursor` is left out at its end."""

    events: Annotated[list[TimelineEntry], Field(max_length=EVENTS_MAX)]
    next_cursor: LeftOut[str] = None

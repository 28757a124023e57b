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
    WithIgnored,
    open_word,
)
from service.http.models.answers.troubles import TroubleShown
from service.http.models.shared import TAKE_MAX
from service.mergequeue.api.models.answers.conflicts import ConflictOf
from service.mergequeue.api.models.answers.next_steps import (
    FailuresShown,
    NextStepShown,
    PullRequestShown,
)
from service.mergequeue.api.models.answers.runs import RequiredCheckShown
from service.mergequeue.api.models.lists import EVENTS_MAX
from service.mergequeue.engine.explaining.conditions import ConditionCode, Standing
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.suspicion import Fate
from service.mergequeue.reasons.record import WhoMustAct
from service.vocabulary import RequiredSource

Priority = Annotated[int, Field(ge=0, le=255)]


class Readiness(Answer):
    """What a pull request needs before it may be tested."""

    has_impacted_targets: bool
    """Whether targets were uploaded for its head. For example `false`"""
    requires_impacted_targets: bool
    """Whether the queue needs them. For example `false`"""
    does_base_branch_match: bool
    """Whether its base is the branch of the queue."""
    git_hub_mergeability: Literal["UNSPECIFIED", "IN_PROGRESS", "MERGEABLE", "NOT_MERGEABLE"]
    """What the provider says about conflicts. For example `MERGEABLE`"""


class TimeLeft(Answer):
    """When it probably lands."""

    earliest: Time
    """When it lands at the earliest, as it looks now."""
    latest: Time
    """When it lands at the latest, as it looks now. For example `2026-03-02T14:20:00.000Z`"""
    overdue: bool
    """Whether an estimate has passed already. For example `false`"""


class ConclusionShown(Answer):
    """How a submission ended."""

    at: Time
    """When it ended."""
    cause: Annotated[str, open_word(Cause)] | None
    """Why its last test run failed; null if it did not."""
    merged_sha: Sha | None
    """The commit that landed; null if none did."""
    test_run_id: Annotated[Id | None, Field(validation_alias=AliasChoices("testRunId", "run"))]
    """Its last test run; null if it had none."""
    failed_statuses: Annotated[
        list[str], Field(validation_alias=AliasChoices("failedStatuses", "failed"))
    ]
    """The required statuses that failed. For example `["unit"]`"""


class SubmissionLinks(Answer):
    """Where to read more, null without an address."""

    page: str | None
    """Page of the pull request. For example
    `https://queue.example.org/octo/widgets/main/pull/482`.
    """
    pull_request: str | None
    """The pull request at the provider. For example `https://github.com/octo/widgets/pull/482`."""
    explain: str | None
    """Where to ask why it has not landed. For example
    `https://queue.example.org/v1/explainPullRequest`.
    """


class RuleWaitShown(Answer):
    """A rule of the queue that makes a pull request wait."""

    rule: str
    """Name of the rule. For example `weekend freeze`"""
    text: str
    """What it waits for. For example `the end of the weekend`"""
    until: Time | None
    """When the wait ends at the latest; null if no time ends it."""


class RulesShown(Answer):
    """What rules of the queue decide about a submission."""

    entered_by: str | None
    """The rule that submitted it; null if somebody did. For example `hotfix`"""
    priority_by: str | None
    """The rule that gives its priority; null if none does. For example `hotfix`"""
    waits_for: list[RuleWaitShown]
    """The rules that make it wait now. For example `[]`"""


class TimelineEntry(Answer):
    """One event of a submission's past; `from` and `to` are null where no state changed."""

    sequence: Number
    """Number of the event in the past of the submission."""
    at: Time
    """When it happened."""
    event: str
    """What happened, as a word of a list that may grow. For example `EntryMoved`."""
    origin: EntryState | None = Field(alias="from")
    """The state before; null where no state changed. For example `PENDING`"""
    to: EntryState | None
    """The state after; null where no state changed. For example `TESTING`"""
    reason: Annotated[str, open_word(Reason)] | None
    """Why, as a code; null where there is none. For example `test_started`"""
    message: str
    """What happened, as a sentence. For example `Its required checks run on a test branch.`"""
    actor: Actor
    """Who did it."""
    test_run_id: Id | None
    """The test run that it is about; null without one."""


class SubmissionFacts(Answer):
    """What is submitted, and how."""

    id: Id
    """The submission: the same in all of its states."""
    state: EntryState
    """The state of the submission. For example `TESTING`"""
    state_changed_at: Time
    """Since when it is in this state."""
    priority_value: Priority
    """The priority: lower numbers go first. For example `100`"""
    priority_name: Literal["urgent", "high", "medium", "low", "lowest"]
    """The first level at or above the number. For example `medium`"""
    used_default_priority_name: Literal["medium"]
    """The level of pull requests that are submitted without a priority."""
    skip_the_line: bool
    """Whether it goes before all others: its priority is 0. For example `false`"""
    no_batch: bool
    """Whether it is tested alone. For example `false`"""
    pr_title: str
    """Title of the pull request. For example `Cart totals`."""
    pr_number: Number
    """Number of the pull request."""
    pr_sha: Sha
    """The head that is tested; another one ends the submission."""
    pr_base_branch: str
    """Base of the pull request as it is known now. For example `main`."""
    pr_author: str
    """Login of its author; `ghost` when the account is gone. For example `alice`."""


class SubmissionReadiness(SubmissionFacts):
    """Fields of the answer about a single submission."""

    readiness: Readiness
    """What it needs before it may be tested."""
    force_enqueued: Literal[False]
    """Always `false`: Headgate tests everything."""
    is_currently_submitted_to_queue: bool
    """Whether the submission has not ended."""
    required_checks: list[RequiredCheckShown]
    """The required checks of the test run that verified it, or that ended it, each with the report
    that counts; empty before. For example `[]`
    """


class SubmissionCourse(Answer):
    """The state of a submission, its history and its end."""

    verified_by_test_run: Id | None
    """The test run that verified it; null before. For example `null`"""
    test_run_id: Id | None
    """Its present or last test run; null before the first test branch is built."""
    reason: Annotated[str, open_word(Reason)]
    """Why it is in this state, as a code. For example `test_started`"""
    reason_message: str
    """The same as a sentence, and what of the queue stops it. For example
    `Its required checks run on a test branch.`
    """
    retryable: bool
    """Whether submitting it again unchanged may help. For example `false`"""
    who_must_act: WhoMustAct
    """Who must act before it continues."""
    position: Number | None
    """Its place among those that are ready, from 1; null before it is ready and at the end. For
    example `2`
    """
    queue_length: Count
    """How many are ready in the queue. For example `7`"""
    eta: TimeLeft | None
    """When it probably lands; null while nothing is known."""
    submitted_at: Time
    """When it was submitted."""
    submitted_by: Actor
    """Who submitted it; a rule has the channel `rule`."""
    rules: RulesShown
    """What rules of the queue decide about it."""
    restarts: dict[str, Number]
    """How often its tests were restarted, by reason. For example `{"ahead_failed": 1}`"""
    conclusion: ConclusionShown | None
    """How it ended; null before. For example `null`"""
    links: SubmissionLinks
    """Where to read more."""


class ListedSubmission(SubmissionCourse, SubmissionFacts):
    """A submission among others."""


class SubmissionAmongMany(ListedSubmission):
    """One of the submissions asked for by number; `timeline` where it was asked for."""

    timeline: LeftOut[list[TimelineEntry]] = None
    """Its past, oldest first, where it was asked for."""


class Submission(SubmissionAmongMany, SubmissionReadiness):
    """A submission by itself; `timeline` where it was asked for."""


class SubmissionFound(WithIgnored, Submission):
    """A submission as it is now."""

    record_version: RecordVersion
    """Changes with the answer: send it as `sinceVersion` to wait for a change."""


class SubmissionCancelled(WithIgnored, Submission):
    """A submission that was asked to leave."""


class SubmissionMade(WithIgnored, Submission):
    """A submission and the result of submitting it."""

    result: Literal["created", "updated", "unchanged"]
    """What the request did."""


class SubmissionRestarted(WithIgnored, Submission):
    """A submission and the result of restarting its tests."""

    result: Literal["restarted", "not_needed"]
    """What the request did: `not_needed` while tests have not begun, such as while the test branch
    of an earlier restart is built.
    """


class TargetsKept(WithIgnored):
    """The impacted targets that were stored."""

    pr_number: Number
    """Number of the pull request."""
    pr_sha: Sha
    """The head that the targets are of."""
    impacts_all: bool
    """Whether it impacts every target."""
    target_count: Count
    """How many distinct targets were stored."""


class ConditionShown(Answer):
    """One thing that must hold before the pull request lands."""

    code: Annotated[str, open_word(ConditionCode)]
    """The condition."""
    met: bool
    """Whether it is fulfilled, or nothing waits for it."""
    standing: Annotated[str, open_word(Standing)]
    """The same, and why it counts if it is not simply true. `skipped` or `excused`: this required
    check did not pass, and counts. `unknown`: nobody could judge it, and nothing waits for it.
    """
    text: str
    """The same as a sentence. For example `Nothing holds the queue.`"""
    since: Time | None
    """Since when it is open; null where that is not known."""
    who_must_act: WhoMustAct
    """Who must act on it."""
    pull_requests: list[Number]
    """The pull requests that it depends on."""
    url: str | None
    """Where to look; null without an address. For example
    `https://github.com/octo/widgets/pull/482`.
    """


class NextNews(Answer):
    """What will change the first open condition."""

    what: str
    """What will happen. For example `CI reports a required check`."""
    at: Time | None
    """When at the latest; null where that is not known."""
    pull_requests: list[Number]
    """The pull requests that it comes from."""


class OtherSuspect(Answer):
    """Another pull request that could have caused the same failure."""

    pr_number: Number
    """Number of the pull request."""
    fate: Annotated[str, open_word(Fate)]
    """What became of it since."""


class FailedTogetherShown(Answer):
    """A failed run that other pull requests could have caused as well."""

    test_run_id: Id
    """The test run."""
    others: list[OtherSuspect]
    """The other pull requests that could have caused it, at most 20."""
    others_more: Count
    """How many more there are."""


class SuspicionShown(Answer):
    """How probable it is that the pull request is broken, and the failed runs that say so."""

    percent: Annotated[int, Field(ge=1, le=100)]
    """The chance that it is broken, in percent; 100 only of one that was rejected."""
    text: str
    """The same with its evidence, as a sentence. For example
    `97 % to blame: failed alone once, failed with #12, which has merged since.`
    """
    failures_alone: Count
    """Failed runs that it alone could have caused."""
    failures_together: Count
    """Failed runs that others could have caused as well."""
    newest_together: list[FailedTogetherShown]
    """The newest 3 of these, the oldest first."""


class Explanation(Answer):
    """Why a pull request has not landed yet."""

    pr_number: Number
    """Number of the pull request."""
    state: EntryState
    """The state of the submission."""
    reason: Annotated[str, open_word(Reason)]
    """Why it is in this state, as a code."""
    summary: str
    """The same as a sentence. For example `It waits for #478, which is ahead.` After its end, what
    to do about it as well. While something keeps Headgate from working, it begins with that."""
    troubles: list[TroubleShown]
    """What keeps Headgate from working on the repository now, the gravest first; empty while all
    is well, and after the end of the submission.
    """
    conditions: list[ConditionShown]
    """Everything that must hold before it lands, in order."""
    next: NextNews | None
    """What will change the first open condition; after its end what to do to submit it again. Null
    if there is nothing to do.
    """
    ahead: list[Number]
    """The pull requests that land before it."""
    behind: list[Number]
    """The pull requests that land after it."""
    depends_on: list[Number]
    """The pull requests ahead whose result its own needs."""
    required_statuses: list[str]
    """The statuses that must pass. For example `["unit"]`"""
    required_statuses_source: RequiredSource | None
    """Where these come from; null without any."""
    suspicion: SuspicionShown | None
    """What the queue believes of it, if its tests failed and it adapts its batches; else null."""
    suspects: list[Number]
    """The pull requests that may have caused its failure, itself among them; empty once that is
    decided.
    """
    failures: FailuresShown | None
    """What failed in its newest test run; null if nothing did, or it does not matter any more."""
    required_checks: list[RequiredCheckShown]
    """The required checks of the test run that counts for it, each with the report that counts;
    empty before its first test run.
    """
    conflicts: list[ConflictOf]
    """Other open pull requests with which it conflicts, queued or not, as far as `conflictRadar`
    has found; empty after its end.
    """
    next_step: NextStepShown
    """What to do about it, as `/getNextStep` says."""
    page: str | None
    """Page of the pull request; null without an address. For example
    `https://queue.example.org/octo/widgets/main/pull/482`.
    """
    eta: TimeLeft | None
    """When it probably lands; null while nothing is known."""
    eta_unknown_reason: str | None
    """Why nothing is known; null when it is. For example `The queue is held.`"""


class CancelPreviewed(Answer):
    """What taking the pull request out would do."""

    pr_number: Number
    """Number of the pull request."""
    runs_interrupted: list[Id]
    """Test runs that would end."""
    pull_requests_restarted: list[Number]
    """Pull requests whose tests would start again."""
    pull_requests_moved_up: list[Number]
    """Pull requests that would get a better place."""


class PriorityPreviewed(CancelPreviewed):
    """What another priority would do."""

    pull_requests_moved_back: list[Number]
    """Pull requests that would get a worse place."""


class QueueFound(PullRequestShown):
    """The queue of a pull request."""


class SubmissionsFound(Answer):
    """The newest submission of each number, and the numbers that have none."""

    pull_requests: list[SubmissionAmongMany]
    """The newest submission of each number."""
    not_found: list[Number]
    """Numbers that were never submitted."""


class SubmissionsListed(Answer):
    """A part of a list; `nextCursor` is left out at its end."""

    pull_requests: Annotated[list[ListedSubmission], Field(max_length=TAKE_MAX)]
    """Submissions, newest first."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""


class TimelineListed(Answer):
    """A part of a timeline, oldest first; `nextCursor` is left out at its end."""

    events: Annotated[list[TimelineEntry], Field(max_length=EVENTS_MAX)]
    """Events, oldest first."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""

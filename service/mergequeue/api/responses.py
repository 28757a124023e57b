"""Views of operations as the API spells them: one function a response.

Plain objects of what JSON knows, keys in the order of API.md; `fragments.py` encodes those
that are read often. Sentences come from `service/wording`.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime

from service.http import rendering
from service.http.rendering import Json
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining.previews import CancelPreview
from service.mergequeue.engine.model import PRIORITY_NAMES, Hold
from service.mergequeue.engine.outputs import EntryMoved, EntrySubmitted, Event, Recorded
from service.mergequeue.engine.reasons import MEANINGS, NOT_READY_ORDER, Meaning, WhoMustAct
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.operations.views import (
    PullRequestView,
    QueueView,
    TargetsStored,
    TimelineEvent,
    shown_actor,
)
from service.mergequeue.wording import history, holds, reasons, rule_notes, situation
from service.mergequeue.wording.situation import Situation
from service.text.times import TimeLeft
from service.vocabulary import SYSTEM, RequiredSource

ENQUEUED_MAX = 5_000

_LEVELS = sorted((value, name) for name, value in PRIORITY_NAMES.items())


def priority_name(value: int) -> str:
    """The first named level at or above the value."""
    return next(name for level, name in _LEVELS if level >= value)


def record(view: PullRequestView, public_url: str | None) -> Json:
    """One pull request by itself (API.md 4.1)."""
    return {
        **identity(view),
        **readiness(view),
        **standing_of(view),
        **place(view.position, view.length, view.eta),
        **course(view, public_url),
        **timeline(view),
    }


def record_in_list(view: PullRequestView, public_url: str | None) -> Json:
    """One pull request among others (API.md 5.2)."""
    return {
        **identity(view),
        **standing_of(view),
        **place(view.position, view.length, view.eta),
        **course(view, public_url),
        **timeline(view),
    }


def identity(view: PullRequestView) -> Json:
    """What is submitted, and how: the first part of a record."""
    entry = view.entry
    return {
        "id": entry.id,
        "state": entry.state.value,
        "stateChangedAt": rendering.time(entry.state_since),
        "priorityValue": entry.priority,
        "priorityName": priority_name(entry.priority),
        "usedDefaultPriorityName": "medium",
        "skipTheLine": entry.priority == 0,
        "noBatch": entry.no_batch,
        "prTitle": entry.facts.title,
        "prNumber": entry.pr,
        "prSha": entry.head,
        "prBaseBranch": entry.facts.base,
        "prAuthor": entry.facts.author,
    }


def readiness(view: PullRequestView) -> Json:
    """What only an answer about one pull request says."""
    entry = view.entry
    return {
        "readiness": {
            "hasImpactedTargets": view.has_targets,
            "requiresImpactedTargets": view.config.mode is Mode.PARALLEL,
            "doesBaseBranchMatch": entry.facts.base == view.queue.branch,
            "gitHubMergeability": entry.facts.mergeability.value.upper(),
        },
        "forceEnqueued": False,
        "isCurrentlySubmittedToQueue": entry.state not in FINAL,
    }


def standing_of(view: PullRequestView) -> Json:
    """Its runs, and why it stands where it stands."""
    entry = view.entry
    meaning = meaning_of(view)
    return {
        "verifiedByTestRun": entry.verified_by,
        "testRunId": view.run,
        "reason": entry.reason.value,
        "reasonMessage": _reason_message(view),
        "retryable": meaning.retryable,
        "whoMustAct": meaning.who.value,
    }


def meaning_of(view: PullRequestView) -> Meaning:
    """Whose move it is and whether trying again helps, as `explain` says it.

    Not ready: from the first unmet condition that somebody has to meet. Waiting in a queue that
    is paused or drained: from the queue's state.
    """
    entry = view.entry
    meaning = MEANINGS[entry.reason]
    if entry.state is EntryState.NOT_READY:
        unmet = [MEANINGS[reason] for reason in NOT_READY_ORDER if reason in entry.unmet]
        acting = [one for one in unmet if one.who is not WhoMustAct.NOBODY]
        return next(iter([*acting, *unmet]), meaning)
    if _waits_for_the_queue(view):
        return replace(meaning, who=WhoMustAct.MAINTAINER)
    return meaning


def _waits_for_the_queue(view: PullRequestView) -> bool:
    """Whether nothing happens to it before a person lets the queue run again."""
    stops = {QueueState.PAUSED}
    if view.entry.state is EntryState.PENDING:
        stops.add(QueueState.DRAINING)
    waits = view.entry.state in (EntryState.PENDING, EntryState.TESTS_PASSED)
    return waits and view.queue_state in stops


def _reason_message(view: PullRequestView) -> str:
    """Why it stands where it stands; a queue that was stopped is named."""
    said = reasons.sentence(situation_of(view))
    if not _waits_for_the_queue(view):
        return said
    return f"{said} The queue is {holds.STATE_NOW[view.queue_state]}."


def situation_of(view: PullRequestView) -> Situation:
    """As the sentences want it."""
    entry = view.entry
    return Situation(
        target=view.queue.branch,
        state=entry.state,
        reason=entry.reason,
        detail=entry.detail,
        by=entry.canceller or SYSTEM,
        submitted_by=entry.submitted_by,
        head=entry.head,
        wanted=situation.wanted_of(entry, view.queue.branch),
        config=view.config,
    )


def place(position: int | None, length: int, eta: TimeLeft | None) -> Json:
    """Where it is in the line, and when it probably lands."""
    return {"position": position, "queueLength": length, "eta": time_left(eta)}


def time_left(eta: TimeLeft | None) -> Json | None:
    """The range of the time left, null where none is known."""
    if eta is None:
        return None
    return {
        "earliest": rendering.time(eta.earliest),
        "latest": rendering.time(eta.latest),
        "overdue": eta.overdue,
    }


def course(view: PullRequestView, public_url: str | None) -> Json:
    """How it got here and how it ended: the last part of a record."""
    entry, end = view.entry, view.conclusion
    concluded = end and {
        "at": rendering.time(end.at),
        "cause": end.cause,
        "mergedSha": end.merged_sha,
        "testRunId": end.run,
        "failedStatuses": list(end.failed),
    }
    return {
        "submittedAt": rendering.time(entry.submitted_at),
        "submittedBy": shown_actor(entry.submitted_by),
        "restarts": dict(entry.restarts),
        "conclusion": concluded,
        "links": {
            "page": view.url,
            "pullRequest": view.pull_request_url,
            "explain": public_url and f"{public_url}/v1/explainPullRequest",
        },
    }


def timeline(view: PullRequestView) -> Json:
    """All that happened to it, where that was asked for."""
    if view.timeline is None:
        return {}
    past = [each.recorded for each in view.timeline]
    return {"timeline": [event(each, view.queue.branch, past) for each in view.timeline]}


def event(listed: TimelineEvent, target: str, past: Sequence[Recorded] = ()) -> Json:
    """One event of a timeline (API.md 4.3); the past tells whom a search is about."""
    recorded = listed.recorded
    happened: Event = recorded.event
    moved = happened if isinstance(happened, EntryMoved) else None
    explained = happened if isinstance(happened, EntryMoved | EntrySubmitted) else None
    return {
        "sequence": listed.sequence,
        "at": rendering.time(recorded.at),
        "event": type(happened).__name__,
        "from": moved and moved.origin.value,
        "to": moved and moved.state.value,
        "reason": explained and explained.reason.value,
        "message": history.message(recorded, target, past),
        "actor": shown_actor(recorded.actor),
        "testRunId": getattr(happened, "run", None),
    }


def queue(view: QueueView, now: datetime) -> dict[str, object]:
    """A queue with its configuration (API.md 5.1), without its pull requests."""
    value, config = view.value, view.value.config
    hours = config.not_ready_timeout_hours
    return {
        "branch": value.branch,
        "state": value.state.value,
        "mode": config.mode.value,
        "concurrency": config.concurrency,
        "bisectionConcurrency": config.bisection_concurrency,
        "testingTimeoutMinutes": config.testing_timeout_minutes,
        "canOptimisticallyMerge": config.can_optimistically_merge,
        "pendingFailureDepth": config.pending_failure_depth,
        "batch": config.batch,
        "batchingMaxWaitTimeMinutes": config.batching_max_wait_time_minutes,
        "batchingMinSize": config.batching_min_size,
        "batchSizing": config.batch_sizing.value,
        "createPrsForTestingBranches": config.create_prs_for_testing_branches,
        "commentsEnabled": config.comments_enabled,
        "commandsEnabled": config.commands_enabled,
        "statusCheckEnabled": config.status_check_enabled,
        "labelCommandsEnabled": config.label_commands_enabled,
        "stateLabelsEnabled": config.state_labels_enabled,
        "extensionEnabled": config.extension_enabled,
        "enqueueingLabel": config.enqueueing_label,
        "requiredStatuses": config.required_statuses,
        "directMergeMode": config.direct_merge_mode.value,
        "optimizationMode": config.optimization_mode.value,
        "mergeMethod": config.merge_method.value,
        "testBranchConstructionMode": config.test_branch_construction_mode.value,
        "notReadyTimeoutHours": int(hours) if float(hours).is_integer() else hours,
        "allowedBotSubmitters": config.allowed_bot_submitters,
        "batchingRules": [
            {"targetPattern": rule.target_pattern, "policy": rule.policy}
            for rule in config.batching_rules
        ],
        "stateReason": value.state_reason,
        "skippedStatusesPass": config.skipped_statuses_pass,
        "checkStartTimeoutMinutes": config.check_start_timeout_minutes,
        "forkPolicy": config.fork_policy.value,
        "autoRetryLimit": config.auto_retry_limit,
        "flakyKnowledgeEnabled": config.flaky_knowledge_enabled,
        "maxExcusedFailures": config.max_excused_failures,
        "resultReuseEnabled": config.result_reuse_enabled,
        "confirmFailures": config.confirm_failures.value,
        "hedging": config.hedging.value,
        "hedgeThreshold": config.hedge_threshold,
        "fullSuite": config.full_suite,
        **_present(view, now),
    }


def _present(view: QueueView, now: datetime) -> Json:
    """What is shown of a queue and cannot be set."""
    value, required = view.value, view.required
    by = value.state_by
    drafts = value.config.create_prs_for_testing_branches
    return {
        "version": value.revision,
        "stateChangedAt": rendering.time_or_null(value.state_since),
        "stateChangedBy": None if by is None else shown_actor(by),
        "testBranchKind": "DRAFT_PR" if drafts else "PUSH",
        "testBranchKindReason": value.test_branch_reason,
        "targetMode": value.target_mode and value.target_mode.value,
        "holds": [hold(each, value.branch, now) for each in view.holds],
        "effectiveRequiredStatuses": list(dict.fromkeys(each.name for each in required.names)),
        "requiredStatusesSource": source(required.source),
        "ruleNotes": [asdict(note) for note in rule_notes.rule_notes(required.notes)],
        "settingSources": {},
        "links": {"page": view.url},
    }


def source(origin: RequiredSource | None) -> str | None:
    """Where required statuses came from, null when nothing was found."""
    return None if origin is None else origin.value


def hold(held: Hold, target: str, now: datetime) -> Json:
    """One hold; its own words, or the catalog's where nobody gave any."""
    return {
        "id": held.id,
        "reason": held.reason.value,
        "scope": held.scope.value,
        "text": held.text or holds.message(held, target, now),
        "by": shown_actor(held.by),
        "since": rendering.time(held.since),
        "until": rendering.time_or_null(held.until),
        "evidenceUrl": held.evidence,
    }


def targets(stored: TargetsStored) -> Json:
    """What was kept of an upload of impacted targets."""
    return {
        "prNumber": stored.number,
        "prSha": stored.sha,
        "impactsAll": stored.impacts_all,
        "targetCount": stored.count,
    }


def cancel_preview(preview: CancelPreview) -> Json:
    """What taking a pull request out would do (API.md 4.3)."""
    return {
        "prNumber": preview.pr,
        "runsInterrupted": preview.interrupted,
        "pullRequestsRestarted": preview.restarted,
        "pullRequestsMovedUp": preview.moved_up,
    }

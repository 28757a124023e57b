"""The codes of reasons, holds and verdict causes, and the sets of them that rules use.

Everything else about a code is in its record (`service/mergequeue/reasons`). The lists below are
written by `make docs` from the records, so that the type checker knows them.

See docs/design/engine.md 4.2; docs/design/testing.md 4.
"""

from collections.abc import Mapping
from enum import StrEnum

from service.mergequeue.reasons import records
from service.mergequeue.reasons.record import Blame, CauseRecord, Ender, HoldRecord, Need, Record


class Reason(StrEnum):
    """Why an entry is in its state, or why a command was refused."""

    USER_REQUESTED = "user_requested"
    ADMIN_REQUESTED = "admin_requested"
    API_REQUESTED = "api_requested"
    RULE_REQUESTED = "rule_requested"
    FACTS_UNKNOWN = "facts_unknown"
    DRAFT = "draft"
    BASE_MISMATCH = "base_mismatch"
    CONFLICT_TARGET = "conflict_target"
    MERGEABILITY_UNKNOWN = "mergeability_unknown"
    REVIEW_REQUIRED = "review_required"
    CHANGES_REQUESTED = "changes_requested"
    CONVERSATIONS_UNRESOLVED = "conversations_unresolved"
    CHECK_PENDING = "check_pending"
    CHECK_FAILING = "check_failing"
    CHECK_MISSING = "check_missing"
    STACKED = "stacked"
    DEPENDS_ON = "depends_on"
    DEPENDENCY_LOST = "dependency_lost"
    NOT_BEFORE = "not_before"
    NOT_BEFORE_UNREADABLE = "not_before_unreadable"
    UNDOES_LANDED_WORK = "undoes_landed_work"
    WAITS_FOR_RULE = "waits_for_rule"
    PROVIDER_QUEUED = "provider_queued"
    UNSIGNED = "unsigned"
    RULE_UNMET = "rule_unmet"
    IMPACTED_TARGETS_MISSING = "impacted_targets_missing"
    FORK_NEEDS_PERSON = "fork_needs_person"
    WORKFLOWS_PERMISSION_MISSING = "workflows_permission_missing"
    NO_EVIDENCE = "no_evidence"
    NOW_READY = "now_ready"
    RESTARTED_BY_USER = "restarted_by_user"
    RESTARTED_BY_API = "restarted_by_api"
    TARGET_MOVED = "target_moved"
    AHEAD_FAILED = "ahead_failed"
    AHEAD_CANCELLED = "ahead_cancelled"
    AHEAD_MERGED_BY_HAND = "ahead_merged_by_hand"
    AHEAD_OUT = "ahead_out"
    AHEAD_RETURNED = "ahead_returned"
    AHEAD_CHANGED = "ahead_changed"
    INTERRUPTED_BY_URGENT = "interrupted_by_urgent"
    BISECTION_REQUIRED = "bisection_required"
    BISECTION_PASSED = "bisection_passed"
    SCREEN_PASSED = "screen_passed"
    SCREEN_FAILED = "screen_failed"
    BATCH_MEMBER_LEFT = "batch_member_left"
    BATCH_TAKEN_APART = "batch_taken_apart"
    BASE_RED = "base_red"
    REPEATED_FAILURE = "repeated_failure"
    CONFLICT_AHEAD = "conflict_ahead"
    UNDOES_AHEAD = "undoes_ahead"
    CONFLICT_CLEARED = "conflict_cleared"
    RETRY_ON_NEW_BRANCH = "retry_on_new_branch"
    TEST_BRANCH_LOST = "test_branch_lost"
    BUILD_RETRY = "build_retry"
    LANDING_STOPPED = "landing_stopped"
    REQUIRED_STATUS_ADDED = "required_status_added"
    MODE_SWITCHED = "mode_switched"
    TEST_STARTED = "test_started"
    RUN_PASSED = "run_passed"
    PASSED_EXCUSED = "passed_excused"
    SUCCESSOR_PASSED = "successor_passed"
    RESULT_REUSED = "result_reused"
    OWN_CHECKS_PASSED = "own_checks_passed"
    LATE_SUCCESS = "late_success"
    FAILURE_TAKEN_BACK = "failure_taken_back"
    CHECK_FAILED = "check_failed"
    RUN_TIMED_OUT = "run_timed_out"
    REQUIRED_STATUS_FAILED = "required_status_failed"
    INTERACTION = "interaction"
    REBASE_DIFFERS = "rebase_differs"
    BUILD_REFUSED = "build_refused"
    MERGE_REFUSED = "merge_refused"
    LABEL_REMOVED = "label_removed"
    PR_CLOSED = "pr_closed"
    MERGED_INTO_OTHER_BRANCH = "merged_into_other_branch"
    HEAD_CHANGED = "head_changed"
    BASE_CHANGED = "base_changed"
    CONVERTED_TO_DRAFT = "converted_to_draft"
    SUPERSEDED = "superseded"
    NOT_READY_TIMEOUT = "not_ready_timeout"
    AUTHORIZATION_LOST = "authorization_lost"
    FLAKY_RETRIES_SPENT = "flaky_retries_spent"
    CI_INTERRUPTED = "ci_interrupted"
    INFRASTRUCTURE = "infrastructure"
    CHECK_NEVER_STARTED = "check_never_started"
    TEST_BRANCH_TAMPERED = "test_branch_tampered"
    DECIDED_IN_SHADOW = "decided_in_shadow"
    PR_GONE = "pr_gone"
    LANDED = "landed"
    LANDED_DIRECTLY = "landed_directly"
    MERGED_BY_HAND = "merged_by_hand"
    LANDED_UNRECORDED = "landed_unrecorded"
    ALREADY_CONTAINED = "already_contained"
    PULL_REQUEST_CLOSED = "pull_request_closed"
    PULL_REQUEST_MERGED = "pull_request_merged"
    NO_REQUIRED_STATUSES = "no_required_statuses"
    CONFLICT_AFTER_LANDING = "conflict_after_landing"
    LIMIT_REACHED = "limit_reached"
    FAILED_BEFORE = "failed_before"
    OVER_BUDGET = "over_budget"
    NOT_IN_QUEUE = "not_in_queue"
    ALREADY_LANDED = "already_landed"
    QUEUE_NOT_EMPTY = "queue_not_empty"
    MODE_SWITCH_IN_PROGRESS = "mode_switch_in_progress"
    HOLD_NOT_FOUND = "hold_not_found"
    HOLD_NOT_LIFTABLE = "hold_not_liftable"
    INVALID_VALUE = "invalid_value"

    @property
    def record(self) -> Record:
        """All that follows from the code."""
        return records.REASONS[self]


class Cause(StrEnum):
    """Why a run did not succeed, or succeeded excused (docs/design/testing.md 4)."""

    QUARANTINED_ONLY = "quarantined_only"
    INFRA = "infra"
    INTERRUPTED = "interrupted"
    NEVER_STARTED = "never_started"
    BASE_RED = "base_red"
    REPEATED_FAILURE = "repeated_failure"
    KNOWN_FLAKY = "known_flaky"
    NO_EVIDENCE = "no_evidence"
    TIMEOUT = "timeout"
    AHEAD_FAULT = "ahead_fault"
    INTERACTION = "interaction"
    PR_FAULT = "pr_fault"

    @property
    def record(self) -> CauseRecord:
        """All that follows from the code."""
        return records.CAUSES[self]


class HoldReason(StrEnum):
    """Why a queue is on hold, besides its state."""

    FREEZE = "freeze"
    BASE_RED = "base_red"
    REPEATED_FAILURE = "repeated_failure"
    CI_UNHEALTHY = "ci_unhealthy"
    REQUIRED_STATUSES_MISSING = "required_statuses_missing"
    REQUIRED_STATUSES_UNREADABLE = "required_statuses_unreadable"
    CONFIG_INVALID = "config_invalid"
    RULE_DENIED = "rule_denied"
    PERMISSION_LOST = "permission_lost"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    PROVIDER_LIMIT = "provider_limit"
    REPOSITORY_UNAVAILABLE = "repository_unavailable"
    TEST_BRANCH_DENIED = "test_branch_denied"
    PROVIDER_QUEUE = "provider_queue"
    STRICT_CHECKS = "strict_checks"
    METHOD_DENIED = "method_denied"
    TARGET_MISSING = "target_missing"
    RECOVERING = "recovering"
    UNTESTED_TIP = "untested_tip"
    LANDING_MISMATCH = "landing_mismatch"
    LANDING_UNRESOLVED = "landing_unresolved"
    INVARIANT_BREACH = "invariant_breach"
    TARGET_REWRITTEN = "target_rewritten"
    FOREIGN_DEPLOYMENT = "foreign_deployment"

    @property
    def record(self) -> HoldRecord:
        """All that follows from the code."""
        return records.HOLDS[self]


SUBMITTED = frozenset(one for one in Reason if one.record.submitted)
"""Codes of a submission."""

_NEEDS = {one: one.record.need for one in Reason if one.record.need is not None}

NEEDS: Mapping[Reason, Need] = dict(sorted(_NEEDS.items(), key=lambda item: item[1].rank))
"""The need of an entry by the reason, in the order in which it is shown."""

NOT_READY_ORDER = tuple(NEEDS)
"""Conditions of readiness in the order in which they are shown (docs/design/engine.md 5)."""

CANCELLING = frozenset(
    one
    for one in Reason
    if one.record.cancelled is not None
    and one.record.cancelled.by in (Ender.COMMAND, Ender.PERSON, Ender.PROVIDER)
)
"""Codes with which a pull request may be taken out from outside."""

ASIDE = frozenset(one for one in Reason if one.record.aside is not None)
"""Reasons for which a tested entry is set aside until it may be tried again."""

CONVICTED = frozenset(one for one in Reason if one.record.blame is Blame.TESTS)
"""Codes of an entry that its own tests have rejected."""

NO_BLAME = frozenset(cause for cause in Cause if cause.record.is_outside)
"""Causes outside the pull request: retried, never counted against it."""

BREAKER_HOLDS = frozenset(hold for hold in HoldReason if hold.record.is_breaker)
"""Holds under which one probe group may start every 15 minutes (docs/design/testing.md 6)."""

LIFTED_BY_PERSON = frozenset(hold for hold in HoldReason if hold.record.is_lifted_by_person)
"""Holds that an admin may lift; the others go when the facts do."""

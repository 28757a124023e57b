"""Closed lists of why: reason codes, hold reasons, verdict causes.

Each code carries its wire word (docs/design/notifications.md 1), whether submitting again unchanged
may pass, and who must act. Sentences for people: `service/mergequeue/wording/reasons.py`.

See docs/design/engine.md 4.2; docs/design/testing.md 4.
"""

from dataclasses import dataclass
from enum import StrEnum


class WhoMustAct(StrEnum):
    """Whose move it is."""

    NOBODY = "nobody"
    AUTHOR = "author"
    MAINTAINER = "maintainer"
    OPERATOR = "operator"


class Reason(StrEnum):
    """Why an entry is in its state, or why a command was refused."""

    USER_REQUESTED = "user_requested"
    ADMIN_REQUESTED = "admin_requested"
    API_REQUESTED = "api_requested"

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
    CONFLICT_AHEAD = "conflict_ahead"
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
    NOT_READY_TIMEOUT = "not_ready_timeout"
    AUTHORIZATION_LOST = "authorization_lost"
    FLAKY_RETRIES_SPENT = "flaky_retries_spent"
    CI_INTERRUPTED = "ci_interrupted"
    INFRASTRUCTURE = "infrastructure"
    CHECK_NEVER_STARTED = "check_never_started"
    TEST_BRANCH_TAMPERED = "test_branch_tampered"
    PR_GONE = "pr_gone"

    LANDED = "landed"
    LANDED_DIRECTLY = "landed_directly"
    MERGED_BY_HAND = "merged_by_hand"
    ALREADY_CONTAINED = "already_contained"

    PULL_REQUEST_CLOSED = "pull_request_closed"
    PULL_REQUEST_MERGED = "pull_request_merged"
    NO_REQUIRED_STATUSES = "no_required_statuses"
    CONFLICT_AFTER_LANDING = "conflict_after_landing"
    LIMIT_REACHED = "limit_reached"
    NOT_IN_QUEUE = "not_in_queue"
    ALREADY_LANDED = "already_landed"
    QUEUE_NOT_EMPTY = "queue_not_empty"
    MODE_SWITCH_IN_PROGRESS = "mode_switch_in_progress"
    HOLD_NOT_FOUND = "hold_not_found"
    HOLD_NOT_LIFTABLE = "hold_not_liftable"
    INVALID_VALUE = "invalid_value"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one code implies. `wire` is the word of docs/design/notifications.md 1."""

    wire: str
    retryable: bool = False
    who: WhoMustAct = WhoMustAct.NOBODY
    blames: bool = False


_AUTHOR, _MAINTAINER, _OPERATOR = WhoMustAct.AUTHOR, WhoMustAct.MAINTAINER, WhoMustAct.OPERATOR

_SPECIAL: dict[Reason, Meaning] = {
    Reason.USER_REQUESTED: Meaning("USER_REQUESTED", retryable=True),
    Reason.ADMIN_REQUESTED: Meaning("ADMIN_REQUESTED", retryable=True),
    Reason.API_REQUESTED: Meaning("API_REQUESTED", retryable=True),
    Reason.DRAFT: Meaning("DRAFT", who=_AUTHOR),
    Reason.BASE_MISMATCH: Meaning("BASE_MISMATCH", who=_AUTHOR),
    Reason.CHECK_FAILING: Meaning("CHECK_FAILING", who=_AUTHOR),
    Reason.CHECK_MISSING: Meaning("CHECK_MISSING", who=_AUTHOR),
    Reason.STACKED: Meaning("STACKED", who=_AUTHOR),
    Reason.PROVIDER_QUEUED: Meaning("PROVIDER_QUEUED", who=_MAINTAINER),
    Reason.UNSIGNED: Meaning("UNSIGNED", who=_AUTHOR),
    Reason.CHANGES_REQUESTED: Meaning("CHANGES_REQUESTED", who=_AUTHOR),
    Reason.REVIEW_REQUIRED: Meaning("REVIEW_REQUIRED", who=_MAINTAINER),
    Reason.CONVERSATIONS_UNRESOLVED: Meaning("CONVERSATIONS_UNRESOLVED", who=_MAINTAINER),
    Reason.RULE_UNMET: Meaning("RULE_UNMET", who=_MAINTAINER),
    Reason.FORK_NEEDS_PERSON: Meaning("FORK_NEEDS_PERSON", who=_MAINTAINER),
    Reason.NO_REQUIRED_STATUSES: Meaning("NO_REQUIRED_STATUSES", who=_MAINTAINER),
    Reason.CONFLICT_AFTER_LANDING: Meaning("CONFLICT_AFTER_LANDING", who=_AUTHOR),
    Reason.WORKFLOWS_PERMISSION_MISSING: Meaning("WORKFLOWS_PERMISSION_MISSING", who=_OPERATOR),
    Reason.NO_EVIDENCE: Meaning("NO_EVIDENCE", retryable=True, who=_MAINTAINER),
    Reason.BASE_RED: Meaning("BASE_RED", who=_OPERATOR),
    Reason.NOW_READY: Meaning("MERGE_ITEM_NOW_READY"),
    Reason.RESTARTED_BY_USER: Meaning("TESTS_RESTARTED_BY_USER"),
    Reason.RESTARTED_BY_API: Meaning("TESTS_RESTARTED_BY_API_REQUEST"),
    Reason.TARGET_MOVED: Meaning("MANUAL_PUSH_TO_TARGET_BRANCH"),
    Reason.AHEAD_FAILED: Meaning("PREREQUISITE_MERGE_ITEM_FAILED"),
    Reason.AHEAD_CANCELLED: Meaning("PREREQUISITE_MERGE_ITEM_CANCELLED"),
    Reason.AHEAD_MERGED_BY_HAND: Meaning("PREREQUISITE_MERGE_ITEM_MANUALLY_MERGED"),
    Reason.INTERRUPTED_BY_URGENT: Meaning("SKIP_THE_LINE_INTERRUPTED"),
    Reason.BISECTION_PASSED: Meaning("BISECTION_TEST_RUN_PASSED"),
    Reason.CONFLICT_AHEAD: Meaning("CONFLICT_AHEAD", who=_AUTHOR),
    Reason.RUN_PASSED: Meaning("TEST_RUN_PASSED"),
    Reason.SUCCESSOR_PASSED: Meaning("SUCCESSOR_TEST_RUN_PASSED"),
    Reason.RESULT_REUSED: Meaning("PASSED_BY_OPTIMIZATION"),
    Reason.REQUIRED_STATUS_FAILED: Meaning(
        "TEST_RUN_REQUIRED_STATUS_FAILED", who=_AUTHOR, blames=True
    ),
    Reason.INTERACTION: Meaning("TEST_RUN_REQUIRED_STATUS_FAILED", who=_AUTHOR, blames=True),
    Reason.RUN_TIMED_OUT: Meaning("TEST_RUN_TIMEOUT", retryable=True, who=_AUTHOR, blames=True),
    Reason.CONFLICT_TARGET: Meaning("START_TEST_RUN_MERGE_CONFLICT", who=_AUTHOR, blames=True),
    Reason.REBASE_DIFFERS: Meaning("START_TEST_RUN_MERGE_CONFLICT", who=_AUTHOR, blames=True),
    Reason.BUILD_REFUSED: Meaning("START_TEST_RUN_RETRY_EXHAUSTED", retryable=True, who=_OPERATOR),
    Reason.MERGE_REFUSED: Meaning("GITHUB_API_MERGE_PR_FAILED", retryable=True, who=_MAINTAINER),
    Reason.LABEL_REMOVED: Meaning("LABEL_REMOVED", retryable=True),
    Reason.PR_CLOSED: Meaning("PR_CLOSED", who=_AUTHOR),
    Reason.MERGED_INTO_OTHER_BRANCH: Meaning("PR_MERGED_INTO_OTHER_BRANCH"),
    Reason.HEAD_CHANGED: Meaning("PR_PUSHED_TO", retryable=True, who=_AUTHOR),
    Reason.BASE_CHANGED: Meaning("PR_BASE_BRANCH_CHANGED", who=_AUTHOR),
    Reason.CONVERTED_TO_DRAFT: Meaning("PR_CONVERTED_TO_DRAFT", who=_AUTHOR),
    Reason.NOT_READY_TIMEOUT: Meaning("NOT_READY_TIMEOUT_EXPIRED", retryable=True),
    Reason.AUTHORIZATION_LOST: Meaning("AUTHORIZATION_LOST", who=_MAINTAINER),
    Reason.FLAKY_RETRIES_SPENT: Meaning("FLAKY_RETRIES_SPENT", retryable=True),
    Reason.CI_INTERRUPTED: Meaning("CI_INTERRUPTED", retryable=True, who=_OPERATOR),
    Reason.INFRASTRUCTURE: Meaning("INFRASTRUCTURE", retryable=True, who=_OPERATOR),
    Reason.CHECK_NEVER_STARTED: Meaning("CHECK_NEVER_STARTED", retryable=True, who=_OPERATOR),
    Reason.TEST_BRANCH_TAMPERED: Meaning("TEST_BRANCH_TAMPERED", retryable=True, who=_OPERATOR),
    Reason.LANDED: Meaning("MERGE_GRAPH_MERGE"),
    Reason.LANDED_DIRECTLY: Meaning("MERGE_GRAPH_DIRECT_MERGE"),
    Reason.MERGED_BY_HAND: Meaning("MANUAL_MERGE"),
}

MEANINGS: dict[Reason, Meaning] = {
    code: _SPECIAL.get(code, Meaning(code.value.upper())) for code in Reason
}
"""Every code's meaning (docs/design/engine.md 4)."""

SUBMITTED = frozenset({Reason.USER_REQUESTED, Reason.ADMIN_REQUESTED, Reason.API_REQUESTED})
"""Codes of a submission."""

NOT_READY_ORDER = (
    Reason.FACTS_UNKNOWN,
    Reason.DRAFT,
    Reason.BASE_MISMATCH,
    Reason.CONFLICT_TARGET,
    Reason.MERGEABILITY_UNKNOWN,
    Reason.REVIEW_REQUIRED,
    Reason.CHANGES_REQUESTED,
    Reason.CONVERSATIONS_UNRESOLVED,
    Reason.CHECK_PENDING,
    Reason.CHECK_FAILING,
    Reason.CHECK_MISSING,
    Reason.STACKED,
    Reason.PROVIDER_QUEUED,
    Reason.UNSIGNED,
    Reason.RULE_UNMET,
    Reason.IMPACTED_TARGETS_MISSING,
    Reason.FORK_NEEDS_PERSON,
    Reason.WORKFLOWS_PERMISSION_MISSING,
    Reason.NO_EVIDENCE,
    Reason.CI_INTERRUPTED,
    Reason.INFRASTRUCTURE,
    Reason.MERGE_REFUSED,
)
"""Conditions of readiness in the order in which they are shown (docs/design/engine.md 5)."""


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


NO_BLAME = frozenset(
    {
        Cause.INFRA,
        Cause.INTERRUPTED,
        Cause.NEVER_STARTED,
        Cause.KNOWN_FLAKY,
        Cause.NO_EVIDENCE,
    }
)
"""Causes outside the pull request: retried, never counted against it."""


class HoldScope(StrEnum):
    """What a hold stops."""

    START = "START"
    LAND = "LAND"
    BOTH = "BOTH"


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


HOLD_SCOPES: dict[HoldReason, HoldScope] = dict.fromkeys(HoldReason, HoldScope.BOTH) | {
    HoldReason.RULE_DENIED: HoldScope.LAND,
    HoldReason.STRICT_CHECKS: HoldScope.LAND,
    HoldReason.METHOD_DENIED: HoldScope.LAND,
    HoldReason.TEST_BRANCH_DENIED: HoldScope.START,
    HoldReason.PROVIDER_LIMIT: HoldScope.START,
}
"""The default scope of each hold (`freeze` uses the scope that it is given)."""

BREAKER_HOLDS = frozenset(
    {HoldReason.BASE_RED, HoldReason.REPEATED_FAILURE, HoldReason.CI_UNHEALTHY}
)
"""Holds under which one probe group may start every 15 minutes (docs/design/testing.md 6)."""

LIFTED_BY_PERSON = BREAKER_HOLDS | {
    HoldReason.FREEZE,
    HoldReason.RULE_DENIED,
    HoldReason.STRICT_CHECKS,
    HoldReason.METHOD_DENIED,
    HoldReason.TEST_BRANCH_DENIED,
    HoldReason.UNTESTED_TIP,
    HoldReason.LANDING_MISMATCH,
    HoldReason.LANDING_UNRESOLVED,
    HoldReason.INVARIANT_BREACH,
    HoldReason.TARGET_REWRITTEN,
    HoldReason.FOREIGN_DEPLOYMENT,
}
"""Holds that an admin may lift; the others go when the facts do."""

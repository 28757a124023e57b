"""Why an entry waits for a test run, as clauses after "because" (docs/design/comments.md 5)."""

from service.mergequeue.reasons.record import (
    AUTHOR,
    OPERATOR,
    WAIT,
    Record,
)

RECORDS = (
    Record(
        "now_ready",
        next=WAIT,
        word="MERGE_ITEM_NOW_READY",
        pending="ready, and waiting for its turn",
        pending_lead="",
    ),
    Record(
        "restarted_by_user",
        next=WAIT,
        word="TESTS_RESTARTED_BY_USER",
        pending="{by|somebody} asked for a restart",
    ),
    Record(
        "restarted_by_api",
        next=WAIT,
        word="TESTS_RESTARTED_BY_API_REQUEST",
        pending="a restart was requested through the API",
    ),
    # Without a commit a landing stopped: it would not have been the tested change any more.
    Record(
        "target_moved",
        next=WAIT,
        word="MANUAL_PUSH_TO_TARGET_BRANCH",
        pending="[{moved} moved{moved_to|} outside the queue"
        "|it must be tested together with what has landed since]",
    ),
    Record(
        "ahead_failed",
        next=WAIT,
        word="PREREQUISITE_MERGE_ITEM_FAILED",
        pending="{prs|a PR ahead} failed",
    ),
    Record(
        "ahead_cancelled",
        next=WAIT,
        word="PREREQUISITE_MERGE_ITEM_CANCELLED",
        pending="{prs|a PR ahead} left the queue",
    ),
    Record(
        "ahead_merged_by_hand",
        next=WAIT,
        word="PREREQUISITE_MERGE_ITEM_MANUALLY_MERGED",
        pending="somebody merged {prs|a PR ahead} outside the queue",
    ),
    Record("ahead_out", next=WAIT, pending="the queue continues without {prs|a PR ahead} for now"),
    Record("ahead_returned", next=WAIT, pending="{prs|a PR} came back ahead of it"),
    Record(
        "ahead_changed",
        next=WAIT,
        pending="the order or the impacted targets changed[, and it builds on {prs} now]",
    ),
    Record(
        "interrupted_by_urgent",
        next=WAIT,
        word="SKIP_THE_LINE_INTERRUPTED",
        pending="{prs|another PR} went ahead as urgent",
    ),
    Record(
        "bisection_required", next=WAIT, pending="[{prs} made its batch fail|its batch was split]"
    ),
    Record(
        "bisection_passed",
        next=WAIT,
        word="BISECTION_TEST_RUN_PASSED",
        pending="it passed in the search for the cause, and others went ahead meanwhile",
        passed="it passed in the search for the cause of a failure[; {specials}]",
    ),
    Record(
        "screen_passed",
        next=WAIT,
        pending="its tests passed alone, and it waits for its turn",
        pending_lead="",
    ),
    Record(
        "screen_failed",
        next=WAIT,
        pending="its tests failed, and another run has to show whether it is the cause",
    ),
    Record("batch_member_left", next=WAIT, pending="{prs|another PR} left the batch"),
    Record(
        "batch_taken_apart",
        next=WAIT,
        pending="its batch failed for a reason outside its PRs; it is tested alone now",
    ),
    Record("base_red", next=WAIT, who=OPERATOR, pending="{target} itself fails"),
    Record(
        "repeated_failure",
        next=WAIT,
        who=OPERATOR,
        pending="{checks|a required check} fails for unrelated PRs as well",
    ),
    Record(
        "conflict_ahead",
        next=WAIT,
        who=AUTHOR,
        pending="it conflicts with {any_pr|a PR ahead}",
        pending_lead="on hold because ",
    ),
    Record(
        "undoes_ahead",
        next=WAIT,
        who=AUTHOR,
        pending="it would take back {any_pr|a PR ahead}",
        pending_lead="on hold because ",
    ),
    # One of those it may conflict with has landed or left; the next build decides.
    Record(
        "conflict_cleared",
        next=WAIT,
        pending="{any_pr|a PR ahead}, with which it conflicted, is decided",
    ),
    Record(
        "retry_on_new_branch", next=WAIT, pending="CI gave no result for {checks|a required check}"
    ),
    Record("test_branch_lost", next=WAIT, pending="its test branch was lost"),
    Record("build_retry", next=WAIT, pending="its test branch could not be created"),
    Record("landing_stopped", next=WAIT, pending="the merge was stopped"),
    Record(
        "required_status_added",
        next=WAIT,
        pending="{checks|another check} became required",
        testing="waits for {checks|another check}, which became required",
    ),
    Record("mode_switched", next=WAIT, pending="the queue changed its mode"),
)

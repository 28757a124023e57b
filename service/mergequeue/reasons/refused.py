"""Why a command was refused. The API has an error code of the same name for each."""

from collections.abc import Mapping

from service.mergequeue.reasons.record import (
    ASK,
    AUTHOR,
    DONE,
    DROP,
    FIX,
    MAINTAINER,
    RESUBMIT,
    WAIT,
    Record,
    Refusal,
    RefusalKind,
    StepKind,
)

RECORDS = (
    Record(
        "pull_request_closed",
        next=DROP,
        refused=Refusal("This PR is closed. Reopen it, then comment {merge}."),
    ),
    Record("pull_request_merged", next=DONE, refused=Refusal("This PR is already merged.")),
    Record(
        "no_required_statuses",
        next=ASK,
        who=MAINTAINER,
        refused=Refusal(
            "I found no required checks for {target}, so I would merge untested code. Add one in "
            "branch protection, or set required checks for the queue."
        ),
    ),
    # Why members of a chain cannot land one after the other, and every way out.
    Record(
        "conflict_after_landing",
        next=WAIT,
        who=AUTHOR,
        refused=Refusal(
            "{upper} builds on {lower}, which lands as new commits. After that {upper} conflicts "
            "with {target}[ in {paths}], so the two cannot be merged together. Comment {merge} on "
            "{lower} first. When it has merged, run `git fetch origin` and {rebase}, push, then "
            "comment {merge} on {upper}. With `mergeMethod=MERGE_COMMIT` or "
            "`landTestedCommits=true` the queue merges both together."
        ),
    ),
    Record(
        "limit_reached",
        next=RESUBMIT,
        pause_min=10,
        refused=Refusal("The queue for {target} is full. Try again when PRs have left it."),
    ),
    # Why the same head is not tested again (docs/design/budgets.md 1).
    Record(
        "failed_before",
        next=FIX,
        who=AUTHOR,
        refused=Refusal(
            "This head failed in test run {run}[ on {commit}]: {failed}[, with the failed tests "
            "{tests}]. It is tested again after {landings} on {target} that may have repaired it, "
            "or once it has changed: fix it, push, then comment {merge}. If you know that it "
            "passes now, comment {again}.",
            RefusalKind.CONFLICT,
        ),
    ),
    Record(
        "over_budget",
        next=RESUBMIT,
        pause_min=1,
        refused=Refusal(
            "[The test runs of {who} took {used} of {limit} CI minutes in {where} today. Submit "
            "again from {until}.|{who} has {used} of {limit} PRs in {where}. Submit again when one "
            "of them has left it.] A maintainer can raise this limit.",
            RefusalKind.LIMITED,
        ),
    ),
    Record(
        "not_in_queue",
        next=RESUBMIT,
        refused=Refusal("This PR is not in the queue.", RefusalKind.MISSING),
    ),
    Record(
        "already_landed",
        next=DONE,
        refused=Refusal("This PR has already landed.", RefusalKind.CONFLICT),
    ),
    Record(
        "queue_not_empty",
        next=WAIT,
        refused=Refusal(
            "[{count} still in the queue for {target}: {prs}. Cancel or merge them first."
            "|The queue for {target} is not empty.]",
            RefusalKind.CONFLICT,
        ),
    ),
    Record(
        "mode_switch_in_progress",
        next=WAIT,
        refused=Refusal(
            "The queue for {target} is switching its mode. Try again when the switch is done.",
            RefusalKind.CONFLICT,
        ),
    ),
    Record(
        "hold_not_found",
        next=DROP,
        refused=Refusal(
            "This hold does not exist; it may already have been released.", RefusalKind.MISSING
        ),
    ),
    Record(
        "hold_not_liftable",
        next=DROP,
        refused=Refusal("This hold cannot be released by hand. It ends when its cause is gone."),
    ),
    Record(
        "invalid_value",
        next=FIX,
        refused=Refusal("{field|a setting} cannot have this value[: {text}]."),
    ),
)

OTHERS: Mapping[str, StepKind] = {
    "queue_not_found": DROP,
    "pull_request_not_found": DROP,
    "head_mismatch": RESUBMIT,
    "stack_loses_approvals": FIX,
    "own_test_branch": DROP,
}
"""What a program does when a submission is refused before it reaches the queue, by error code."""

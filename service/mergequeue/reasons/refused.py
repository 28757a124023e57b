"""Why a command was refused. The API has an error code of the same name for each."""

from service.mergequeue.reasons.record import AUTHOR, MAINTAINER, Record, Refusal, RefusalKind

RECORDS = (
    Record(
        "pull_request_closed",
        refused=Refusal("This PR is closed. Reopen it, then comment {merge}."),
    ),
    Record("pull_request_merged", refused=Refusal("This PR is already merged.")),
    Record(
        "no_required_statuses",
        who=MAINTAINER,
        refused=Refusal(
            "I found no required checks for {target}, so I would merge untested code. Add one in "
            "branch protection, or set required checks for the queue."
        ),
    ),
    # Why members of a chain cannot land one after the other, and every way out.
    Record(
        "conflict_after_landing",
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
        refused=Refusal("The queue for {target} is full. Try again when PRs have left it."),
    ),
    Record("not_in_queue", refused=Refusal("This PR is not in the queue.", RefusalKind.MISSING)),
    Record("already_landed", refused=Refusal("This PR has already landed.", RefusalKind.CONFLICT)),
    Record(
        "queue_not_empty",
        refused=Refusal(
            "[{count} still in the queue for {target}: {prs}. Cancel or merge them first."
            "|The queue for {target} is not empty.]",
            RefusalKind.CONFLICT,
        ),
    ),
    Record(
        "mode_switch_in_progress",
        refused=Refusal(
            "The queue for {target} is switching its mode. Try again when the switch is done.",
            RefusalKind.CONFLICT,
        ),
    ),
    Record(
        "hold_not_found",
        refused=Refusal(
            "This hold does not exist; it may already have been released.", RefusalKind.MISSING
        ),
    ),
    Record(
        "hold_not_liftable",
        refused=Refusal("This hold cannot be released by hand. It ends when its cause is gone."),
    ),
    Record("invalid_value", refused=Refusal("{field|a setting} cannot have this value[: {text}].")),
)

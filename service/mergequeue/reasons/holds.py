"""Why a queue is on hold (docs/design/engine.md 4)."""

from service.mergequeue.reasons.record import (
    ASK,
    MAINTAINER,
    NOBODY,
    WAIT,
    HoldRecord,
    HoldScope,
)

_TRIES = " Headgate tests single PRs, at least one every 15 min, and continues when one passes."
_STOPPED = " The queue stopped itself; a person must check what happened."

RECORDS = (
    HoldRecord(
        "freeze",
        next=WAIT,
        is_own_stop=False,
        who=MAINTAINER,
        is_lifted_by_person=True,
        quotes_note=False,
        text="Frozen[ by {by}] [until {until}|since {since}][: {reason}].",
    ),
    HoldRecord(
        "base_red",
        next=WAIT,
        is_lifted_by_person=True,
        is_breaker=True,
        text="{target} itself fails its required checks." + _TRIES,
    ),
    HoldRecord(
        "repeated_failure",
        next=WAIT,
        is_lifted_by_person=True,
        is_breaker=True,
        text="3 unrelated PRs failed in the same way, so the cause is {target} or CI."
        + _TRIES
        + "[ Each time {check} failed, which did not fail on the PRs' own heads. If it judges the "
        "PR (title, labels, reviews) and not its tree, an admin adds it to `headOnlyStatuses`.]",
    ),
    HoldRecord(
        "ci_unhealthy",
        next=WAIT,
        is_lifted_by_person=True,
        is_breaker=True,
        text="CI gave no result 3 times in a row." + _TRIES,
    ),
    HoldRecord(
        "required_statuses_missing",
        next=ASK,
        who=MAINTAINER,
        quotes_note=False,
        text="No required checks are known for {target}. Add one in branch protection, or set "
        "required checks for the queue.",
    ),
    HoldRecord(
        "required_statuses_unreadable",
        next=ASK,
        text="The required checks of {target} cannot be read. Until they can, no test starts and "
        "no PR merges. An admin finds the cause with `headgate doctor`.",
    ),
    HoldRecord(
        "config_invalid",
        next=ASK,
        who=MAINTAINER,
        text="GitHub cannot do what a setting of this queue asks for. A maintainer changes the "
        "setting.",
    ),
    HoldRecord(
        "rule_denied",
        next=ASK,
        who=MAINTAINER,
        scope=HoldScope.LAND,
        is_lifted_by_person=True,
        quotes_note=False,
        text="GitHub refused to merge a PR[: {note}]. Headgate retries every 15 min and when the "
        "rules change.",
    ),
    HoldRecord(
        "permission_lost",
        next=ASK,
        text="The App is suspended or lacks a permission; an owner of the repository can restore "
        "it.",
    ),
    HoldRecord(
        "provider_unavailable",
        next=WAIT,
        text="GitHub has been unreachable since {since}. Headgate tries again automatically.",
    ),
    HoldRecord(
        "provider_limit",
        next=WAIT,
        who=NOBODY,
        scope=HoldScope.START,
        quotes_note=False,
        text="GitHub's limits for the App are used up. No test starts "
        "[before {until}|until GitHub allows more calls].",
    ),
    HoldRecord(
        "repository_unavailable",
        next=ASK,
        text="The repository is archived or gone. Headgate continues when it can use it again.",
    ),
    HoldRecord(
        "test_branch_denied",
        next=ASK,
        scope=HoldScope.START,
        is_lifted_by_person=True,
        quotes_note=False,
        text="GitHub refuses Headgate's test branches[: {note}]. Exclude the branches "
        "`headgate/**/*` from that rule by pattern: these are the test branches and the branches "
        "on which they are built.",
    ),
    HoldRecord(
        "provider_queue",
        next=ASK,
        who=MAINTAINER,
        quotes_note=False,
        text="{target} uses GitHub's merge queue. Remove that rule to use Headgate here.",
    ),
    HoldRecord(
        "strict_checks",
        next=ASK,
        who=MAINTAINER,
        scope=HoldScope.LAND,
        is_lifted_by_person=True,
        quotes_note=False,
        text="The rules of this branch only let pull requests merge that contain its newest "
        "commit, so GitHub refused the merge[: {note}]. Turn off "
        "`Require branches to be up to date before merging` in the branch protection or ruleset: "
        "the queue itself tests every pull request on the newest commit. The merge is tried again "
        "every 15 min and when the rules change.",
    ),
    HoldRecord(
        "method_denied",
        next=ASK,
        who=MAINTAINER,
        scope=HoldScope.LAND,
        is_lifted_by_person=True,
        quotes_note=False,
        text="The branch or the repository does not allow the merge method of this queue"
        "[: {note}]. Set another `mergeMethod` for the queue, or allow the method. The merge is "
        "tried again every 15 min and when the rules change.",
    ),
    HoldRecord(
        "target_missing",
        next=ASK,
        quotes_note=False,
        text="{target} no longer exists. Headgate continues when the branch is there again.",
    ),
    HoldRecord(
        "recovering",
        next=WAIT,
        is_own_stop=False,
        who=NOBODY,
        text="Headgate restarted and is checking what happened in the meantime.",
    ),
    HoldRecord(
        "untested_tip",
        next=WAIT,
        who=NOBODY,
        is_lifted_by_person=True,
        text="{target} has a tree that no test run had: only a part of a tested unit has merged. "
        "Headgate tests {target} now. Until it passes, no test starts, and only the rest of that "
        "unit merges.",
    ),
    HoldRecord(
        "landing_mismatch",
        next=ASK,
        is_lifted_by_person=True,
        quotes_note=False,
        text="What landed on {target} is not what was tested." + _STOPPED,
    ),
    HoldRecord(
        "landing_unresolved",
        next=ASK,
        is_lifted_by_person=True,
        text="Headgate sent a merge into {target} and cannot tell whether it happened." + _STOPPED,
    ),
    HoldRecord(
        "invariant_breach",
        next=ASK,
        is_lifted_by_person=True,
        text="Headgate detected an internal error." + _STOPPED,
    ),
    HoldRecord(
        "target_rewritten",
        next=ASK,
        is_lifted_by_person=True,
        quotes_note=False,
        text="The history of {target} was rewritten, so commits may be gone." + _STOPPED,
    ),
    HoldRecord(
        "foreign_deployment",
        next=ASK,
        is_lifted_by_person=True,
        text="Another Headgate installation also manages {target}." + _STOPPED,
    ),
)

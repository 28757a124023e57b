"""Why a submission left the queue without a failure of its own."""

from service.mergequeue.reasons.record import (
    ASK,
    AUTHOR,
    DROP,
    FIX,
    MAINTAINER,
    OPERATOR,
    RESUBMIT,
    SUPERSEDED,
    Aside,
    Ender,
    Ending,
    Listed,
    Need,
    Record,
)
from service.mergequeue.reasons.testing import FAILED

_AGAIN = "Comment {merge} to queue it again."
_BY_ITSELF = "Headgate tests it again automatically."
_INTERRUPTED = "CI stopped {checks|its checks} {tries}; your change is not at fault"
_NO_RESULT = (
    "[CI failed {unheld_tries} without a test result; your change is not at fault"
    "|every test attempt failed while the queue was on hold]"
)
_RECOVERY = Need(goal="CI has had time to recover", brief="CI", listed=Listed.OPEN, rank=1)

RECORDS = (
    Record(
        "label_removed",
        next=ASK,
        retryable=True,
        cancelled=Ending(
            clause="{by|somebody} removed the label",
            label="the label was removed",
            next="Put the label back or comment {merge} to queue it again.",
            by=Ender.PERSON,
        ),
    ),
    Record(
        "pr_closed",
        next=DROP,
        who=AUTHOR,
        evidence="the pull request was closed",
        cancelled=Ending(
            clause="the PR was closed",
            label="closed",
            next="Reopen it, then comment {merge} again.",
            by=Ender.PERSON,
            may_return=False,
        ),
    ),
    Record(
        "merged_into_other_branch",
        next=DROP,
        word="PR_MERGED_INTO_OTHER_BRANCH",
        cancelled=Ending(
            clause="it was merged into {text|another branch}",
            label="merged into another branch",
            by=Ender.PROVIDER,
            may_return=False,
        ),
    ),
    Record(
        "head_changed",
        next=RESUBMIT,
        who=AUTHOR,
        word="PR_PUSHED_TO",
        retryable=True,
        evidence="a commit was pushed",
        cancelled=Ending(
            clause="new commits were pushed[ ({old_head} → {new_head})]",
            label="new commits were pushed",
            next="Comment {merge} to queue the new commits.",
            by=Ender.PERSON,
        ),
    ),
    Record(
        "base_changed",
        next=RESUBMIT,
        who=AUTHOR,
        word="PR_BASE_BRANCH_CHANGED",
        cancelled=Ending(
            clause="the base branch changed[ to {text}]",
            label="the base branch changed",
            next="Comment {merge} to queue it for its new base.",
            by=Ender.PERSON,
            may_return=False,
        ),
    ),
    Record(
        "converted_to_draft",
        next=FIX,
        who=AUTHOR,
        word="PR_CONVERTED_TO_DRAFT",
        evidence="it became a draft",
        cancelled=Ending(
            clause="it became a draft",
            label="became a draft",
            next="Mark it ready for review, then comment {merge} again.",
            by=Ender.PERSON,
        ),
    ),
    Record(
        "superseded",
        next=SUPERSEDED,
        who=AUTHOR,
        evidence="its merge changes nothing",
        cancelled=Ending(
            clause="its work has landed already[, by {prs}][ (commit {sha})]",
            label="its work has landed already",
            next="Close it. If something is missing, push it, then comment {merge} again.",
        ),
    ),
    Record(
        "not_ready_timeout",
        next=RESUBMIT,
        word="NOT_READY_TIMEOUT_EXPIRED",
        retryable=True,
        cancelled=Ending(
            clause="not ready for {hours|too long}",
            label="never became ready",
            next="[It was waiting until {goals}. ]Comment {merge} to queue it again.",
            is_announced=True,
        ),
    ),
    Record(
        "authorization_lost",
        next=ASK,
        who=MAINTAINER,
        evidence="no person with write access approves this head any more",
        cancelled=Ending(
            clause="{submitter} lost the right to queue it",
            label="the submitter lost the right",
            next="A person with write access can comment {merge} to queue it again.",
            by=Ender.PROVIDER,
            is_announced=True,
        ),
    ),
    Record(
        "flaky_retries_spent",
        next=RESUBMIT,
        retryable=True,
        cancelled=Ending(
            clause="only known flaky tests failed, and the retries are used up",
            label="known flaky tests only",
            next=_AGAIN,
            by=Ender.CI,
            is_announced=True,
        ),
        mark=FAILED,
    ),
    Record(
        "ci_interrupted",
        next=RESUBMIT,
        pause_min=10,
        who=OPERATOR,
        retryable=True,
        need=_RECOVERY,
        aside=Aside(_INTERRUPTED, _BY_ITSELF, is_for_ci=True),
        cancelled=Ending(
            clause=_INTERRUPTED,
            label="CI stopped its checks",
            next=_AGAIN,
            by=Ender.CI,
            is_announced=True,
        ),
        mark=("⚠️", " was stopped"),
    ),
    Record(
        "infrastructure",
        next=RESUBMIT,
        pause_min=10,
        who=OPERATOR,
        retryable=True,
        need=_RECOVERY,
        aside=Aside(_NO_RESULT, _BY_ITSELF, is_for_ci=True),
        cancelled=Ending(
            clause=_NO_RESULT,
            label="CI failed without a result",
            next=_AGAIN,
            by=Ender.CI,
            is_announced=True,
        ),
        mark=FAILED,
    ),
    Record(
        "check_never_started",
        next=ASK,
        who=OPERATOR,
        retryable=True,
        cancelled=Ending(
            clause="{never_started|a required check never started}",
            label="a required check never started",
            next="{start_checks|Let CI start it.} Then comment {merge} again.",
            by=Ender.CI,
            is_announced=True,
        ),
    ),
    Record(
        "test_branch_tampered",
        next=ASK,
        who=OPERATOR,
        retryable=True,
        cancelled=Ending(
            clause="somebody else deleted its test branch three times",
            label="its test branch was deleted",
            next="Find out what deletes {test_branches}, then comment {merge} again.",
            is_announced=True,
        ),
    ),
    Record(
        "decided_in_shadow",
        next=DROP,
        cancelled=Ending(
            clause="it passed, and Headgate would have merged it",
            label="passed in shadow",
            next="This queue is in shadow: another queue or a person merges it.",
        ),
    ),
    Record(
        "pr_gone",
        next=DROP,
        cancelled=Ending(
            clause="the PR no longer exists",
            label="no longer exists",
            by=Ender.PROVIDER,
            may_return=False,
        ),
    ),
)

"""Why pull requests leave a queue without merging, as labels of statistics."""

from collections.abc import Mapping

from service.mergequeue.engine.reasons import Reason

LABELS: Mapping[Reason, str] = {
    Reason.REQUIRED_STATUS_FAILED: "a required check failed",
    Reason.INTERACTION: "fails only with another PR",
    Reason.RUN_TIMED_OUT: "timed out",
    Reason.CONFLICT_TARGET: "conflict with the target branch",
    Reason.REBASE_DIFFERS: "GitHub could not rebase it",
    Reason.BUILD_REFUSED: "GitHub refused the test branch",
    Reason.MERGE_REFUSED: "GitHub refused the merge",
    Reason.USER_REQUESTED: "removed by a person",
    Reason.ADMIN_REQUESTED: "removed by a maintainer",
    Reason.API_REQUESTED: "removed over the API",
    Reason.LABEL_REMOVED: "the label was removed",
    Reason.PR_CLOSED: "closed",
    Reason.MERGED_INTO_OTHER_BRANCH: "merged into another branch",
    Reason.HEAD_CHANGED: "new commits were pushed",
    Reason.BASE_CHANGED: "the base branch changed",
    Reason.CONVERTED_TO_DRAFT: "became a draft",
    Reason.NOT_READY_TIMEOUT: "never became ready",
    Reason.AUTHORIZATION_LOST: "the submitter lost the right",
    Reason.FLAKY_RETRIES_SPENT: "known flaky tests only",
    Reason.CI_INTERRUPTED: "CI stopped its checks",
    Reason.INFRASTRUCTURE: "CI failed without a result",
    Reason.CHECK_NEVER_STARTED: "a required check never reported",
    Reason.TEST_BRANCH_TAMPERED: "its test branch was deleted",
    Reason.PR_GONE: "no longer exists",
}

"""Why a submission failed. Reasons that have a state before it are in the file of that state."""

from service.mergequeue.reasons.record import (
    ASK,
    AUTHOR,
    FIX,
    MAINTAINER,
    OPERATOR,
    REBASE,
    RESUBMIT,
    Blame,
    Ending,
    Listed,
    Need,
    Record,
)
from service.mergequeue.reasons.testing import FAILED

RECORDS = (
    Record(
        "required_status_failed",
        next=FIX,
        who=AUTHOR,
        word="TEST_RUN_REQUIRED_STATUS_FAILED",
        blame=Blame.TESTS,
        failed=Ending(
            clause="{failed_checks|a required check failed}",
            label="a required check failed",
            next="Fix it, push, then comment {merge} again.",
        ),
        mark=FAILED,
    ),
    Record(
        "interaction",
        next=FIX,
        who=AUTHOR,
        word="TEST_RUN_REQUIRED_STATUS_FAILED",
        blame=Blame.TESTS,
        failed=Ending(
            clause="passes alone, fails together with {prs|a PR ahead}",
            label="fails only with another PR",
            next="Make it work together with {prs|the PRs ahead}, push, then comment {merge} "
            "again.",
        ),
        mark=FAILED,
    ),
    Record(
        "rebase_differs",
        next=REBASE,
        who=AUTHOR,
        word="START_TEST_RUN_MERGE_CONFLICT",
        blame=Blame.CONFLICT,
        failed=Ending(
            clause="GitHub cannot rebase it onto {target}",
            label="GitHub could not rebase it",
            next="Rebase it yourself, push, then comment {merge} again.",
        ),
    ),
    Record(
        "build_refused",
        next=RESUBMIT,
        pause_min=10,
        who=OPERATOR,
        word="START_TEST_RUN_RETRY_EXHAUSTED",
        retryable=True,
        failed=Ending(
            clause="GitHub refused the test branch",
            label="GitHub refused the test branch",
            next="[GitHub said {said}. ]Comment {merge} to try again; if that fails too, show this "
            "to your Headgate administrator.",
        ),
    ),
    Record(
        "merge_refused",
        next=ASK,
        who=MAINTAINER,
        word="GITHUB_API_MERGE_PR_FAILED",
        retryable=True,
        need=Need(
            goal="GitHub accepts its merge"
            "[, which Headgate retries (a maintainer removes the cause: {cause})]",
            brief="GitHub's refusal to merge it",
            met="GitHub has not refused its merge",
            listed=Listed.OPEN,
            rank=2,
        ),
        failed=Ending(
            clause="tests passed, but GitHub refused the merge",
            label="GitHub refused the merge",
            next="[GitHub said {said}. ][Usual cause: {usual_cause}. ]Nothing was merged. Remove "
            "the cause, then comment {merge} again.",
        ),
    ),
)

"""Why a landing call did not land: GitHub's words to our codes (GITHUB.md 5.3)."""

import pytest

from bot.github import landing
from bot.github.graphql import Trouble
from service.provider.values import (
    LandStopCode,
    PullRequest,
)
from service.vocabulary import Blocker, BlockerCode, Mergeability, PullRequestState, Sha

CODE = LandStopCode

MERGE_ANSWERS = [
    (405, "Base branch was modified. Review and try the merge again.", CODE.RETRY),
    (405, "Merge already in progress", CODE.RETRY),
    (405, 'Required status check "unit" is expected.', CODE.CHECKS_MISSING),
    (405, "2 of 2 required status checks have not succeeded: 1 failing.", CODE.CHECKS_MISSING),
    (
        405,
        'Repository rule violations found\n\nRequired status check "x" is expected.',
        CODE.CHECKS_MISSING,
    ),
    (409, "Head branch was modified. Review and try the merge again.", CODE.HEAD_CHANGED),
    (403, "refusing to allow … without `workflows` permission", CODE.WORKFLOWS),
    (403, "Conversation is locked", CODE.PR_REFUSED),
    (405, "You're not authorized to push to this branch.", CODE.NOT_PERMITTED),
    (403, "Resource not accessible by integration", CODE.NOT_PERMITTED),
    (405, "At least 1 approving review is required.", CODE.RULE_DENIED),
    (405, "Changes must be made through a pull request.", CODE.RULE_DENIED),
    (422, "Repository rule violations found", CODE.RULE_DENIED),
    (403, "Cannot update this protected branch.", CODE.RULE_DENIED),
    (405, "Merge commits are not allowed on this repository.", CODE.METHOD_DENIED),
    (405, "Squash merges are not allowed on this repository.", CODE.METHOD_DENIED),
    (405, "Rebase merges are not allowed on this repository.", CODE.METHOD_DENIED),
    (405, "This branch can't be rebased", CODE.REBASE_DIFFERS),
    (405, "This branch can\u2019t be rebased", CODE.REBASE_DIFFERS),
    (405, "Pull Request is still a draft", CODE.DRAFT),
    (405, "Pull Request is not mergeable", CODE.CONFLICT),
    (405, "Something new", CODE.OTHER),
    (409, "Base branch was modified", CODE.OTHER),
    (422, "", CODE.OTHER),
]


@pytest.mark.parametrize(("status", "message", "code"), MERGE_ANSWERS)
def test_a_refused_merge_call_says(status, message, code):
    assert landing.stop_of(status, message) is code


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        ("FORBIDDEN", "anything", CODE.NOT_PERMITTED),
        ("", "Field 'updateRefs' doesn't exist on type 'Mutation'", CODE.NOT_PERMITTED),
        ("", "Resource not accessible by integration", CODE.NOT_PERMITTED),
        ("", "Repository rule violations found", CODE.RULE_DENIED),
        ("", "Changes must be made through a pull request.", CODE.RULE_DENIED),
        ("", 'Required status check "unit" is expected.', CODE.RULE_DENIED),
        ("UNPROCESSABLE", "Update is not a fast forward", CODE.BASE_MOVED),
        ("UNPROCESSABLE", "beforeOid does not match", CODE.BASE_MOVED),
        ("", "without `workflows` permission", CODE.WORKFLOWS),
        ("", "Something new", CODE.OTHER),
    ],
)
def test_a_refused_advance_says(kind, message, code):
    assert landing.advance_stop_of(Trouble(kind, message, 1)) is code


def facts(
    *,
    state=PullRequestState.OPEN,
    draft=False,
    mergeability=Mergeability.MERGEABLE,
    blockers=(),
):
    return PullRequest(
        number=3,
        title="t",
        body="",
        author="alice",
        state=state,
        draft=draft,
        base_branch="main",
        base_tip=None,
        head_branch="topic",
        head_sha=Sha("a" * 40),
        head_repo="octo/widgets",
        is_fork=False,
        merge_commit=None,
        mergeability=mergeability,
        blockers=tuple(Blocker(code) for code in blockers),
        labels=(),
        url="https://x/3",
    )


CONFLICTING = {"mergeability": Mergeability.NOT_MERGEABLE}


@pytest.mark.parametrize(
    ("code", "changed", "settled"),
    [
        (CODE.CONFLICT, {}, CODE.RETRY),
        (CODE.CONFLICT, {"mergeability": Mergeability.IN_PROGRESS}, CODE.RETRY),
        (CODE.CONFLICT, CONFLICTING, CODE.CONFLICT),
        (CODE.CONFLICT, {"draft": True, **CONFLICTING}, CODE.DRAFT),
        (CODE.CONFLICT, {"state": PullRequestState.CLOSED, "draft": True}, CODE.CLOSED),
        (CODE.CONFLICT, {"state": PullRequestState.MERGED}, CODE.CLOSED),
        (CODE.REBASE_DIFFERS, {}, CODE.REBASE_DIFFERS),
        (CODE.REBASE_DIFFERS, CONFLICTING, CODE.CONFLICT),
        (CODE.RULE_DENIED, {}, CODE.RULE_DENIED),
        (CODE.RULE_DENIED, {"blockers": [BlockerCode.REVIEW_REQUIRED]}, CODE.PR_REFUSED),
        (CODE.RULE_DENIED, {"blockers": [BlockerCode.CHANGES_REQUESTED]}, CODE.PR_REFUSED),
        (
            CODE.RULE_DENIED,
            {"blockers": [BlockerCode.CONVERSATIONS_UNRESOLVED]},
            CODE.PR_REFUSED,
        ),
        (CODE.RULE_DENIED, {"blockers": [BlockerCode.CHECK_PENDING]}, CODE.RULE_DENIED),
    ],
)
def test_the_facts_of_the_pull_request_settle_it(code, changed, settled):
    assert landing.settled(code, facts(**changed)) is settled

"""Whether a refused advance is followed by the merge call; merge calls: test_corpus.py."""

import pytest

from bot.github import landing
from bot.github.graphql import Trouble
from service.provider.values import (
    LandStopCode,
    PullRequest,
)
from service.vocabulary import Blocker, Mergeability, PullRequestState, Sha

CODE = LandStopCode


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        ("FORBIDDEN", "anything", CODE.NOT_PERMITTED),
        ("undefinedField", "no such thing", CODE.NOT_PERMITTED),
        ("", "Field 'updateRefs' doesn't exist on type 'Mutation'", CODE.NOT_PERMITTED),
        ("", "Repository rule violations found", CODE.RULE_DENIED),
        ("UNPROCESSABLE", "beforeOid does not match", CODE.RULE_DENIED),
        ("", "Something new", CODE.RULE_DENIED),
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

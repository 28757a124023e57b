"""What every provider does with reverts and with the branch of the verified commit."""

import pytest

from service.errors import InvariantBroken
from service.provider.reverts import OpenedRevert, RevertRequest
from service.provider.values import NotPossible
from service.vocabulary import PullRequestState

BRANCH = "headgate/revert/pr-1-abc"


def request_for(stage, commit, parent, **changed):
    return RevertRequest(
        **{
            "repo": stage.repo,
            "target": "main",
            "commit": commit,
            "parent": parent,
            "branch": BRANCH,
            "scratch": "headgate/temp/revert-pr-1-abc",
            "message": f"Revert #1\n\nThis reverts commit {commit}.",
            "title": "Revert #1",
            "body": "Reverts #1",
            **changed,
        }
    )


async def pushed(stage, *contents):
    """Push commits with these files to `main`, and return them with the one before them."""
    commits = [stage.tip()]
    for files in contents:
        await stage.push_files(files)
        commits.append(stage.tip())
    return commits


class Reverts:
    """Pull requests that take a commit back."""

    async def test_a_revert_takes_back_one_commit_and_keeps_those_after_it(self, stage):
        before, bad, tip = await pushed(stage, {"bug.txt": "b\n"}, {"later.txt": "l\n"})
        opened = await stage.provider.open_revert(request_for(stage, bad, before))
        assert isinstance(opened, OpenedRevert)
        pull = await stage.provider.pull_request(stage.repo, opened.number)
        assert (pull.title, pull.body, pull.base_branch) == ("Revert #1", "Reverts #1", "main")
        assert (pull.head_branch, pull.draft) == (BRANCH, False)
        assert stage.parents(pull.head_sha) == (tip,)
        assert f"This reverts commit {bad}." in stage.message(pull.head_sha)
        assert stage.tree(pull.head_sha) == stage.tree_with(
            stage.tree(before), {"later.txt": "l\n"}
        )
        assert stage.branches() == {BRANCH: pull.head_sha}

    async def test_it_is_found_again_and_not_opened_twice(self, stage):
        before, bad = await pushed(stage, {"bug.txt": "b\n"})
        request = request_for(stage, bad, before)
        first = await stage.provider.open_revert(request)
        assert await stage.provider.open_revert(request) == first

    async def test_one_that_conflicts_leaves_nothing(self, stage):
        before, bad, _ = await pushed(stage, {"app.py": "bad\n"}, {"app.py": "worse\n"})
        answer = await stage.provider.open_revert(request_for(stage, bad, before))
        assert isinstance(answer, NotPossible)
        assert "conflicts" in answer.reason
        assert stage.branches() == {}

    async def test_one_that_is_undone_already_leaves_nothing(self, stage):
        before, bad, _ = await pushed(stage, {"bug.txt": "b\n"}, {"bug.txt": None})
        answer = await stage.provider.open_revert(request_for(stage, bad, before))
        assert isinstance(answer, NotPossible)
        assert stage.branches() == {}

    async def test_nothing_of_a_branch_that_was_rewritten_comes_back(self, stage):
        before, good, bad = await pushed(stage, {"good.txt": "g\n"}, {"bug.txt": "b\n"})
        await stage.act("force_push", branch="main", to=before)
        answer = await stage.provider.open_revert(request_for(stage, bad, good))
        assert isinstance(answer, NotPossible)
        assert "does not contain" in answer.reason
        assert stage.branches() == {}

    async def test_one_that_a_person_closed_is_not_opened_again(self, stage):
        before, bad = await pushed(stage, {"bug.txt": "b\n"})
        request = request_for(stage, bad, before)
        opened = await stage.provider.open_revert(request)
        assert isinstance(opened, OpenedRevert)
        await stage.act("close", number=opened.number)
        assert isinstance(await stage.provider.open_revert(request), NotPossible)

    async def test_what_an_interrupted_try_left_is_used(self, stage):
        before, bad = await pushed(stage, {"bug.txt": "b\n"})
        request = request_for(stage, bad, before)
        await stage.fault("fail_after", method="POST", path="*/pulls", times=1)
        opened = await stage.provider.open_revert(request)
        assert isinstance(opened, OpenedRevert)

    async def test_a_branch_of_its_name_with_other_commits_is_not_opened(self, stage):
        before, bad = await pushed(stage, {"bug.txt": "b\n"})
        await stage.act("push", branch=BRANCH, files={"evil.txt": "e\n"}, **{"from": before})
        answer = await stage.provider.open_revert(request_for(stage, bad, before))
        assert answer == NotPossible("Its branch has commits that Headgate has not made.")

    async def test_one_that_others_have_pushed_to_is_none_any_more(self, stage):
        before, bad = await pushed(stage, {"bug.txt": "b\n"})
        request = request_for(stage, bad, before)
        opened = await stage.provider.open_revert(request)
        assert isinstance(opened, OpenedRevert)
        await stage.act("push", branch=BRANCH, files={"evil.txt": "e\n"})
        assert isinstance(await stage.provider.open_revert(request), NotPossible)

    async def test_its_branch_discarded_closes_it(self, stage):
        before, bad = await pushed(stage, {"bug.txt": "b\n"})
        opened = await stage.provider.open_revert(request_for(stage, bad, before))
        assert isinstance(opened, OpenedRevert)
        await stage.provider.discard(stage.repo, BRANCH)
        pull = await stage.provider.pull_request(stage.repo, opened.number)
        assert pull.state is PullRequestState.CLOSED

    async def test_a_branch_of_ours_follows_a_commit(self, stage):
        first, second = await pushed(stage, {"a.txt": "a\n"})
        for sha in (second, first, first):
            await stage.provider.follow(stage.repo, "headgate/green/main", sha)
            assert stage.branches() == {"headgate/green/main": sha}

    async def test_no_branch_of_others_is_moved(self, stage):
        with pytest.raises(InvariantBroken):
            await stage.provider.follow(stage.repo, "main", stage.tip())

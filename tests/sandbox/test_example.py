"""`headgate sandbox --example`: what a newcomer finds is as its pull requests say."""

from collections.abc import AsyncIterator

import pytest

from bot.sandbox.acts import seeds
from bot.sandbox.app import Sandbox, SandboxOptions, running


@pytest.fixture
async def filled() -> AsyncIterator[Sandbox]:
    """The example, after the CI of all its pull requests."""
    async with running(SandboxOptions(is_manual=True, has_example=True)) as sandbox:
        await sandbox.settle()
        yield sandbox


def conclusions(sandbox: Sandbox, repo: str, sha: str) -> dict[str, str | None]:
    """The checks on a commit."""
    return {run.name: run.conclusion for run in sandbox.repository(repo).check_runs(sha)}


async def when_tested(sandbox: Sandbox, number: int) -> dict[str, str | None]:
    """The checks on a test branch with the files of a pull request."""
    pull = sandbox.repository(seeds.WIDGETS).issues[number].pull
    assert pull is not None
    branch = f"headgate/merge/pr-{number}/x"
    fields = {"head": branch, "from": pull.head_sha, "files": {"x.txt": "x\n"}, "draft": True}
    opened = await sandbox.act("open", "alice", seeds.WIDGETS, **fields)
    await sandbox.settle()
    return conclusions(sandbox, seeds.WIDGETS, opened["head"])


async def test_every_pull_request_is_behind_main_and_its_own_checks_pass(filled: Sandbox) -> None:
    for repo, count in ((seeds.WIDGETS, 5), (seeds.WEBSITE, 1)):
        repository = filled.repository(repo)
        required = {"lint", "test"} if repo == seeds.WIDGETS else {"build"}
        pulls = repository.open_pulls()
        assert len(pulls) == count
        for pull in pulls:
            found = conclusions(filled, repo, pull.head_sha)
            assert set(found) == required
            history = repository.git.objects.first_parents(pull.head_sha, 9)
            assert pull.base_tip not in [commit.sha for commit in history]
            if pull.title != "List picnics":
                assert set(found.values()) == {"success"}


async def test_the_broken_one_fails_on_a_test_branch_alone(filled: Sandbox) -> None:
    assert await when_tested(filled, 1) == {"lint": "success", "test": "success"}
    assert await when_tested(filled, 3) == {"lint": "success", "test": "failure"}


async def test_two_conflict_and_each_alone_can_be_merged(filled: Sandbox) -> None:
    repository = filled.repository(seeds.WIDGETS)
    assert all(pull.mergeable for pull in repository.open_pulls())
    await filled.act("merge", "alice", seeds.WIDGETS, number=1)
    await filled.settle()
    mergeable = {pull.number: pull.mergeable for pull in repository.open_pulls()}
    assert mergeable == {2: True, 3: True, 4: True, 5: False}

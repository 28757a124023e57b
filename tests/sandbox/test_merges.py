"""Rows Merges and PR merge: real three-way results, and every reason not to merge."""

import pytest

from tests.sandbox.client import REPO, as_app

MERGES = f"/repos/{REPO}/merges"


def git_of(sandbox):
    return sandbox.repository(REPO).git


async def opened(sandbox, files, **fields):
    """An open pull request by bob that the provider has looked at."""
    pull = await sandbox.act("open", "bob", REPO, files=files, **fields)
    await sandbox.settle()
    return pull


async def merge(client, number, **body):
    return await client.call("PUT", f"/repos/{REPO}/pulls/{number}/merge", body)


async def test_a_merge_of_branches_is_201_with_both_parents(sandbox, app):
    git = git_of(sandbox)
    pull = await sandbox.act("open", "bob", REPO, files={"app.py": "ONE\ntwo\nthree\nfour\nfive\n"})
    files = {"app.py": "one\ntwo\nthree\nfour\nFIVE\n"}
    tip = (await sandbox.act("push", "alice", REPO, branch="main", files=files))["sha"]
    body = {"base": "main", "head": pull["head"], "commit_message": "both"}
    answer = await app.call("POST", MERGES, body)
    assert answer.status == 201
    assert [one["sha"] for one in answer.body["parents"]] == [tip, pull["head"]]
    assert answer.body["commit"]["message"] == "both"
    assert answer.body["commit"]["verification"]["verified"] is True
    merged = git.objects.file_at(git.branch("main"), "app.py")
    assert merged == b"ONE\ntwo\nthree\nfour\nFIVE\n"


async def test_a_merge_with_nothing_new_is_204(sandbox, app):
    body = {"base": "main", "head": git_of(sandbox).branch("main")}
    answer = await app.call("POST", MERGES, body)
    assert (answer.status, answer.body) == (204, b"")


async def test_a_merge_that_conflicts_is_409(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"app.py": "mine\n"})
    await sandbox.act("push", "alice", REPO, branch="main", files={"app.py": "yours\n"})
    answer = await app.call("POST", MERGES, {"base": "main", "head": pull["head"]})
    assert (answer.status, answer.body["message"]) == (409, "Merge conflict")


@pytest.mark.parametrize(("base", "head"), [("none", "main"), ("main", "none")])
async def test_a_merge_without_base_or_head_is_404(app, base, head):
    assert (await app.call("POST", MERGES, {"base": base, "head": head})).status == 404


async def test_the_head_of_a_fork_is_merged_by_its_sha(sandbox, app):
    pull = await sandbox.act("open", "dave", REPO, files={"a.txt": "a"}, fork=True)
    answer = await app.call("POST", MERGES, {"base": "main", "head": pull["head"]})
    assert answer.status == 201
    assert git_of(sandbox).objects.file_at(answer.body["sha"], "a.txt") == b"a"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_each_method_lands_the_change_in_its_own_shape(sandbox, app, method):
    pull = await opened(sandbox, {"a.txt": "a"})
    await sandbox.act("push", "bob", REPO, number=pull["number"], files={"b.txt": "b"})
    tip = (await sandbox.act("push", "alice", REPO, branch="main", files={"c.txt": "c"}))["sha"]
    await sandbox.settle()
    answer = await merge(app, pull["number"], merge_method=method)
    assert answer.body["merged"] is True
    git = git_of(sandbox)
    landed = git.objects.a_commit(answer.body["sha"])
    assert git.branch("main") == landed.sha
    names = {path for path, _ in git.objects.walk(landed.tree)}
    assert {"a.txt", "b.txt", "c.txt"} <= names
    chain = git.objects.log(landed.sha, without=tip)
    assert len(chain) == {"merge": 3, "squash": 1, "rebase": 2}[method]
    assert len(landed.parents) == (2 if method == "merge" else 1)


async def test_the_default_messages_are_the_providers(sandbox, app):
    first = await opened(sandbox, {"a.txt": "a"}, title="Add a", head="topic")
    sha = (await merge(app, first["number"], merge_method="merge")).body["sha"]
    message = git_of(sandbox).objects.a_commit(sha).message
    assert message == "Merge pull request #1 from octo/topic\n\nAdd a"
    second = await opened(sandbox, {"b.txt": "b"}, title="Add b")
    sha = (await merge(app, second["number"], merge_method="squash")).body["sha"]
    assert git_of(sandbox).objects.a_commit(sha).message == "Add b (#2)"


async def test_a_given_title_and_message_are_taken(sandbox, app):
    pull = await opened(sandbox, {"a.txt": "a"})
    given = {"merge_method": "squash", "commit_title": "T", "commit_message": "M"}
    sha = (await merge(app, pull["number"], **given)).body["sha"]
    assert git_of(sandbox).objects.a_commit(sha).message == "T\n\nM"


async def test_a_moved_head_is_409(sandbox, app):
    pull = await opened(sandbox, {"a.txt": "a"})
    await sandbox.act("push", "bob", REPO, number=pull["number"], files={"b.txt": "b"})
    answer = await merge(app, pull["number"], sha=pull["head"])
    assert answer.status == 409
    assert answer.body["message"] == "Head branch was modified. Review and try the merge again."


async def test_a_base_that_moved_just_now_is_405_within_its_window(sandbox, app):
    await sandbox.seed(knobs={"base_window_s": 5})
    pull = await opened(sandbox, {"a.txt": "a"})
    await sandbox.act("push", "alice", REPO, branch="main", files={"c.txt": "c"})
    answer = await merge(app, pull["number"])
    assert answer.status == 405
    assert answer.body["message"] == "Base branch was modified. Review and try the merge again."
    sandbox.world.timeline.advance(6)
    assert (await merge(app, pull["number"])).status == 200


async def test_a_conflict_is_405(sandbox, app):
    pull = await opened(sandbox, {"app.py": "mine\n"})
    await sandbox.act("push", "alice", REPO, branch="main", files={"app.py": "yours\n"})
    answer = await merge(app, pull["number"])
    assert (answer.status, answer.body["message"]) == (405, "Pull Request has merge conflicts")


async def test_a_draft_and_a_closed_one_are_405(sandbox, app):
    draft = await opened(sandbox, {"a.txt": "a"}, draft=True)
    answer = await merge(app, draft["number"])
    assert (answer.status, answer.body["message"]) == (405, "Pull Request is still a draft")
    await sandbox.act("close", "bob", REPO, number=draft["number"])
    answer = await merge(app, draft["number"])
    assert (answer.status, answer.body["message"]) == (405, "Pull Request is closed")


@pytest.mark.parametrize(
    ("method", "setting", "words"),
    [
        ("merge", "merge_commit", "Merge commits"),
        ("squash", "squash", "Squash merges"),
        ("rebase", "rebase", "Rebase merges"),
    ],
)
async def test_a_method_that_is_off_is_405(sandbox, app, method, setting, words):
    await sandbox.control.rules({"repo": REPO, "settings": {setting: False}})
    pull = await opened(sandbox, {"a.txt": "a"})
    answer = await merge(app, pull["number"], merge_method=method)
    said = f"{words} are not allowed on this repository."
    assert (answer.status, answer.body["message"]) == (405, said)


async def test_a_branch_whose_commits_conflict_one_by_one_cannot_be_rebased(sandbox, app):
    pull = await opened(sandbox, {"app.py": "mine\n"})
    files = {"app.py": "one\ntwo\nthree\nfour\nfive\n"}
    await sandbox.act("push", "bob", REPO, number=pull["number"], files=files)
    await sandbox.act("push", "alice", REPO, branch="main", files={"app.py": "yours\n"})
    await sandbox.settle()
    answer = await merge(app, pull["number"], merge_method="rebase")
    assert (answer.status, answer.body["message"]) == (405, "This branch can't be rebased")
    assert (await merge(app, pull["number"], merge_method="squash")).status == 200


async def test_a_workflow_change_is_refused_without_the_permission(sandbox, app, http):
    pull = await opened(sandbox, {".github/workflows/ci.yml": "on: push\n"})
    answer = await merge(app, pull["number"])
    assert answer.status == 403
    assert "without `workflows` permission" in answer.body["message"]
    granted = {"metadata": "read", "contents": "write", "workflows": "write"}
    await sandbox.act("permissions", "alice", REPO, permissions=granted)
    assert (await merge(await as_app(sandbox, http), pull["number"])).status == 200


async def test_an_archived_repository_refuses(sandbox, app):
    pull = await opened(sandbox, {"a.txt": "a"})
    await sandbox.act("archive", "alice", REPO)
    answer = await merge(app, pull["number"])
    assert (answer.status, answer.body["message"]) == (
        403,
        "Repository was archived so is read-only.",
    )


async def test_a_merged_head_is_deleted_where_the_repository_wants_it(sandbox, app):
    await sandbox.control.rules({"repo": REPO, "settings": {"delete_head": True}})
    pull = await opened(sandbox, {"a.txt": "a"}, head="topic")
    await merge(app, pull["number"])
    assert git_of(sandbox).branch("topic") is None
    assert (await app.facts(pull["number"]))["state"] == "MERGED"

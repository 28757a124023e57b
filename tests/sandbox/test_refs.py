"""Row Refs: what can be made, moved, removed and renamed, and the words of every refusal."""

from base64 import b64decode

import pytest

from bot.sandbox.git import ZERO
from tests.sandbox.client import REPO

REFS = f"/repos/{REPO}/git/refs"


def main_of(sandbox):
    return sandbox.repository(REPO).git.branch("main")


async def test_a_ref_is_made_read_and_removed(sandbox, app):
    main = main_of(sandbox)
    made = await app.call("POST", REFS, {"ref": "refs/heads/a/b", "sha": main})
    assert (made.status, made.body["ref"]) == (201, "refs/heads/a/b")
    read = await app.get(f"/repos/{REPO}/git/ref/heads%2Fa%2Fb")
    assert read["object"] == made.body["object"]
    assert (await app.call("DELETE", f"{REFS}/heads/a/b")).status == 204
    assert (await app.call("GET", f"/repos/{REPO}/git/ref/heads/a/b")).status == 404


async def test_matching_refs_are_those_that_begin_so(sandbox, app):
    for name in ("x/1", "x/2", "y"):
        await app.call("POST", REFS, {"ref": f"refs/heads/{name}", "sha": main_of(sandbox)})
    found = await app.get(f"/repos/{REPO}/git/matching-refs/heads/x/")
    assert [one["ref"] for one in found] == ["refs/heads/x/1", "refs/heads/x/2"]
    assert await app.get(f"/repos/{REPO}/git/matching-refs/heads/z") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", REFS, {"ref": "refs/heads/main", "sha": "MAIN"}, "Reference already exists"),
        ("POST", REFS, {"ref": "refs/heads/main/x", "sha": "MAIN"}, "Reference update failed"),
        ("POST", REFS, {"ref": "refs/heads/new", "sha": "0" * 39 + "1"}, "Object does not exist"),
        ("POST", REFS, {"ref": "main", "sha": "MAIN"}, "must start with 'refs/'"),
        ("PATCH", f"{REFS}/heads/none", {"sha": "MAIN"}, "Reference does not exist"),
        ("DELETE", f"{REFS}/heads/none", {}, "Reference does not exist"),
    ],
)
async def test_a_ref_call_that_cannot_be_done_is_422(app, method, path, body, said):
    if body.get("sha") == "MAIN":
        body = {**body, "sha": main_of(app.sandbox)}
    answer = await app.call(method, path, body)
    assert answer.status == 422
    assert said in answer.body["message"]


async def test_a_move_backwards_needs_force(sandbox, app):
    old = main_of(sandbox)
    pushed = await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    answer = await app.call("PATCH", f"{REFS}/heads/work", {"sha": old})
    assert (answer.status, answer.body["message"]) == (422, "Update is not a fast forward")
    answer = await app.call("PATCH", f"{REFS}/heads/work", {"sha": old, "force": True})
    assert answer.status == 200
    answer = await app.call("PATCH", f"{REFS}/heads/work", {"sha": pushed["sha"]})
    assert answer.body["object"]["sha"] == pushed["sha"]


async def test_update_refs_moves_all_or_none(sandbox, app):
    main = main_of(sandbox)
    work = (await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"}))["sha"]
    wrong = {"name": "refs/heads/work", "beforeOid": main, "afterOid": ZERO}
    onward = {"name": "refs/heads/main", "beforeOid": main, "afterOid": work, "force": False}
    answer = await app.update_refs(onward, wrong)
    assert answer["data"] == {"updateRefs": None}
    assert "not at the expected" in answer["errors"][0]["message"]
    assert main_of(sandbox) == main
    answer = await app.update_refs(onward, {**wrong, "beforeOid": work})
    assert "errors" not in answer
    assert main_of(sandbox) == work
    assert sandbox.repository(REPO).git.branch("work") is None


async def test_update_refs_never_goes_back_without_force(sandbox, app):
    old = main_of(sandbox)
    new = (await sandbox.act("push", "alice", REPO, branch="main", files={"a.txt": "a"}))["sha"]
    answer = await app.update_refs(
        {"name": "refs/heads/main", "beforeOid": new, "afterOid": old, "force": False}
    )
    assert "not a fast forward" in answer["errors"][0]["message"]
    assert main_of(sandbox) == new


async def test_a_zero_before_oid_means_that_the_ref_must_be_absent(sandbox, app):
    main = main_of(sandbox)
    update = {"name": "refs/heads/new", "beforeOid": ZERO, "afterOid": main}
    assert "errors" not in await app.update_refs(update)
    assert "already exists" in (await app.update_refs(update))["errors"][0]["message"]


async def test_a_rename_takes_effect_after_a_delay(sandbox, app):
    main = main_of(sandbox)
    await app.call("POST", REFS, {"ref": "refs/heads/headgate/temp/x", "sha": main})
    path = f"/repos/{REPO}/branches/headgate/temp/x/rename"
    answer = await app.call("POST", path, {"new_name": "headgate/merge/x"})
    assert (answer.status, answer.body["name"]) == (201, "headgate/merge/x")
    git = sandbox.repository(REPO).git
    assert git.branch("headgate/merge/x") is None
    await sandbox.settle()
    assert git.branch("headgate/merge/x") == main
    assert git.branch("headgate/temp/x") is None


async def test_a_rename_onto_a_taken_name_is_422(sandbox, app):
    await app.call("POST", REFS, {"ref": "refs/heads/x", "sha": main_of(sandbox)})
    answer = await app.call("POST", f"/repos/{REPO}/branches/x/rename", {"new_name": "main"})
    assert answer.status == 422
    answer = await app.call("POST", f"/repos/{REPO}/branches/none/rename", {"new_name": "y"})
    assert answer.status == 404


async def test_the_default_branch_is_renamed_with_its_pull_requests(sandbox, app, receiver):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    await sandbox.act("rename", "alice", REPO, branch="main", to="trunk")
    await sandbox.settle()
    assert (await app.get(f"/repos/{REPO}"))["default_branch"] == "trunk"
    assert (await app.facts(pull["number"]))["baseRefName"] == "trunk"
    changed = receiver.payloads("repository")[-1]
    assert changed["changes"] == {"default_branch": {"from": "main"}}


async def test_every_move_is_in_the_reflog_with_who_made_it(sandbox, app):
    main = main_of(sandbox)
    await app.call("POST", REFS, {"ref": "refs/heads/x", "sha": main})
    line = sandbox.world.reflog[-1]
    assert (line.ref, line.before, line.after) == ("refs/heads/x", ZERO, main)
    assert (line.actor, line.app) == ("headgate[bot]", "headgate")


async def test_a_tree_is_read_flat_and_deep(sandbox, app):
    main = main_of(sandbox)
    flat = await app.get(f"/repos/{REPO}/git/trees/{main}")
    assert [line["path"] for line in flat["tree"]] == [".sandbox", "README.md", "app.py"]
    deep = await app.get(f"/repos/{REPO}/git/trees/{main}?recursive=1")
    assert ".sandbox/ci.yml" in [line["path"] for line in deep["tree"]]
    assert not deep["truncated"]


async def test_a_file_is_read_by_its_id(sandbox, app):
    tree = await app.get(f"/repos/{REPO}/git/trees/{main_of(sandbox)}")
    (readme,) = [line for line in tree["tree"] if line["path"] == "README.md"]
    shown = await app.get(f"/repos/{REPO}/git/blobs/{readme['sha']}")
    assert (shown["encoding"], shown["size"]) == ("base64", readme["size"])
    assert len(b64decode(shown["content"])) == readme["size"]
    assert (await app.call("GET", f"/repos/{REPO}/git/blobs/{'1' * 40}")).status == 404


async def test_a_comparison_says_how_two_commits_stand(sandbox, app):
    main = main_of(sandbox)
    work = (await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"}))["sha"]
    shown = await app.get(f"/repos/{REPO}/compare/{main}...{work}")
    assert (shown["status"], shown["ahead_by"], shown["behind_by"]) == ("ahead", 1, 0)
    assert [one["filename"] for one in shown["files"]] == ["a.txt"]
    await sandbox.act("push", "alice", REPO, branch="main", files={"b.txt": "b"})
    assert (await app.get(f"/repos/{REPO}/compare/main...work"))["status"] == "diverged"
    assert (await app.get(f"/repos/{REPO}/compare/work...work"))["status"] == "identical"
    assert (await app.get(f"/repos/{REPO}/compare/work...{main}"))["status"] == "behind"


async def test_contents_come_in_base64_at_a_commit(sandbox, app):
    main = main_of(sandbox)
    await sandbox.act("push", "alice", REPO, branch="main", files={"README.md": "new\n"})
    path = f"/repos/{REPO}/contents/README.md?ref={main}"
    shown = await app.get(path)
    assert (shown["encoding"], shown["content"]) == ("base64", "d2lkZ2V0cwo=\n")
    assert (await app.call("GET", f"/repos/{REPO}/contents/none?ref={main}")).status == 404


async def test_a_commit_is_found_by_branch_and_sha_and_else_422(sandbox, app):
    main = main_of(sandbox)
    by_branch = await app.get(f"/repos/{REPO}/commits/main")
    by_sha = await app.get(f"/repos/{REPO}/commits/{main}")
    assert by_branch == by_sha
    assert (
        by_branch["commit"]["tree"]["sha"]
        == (await app.get(f"/repos/{REPO}/git/commits/{main}"))["tree"]["sha"]
    )
    assert (await app.call("GET", f"/repos/{REPO}/commits/none")).status == 422

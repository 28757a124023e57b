"""Clone, fetch and push with the real git command."""

import asyncio
import subprocess

import aiohttp
import pytest

from bot.sandbox.command import isolated_environment
from tests.sandbox.client import REPO, as_app


@pytest.fixture
def git(sandbox, tmp_path):
    """The git command in a work tree, as the person `by`: exit code and text."""

    async def run(*args, by=None, cwd=None):
        token = sandbox.credentials.person_token(by) if by else None
        environment = {
            **isolated_environment(),
            "GIT_AUTHOR_NAME": "x",
            "GIT_AUTHOR_EMAIL": "x@localhost",
            "GIT_COMMITTER_NAME": "x",
            "GIT_COMMITTER_EMAIL": "x@localhost",
        }
        if token is not None:
            environment |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{sandbox.url}/.extraHeader",
                "GIT_CONFIG_VALUE_0": f"Authorization: Bearer {token}",
            }
        child = await asyncio.create_subprocess_exec(
            "git",
            *args,
            cwd=cwd or tmp_path / "w",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await child.communicate()
        return child.returncode, said.decode()

    return run


@pytest.fixture
async def clone(sandbox, git, tmp_path):
    code, said = await git("clone", "-q", f"{sandbox.url}/{REPO}.git", "w", cwd=tmp_path)
    assert code == 0, said
    return tmp_path / "w"


async def commit(git, clone, name):
    (clone / name).write_text("x\n")
    await git("add", name)
    await git("commit", "-q", "-m", f"Add {name}")
    return (await git("rev-parse", "HEAD"))[1].strip()


async def test_a_clone_has_the_files(clone):
    assert (clone / "README.md").read_text() == "widgets\n"


async def test_a_push_is_a_push(sandbox, git, clone, receiver):
    sha = await commit(git, clone, "a.txt")
    code, said = await git("push", "origin", "HEAD:refs/heads/work", by="bob")
    assert code == 0, said
    assert sandbox.repository(REPO).git.branch("work") == sha
    line = sandbox.world.reflog[-1]
    assert (line.actor, line.how) == ("bob", "git push")
    await sandbox.settle()
    pushed = receiver.payloads("push")[0]
    assert (pushed["ref"], pushed["created"]) == ("refs/heads/work", True)


async def test_a_push_to_a_pull_request_synchronizes_it(sandbox, git, clone, app, receiver):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, head="t"))["number"]
    await git("fetch", "-q", "origin", "t")
    await git("checkout", "-q", "FETCH_HEAD")
    sha = await commit(git, clone, "b.txt")
    assert (await git("push", "origin", "HEAD:t", by="bob"))[0] == 0
    assert (await app.facts(number))["headRefOid"] == sha
    await sandbox.settle()
    assert "pull_request.synchronize" in receiver.events()


async def test_a_push_obeys_the_rules(sandbox, git, clone):
    await sandbox.control.rules({"repo": REPO, "required_checks": ["unit"]})
    await commit(git, clone, "a.txt")
    code, said = await git("push", "origin", "HEAD:main", by="bob")
    assert code != 0
    assert "remote: error: GH013: Repository rule violations found for refs/heads/main." in said
    assert 'remote: - Required status check "unit" is expected.' in said
    assert (
        "[remote rejected] HEAD -> main (push declined due to repository rule violations)" in said
    )


async def test_a_push_obeys_classic_protection(sandbox, git, clone):
    protection = {"main": {"checks": ["unit"], "enforce_admins": True}}
    await sandbox.control.rules({"repo": REPO, "protection": protection})
    await commit(git, clone, "a.txt")
    code, said = await git("push", "origin", "HEAD:main", by="bob")
    assert code != 0
    assert "remote: error: GH006: Protected branch update failed for refs/heads/main." in said
    assert 'remote: - Required status check "unit" is expected.' in said
    assert "[remote rejected] HEAD -> main (protected branch hook declined)" in said


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (None, "could not read"),
        ("carol", "remote: Permission to octo/widgets.git denied to carol."),
    ],
)
async def test_a_push_needs_somebody_who_may(git, clone, by, words):
    await commit(git, clone, "a.txt")
    code, said = await git("push", "origin", "HEAD:refs/heads/work", by=by)
    assert code != 0
    assert words in said


async def test_a_branch_is_deleted_by_a_push(sandbox, git, clone):
    await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    assert (await git("push", "origin", ":work", by="bob"))[0] == 0
    assert sandbox.repository(REPO).git.branch("work") is None


async def test_the_app_fetches_a_private_repository_with_its_token(sandbox, http, git, tmp_path):
    files = {"x.txt": "x"}
    await sandbox.seed(repositories=[{"full_name": "octo/secret", "private": True, "files": files}])
    url = f"{sandbox.url}/octo/secret.git"
    code, _ = await git("clone", "-q", url, "s", cwd=tmp_path)
    assert code != 0
    token = (await as_app(sandbox, http)).token
    header = f"http.extraHeader=Authorization: Bearer {token}"
    code, said = await git("-c", header, "clone", "-q", url, "s", cwd=tmp_path)
    assert code == 0, said


async def test_the_head_of_a_fork_is_fetched_from_the_base(sandbox, git, clone):
    pull = await sandbox.act("open", "dave", REPO, files={"a.txt": "a"}, fork=True)
    code, said = await git("fetch", "-q", "origin", f"refs/pull/{pull['number']}/head")
    assert code == 0, said
    assert (await git("rev-parse", "FETCH_HEAD"))[1].strip() == pull["head"]


async def app_push(sandbox, http, git, *arguments):
    """Push as the App."""
    token = (await as_app(sandbox, http)).token
    header = f"http.extraHeader=Authorization: Bearer {token}"
    return await git("-c", header, "push", "--porcelain", "origin", *arguments)


async def test_an_app_without_workflows_creates_no_branch_with_other_workflow_files(
    sandbox, http, git, clone
):
    path = clone / ".github/workflows/ci.yml"
    path.parent.mkdir(parents=True)
    path.write_text("on: push\n")
    await git("add", ".")
    await git("commit", "-q", "-m", "Add CI")
    code, said = await app_push(sandbox, http, git, "HEAD:refs/heads/work")
    assert code != 0
    assert "without `workflows` permission" in said
    assert sandbox.repository(REPO).git.branch("work") is None
    assert (await git("push", "origin", "HEAD:refs/heads/work", by="bob"))[0] == 0


async def test_an_app_without_workflows_creates_a_branch_with_the_same_workflow_files(
    sandbox, http, git, clone
):
    files = {".github/workflows/ci.yml": "on: push\n"}
    await sandbox.act("push", "alice", REPO, branch="main", files=files)
    await git("fetch", "-q", "origin", "main")
    await git("checkout", "-q", "FETCH_HEAD")
    await commit(git, clone, "a.txt")
    assert (await app_push(sandbox, http, git, "HEAD:refs/heads/work"))[0] == 0


async def test_refs_of_pull_requests_are_hidden_from_a_push(sandbox, git, clone):
    await sandbox.act("open", "dave", REPO, files={"a.txt": "a"}, fork=True)
    url = f"{sandbox.url}/{REPO}.git/info/refs"
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {sandbox.credentials.person_token('bob')}"}
        asked = {"service": "git-receive-pack"}
        shown = await (await session.get(url, params=asked, headers=headers)).text()
        fetched = await (await session.get(url, params={"service": "git-upload-pack"})).text()
    assert "refs/heads/main" in shown
    assert "refs/pull/" not in shown
    assert "refs/pull/" in fetched


async def test_a_lease_holds_until_the_push_arrives(sandbox, git, clone):
    sha = await commit(git, clone, "a.txt")
    act = {"repo": REPO, "as": "alice", "act": "push", "branch": "work", "files": {"b.txt": "b"}}
    fault = {"kind": "before", "act": act}
    await sandbox.control.add_fault({"match": {"path": "*/git-receive-pack"}, "fault": fault})
    lease = "--force-with-lease=refs/heads/work:"
    code, said = await git("push", lease, "origin", f"{sha}:refs/heads/work", by="bob")
    assert code != 0
    assert "remote rejected" in said
    assert sandbox.repository(REPO).git.branch("work") != sha


async def test_a_repository_takes_so_many_pushes_a_minute(sandbox, git, clone):
    await sandbox.seed(knobs={"pushes_minute_max": 2})
    sha = await commit(git, clone, "a.txt")
    pushed = [
        await git("push", "origin", f"{sha}:refs/heads/work-{number}", by="bob")
        for number in range(3)
    ]
    assert [code for code, _ in pushed] == [0, 0, 1]
    assert "[remote rejected]" in pushed[2][1]
    assert "(failed)" in pushed[2][1]
    assert sandbox.repository(REPO).git.branch("work-2") is None
    sandbox.world.timeline.advance(61)
    assert (await git("push", "origin", f"{sha}:refs/heads/work-2", by="bob"))[0] == 0


async def test_a_push_policy_refuses_a_push_of_too_many_refs_whole(sandbox, git, clone):
    await sandbox.seed(knobs={"push_refs_max": 2})
    sha = await commit(git, clone, "a.txt")
    names = [f"{sha}:refs/heads/work-{number}" for number in range(3)]
    code, said = await git("push", "origin", *names, by="bob")
    assert code != 0
    assert said.count("remote: - Pushes can not update more than 2 branches or tags.") == 3
    assert said.count("(push declined due to repository rule violations)") == 3
    assert sandbox.repository(REPO).git.branch("work-0") is None
    assert (await git("push", "origin", *names[:2], by="bob"))[0] == 0

"""PyGithub and `@octokit/rest`, which know nothing of us, drive the stand-in as they do GitHub."""

import asyncio
import json
import shutil

import pytest
from github import Auth, Github, GithubException, GithubIntegration

from tests.harness import needs
from tests.sandbox.client import REPO

OCTOKIT = """\
import { Octokit } from "@octokit/rest";

const [url, token, number, sha, version] = process.argv.slice(2);
const octokit = new Octokit({ auth: token, baseUrl: `${url}/api/v3`, log: { warn() {}, error() {},
  info() {}, debug() {} } });
const where = { owner: "octo", repo: "widgets", headers: { "X-GitHub-Api-Version": version } };
const pull_number = Number(number);
const said = {};
said.branch = (await octokit.rest.repos.get(where)).data.default_branch;
said.rules = (await octokit.rest.repos.getBranchRules({ ...where, branch: "main" })).data
  .map((rule) => rule.type);
const comment = await octokit.rest.issues.createComment(
  { ...where, issue_number: pull_number, body: "hello" });
said.comments = (await octokit.paginate(octokit.rest.issues.listComments,
  { ...where, issue_number: pull_number, per_page: 1 })).map((one) => one.body);
await octokit.rest.reactions.createForIssueComment(
  { ...where, comment_id: comment.data.id, content: "+1" });
await octokit.rest.checks.create(
  { ...where, name: "unit", head_sha: sha, status: "completed", conclusion: "success" });
said.checks = (await octokit.rest.checks.listForRef({ ...where, ref: sha })).data.check_runs
  .map((run) => run.name);
try {
  await octokit.rest.pulls.merge({ ...where, pull_number, sha: "0".repeat(40) });
} catch (error) {
  said.refused = error.status;
}
said.merged = (await octokit.rest.pulls.merge({ ...where, pull_number, sha })).data.merged;
said.is_merged = (await octokit.rest.pulls.get({ ...where, pull_number })).data.merged;
said.user = (await octokit.graphql("query { repository(owner: \\"octo\\", name: \\"widgets\\") "
  + "{ nameWithOwner } }")).repository.nameWithOwner;
console.log(JSON.stringify(said));
"""


@pytest.fixture
async def opened(sandbox):
    """A pull request that only needs its check."""
    await sandbox.control.rules({"repo": REPO, "required_checks": ["unit"]})
    files = {"new.txt": "new\n", ".sandbox/ci.yml": "triggers: {}\n"}
    return await sandbox.act("open", "bob", REPO, title="Add a file", files=files)


@pytest.fixture
async def token(sandbox):
    """A token of the installation, got by PyGithub as GitHub's documentation says."""
    app = Auth.AppAuth(str(sandbox.app_id), sandbox.key_path.read_text())

    def get() -> str:
        with GithubIntegration(auth=app, base_url=f"{sandbox.url}/api/v3") as integration:
            installation = integration.get_repo_installation("octo", "widgets")
            return str(integration.get_access_token(installation.id).token)

    return await asyncio.to_thread(get)


def story_by_pygithub(url: str, token: str, number: int, head: str) -> dict[str, object]:
    """The same story as OCTOKIT tells."""
    with Github(auth=Auth.Token(token), base_url=f"{url}/api/v3", retry=None) as github:
        repo = github.get_repo(REPO)
        pull = repo.get_pull(number)
        comment = pull.create_issue_comment("hello")
        comment.create_reaction("+1")
        repo.create_check_run("unit", head, status="completed", conclusion="success")
        refused = 0
        try:
            pull.merge(sha="0" * 40)
        except GithubException as error:
            refused = error.status
        commit = repo.get_commit(head)
        return {
            "branch": repo.default_branch,
            "comments": [one.body for one in pull.get_issue_comments()],
            "checks": [run.name for run in commit.get_check_runs()],
            "refused": refused,
            "merged": pull.merge(sha=head).merged,
            "is_merged": repo.get_pull(number).merged,
        }


STORY = {
    "branch": "main",
    "comments": ["hello"],
    "checks": ["unit"],
    "refused": 409,
    "merged": True,
    "is_merged": True,
}


async def test_pygithub_merges_a_pull_request(sandbox, opened, token):
    told = await asyncio.to_thread(
        story_by_pygithub, sandbox.url, token, opened["number"], opened["head"]
    )
    assert told == STORY


@pytest.mark.parametrize("version", ["2022-11-28", "2026-03-10"])
async def test_octokit_merges_a_pull_request(sandbox, opened, token, tmp_path, version):
    needs.needs("octokit")
    script = tmp_path / "story.mjs"
    script.write_text(OCTOKIT)
    (tmp_path / "node_modules").symlink_to(needs.OCTOKIT)
    arguments = (sandbox.url, token, str(opened["number"]), opened["head"], version)
    node = await asyncio.create_subprocess_exec(
        str(shutil.which("node")), str(script), *arguments, stdout=-1, stderr=-1
    )
    out, problems = await node.communicate()
    assert node.returncode == 0, problems.decode()
    rules = ["required_status_checks"]
    assert json.loads(out) == {**STORY, "rules": rules, "user": REPO}

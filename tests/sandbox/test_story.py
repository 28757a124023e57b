"""An independent client library drives the whole story, and its models parse every answer.

githubkit is made from the provider's published descriptions: a field that is missing or of
another type here would fail its parsing.
"""

import io
import zipfile
from contextlib import asynccontextmanager

import pytest
from githubkit import GitHub
from githubkit.auth import AppAuthStrategy, AppInstallationAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.exception import RequestFailed
from githubkit_schemas.v2022_11_28 import webhooks as v2022
from githubkit_schemas.v2026_03_10 import webhooks as v2026

from tests.sandbox.client import REPO

VERSIONS = {"2022-11-28": v2022, "2026-03-10": v2026}
OWN = ("octo", "widgets")

pytestmark = pytest.mark.first


@pytest.fixture(params=VERSIONS)
def version(request):
    """A version of the API."""
    return request.param


@asynccontextmanager
async def rest_of(sandbox, auth, version):
    """The library's REST calls; its client must outlive them."""
    async with client_of(sandbox, auth) as client:
        yield client.rest(version)


def client_of(sandbox, auth):
    """A client with a token cache of its own: equal ids mean different sandboxes here."""
    return GitHub(
        auth,
        base_url=f"{sandbox.url}/api/v3/",
        auto_retry=False,
        http_cache=False,
        cache_strategy=MemCacheStrategy(),
    )


@pytest.fixture
async def signed(sandbox, version):
    """The App by its key."""
    key = sandbox.key_path.read_text()
    async with rest_of(sandbox, AppAuthStrategy(str(sandbox.app_id), key), version) as rest:
        yield rest


@pytest.fixture
async def rest(sandbox, signed, version):
    """The App by an installation token, got by the library itself."""
    found = (await signed.apps.async_get_repo_installation(*OWN)).parsed_data
    key = sandbox.key_path.read_text()
    auth = AppInstallationAuthStrategy(str(sandbox.app_id), key, found.id)
    async with rest_of(sandbox, auth, version) as rest:
        yield rest


@pytest.fixture
async def bob(sandbox, version):
    async with rest_of(sandbox, sandbox.credentials.person_token("bob"), version) as rest:
        yield rest


async def test_the_app_reads_itself_and_its_installations(signed, rest, sandbox):
    assert (await signed.apps.async_get_authenticated()).parsed_data.slug == "headgate"
    assert (await rest.apps.async_get_by_slug("headgate")).parsed_data.id == sandbox.app_id
    listed = (await signed.apps.async_list_installations()).parsed_data
    token = await signed.apps.async_create_installation_access_token(listed[0].id)
    assert token.parsed_data.repository_selection == "all"
    seen = (await rest.apps.async_list_repos_accessible_to_installation()).parsed_data
    assert [one.full_name for one in seen.repositories] == [REPO]


async def test_people_and_their_rights_are_read(rest, bob, sandbox):
    shown = await rest.repos.async_get_collaborator_permission_level(*OWN, "alice")
    assert shown.parsed_data.role_name == "maintain"
    number = sandbox.world.account("bob").id
    assert (await rest.users.async_get_by_id(number)).parsed_data.login == "bob"


async def test_a_repository_is_read_in_every_way(rest, sandbox):
    await sandbox.control.rules(
        {
            "repo": REPO,
            "required_checks": ["unit"],
            "protection": {"main": {"checks": ["lint"], "approvals": 1}},
        }
    )
    repos = rest.repos
    assert (await repos.async_get(*OWN)).parsed_data.default_branch == "main"
    branch = (await repos.async_get_branch(*OWN, "main")).parsed_data
    checks = await repos.async_get_status_checks_protection(*OWN, "main")
    assert checks.parsed_data.contexts == ["lint"]
    rules = (await repos.async_get_branch_rules(*OWN, "main")).parsed_data
    assert rules[0].type == "required_status_checks"
    number = rules[0].ruleset_id
    assert (await repos.async_get_repo_ruleset(*OWN, number)).parsed_data.name == "required"
    content = await repos.async_get_content(*OWN, "README.md")
    assert content.parsed_data.name == "README.md"
    assert (await repos.async_get_commit(*OWN, "main")).parsed_data.sha == branch.commit.sha
    git = rest.git
    assert (await git.async_get_ref(*OWN, "heads/main")).parsed_data.object_.sha
    assert (await git.async_list_matching_refs(*OWN, "heads")).parsed_data
    assert (await git.async_get_commit(*OWN, branch.commit.sha)).parsed_data.verification
    tree = await git.async_get_tree(*OWN, branch.commit.sha, recursive="1")
    assert tree.parsed_data.truncated is False
    compared = await repos.async_compare_commits(*OWN, basehead="main...main")
    assert compared.parsed_data.status == "identical"


async def test_a_pull_request_is_built_tested_and_merged(rest, bob, sandbox):
    opened = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, title="Add a")
    main = (await rest.git.async_get_ref(*OWN, "heads/main")).parsed_data.object_.sha
    await rest.git.async_create_ref(*OWN, ref="refs/heads/headgate/temp/1", sha=main)
    merged = await rest.repos.async_merge(
        *OWN, base="headgate/temp/1", head=opened["head"], commit_message="test"
    )
    tested = merged.parsed_data
    renamed = await rest.repos.async_rename_branch(
        *OWN, "headgate/temp/1", new_name="headgate/merge/1"
    )
    assert renamed.parsed_data.name == "headgate/merge/1"
    await sandbox.settle()
    vehicle = await rest.pulls.async_create(
        *OWN, title="test", head="headgate/merge/1", base="main", draft=True, body="b"
    )
    assert vehicle.parsed_data.draft is True
    await sandbox.settle()
    runs = await rest.checks.async_list_for_ref(*OWN, tested.sha, filter_="all")
    assert {one.conclusion for one in runs.parsed_data.check_runs} == {"success"}
    assert (await rest.checks.async_list_suites_for_ref(*OWN, tested.sha)).parsed_data.total_count
    await rest.git.async_delete_ref(*OWN, "heads/headgate/merge/1")
    number = vehicle.parsed_data.number
    assert (await rest.pulls.async_get(*OWN, number)).parsed_data.state == "closed"
    landed = await rest.pulls.async_merge(
        *OWN, opened["number"], sha=opened["head"], merge_method="squash"
    )
    assert landed.parsed_data.merged is True
    tip = (await rest.repos.async_get_commit(*OWN, landed.parsed_data.sha)).parsed_data
    assert tip.commit.tree.sha == tested.commit.tree.sha


async def test_a_pull_request_is_read_and_talked_about_in_every_way(rest, bob, sandbox):
    opened = await sandbox.act("open", "alice", REPO, files={"a.txt": "a"})
    number = opened["number"]
    await sandbox.settle()
    assert (await rest.pulls.async_list(*OWN)).parsed_data[0].number == number
    assert (await rest.pulls.async_get(*OWN, number)).parsed_data.mergeable is True
    assert (await rest.pulls.async_list_files(*OWN, number)).parsed_data[0].filename == "a.txt"
    assert (await rest.pulls.async_list_commits(*OWN, number)).parsed_data
    changed = await rest.pulls.async_update(*OWN, number, title="Other")
    assert changed.parsed_data.title == "Other"
    issues = rest.issues
    assert (await issues.async_get(*OWN, number)).parsed_data.pull_request
    assert (await issues.async_list_for_repo(*OWN)).parsed_data
    comment = (await issues.async_create_comment(*OWN, number, body="hi")).parsed_data
    assert (await issues.async_list_comments(*OWN, number)).parsed_data[0].id == comment.id
    await issues.async_update_comment(*OWN, comment.id, body="ho")
    reactions = rest.reactions
    await reactions.async_create_for_issue_comment(*OWN, comment.id, content="+1")


async def test_checks_statuses_and_workflow_runs_are_read_and_written(rest, bob, sandbox):
    opened = await sandbox.act("open", "bob", REPO, files={"bad.txt": "a"})
    sha = opened["head"]
    await sandbox.settle()
    checks = rest.checks
    made = await checks.async_create(
        *OWN, data={"name": "Headgate (main)", "head_sha": sha, "status": "in_progress"}
    )
    run = made.parsed_data
    output = {"title": "T", "summary": "S"}
    done = await checks.async_update(
        *OWN, run.id, data={"status": "completed", "conclusion": "neutral", "output": output}
    )
    assert done.parsed_data.conclusion == "neutral"
    assert done.parsed_data.output.title == "T"
    repos = bob.repos
    await repos.async_create_commit_status(*OWN, sha, state="success", context="lint")
    assert (await repos.async_list_commit_statuses_for_ref(*OWN, sha)).parsed_data
    actions = bob.actions
    listed = (await actions.async_list_workflow_runs_for_repo(*OWN, head_sha=sha)).parsed_data
    number = listed.workflow_runs[0].id
    assert (await actions.async_get_workflow_run(*OWN, number)).parsed_data.conclusion == "failure"
    jobs = await actions.async_list_jobs_for_workflow_run(*OWN, number)
    assert jobs.parsed_data.jobs[0].conclusion == "failure"
    await actions.async_re_run_workflow_failed_jobs(*OWN, number)
    attempt = await actions.async_list_jobs_for_workflow_run_attempt(*OWN, number, 2)
    assert attempt.parsed_data.jobs[0].run_attempt == 2
    await actions.async_cancel_workflow_run(*OWN, number)
    shown = (await actions.async_get_workflow_run(*OWN, number)).parsed_data
    assert (shown.run_attempt, shown.conclusion) == (2, "cancelled")


async def test_artifacts_are_listed_and_fetched(bob, sandbox):
    ci = "triggers: { push: [main] }\nchecks: [{ name: unit, reports: { tests: [{ name: a }] } }]\n"
    await sandbox.act("push", "alice", REPO, branch="main", files={".sandbox/ci.yml": ci})
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[0].id
    actions = bob.actions
    listed = (await actions.async_list_workflow_run_artifacts(*OWN, run)).parsed_data
    assert [one.name for one in listed.artifacts] == ["junit-unit"]
    assert listed.artifacts[0].workflow_run.id == run
    fetched = await actions.async_download_artifact(*OWN, listed.artifacts[0].id, "zip")
    assert zipfile.ZipFile(io.BytesIO(fetched.content)).namelist() == ["junit.xml"]
    attempt = (await actions.async_get_workflow_run_attempt(*OWN, run, 1)).parsed_data
    assert (attempt.run_attempt, attempt.conclusion) == (1, "success")


async def test_deliveries_are_read_and_repeated(signed, rest, sandbox, receiver):
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    await sandbox.settle()
    listed = (await signed.apps.async_list_webhook_deliveries()).parsed_data
    await signed.apps.async_redeliver_webhook_delivery(listed[0].id)


async def test_the_library_pages_through_a_list(sandbox, version):
    for number in range(7):
        await sandbox.act("open", "bob", REPO, files={f"{number}.txt": "x"})
    async with client_of(sandbox, sandbox.credentials.person_token("bob")) as client:
        method = client.rest(version).pulls.async_list
        pages = client.rest.paginate(method, owner="octo", repo="widgets", per_page=3)
        found = [one.number async for one in pages]
    assert found == [7, 6, 5, 4, 3, 2, 1]


async def test_a_refusal_is_the_librarys_own_error(rest):
    with pytest.raises(RequestFailed) as refused:
        await rest.git.async_create_ref(*OWN, ref="refs/heads/main", sha="0" * 40)
    assert refused.value.response.status_code == 422


@pytest.mark.parametrize(
    "version",
    ["2022-11-28", pytest.param("2026-03-10", marks=pytest.mark.soak)],
    indirect=True,
)
async def test_every_webhook_is_parsed_by_the_librarys_models(
    rest, bob, sandbox, receiver, version
):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    by = {"number": number}
    await sandbox.act("push", "bob", REPO, files={"b.txt": "b"}, **by)
    await sandbox.act("edit", "bob", REPO, title="Other", **by)
    await sandbox.act("label", "alice", REPO, label="x", **by)
    await sandbox.act("unlabel", "alice", REPO, label="x", **by)
    await sandbox.act("draft", "bob", REPO, **by)
    await sandbox.act("draft", "bob", REPO, draft=False, **by)
    comment = await sandbox.act("comment", "bob", REPO, body="- [ ] box", **by)
    await sandbox.act("tick_checkbox", "alice", REPO, box="box", **by, **comment)
    await sandbox.act("approve", "alice", REPO, **by)
    await sandbox.act("discuss", "alice", REPO, body="why?", **by)
    await sandbox.act("resolve", "bob", REPO, **by)
    head = sandbox.repository(REPO).issues[number].pull.head_sha
    await bob.repos.async_create_commit_status(*OWN, head, state="success", context="lint")
    button = {"label": "Go", "description": "Go on", "identifier": "go"}
    body = {"name": "h", "head_sha": head, "conclusion": "success", "actions": [button]}
    await rest.checks.async_create(*OWN, data={**body, "status": "completed"})
    await sandbox.act("press_button", "alice", REPO, button="go", **by)
    await sandbox.settle()
    await sandbox.act("close", "bob", REPO, **by)
    await sandbox.act("reopen", "bob", REPO, **by)
    await sandbox.act("merge", "alice", REPO, method="rebase", **by)
    await sandbox.act("rename", "alice", REPO, branch="main", to="trunk")
    await sandbox.control.rules({"repo": REPO, "required_checks": ["unit"]})
    await sandbox.control.rules({"repo": REPO, "required_checks": ["lint"]})
    await sandbox.control.rules({"repo": REPO, "protection": {"trunk": {"checks": ["unit"]}}})
    await sandbox.act("archive", "alice", REPO)
    await sandbox.act("archive", "alice", REPO, archived=False)
    await sandbox.act("rename", "alice", REPO, to="gadgets")
    await sandbox.act("suspend", "alice", REPO)
    await sandbox.act("suspend", "alice", REPO, suspended=False)
    await sandbox.act("permissions", "alice", REPO, permissions={"metadata": "read"})
    await sandbox.seed(repositories=[{"full_name": "octo/more"}, {"full_name": "new/one"}])
    await sandbox.settle()
    names = set(receiver.events())
    assert len(names) == 35, sorted(names)
    for headers, raw in receiver.received:
        VERSIONS[version].WebhookNamespace.parse(headers["X-GitHub-Event"], raw)

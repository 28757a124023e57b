"""Row Checks: suites, check runs, statuses, and which of them count."""

from datetime import timedelta

import pytest

from tests.sandbox.client import REPO

RUNS = f"/repos/{REPO}/check-runs"


async def opened(sandbox, **fields):
    return await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, **fields)


async def test_an_empty_suite_waits_for_every_app_with_checks_write(sandbox, app):
    pull = await opened(sandbox)
    suites = await app.get(f"/repos/{REPO}/commits/{pull['head']}/check-suites")
    assert [(one["app"]["slug"], one["status"]) for one in suites["check_suites"]] == [
        ("headgate", "queued")
    ]
    assert suites["check_suites"][0]["latest_check_runs_count"] == 0


async def test_a_run_of_the_app_goes_into_its_suite_on_the_commit(sandbox, app):
    pull = await opened(sandbox)
    body = {"name": "Headgate (main)", "head_sha": pull["head"], "external_id": "s1"}
    made = await app.call("POST", RUNS, body)
    assert (made.status, made.body["status"], made.body["external_id"]) == (201, "queued", "s1")
    suites = await app.get(f"/repos/{REPO}/commits/{pull['head']}/check-suites")
    assert suites["check_suites"][0]["id"] == made.body["check_suite"]["id"]
    output = {"title": "T", "summary": "S"}
    path = f"{RUNS}/{made.body['id']}"
    changed = await app.call("PATCH", path, {"conclusion": "success", "output": output})
    assert (changed.body["status"], changed.body["output"]["title"]) == ("completed", "T")
    assert changed.body["completed_at"] is not None


async def test_a_completed_run_stays_completed_and_takes_another_conclusion(sandbox, app):
    pull = await opened(sandbox)
    body = {"name": "x", "head_sha": pull["head"], "conclusion": "success"}
    path = f"{RUNS}/{(await app.call('POST', RUNS, body)).body['id']}"
    shown = []
    for change in ({"status": "in_progress"}, {"status": "completed", "conclusion": "failure"}):
        run = (await app.call("PATCH", path, change)).body
        shown.append((run["status"], run["conclusion"]))
    assert shown == [("completed", "success"), ("completed", "failure")]


async def test_only_apps_make_check_runs_and_only_their_own(sandbox, app, person):
    pull = await opened(sandbox)
    await sandbox.settle()
    body = {"name": "x", "head_sha": pull["head"]}
    assert (await person("alice").call("POST", RUNS, body)).status == 403
    foreign = sandbox.repository(REPO).check_runs(pull["head"])[0]
    answer = await app.call("PATCH", f"{RUNS}/{foreign.id}", {"status": "queued"})
    assert answer.status == 403


async def test_a_rerun_is_a_new_run_in_the_same_suite_and_replaces_the_old(sandbox, app):
    await sandbox.act("permissions", "alice", REPO, permissions={"actions": "write"})
    pull = await sandbox.act("open", "bob", REPO, files={"bad.txt": "x"})
    await sandbox.settle()
    repository = sandbox.repository(REPO)
    first = repository.check_runs(pull["head"])[0]
    path = f"/repos/{REPO}/actions/runs/{repository.workflow_runs[0].id}/rerun-failed-jobs"
    token = sandbox.credentials.person_token("bob")
    answer = await app.call("POST", path, {}, Authorization=f"Bearer {token}")
    assert answer.status == 201
    await sandbox.settle()
    runs = repository.check_runs(pull["head"])
    assert [run.suite.id for run in runs] == [first.suite.id] * 2
    assert runs[1].id > first.id


async def test_a_run_of_more_than_thirty_days_ago_is_not_repeated(sandbox, app):
    await sandbox.act("permissions", "alice", REPO, permissions={"actions": "write"})
    await sandbox.act("open", "bob", REPO, files={"bad.txt": "x"})
    await sandbox.settle()
    (run,) = sandbox.repository(REPO).workflow_runs
    run.created_at -= timedelta(days=31)
    bearer = f"Bearer {sandbox.credentials.person_token('bob')}"
    jobs = [f"jobs/{job.id}/rerun" for job in run.jobs[1]]
    for tail in (f"runs/{run.id}/rerun-failed-jobs", *jobs):
        path = f"/repos/{REPO}/actions/{tail}"
        answer = await app.call("POST", path, {}, Authorization=bearer)
        assert answer.status == 403
        assert "created over a month ago" in str(answer.body)


async def test_the_filter_latest_leaves_out_what_was_replaced(sandbox, app, person):
    pull = await sandbox.act("open", "bob", REPO, files={"bad.txt": "x"})
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[0]
    await person("bob").call("POST", f"/repos/{REPO}/actions/runs/{run.id}/rerun-failed-jobs", {})
    await sandbox.settle()
    path = f"/repos/{REPO}/commits/{pull['head']}/check-runs"
    assert (await app.get(f"{path}?filter=all"))["total_count"] == 2
    latest = (await app.get(path))["check_runs"]
    assert [one["id"] for one in latest] == [max(run.jobs[2], key=lambda job: job.id).id]
    assert (await app.get(f"{path}?check_name=other"))["total_count"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"status": "completed"},
        {"status": "busy"},
        {"conclusion": "fine"},
        {"output": {"title": "no summary"}},
        {"output": {"summary": "s" * 65_536}},
        {"output": {"summary": "s", "annotations": [{}] * 51}},
        {"actions": [{"label": "l", "description": "d", "identifier": "i"}] * 4},
        {"actions": [{"label": "l" * 21, "description": "d", "identifier": "i"}]},
    ],
)
async def test_a_check_run_beyond_the_limits_is_422(sandbox, app, body):
    pull = await opened(sandbox)
    answer = await app.call("POST", RUNS, {"name": "x", "head_sha": pull["head"], **body})
    assert answer.status == 422


async def test_statuses_list_every_update_newest_first(sandbox, app, person):
    pull = await opened(sandbox)
    path = f"/repos/{REPO}/statuses/{pull['head']}"
    for state in ("pending", "failure", "success"):
        answer = await person("bob").call("POST", path, {"state": state, "context": "lint"})
        assert answer.status == 201
    listed = await app.get(f"/repos/{REPO}/commits/{pull['head']}/statuses")
    assert [one["state"] for one in listed] == ["success", "failure", "pending"]


async def test_a_context_takes_a_thousand_statuses(sandbox, person):
    pull = await opened(sandbox)
    repository = sandbox.repository(REPO)
    path, body = f"/repos/{REPO}/statuses/{pull['head']}", {"state": "pending", "context": "x"}
    first = await person("bob").call("POST", path, body)
    listed = repository.statuses[pull["head"]]
    listed.extend(listed * 999)
    assert first.status == 201
    assert (await person("bob").call("POST", path, body)).status == 422
    assert (await person("bob").call("POST", path, {**body, "context": "y"})).status == 201


async def test_a_status_on_an_unknown_commit_is_422(person):
    path = f"/repos/{REPO}/statuses/{'0' * 40}"
    assert (await person("bob").call("POST", path, {"state": "success"})).status == 422


CHECKS = """
query($owner: String!, $name: String!, $oid: GitObjectID!) {
  repository(owner: $owner, name: $name) {
    object(oid: $oid) {
      ... on Commit {
        status { state }
        checkSuites(first: 9) {
          nodes {
            databaseId status
            latest: checkRuns(first: 9) { nodes { databaseId } }
            checkRuns(first: 9, filterBy: {checkType: ALL}) {
              nodes { databaseId detailsUrl permalink startedAt completedAt }
            }
          }
        }
      }
    }
  }
}
"""


async def test_the_suites_of_a_commit_show_in_graphql_as_in_rest(sandbox, app, person):
    pull = await sandbox.act("open", "bob", REPO, files={"bad.txt": "x"})
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[0]
    await person("bob").call("POST", f"/repos/{REPO}/actions/runs/{run.id}/rerun-failed-jobs", {})
    await sandbox.settle()
    owner, name = REPO.split("/")
    answer = await app.graphql(CHECKS, owner=owner, name=name, oid=pull["head"])
    commit = answer["data"]["repository"]["object"]
    path = f"/repos/{REPO}/commits/{pull['head']}"
    suites = (await app.get(f"{path}/check-suites"))["check_suites"]
    shown = {(one["databaseId"], one["status"].lower()) for one in commit["checkSuites"]["nodes"]}
    assert shown == {(one["id"], one["status"]) for one in suites}
    (suite,) = [one for one in commit["checkSuites"]["nodes"] if one["checkRuns"]["nodes"]]
    runs = (await app.get(f"{path}/check-runs?filter=all"))["check_runs"]
    fields = ("id", "details_url", "html_url", "started_at", "completed_at")
    assert {tuple(one.values()) for one in suite["checkRuns"]["nodes"]} == {
        tuple(one[field] for field in fields) for one in runs
    }
    assert [one["databaseId"] for one in suite["latest"]["nodes"]] == [max(o["id"] for o in runs)]


async def test_a_status_shows_in_graphql_once_there_is_one(sandbox, app):
    pull = await opened(sandbox)
    owner, name = REPO.split("/")
    before = await app.graphql(CHECKS, owner=owner, name=name, oid=pull["head"])
    assert before["data"]["repository"]["object"]["status"] is None
    body = {"context": "x", "state": "pending"}
    token = sandbox.credentials.person_token("bob")
    path = f"/repos/{REPO}/statuses/{pull['head']}"
    await app.call("POST", path, body, Authorization=f"Bearer {token}")
    after = await app.graphql(CHECKS, owner=owner, name=name, oid=pull["head"])
    assert after["data"]["repository"]["object"]["status"] == {"state": "PENDING"}
    unknown = await app.graphql(CHECKS, owner=owner, name=name, oid="1" * 40)
    assert unknown["data"]["repository"]["object"] is None

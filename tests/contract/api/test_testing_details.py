"""`/getMergeQueueTestingDetails`, `/tokens/self` and the pages about the process itself."""

import re

import pytest

SHA = re.compile(r"[0-9a-f]{40}")
DETAILS = [
    *("requiredStatuses", "requiredStatusesSource", "testBranch", "testBranchSha"),
    *("checkSuites", "statusChecks", "testedPullRequests", "createdAt", "status"),
    *("dependentPrs", "testRunId", "baseSha", "finishedAt", "kind", "isBisection", "attempt"),
    *("reusedFrom", "testPrNumber", "failedStatuses", "missingStatuses", "waitingOn"),
    *("verdict", "failedTests", "incompleteReports", "requiredChecks"),
]

CHECKS = ("database", "schema", "recovery", "workers", "provider")


async def details(queue, run):
    body = queue.named(testRunId=run)
    return await queue.client.done("getMergeQueueTestingDetails", body)


async def test_a_run_in_progress_shows_what_it_waits_for(queue):
    number = await queue.submitted()
    run = (await queue.record(number))["testRunId"]
    shown = await details(queue, run)
    assert list(shown) == DETAILS
    assert shown["requiredStatuses"] == ["unit", "gate"]
    assert shown["requiredStatusesSource"] == "merge_instance"
    assert shown["testBranch"] == f"headgate/merge/pr-{number}/{run}"
    assert SHA.fullmatch(shown["testBranchSha"])
    assert SHA.fullmatch(shown["baseSha"])
    (tested,) = shown["testedPullRequests"]
    assert list(tested) == ["prNumber", "prUrl", "title"]
    assert tested["prNumber"] == number
    assert tested["prUrl"].endswith(f"/pull/{number}")
    assert tested["title"]
    expected = {
        "status": "in_progress",
        "dependentPrs": [],
        "testRunId": run,
        "finishedAt": None,
        "kind": "main",
        "isBisection": False,
        "attempt": 1,
        "reusedFrom": None,
        "failedStatuses": [],
        "missingStatuses": ["gate"],
        "waitingOn": [],
        "verdict": None,
        "failedTests": [],
    }
    assert {name: shown[name] for name in expected} == expected


async def test_the_checks_of_a_run_are_grouped_as_the_provider_groups_them(queue):
    number = await queue.submitted()
    shown = await details(queue, (await queue.record(number))["testRunId"])
    runs = [run for suite in shown["checkSuites"] for run in suite["checkRuns"]]
    assert {run["name"] for run in runs} == {"unit"}
    for run in runs:
        assert list(run) == ["name", "url", "status", "conclusion"]
        assert (run["status"], run["conclusion"]) == ("COMPLETED", "SUCCESS")
        assert run["url"].startswith("http")


async def test_a_finished_run_stays_readable(open_queue):
    number = await open_queue.submitted()
    record = await open_queue.record(number)
    shown = await details(open_queue, record["testRunId"])
    assert (shown["status"], shown["missingStatuses"]) == ("succeeded", [])
    assert shown["finishedAt"] is not None


async def test_a_failed_run_names_the_failed_status(open_queue):
    world = open_queue.world
    number = await world.open_pull_request(open_queue.branch, files={"broken.txt": "x\n"})
    await open_queue.client.done("submitPullRequest", open_queue.about(number))
    await world.settle()
    record = await open_queue.record(number)
    shown = await details(open_queue, record["testRunId"])
    assert (shown["status"], shown["failedStatuses"]) == ("failed", ["unit"])
    assert shown["verdict"] == "pr_fault"


async def test_targets_of_a_run_are_shown_sorted_once_they_are_known(client, queue):
    number = await queue.submitted()
    body = queue.about(number, impactedTargets=["//b", "//a"])
    await client.done("setImpactedTargets", body)
    shown = await details(queue, (await queue.record(number))["testRunId"])
    assert shown["impactedTargets"] == ["//a", "//b"]
    assert shown["impactedTargetsForTestedPrs"] == ["//a", "//b"]
    await client.done("setImpactedTargets", queue.about(number, impactedTargets="ALL"))
    shown = await details(queue, (await queue.record(number))["testRunId"])
    assert shown["impactedTargets"] == ["ALL"]


@pytest.mark.parametrize("run", ["x", "6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10", "a b/ü"])
async def test_an_unknown_run_is_missing_whatever_its_name(client, queue, run):
    answer = await client.post("getMergeQueueTestingDetails", queue.named(testRunId=run))
    assert answer.is_problem(404, "test_run_not_found")


async def test_a_run_of_another_queue_is_missing(client, queue, open_queue):
    number = await open_queue.submitted()
    run = (await open_queue.record(number))["testRunId"]
    answer = await client.post("getMergeQueueTestingDetails", queue.named(testRunId=run))
    assert answer.is_problem(404, "test_run_not_found")


async def test_a_token_tells_what_it_is(client, world):
    answer = await client.ask("GET", "/v1/tokens/self", world.narrow_token)
    assert list(answer.json) == [
        *("id", "name", "role", "organization", "repositories", "created_at", "expires_at"),
        *("last_used_at", "open_entries", "ci_minutes"),
    ]
    assert (answer.json["name"], answer.json["role"]) == ("admin of octo", "admin")
    assert answer.json["organization"] == {"slug": "octo", "host": world.host}
    named = {"host": world.host, "owner": "octo", "name": "gears"}
    assert answer.json["repositories"] == [named]
    assert world.narrow_token[4:14] == answer.json["id"]
    whole = await client.ask("GET", "/v1/tokens/self", world.admin_token)
    assert whole.json["repositories"] is None


async def test_the_service_says_how_it_is_to_anybody(client):
    answer = await client.ask("GET", "/v1/status", "")
    assert list(answer.json) == ["overallStatus", "severity", "services", "version", "troubles"]
    assert (answer.json["overallStatus"], answer.json["severity"]) == ("up", None)
    services = {each["name"]: each["status"] for each in answer.json["services"]}
    assert services == {"api": "up", "engine": "up", "provider": "up", "webhooks": "up"}


async def test_the_process_is_alive_and_ready(client):
    answer = await client.ask("GET", "/healthz", "")
    assert (answer.status, answer.json) == (200, {"status": "ok"})
    answer = await client.ask("GET", "/readyz", "")
    assert answer.status == 200
    assert answer.json["checks"] == dict.fromkeys(
        ("database", "schema", "recovery", "workers", "provider"), "ok"
    )

"""Answers that a client library recorded: refusals and limits, rulesets, CI runs."""

import pytest

from bot.github import ci_runs, limits
from bot.github.limits import Limit
from bot.github.protection import Protection
from bot.github.wire import Answer
from service.provider.errors import Refused
from service.provider.values import Known
from service.vocabulary import CheckOutcome, Sha
from tests.github.table import APP_ID, on_table
from tests.harness.expect import expect
from tests.provider.stage import START
from tests.recorded import recordings
from tests.recorded.recordings import Call

RECORDED = recordings.of_a_client()
SHA = Sha("a" * 40)
OUTCOMES = {
    ("completed", "success"): CheckOutcome.PASSED,
    ("completed", "failure"): CheckOutcome.FAILED,
    ("completed", "cancelled"): CheckOutcome.INTERRUPTED,
    ("completed", "action_required"): CheckOutcome.BLOCKED,
    ("in_progress", None): CheckOutcome.RUNNING,
}


def calls(kind: str) -> list[Call]:
    """Every recorded call of a kind."""
    found = [one for one in RECORDED.calls if one.kind == kind]
    assert found, f"no {kind} is recorded"
    return found


def answer_of(call: Call) -> Answer:
    """The answer as the adapter has it."""
    assert call.status is not None
    return Answer(call.status, call.headers, call.answer)


@pytest.mark.fault(
    "a refusal or a rate limit as GitHub really words it",
    holds="the adapter gives it the meaning that GitHub documents",
    within="-",
)
def test_each_recorded_refusal_has_its_meaning():
    lines = set()
    for call in RECORDED.calls:
        answer = answer_of(call)
        if answer.status < 400 and limits.limit_in(answer, START) is None:
            continue
        error = limits.error_of(answer, call.path, START)
        name = "Unavailable" if error is None else type(error).__name__
        code = f" {error.code.name}" if isinstance(error, Refused) else ""
        said = " ".join(answer.message.split()) or "-"
        lines.add(f"{call.kind}: {said} → {name}{code}{wait(answer)}")
    expect("\n".join(sorted(lines))).matches("refusals-of-a-client.txt")


def wait(answer: Answer) -> str:
    """Which limit was hit, and how long GitHub asks to wait."""
    limit = limits.limit_in(answer, START)
    if limit is None:
        return ""
    assert isinstance(limit, Limit)
    kind = "primary" if limit.is_primary else "secondary"
    return f" ({kind}, {limit.wait_s if limit.wait_s is not None else 'no'} s)"


async def test_rules_of_a_ruleset_bind_the_branch():
    async with on_table() as (table, client):
        table.says("graphql MergeQueue", {"data": {"repository": {"mergeQueue": None}}})
        table.denies("GET /branches/main/protection", 404, "Branch not protected")
        for call in calls("GET /rules/branches/BRANCH 200"):
            table.says("GET /rules/branches/main", call.answer)
            read, rules = await Protection(client.clock, APP_ID).read_whole(client, "main")
            assert [rule.type for rule in read.rules] == [one["type"] for one in call.answer]
            assert isinstance(rules.known, Known)
            assert rules.known.checks == ()
            assert rules.dismisses_approvals


async def test_ci_runs_have_their_outcome_and_attempt():
    async with on_table() as (table, client):
        for call in calls("GET /actions/runs 200"):
            table.says("GET /actions/runs", call.answer)
            read = await ci_runs.ci_runs(client, START.date())
            recorded = call.answer["workflow_runs"]
            assert [(one.id, one.attempt, one.outcome) for one in read] == [
                (
                    str(run["id"]),
                    run.get("run_attempt", 1),
                    OUTCOMES[run["status"], run["conclusion"]],
                )
                for run in recorded
            ]
        for call in calls("GET /actions/runs/N 200"):
            table.says("GET /actions/runs/7", call.answer)
            run = await ci_runs.claimed_run(client, "7")
            assert run is not None
            assert run.head_sha == call.answer["head_sha"]


async def test_a_run_that_is_gone_is_none():
    async with on_table() as (table, client):
        for call in calls("GET /actions/runs/N 404"):
            table.says("GET /actions/runs/7", call.answer, status=404)
            assert await ci_runs.claimed_run(client, "7") is None


async def test_jobs_and_artifacts_of_a_run_are_read():
    async with on_table() as (table, client):
        for call in calls("GET /actions/runs/N/jobs 200"):
            table.says("GET /actions/runs/7/attempts/1/jobs", call.answer)
            jobs = await ci_runs.ci_jobs(client, "7", 1)
            assert [(job.id, job.name, job.outcome) for job in jobs] == [
                (str(one["id"]), one["name"], OUTCOMES[one["status"], one["conclusion"]])
                for one in call.answer["jobs"]
            ]
        table.says("GET /actions/artifacts", {"artifacts": [{"workflow_run": None}]})
        for call in calls("GET /actions/runs/N/artifacts 200"):
            table.says("GET /actions/runs/7/artifacts", call.answer)
            artifacts = await ci_runs.ci_artifacts(client, "7")
            listed = {(str(one["id"]), one["name"]) for one in call.answer["artifacts"]}
            assert {(one.id, one.name) for one in artifacts} == listed


@pytest.mark.parametrize(
    ("act", "recorded"), [("rerun-failed-jobs", "rerun 201"), ("cancel", "cancel 202")]
)
async def test_runs_are_started_again_and_stopped_with_the_recorded_answers(
    act: str, recorded: str
):
    is_again = act != "cancel"
    run = {"id": 7, "status": "completed", "conclusion": "failure"}
    job = {"id": 1, "name": "unit", "status": "completed", "conclusion": "failure"}
    running = {"id": 7, "status": "in_progress", "conclusion": None}
    async with on_table() as (table, client):
        table.permissions = {"actions": "write"}
        table.says("GET /actions/runs", {"workflow_runs": [run if is_again else running]})
        table.says("GET /actions/runs/7/jobs", {"jobs": [job]})
        for call in calls(f"POST /actions/runs/N/{recorded}"):
            table.says(f"POST /actions/runs/7/{act}", call.answer, status=call.status)
            asked = (
                ci_runs.rerun(client, SHA, ["unit"]) if is_again else ci_runs.stop_ci(client, SHA)
            )
            assert await asked is None
        assert table.calls[f"POST /actions/runs/7/{act}"] == len(calls(call.kind))

"""Check suites, check runs, statuses and workflow runs as JSON."""

import hashlib
from datetime import datetime, timedelta

from bot.sandbox import standing
from bot.sandbox.records import Artifact, CheckRun, CheckSuite, Json, Status, WorkflowRun
from bot.sandbox.shapes import git_data, people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository

WORKFLOW_PATH = ".sandbox/ci.yml"
WORKFLOW_ID = 161_335
KEPT_FOR = timedelta(days=90)


def _when(at: datetime | None) -> str | None:
    return stamp(at) if at is not None else None


def pull_links(one: Repository, sha: str, branch: str | None) -> list[Json]:
    """The open pull requests of this repository with that head; never those of forks."""
    if branch is None:
        return []
    return [
        {
            "id": issue.id,
            "number": issue.number,
            "url": f"{git_data.address(one)}/pulls/{issue.number}",
            "head": _end(one, pull.head_ref, pull.head_sha),
            "base": _end(one, pull.base_ref, pull.base_sha),
        }
        for issue, pull in one.open_pulls()
        if pull.head_repo == one.id and pull.head_ref == branch and pull.head_sha == sha
    ]


def _end(one: Repository, ref: str, sha: str) -> Json:
    repo = {"id": one.id, "name": one.name, "url": git_data.address(one)}
    return {"ref": ref, "sha": sha, "repo": repo}


def check_run(one: Repository, run: CheckRun) -> Json:
    """A check run as REST shows it."""
    url = f"{git_data.address(one)}/check-runs/{run.id}"
    suite = run.suite
    web = f"{one.world.web}/{one.full_name}/runs/{run.id}"
    return {
        "id": run.id,
        "name": run.name,
        "node_id": people.node_id("CheckRun", run.id),
        "head_sha": suite.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": web,
        "details_url": run.details_url or web,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": _when(run.started_at),
        "completed_at": _when(run.completed_at),
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": len(run.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": suite.id},
        "app": people.app(one.world, suite.app),
        "pull_requests": pull_links(one, suite.head_sha, suite.head_branch),
    }


def check_run_event(one: Repository, run: CheckRun) -> Json:
    """A check run as webhooks carry it, with its suite and its buttons."""
    suite = run.suite
    status, conclusion = standing.suite_state(suite)
    shown = check_run(one, run)
    shown["check_suite"] = {
        "id": suite.id,
        "node_id": people.node_id("CheckSuite", suite.id),
        "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": status,
        "conclusion": conclusion,
        "url": f"{git_data.address(one)}/check-suites/{suite.id}",
        "before": suite.before,
        "after": suite.head_sha,
        "pull_requests": shown["pull_requests"],
        "app": shown["app"],
        "created_at": stamp(suite.created_at),
        "updated_at": stamp(suite.updated_at),
    }
    return shown


def suite(one: Repository, shown: CheckSuite) -> Json:
    """A check suite."""
    url = f"{git_data.address(one)}/check-suites/{shown.id}"
    status, conclusion = standing.suite_state(shown)
    return {
        "id": shown.id,
        "node_id": people.node_id("CheckSuite", shown.id),
        "head_branch": shown.head_branch,
        "head_sha": shown.head_sha,
        "status": status,
        "conclusion": conclusion,
        "url": url,
        "before": shown.before,
        "after": shown.head_sha,
        "pull_requests": pull_links(one, shown.head_sha, shown.head_branch),
        "app": people.app(one.world, shown.app),
        "repository": repositories.minimal(one),
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.updated_at),
        "head_commit": git_data.simple_commit(one.git.objects.a_commit(shown.head_sha)),
        "latest_check_runs_count": len(standing.latest(shown.runs)),
        "check_runs_url": f"{url}/check-runs",
        "rerequestable": True,
        "runs_rerequestable": True,
    }


def status(one: Repository, shown: Status) -> Json:
    """One commit status with its creator."""
    return {**simple_status(one, shown), "creator": people.account(one.world, shown.creator)}


def simple_status(one: Repository, shown: Status) -> Json:
    """One commit status inside the combined one."""
    return {
        "id": shown.id,
        "node_id": people.node_id("StatusContext", shown.id),
        "url": f"{git_data.address(one)}/statuses/{shown.sha}",
        "avatar_url": f"{one.world.web}/_sandbox/avatar/{shown.creator.id}",
        "state": shown.state,
        "description": shown.description,
        "target_url": shown.target_url,
        "context": shown.context,
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.created_at),
    }


def workflow(one: Repository) -> Json:
    """The one workflow of a repository: its CI file."""
    web = f"{one.world.web}/{one.full_name}"
    return {
        "id": WORKFLOW_ID,
        "node_id": people.node_id("Workflow", WORKFLOW_ID),
        "name": "ci",
        "path": WORKFLOW_PATH,
        "state": "active",
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.created_at),
        "url": f"{git_data.address(one)}/actions/workflows/{WORKFLOW_ID}",
        "html_url": f"{web}/blob/{one.default_branch}/{WORKFLOW_PATH}",
        "badge_url": f"{web}/workflows/ci/badge.svg",
    }


def workflow_run(one: Repository, run: WorkflowRun, attempt: int | None = None) -> Json:
    """A workflow run or an attempt of it; `pull_requests` is empty for a fork's, as there."""
    number = attempt or run.attempt
    is_newest = number == run.attempt
    url = f"{git_data.address(one)}/actions/runs/{run.id}"
    head_repo = one.world.repositories.get(run.head_repo) if run.head_repo is not None else None
    suite_url = f"{git_data.address(one)}/check-suites/{run.suite.id}"
    head = one.git.objects.a_commit(run.head_sha)
    return {
        "id": run.id,
        "name": run.name,
        "node_id": people.node_id("WorkflowRun", run.id),
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": WORKFLOW_PATH,
        "display_title": head.message.partition("\n")[0],
        "run_number": run.number,
        "run_attempt": number,
        "event": run.event,
        "status": run.status if is_newest else "completed",
        "conclusion": run.conclusion if is_newest else run.ended.get(number),
        "workflow_id": WORKFLOW_ID,
        "workflow_url": f"{git_data.address(one)}/actions/workflows/{WORKFLOW_ID}",
        "check_suite_id": run.suite.id,
        "check_suite_node_id": people.node_id("CheckSuite", run.suite.id),
        "check_suite_url": suite_url,
        "url": url,
        "html_url": f"{one.world.web}/{one.full_name}/actions/runs/{run.id}",
        "pull_requests": pull_links(one, run.head_sha, run.head_branch),
        "created_at": stamp(run.created_at),
        "updated_at": stamp(run.updated_at),
        "run_started_at": stamp(run.begun[number]),
        "actor": people.account(one.world, run.actor),
        "triggering_actor": people.account(one.world, run.actor),
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": f"{url}/attempts/{number - 1}" if number > 1 else None,
        "head_commit": git_data.simple_commit(head),
        "repository": repositories.minimal(one),
        "head_repository": repositories.minimal(head_repo or one),
        "referenced_workflows": [],
    }


def job(one: Repository, run: WorkflowRun, shown: CheckRun) -> Json:
    """A job of a workflow run: the same thing as its check run, under another address."""
    url = f"{git_data.address(one)}/actions/jobs/{shown.id}"
    attempt = next((n for n, jobs in run.jobs.items() if shown in jobs), run.attempt)
    started = shown.started_at or run.created_at
    steps = [
        {
            "name": f"step {number}",
            "number": number,
            "status": shown.status,
            "conclusion": shown.conclusion,
            "started_at": stamp(started),
            "completed_at": _when(shown.completed_at),
        }
        for number in range(1, max(1, shown.failed_steps) + 1)
    ]
    return {
        "id": shown.id,
        "run_id": run.id,
        "run_url": f"{git_data.address(one)}/actions/runs/{run.id}",
        "run_attempt": attempt,
        "node_id": people.node_id("CheckRun", shown.id),
        "head_sha": run.head_sha,
        "head_branch": run.head_branch,
        "url": url,
        "html_url": f"{one.world.web}/{one.full_name}/runs/{shown.id}",
        "status": shown.status,
        "conclusion": shown.conclusion,
        "created_at": stamp(started),
        "started_at": stamp(started),
        "completed_at": _when(shown.completed_at),
        "name": shown.name,
        "steps": steps,
        "check_run_url": f"{git_data.address(one)}/check-runs/{shown.id}",
        "labels": ["sandbox"],
        "runner_id": 1,
        "runner_name": shown.runner,
        "runner_group_id": 1,
        "runner_group_name": "sandbox",
        "workflow_name": run.name,
    }


def artifact(one: Repository, run: WorkflowRun, shown: Artifact) -> Json:
    """An artifact of a workflow run; `size_in_bytes` is that of its archive."""
    url = f"{git_data.address(one)}/actions/artifacts/{shown.id}"
    return {
        "id": shown.id,
        "node_id": people.node_id("Artifact", shown.id),
        "name": shown.name,
        "size_in_bytes": len(shown.packed),
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": shown.expired,
        "digest": f"sha256:{hashlib.sha256(shown.packed).hexdigest()}",
        "created_at": stamp(shown.created_at),
        "updated_at": stamp(shown.created_at),
        "expires_at": stamp(shown.created_at + KEPT_FOR),
        "workflow_run": {
            "id": run.id,
            "repository_id": one.id,
            "head_repository_id": run.head_repo or one.id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        },
    }

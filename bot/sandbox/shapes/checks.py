"""Check suites, check runs, statuses, workflow runs and artifacts as JSON."""

import hashlib
from datetime import timedelta

from bot.sandbox import standing
from bot.sandbox.records import Artifact, CheckRun, CheckSuite, Json, Status
from bot.sandbox.shapes import git_data, people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository, WorkflowRun, World

WORKFLOW_ID = 161_335
WORKFLOW_NAME = "ci"
KEPT_FOR = timedelta(days=90)


def _pull_links(one: Repository, sha: str, branch: str | None) -> list[Json]:
    """The open pull requests of this repository with that head; never those of forks."""
    repo = {"id": one.id, "name": one.name, "url": one.url}
    return [
        {
            "id": pull.id,
            "number": pull.number,
            "url": f"{one.url}/pulls/{pull.number}",
            "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": repo},
            "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": repo},
        }
        for pull in one.open_pulls()
        if pull.head_repo is one and pull.head_ref == branch and pull.head_sha == sha
    ]


def check_run(one: Repository, run: CheckRun) -> Json:
    """A check run as REST shows it."""
    url, page = f"{one.url}/check-runs/{run.id}", f"{one.page}/runs/{run.id}"
    return {
        **people.identity("CheckRun", run.id),
        "name": run.name,
        "head_sha": run.suite.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": page,
        "details_url": run.details_url or page,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": people.when(run.started_at),
        "completed_at": people.when(run.completed_at),
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": run.annotations,
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": run.suite.id},
        "app": people.reporter(one.world, run.suite.app),
        "pull_requests": _pull_links(one, run.suite.head_sha, run.suite.head_branch),
    }


def check_run_event(one: Repository, run: CheckRun) -> Json:
    """A check run as webhooks carry it, with its suite."""
    return {**check_run(one, run), "check_suite": _simple_suite(one, run.suite)}


def _simple_suite(one: Repository, value: CheckSuite) -> Json:
    """A check suite inside a check run."""
    status, conclusion = standing.suite_state(value)
    return {
        **people.identity("CheckSuite", value.id),
        "head_branch": value.head_branch,
        "head_sha": value.head_sha,
        "status": status,
        "conclusion": conclusion,
        "url": f"{one.url}/check-suites/{value.id}",
        "before": None,
        "after": value.head_sha,
        "pull_requests": _pull_links(one, value.head_sha, value.head_branch),
        "app": people.reporter(one.world, value.app),
        **people.lifetime(value.created_at, value.updated_at),
    }


def suite(one: Repository, value: CheckSuite) -> Json:
    """A check suite."""
    return {
        **_simple_suite(one, value),
        "repository": repositories.minimal(one),
        "head_commit": git_data.simple_commit(one.git.objects.a_commit(value.head_sha)),
        "latest_check_runs_count": len(standing.latest(value.runs)),
        "check_runs_url": f"{one.url}/check-suites/{value.id}/check-runs",
        "rerequestable": True,
        "runs_rerequestable": True,
    }


def status(one: Repository, value: Status) -> Json:
    """One commit status."""
    return {
        **people.identity("StatusContext", value.id),
        "url": f"{one.url}/statuses/{value.sha}",
        "avatar_url": f"{one.world.web}/_sandbox/avatar/{value.creator.id}",
        "state": value.state,
        "description": value.description,
        "target_url": value.target_url,
        "context": value.context,
        **people.lifetime(value.created_at),
        "creator": people.account(one.world, value.creator),
    }


def status_event(one: Repository, value: Status) -> Json:
    """One commit status as the webhook `status` carries it."""
    commit = git_data.commit(one, one.git.objects.a_commit(value.sha))
    tip = {"sha": value.sha, "url": commit["url"]}
    branches = [
        {"name": name, "commit": tip, "protected": False}
        for name in one.git.branches()
        if one.git.branch(name) == value.sha
    ]
    shape = status(one, value)
    for name in ("node_id", "url", "creator"):
        del shape[name]
    return {
        **shape,
        "sha": value.sha,
        "name": one.full_name,
        "commit": commit,
        "branches": branches,
    }


def workflow(one: Repository, path: str) -> Json:
    """The one workflow of a repository: its CI file, under the path that its runs show."""
    return {
        **people.identity("Workflow", WORKFLOW_ID),
        "name": WORKFLOW_NAME,
        "path": path,
        "state": "active",
        **people.lifetime(one.created_at),
        "url": f"{one.url}/actions/workflows/{WORKFLOW_ID}",
        "html_url": f"{one.page}/blob/{one.default_branch}/{path}",
        "badge_url": f"{one.page}/workflows/{WORKFLOW_NAME}/badge.svg",
    }


def workflow_run(one: Repository, run: WorkflowRun, attempt: int | None = None) -> Json:
    """A workflow run or an attempt of it; `pull_requests` is empty for a fork's, as at GitHub."""
    number = attempt or run.attempt
    is_newest = number == run.attempt
    url = f"{one.url}/actions/runs/{run.id}"
    head = one.git.objects.a_commit(run.head_sha)
    actor = people.account(one.world, run.actor)
    return {
        **people.identity("WorkflowRun", run.id),
        "name": WORKFLOW_NAME,
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": run.path,
        "display_title": head.message.partition("\n")[0],
        "run_number": run.number,
        "run_attempt": number,
        "event": run.event,
        "status": run.status if is_newest else "completed",
        "conclusion": run.conclusion if is_newest else run.ended.get(number),
        "workflow_id": WORKFLOW_ID,
        "workflow_url": f"{one.url}/actions/workflows/{WORKFLOW_ID}",
        "check_suite_id": run.suite.id,
        "check_suite_node_id": people.node_id("CheckSuite", run.suite.id),
        "check_suite_url": f"{one.url}/check-suites/{run.suite.id}",
        "url": url,
        "html_url": f"{one.page}/actions/runs/{run.id}",
        "pull_requests": _pull_links(one, run.head_sha, run.head_branch),
        **people.lifetime(run.created_at, run.updated_at),
        "run_started_at": stamp(run.begun[number]),
        "actor": actor,
        "triggering_actor": actor,
        **people.links(url, "jobs logs artifacts cancel rerun"),
        "previous_attempt_url": f"{url}/attempts/{number - 1}" if number > 1 else None,
        "head_commit": git_data.simple_commit(head),
        "repository": repositories.minimal(one),
        "head_repository": repositories.minimal(run.head_repo),
        "referenced_workflows": [],
    }


def job(one: Repository, run: WorkflowRun, check: CheckRun) -> Json:
    """A job of a workflow run: its check run, under another address."""
    begun = stamp(check.started_at or run.created_at)
    course = {
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": begun,
        "completed_at": people.when(check.completed_at),
    }
    steps = _steps_now(one.world, check) or [
        {"name": f"step {number}", "number": number, **course}
        for number in range(1, max(1, check.failed_steps) + 1)
    ]
    return {
        **people.identity("CheckRun", check.id),
        "run_id": run.id,
        "run_url": f"{one.url}/actions/runs/{run.id}",
        "run_attempt": next(n for n, jobs in run.jobs.items() if check in jobs),
        "head_sha": run.head_sha,
        "head_branch": run.head_branch,
        "url": f"{one.url}/actions/jobs/{check.id}",
        "html_url": f"{one.page}/runs/{check.id}",
        **course,
        "created_at": begun,
        "name": check.name,
        "steps": steps,
        "check_run_url": f"{one.url}/check-runs/{check.id}",
        "labels": ["sandbox"],
        "runner_id": 1,
        "runner_name": check.runner,
        "runner_group_id": 1,
        "runner_group_name": "sandbox",
        "workflow_name": WORKFLOW_NAME,
    }


def _steps_now(world: World, check: CheckRun) -> list[Json]:
    """The steps of a job as far as they are; those that its end cut off were cancelled."""
    shown: list[Json] = []
    until = check.completed_at or world.now()
    for number, step in enumerate(check.steps, 1):
        has_begun, has_ended = step.begins_at <= until, step.ends_at <= until
        status, conclusion = "queued", None
        if has_ended:
            status, conclusion = "completed", step.conclusion
        elif check.completed_at is not None:
            status, conclusion = "completed", "cancelled"
        elif has_begun:
            status = "in_progress"
        shown.append(
            {
                "name": step.name,
                "number": number,
                "status": status,
                "conclusion": conclusion,
                "started_at": stamp(step.begins_at) if has_begun else None,
                "completed_at": stamp(step.ends_at) if has_ended else None,
            }
        )
    return shown


def artifact(one: Repository, run: WorkflowRun, value: Artifact) -> Json:
    """An artifact of a workflow run; `size_in_bytes` is that of its archive."""
    url = f"{one.url}/actions/artifacts/{value.id}"
    return {
        **people.identity("Artifact", value.id),
        "name": value.name,
        "size_in_bytes": len(value.packed),
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": value.expired,
        "digest": f"sha256:{hashlib.sha256(value.packed).hexdigest()}",
        **people.lifetime(value.created_at),
        "expires_at": stamp(value.created_at + KEPT_FOR),
        "workflow_run": {
            "id": run.id,
            "repository_id": one.id,
            "head_repository_id": run.head_repo.id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        },
    }

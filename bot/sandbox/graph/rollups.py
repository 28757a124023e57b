"""The checks on a commit, shaped for GraphQL: newest runs and statuses together."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bot.sandbox import rules, standing
from bot.sandbox.graph import accounts, connections
from bot.sandbox.records import App, CheckRun, Json, Pull, Status
from bot.sandbox.shapes.people import node_id, number_of
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Repository


def rollup(one: Repository, sha: str) -> Json | None:
    """Everything that reported on a commit; None when nothing did."""
    runs = standing.latest(one.check_runs(sha))
    statuses = standing.latest_statuses(one, sha)
    if not runs and not statuses:
        return None
    words = {standing.of_run(run) for run in runs}
    words |= {standing.of_status(status) for status in statuses}
    state = "FAILURE" if "failing" in words else "PENDING" if "pending" in words else "SUCCESS"
    counts = {"checkRunCount": len(runs), "statusContextCount": len(statuses)}

    def shape(item: CheckRun | Status) -> Json:
        if isinstance(item, CheckRun):
            return _check_run(one, item)
        return _status(one, item)

    return {
        "id": node_id("StatusCheckRollup", f"{one.id}:{sha}"),
        "state": state,
        "contexts": connections.connect([*runs, *statuses], shape, counts),
    }


def _check_run(one: Repository, run: CheckRun) -> Json:
    app = run.suite.app
    return {
        "__typename": "CheckRun",
        "id": node_id("CheckRun", run.id),
        "databaseId": run.id,
        "name": run.name,
        "status": run.status.upper(),
        "conclusion": run.conclusion.upper() if run.conclusion else None,
        "startedAt": _when(run.started_at),
        "completedAt": _when(run.completed_at),
        "detailsUrl": run.details_url,
        "url": f"{one.world.web}/{one.full_name}/runs/{run.id}",
        "title": run.title,
        "summary": run.summary,
        "externalId": run.external_id,
        "isRequired": _is_required(one, run.name, app.id),
        "checkSuite": {
            "id": node_id("CheckSuite", run.suite.id),
            "databaseId": run.suite.id,
            "app": _app(app),
        },
    }


def _app(app: App) -> Json:
    return {
        "id": node_id("App", app.id),
        "databaseId": app.id,
        "slug": app.slug,
        "name": app.name,
    }


def _status(one: Repository, status: Status) -> Json:
    return {
        "__typename": "StatusContext",
        "id": node_id("StatusContext", status.id),
        "context": status.context,
        "state": status.state.upper(),
        "description": status.description,
        "targetUrl": status.target_url,
        "createdAt": stamp(status.created_at),
        "creator": accounts.account(one.world, status.creator),
        "isRequired": _is_required(one, status.context, status.creator.app_id),
    }


def _when(at: datetime | None) -> str | None:
    return stamp(at) if at is not None else None


def _is_required(one: Repository, name: str, app_id: int | None) -> Callable[..., bool]:
    def is_required(_: Any, **asked: Any) -> bool:
        pull = _pull_of(one, asked)
        if pull is None:
            return False
        listed = rules.required(one, pull.base_ref)
        return any(each.name == name and each.app_id in (None, app_id) for each in listed)

    return is_required


def _pull_of(one: Repository, asked: dict[str, Any]) -> Pull | None:
    number = asked.get("pullRequestNumber")
    if number is None and asked.get("pullRequestId") is not None:
        number = number_of("PullRequest", asked["pullRequestId"])
    issue = one.issues.get(number) if number is not None else None
    return issue.pull if issue is not None else None

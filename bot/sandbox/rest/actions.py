"""Workflow runs of the sandbox's CI, their jobs and artifacts."""

import re
from functools import partial

from bot.sandbox import ci, storage
from bot.sandbox.records import Artifact, WorkflowRun
from bot.sandbox.refusal import not_found, refused
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import checks

SINCE = re.compile(r">=\d{4}-\d{2}-\d{2}")


async def list_runs(call: Call) -> Answer:
    """Workflow runs, newest first, by `head_sha`, `branch`, `event`, `status` and `created`.

    Of the forms of `created` there is only `>=` with a day.
    """
    created = call.query.get("created", "")
    if not (created == "" or SINCE.fullmatch(created)):
        raise refused("runs.created", created)
    wanted = {name: call.query.get(name) for name in ("head_sha", "branch", "event", "status")}
    found = [
        one
        for one in reversed(call.repository.workflow_runs)
        if wanted["head_sha"] in (None, one.head_sha)
        and wanted["branch"] in (None, one.head_branch)
        and wanted["event"] in (None, one.event)
        and wanted["status"] in (None, one.status, one.conclusion)
        and one.created_at.date().isoformat() >= created.removeprefix(">=")
    ]
    return Listing(found, partial(checks.workflow_run, call.repository), "workflow_runs")


def _run(call: Call) -> WorkflowRun:
    for one in call.repository.workflow_runs:
        if one.id == int(call.params["id"]):
            return one
    raise not_found()


async def get_run(call: Call) -> Answer:
    """One workflow run, or one attempt of it."""
    run = _run(call)
    attempt = int(call.params.get("attempt", run.attempt))
    if attempt not in run.begun:
        raise not_found()
    return Reply(checks.workflow_run(call.repository, run, attempt))


async def list_jobs(call: Call) -> Answer:
    """The newest job of each name; with `filter=all` those of every attempt."""
    run = _run(call)
    found = ci.latest_jobs(run)
    if "attempt" in call.params:
        attempt = int(call.params["attempt"])
        if attempt not in run.begun:
            raise not_found()
        found = run.jobs.get(attempt, [])
    elif call.query.get("filter") == "all":
        found = [job for attempt in sorted(run.jobs) for job in run.jobs[attempt]]
    return Listing(found, partial(checks.job, call.repository, run), "jobs")


async def list_artifacts(call: Call) -> Answer:
    """The artifacts of a run, newest first; `name` selects one name."""
    run = _run(call)
    name = call.query.get("name")
    found = [one for one in reversed(run.artifacts) if name in (None, one.name)]
    return Listing(found, partial(checks.artifact, call.repository, run), "artifacts")


async def download(call: Call) -> Answer:
    """Redirect to the archive of an artifact; 410 when it has expired."""
    artifact = _artifact(call)
    if artifact.expired:
        raise refused("artifact.expired")
    return Reply(None, 302, {"Location": storage.address_of(call.world, artifact)})


def _artifact(call: Call) -> Artifact:
    for run in call.repository.workflow_runs:
        for one in run.artifacts:
            if one.id == int(call.params["id"]):
                return one
    raise not_found()


async def cancel(call: Call) -> Answer:
    """Cancel a run; 409 when it is over."""
    run = _run(call)
    if run.status == "completed":
        raise refused("actions.cancel_done")
    ci.cancel(call.repository, run)
    return Reply({}, 202)


async def rerun(call: Call) -> Answer:
    """Run everything again; 403 while it still runs."""
    return _rerun(call, failed_only=False)


async def rerun_failed(call: Call) -> Answer:
    """Run the jobs again that did not succeed; 403 while the run is not over."""
    return _rerun(call, failed_only=True)


def _rerun(call: Call, *, failed_only: bool) -> Reply:
    run = _run(call)
    if run.status != "completed":
        raise refused("actions.rerun_running")
    if failed_only and run.conclusion == "success":
        raise refused("actions.rerun_none")
    ci.rerun(call.repository, run, failed_only=failed_only)
    return Reply({}, 201)


REPO = "/repos/{owner}/{repo}"
RUN = rf"{REPO}/actions/runs/{{id:\d+}}"
READ, WRITE = ("actions:read",), ("actions:write",)

ROUTES = (
    Route("GET", f"{REPO}/actions/runs", list_runs, READ),
    Route("GET", RUN, get_run, READ),
    Route("GET", f"{RUN}/jobs", list_jobs, READ),
    Route("GET", rf"{RUN}/attempts/{{attempt:\d+}}", get_run, READ),
    Route("GET", rf"{RUN}/attempts/{{attempt:\d+}}/jobs", list_jobs, READ),
    Route("GET", f"{RUN}/artifacts", list_artifacts, READ),
    Route("GET", rf"{REPO}/actions/artifacts/{{id:\d+}}/zip", download, READ),
    Route("POST", f"{RUN}/cancel", cancel, WRITE),
    Route("POST", f"{RUN}/rerun", rerun, WRITE),
    Route("POST", f"{RUN}/rerun-failed-jobs", rerun_failed, WRITE),
)

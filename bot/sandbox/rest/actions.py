"""Check runs, check suites and commit statuses; workflow runs of CI, their jobs and artifacts."""

import re
from datetime import timedelta
from functools import partial

from bot.sandbox import artifacts, ci, reports, standing
from bot.sandbox.records import Artifact, CheckRun, Json
from bot.sandbox.refusal import invalid, not_found, refused
from bot.sandbox.reports import NewStatus
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import checks
from bot.sandbox.world import WorkflowRun

SINCE = re.compile(r">=\d{4}-\d{2}-\d{2}")

_SUITES_LISTED_MAX = 1000

RERUN_AGE_MAX = timedelta(days=30)


_COMMITS = f"{REPO}/commits/{{ref:.+}}"
_READ, _WRITE = ("checks:read",), ("checks:write",)


async def list_runs(call: Call) -> Answer:
    """Workflow runs, newest first, by `head_sha`, `branch`, `event`, `status` and `created`.

    Of the forms of `created` there is only `>=` with a day.
    """
    created = call.query.get("created", "")
    if created and not SINCE.fullmatch(created):
        raise refused("runs.created", created)
    chosen = [
        run
        for run in reversed(call.repository.workflow_runs)
        if call.selects("head_sha", run.head_sha)
        and call.selects("branch", run.head_branch)
        and call.selects("event", run.event)
        and call.selects("status", run.status, run.conclusion)
        and run.created_at.date().isoformat() >= created.removeprefix(">=")
    ]
    return Listing(chosen, partial(checks.workflow_run, call.repository), "workflow_runs")


def _run(call: Call) -> WorkflowRun:
    for run in call.repository.workflow_runs:
        if run.id == call.number:
            return run
    raise not_found()


def _attempt(call: Call, run: WorkflowRun) -> int:
    attempt = int(call.params["attempt"])
    if attempt not in run.begun:
        raise not_found()
    return attempt


async def _get_run(call: Call) -> Answer:
    """One workflow run."""
    return Reply(checks.workflow_run(call.repository, _run(call)))


async def _get_attempt(call: Call) -> Answer:
    """One attempt of a workflow run."""
    run = _run(call)
    return Reply(checks.workflow_run(call.repository, run, _attempt(call, run)))


async def _list_jobs(call: Call) -> Answer:
    """The jobs of the last attempt of each name, or of all attempts with `filter=all`."""
    run = _run(call)
    every = [job for attempt in sorted(run.jobs) for job in run.jobs[attempt]]
    jobs = every if call.query.get("filter") == "all" else standing.latest(every)
    return Listing(jobs, partial(checks.job, call.repository, run), "jobs")


async def _list_jobs_of_attempt(call: Call) -> Answer:
    """The jobs of one attempt."""
    run = _run(call)
    jobs = run.jobs.get(_attempt(call, run), [])
    return Listing(jobs, partial(checks.job, call.repository, run), "jobs")


async def _list_artifacts(call: Call) -> Answer:
    """The artifacts of a run, newest first; `name` selects one name."""
    run = _run(call)
    chosen = [one for one in reversed(run.artifacts) if call.selects("name", one.name)]
    return Listing(chosen, partial(checks.artifact, call.repository, run), "artifacts")


async def _list_all_artifacts(call: Call) -> Answer:
    """The artifacts of all runs, newest first; `name` selects one name."""
    kept = [(one, run) for run in call.repository.workflow_runs for one in run.artifacts]
    kept.sort(key=lambda pair: pair[0].id, reverse=True)
    chosen = [pair for pair in kept if call.selects("name", pair[0].name)]

    def shape(pair: tuple[Artifact, WorkflowRun]) -> Json:
        return checks.artifact(call.repository, pair[1], pair[0])

    return Listing(chosen, shape, "artifacts")


async def download(call: Call) -> Answer:
    """Redirect to the archive of an artifact; 410 when it has expired."""
    artifact = artifacts.find(call.repository, call.number)
    if artifact is None:
        raise not_found()
    if artifact.expired:
        raise refused("artifact.expired")
    return Reply(None, 302, {"Location": artifacts.address_of(call.world, artifact)})


async def cancel(call: Call) -> Answer:
    """Cancel a run; 409 when it is over."""
    run = _run(call)
    if run.status == "completed":
        raise refused("actions.cancel_done")
    ci.cancel(call.repository, run)
    return Reply({}, 202)


async def _rerun_failed(call: Call) -> Answer:
    """Run the jobs again that did not succeed, and those that need them."""
    run = _run(call)
    _check_rerun(call, run)
    if run.conclusion == "success":
        raise refused("actions.rerun_none")
    ci.rerun(call.repository, run, failed_only=True)
    return Reply({}, 201)


async def _rerun_job(call: Call) -> Answer:
    """Run one job again, and those that need it."""
    for run in call.repository.workflow_runs:
        for job in ci.latest_jobs(run):
            if job.id == call.number:
                _check_rerun(call, run)
                ci.rerun_jobs(call.repository, run, [job])
                return Reply({}, 201)
    raise not_found()


def _check_rerun(call: Call, run: WorkflowRun) -> None:
    """Refuse to repeat a run that is not over, or began more than 30 days ago."""
    if run.status != "completed":
        raise refused("actions.rerun_running")
    if call.world.now() - run.created_at > RERUN_AGE_MAX:
        raise refused("actions.rerun_old")


RUN = rf"{REPO}/actions/runs/{{number:\d+}}"
ATTEMPT = rf"{RUN}/attempts/{{attempt:\d+}}"
READ, WRITE = ("actions:read",), ("actions:write",)

ROUTES = (
    Route("GET", f"{REPO}/actions/runs", list_runs, READ),
    Route("GET", RUN, _get_run, READ),
    Route("GET", f"{RUN}/jobs", _list_jobs, READ),
    Route("GET", ATTEMPT, _get_attempt, READ),
    Route("GET", f"{ATTEMPT}/jobs", _list_jobs_of_attempt, READ),
    Route("GET", f"{RUN}/artifacts", _list_artifacts, READ),
    Route("GET", f"{REPO}/actions/artifacts", _list_all_artifacts, READ),
    Route("GET", rf"{REPO}/actions/artifacts/{{number:\d+}}/zip", download, READ),
    Route("POST", f"{RUN}/cancel", cancel, WRITE),
    Route("POST", f"{RUN}/rerun-failed-jobs", _rerun_failed, WRITE),
    Route("POST", rf"{REPO}/actions/jobs/{{number:\d+}}/rerun", _rerun_job, WRITE),
)


async def _create_run(call: Call) -> Answer:
    """A new check run on `head_sha`, in the suite of the calling App."""
    app, git = call.actor.app, call.repository.git
    if app is None:
        raise refused("auth.app_only")
    sha = call.text("head_sha")
    if git.objects.commit(sha) is None:
        raise invalid(f"No commit found for SHA: {sha}", field="head_sha", resource="CheckRun")
    branch = next((name for name in git.branches() if git.branch(name) == sha), None)
    suite = reports.suite_of(call.repository, app, sha, branch)
    made = reports.add_run(call.repository, suite, call.actor, call.body)
    return Reply(checks.check_run(call.repository, made), 201)


async def _patch_run(call: Call) -> Answer:
    """Change a check run of the calling App."""
    run = _check_run(call)
    if call.actor.app is not run.suite.app:
        raise refused("check.foreign")
    reports.change_run(call.repository, run, call.actor, call.body)
    return Reply(checks.check_run(call.repository, run))


def _check_run(call: Call) -> CheckRun:
    for sha in call.repository.suites:
        for run in call.repository.check_runs(sha):
            if run.id == call.number:
                return run
    raise not_found()


async def _list_runs(call: Call) -> Answer:
    """Check runs on a ref: newest of each suite and name, or `filter=all`."""
    runs = call.repository.check_runs(call.resolve(call.params["ref"]).sha)
    if call.query.get("filter", "latest") == "latest":
        runs = standing.latest(runs)
    chosen = [
        run
        for run in sorted(runs, key=lambda run: run.id, reverse=True)
        if call.selects("check_name", run.name)
        and call.selects("status", run.status)
        and call.selects("app_id", str(run.suite.app.id))
    ]
    return Listing(chosen, partial(checks.check_run, call.repository), "check_runs")


async def _list_suites(call: Call) -> Answer:
    """Check suites of a ref, at most the newest SUITES_LISTED_MAX."""
    suites = call.repository.suites.get(call.resolve(call.params["ref"]).sha, ())
    chosen = [suite for suite in suites if call.selects("app_id", str(suite.app.id))]
    shape = partial(checks.suite, call.repository)
    return Listing(chosen[-_SUITES_LISTED_MAX:], shape, "check_suites")


async def _create_status(call: Call) -> Answer:
    """One more status on a commit."""
    sha = call.params["sha"]
    if call.repository.git.objects.commit(sha) is None:
        raise refused("commit.absent", sha)
    context, state = call.optional("context") or "default", call.text("state")
    new = NewStatus(context, state, call.optional("description"), call.optional("target_url"))
    made = reports.add_status(call.repository, sha, call.actor.account, new)
    return Reply(checks.status(call.repository, made), 201)


async def _list_statuses(call: Call) -> Answer:
    """Every update of every context, newest first."""
    statuses = call.repository.statuses.get(call.resolve(call.params["ref"]).sha, [])
    return Listing(list(reversed(statuses)), partial(checks.status, call.repository))


CHECK_ROUTES = (
    Route("POST", f"{REPO}/check-runs", _create_run, _WRITE),
    Route("PATCH", rf"{REPO}/check-runs/{{number:\d+}}", _patch_run, _WRITE),
    Route("GET", f"{_COMMITS}/check-runs", _list_runs, _READ),
    Route("GET", f"{_COMMITS}/check-suites", _list_suites, _READ),
    Route("POST", f"{REPO}/statuses/{{sha}}", _create_status, ("statuses:write",)),
    Route("GET", f"{_COMMITS}/statuses", _list_statuses, ("statuses:read",)),
)

"""Check runs, check suites and commit statuses."""

from functools import partial

from bot.sandbox import reports, standing
from bot.sandbox.records import CheckRun
from bot.sandbox.refusal import invalid, not_found, refused
from bot.sandbox.reports import NewStatus
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import checks

SUITES_LISTED_MAX = 1000


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
    run = _run(call)
    if call.actor.app is not run.suite.app:
        raise refused("check.foreign")
    reports.change_run(call.repository, run, call.actor, call.body)
    return Reply(checks.check_run(call.repository, run))


def _run(call: Call) -> CheckRun:
    for sha in call.repository.suites:
        for run in call.repository.check_runs(sha):
            if run.id == call.number:
                return run
    raise not_found()


async def list_runs(call: Call) -> Answer:
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
    return Listing(chosen[-SUITES_LISTED_MAX:], shape, "check_suites")


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


COMMITS = f"{REPO}/commits/{{ref:.+}}"
READ, WRITE = ("checks:read",), ("checks:write",)

ROUTES = (
    Route("POST", f"{REPO}/check-runs", _create_run, WRITE),
    Route("PATCH", rf"{REPO}/check-runs/{{number:\d+}}", _patch_run, WRITE),
    Route("GET", f"{COMMITS}/check-runs", list_runs, READ),
    Route("GET", f"{COMMITS}/check-suites", _list_suites, READ),
    Route("POST", f"{REPO}/statuses/{{sha}}", _create_status, ("statuses:write",)),
    Route("GET", f"{COMMITS}/statuses", _list_statuses, ("statuses:read",)),
)

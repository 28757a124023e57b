"""Check runs, check suites and commit statuses."""

from functools import partial

from bot.sandbox import reports, standing
from bot.sandbox.acts import conversation
from bot.sandbox.records import CheckRun
from bot.sandbox.refusal import invalid, not_found, refused
from bot.sandbox.reports import NewStatus
from bot.sandbox.rest import repositories as repository_calls
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import checks

SUITES_LISTED_MAX = 1000


async def create_run(call: Call) -> Answer:
    """A new check run on `head_sha`, in the suite of the calling App."""
    app = call.actor.app
    if app is None:
        raise refused("auth.app_only")
    sha = call.text("head_sha")
    if call.repository.git.objects.commit(sha) is None:
        raise invalid(f"No commit found for SHA: {sha}", field="head_sha", resource="CheckRun")
    branch = next(
        (
            name.removeprefix("refs/heads/")
            for name, tip in call.repository.git.refs.items()
            if tip == sha and name.startswith("refs/heads/")
        ),
        None,
    )
    suite = reports.suite_of(call.repository, app, sha, branch)
    made = reports.add_run(call.repository, suite, call.actor, call.body)
    return Reply(checks.check_run(call.repository, made), 201)


async def patch_run(call: Call) -> Answer:
    """Change a check run of the calling App."""
    found = _run(call)
    if call.actor.app is not found.suite.app:
        raise refused("check.foreign")
    reports.change_run(call.repository, found, call.actor, call.body)
    return Reply(checks.check_run(call.repository, found))


def _run(call: Call) -> CheckRun:
    number = int(call.params["id"])
    for suites in call.repository.suites.values():
        for suite in suites:
            for one in suite.runs:
                if one.id == number:
                    return one
    raise not_found()


async def get_run(call: Call) -> Answer:
    """One check run."""
    return Reply(checks.check_run(call.repository, _run(call)))


async def rerequest_run(call: Call) -> Answer:
    """Ask for a check run again."""
    conversation.rerequest(call.repository, call.actor, _run(call))
    return Reply({}, 201)


async def list_runs(call: Call) -> Answer:
    """Check runs on a ref: newest of each suite and name, or `filter=all`."""
    commit = repository_calls.resolve(call, call.params["ref"])
    return _listed_runs(call, call.repository.check_runs(commit.sha))


def _listed_runs(call: Call, found: list[CheckRun]) -> Listing:
    if call.query.get("filter", "latest") == "latest":
        found = standing.latest(found)
    name, status = call.query.get("check_name"), call.query.get("status")
    app = call.query.get("app_id")
    chosen = [
        one
        for one in sorted(found, key=lambda run: run.id, reverse=True)
        if name in (None, one.name)
        and status in (None, one.status)
        and app in (None, str(one.suite.app.id))
    ]
    return Listing(chosen, partial(checks.check_run, call.repository), "check_runs")


async def list_suites(call: Call) -> Answer:
    """Check suites of a ref, at most the newest SUITES_LISTED_MAX."""
    commit = repository_calls.resolve(call, call.params["ref"])
    app = call.query.get("app_id")
    found = [
        one for one in call.repository.suites.get(commit.sha, ()) if app in (None, str(one.app.id))
    ]
    return Listing(
        found[-SUITES_LISTED_MAX:],
        partial(checks.suite, call.repository),
        "check_suites",
    )


async def create_status(call: Call) -> Answer:
    """One more status on a commit."""
    sha = call.params["sha"]
    if call.repository.git.objects.commit(sha) is None:
        raise refused("commit.absent", sha)
    new = NewStatus(
        call.optional("context") or "default",
        call.text("state"),
        call.optional("description"),
        call.optional("target_url"),
    )
    made = reports.add_status(call.repository, sha, call.actor.account, new)
    return Reply(checks.status(call.repository, made), 201)


async def list_statuses(call: Call) -> Answer:
    """Every update of every context, newest first."""
    commit = repository_calls.resolve(call, call.params["ref"])
    found = list(reversed(call.repository.statuses.get(commit.sha, [])))
    return Listing(found, partial(checks.status, call.repository))


REPO = "/repos/{owner}/{repo}"
COMMITS = f"{REPO}/commits/{{ref:.+}}"
RUN = rf"{REPO}/check-runs/{{id:\d+}}"
SUITE = rf"{REPO}/check-suites/{{id:\d+}}"
READ, WRITE = ("checks:read",), ("checks:write",)

ROUTES = (
    Route("POST", f"{REPO}/check-runs", create_run, WRITE),
    Route("GET", RUN, get_run, READ),
    Route("PATCH", RUN, patch_run, WRITE),
    Route("POST", f"{RUN}/rerequest", rerequest_run, WRITE),
    Route("GET", f"{COMMITS}/check-runs", list_runs, READ),
    Route("GET", f"{COMMITS}/check-suites", list_suites, READ),
    Route("POST", f"{REPO}/statuses/{{sha}}", create_status, ("statuses:write",)),
    Route("GET", f"{COMMITS}/statuses", list_statuses, ("statuses:read",)),
)

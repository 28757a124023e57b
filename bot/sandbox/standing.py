"""Which reports on a commit count, as the provider reckons them.

Newest check run of each name of each suite, newest status of each context. No rule of a branch
is here (rules.py), and no JSON (shapes/checks.py).
"""

from bot.sandbox.records import CheckRun, CheckSuite, Repository, Status

BLAME = ("failure", "startup_failure", "timed_out", "action_required", "cancelled", "stale")
GOOD = ("success", "neutral", "skipped")


def latest(runs: list[CheckRun]) -> list[CheckRun]:
    """The newest run of each name of each suite, in order of their ids."""
    newest = {(run.suite.id, run.name): run for run in runs}
    return sorted(newest.values(), key=lambda run: run.id)


def latest_statuses(repository: Repository, sha: str) -> list[Status]:
    """The newest status of each context, in order of their ids."""
    newest = {status.context: status for status in repository.statuses.get(sha, ())}
    return sorted(newest.values(), key=lambda status: status.id)


def suite_state(suite: CheckSuite) -> tuple[str, str | None]:
    """Status and conclusion of a suite, derived from its newest runs."""
    if suite.forced_conclusion is not None:
        return "completed", suite.forced_conclusion
    runs = latest(suite.runs)
    if not runs:
        return "queued", None
    if any(run.status != "completed" for run in runs):
        return "in_progress", None
    found = {run.conclusion for run in runs}
    return "completed", next((word for word in (*BLAME, *GOOD) if word in found), None)


def of_run(run: CheckRun) -> str:
    """`ok`, `failing` or `pending`."""
    if run.status != "completed":
        return "pending"
    return "ok" if run.conclusion in GOOD else "failing"


def of_status(status: Status) -> str:
    """`ok`, `failing` or `pending`."""
    return {"success": "ok", "pending": "pending", "expected": "pending"}.get(
        status.state, "failing"
    )


def of_name(repository: Repository, sha: str, name: str, app_id: int | None) -> str:
    """What all reports of a name come to: `expected` without any, else the worst of them.

    With `app_id`, only reports of that App count; a status is its App's if its bot made it.
    """
    found = [
        of_run(run)
        for run in latest(repository.check_runs(sha))
        if run.name == name and app_id in (None, run.suite.app.id)
    ]
    found += [
        of_status(status)
        for status in latest_statuses(repository, sha)
        if status.context == name and app_id in (None, status.creator.app_id)
    ]
    return next((word for word in ("failing", "pending", "ok") if word in found), "expected")

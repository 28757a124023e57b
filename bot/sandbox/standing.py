"""The reports on a commit that count, by the provider's rules.

Jobs of the last attempt of each name of each suite, other check runs by the newest of each name,
newest status of each context. No rule of a branch is here (rules.py), and no JSON
(shapes/checks.py).
"""

from bot.sandbox.records import CheckRun, CheckSuite, Status
from bot.sandbox.world import Repository

BLAME = ("failure", "startup_failure", "timed_out", "action_required", "cancelled", "stale")
GOOD = ("success", "neutral", "skipped")


def latest(runs: list[CheckRun]) -> list[CheckRun]:
    """The runs of each name of each suite that no later attempt repeats, in order of their ids.

    Jobs of one attempt may share a name, and then all are there
    (https://github.com/embeddedos-org/ebuild/pull/103).
    """
    last: dict[tuple[int, str], int] = {}
    others = {}
    for run in runs:
        key = (run.suite.id, run.name)
        if run.attempt is None:
            others[key] = run
        else:
            last[key] = max(run.attempt, last.get(key, 0))
    jobs = [run for run in runs if run.attempt and run.attempt == last[run.suite.id, run.name]]
    return sorted((*others.values(), *jobs), key=lambda run: run.id)


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
    """Return the state of all reports of a name; with `app_id`, those of that App alone.

    `expected` without any, `wrong_source` if only others reported, else the worst of `failing`,
    `in_progress` (a check run), `pending` (a status) and `ok`. A status is its App's if its bot
    made it.
    """
    runs = [one for one in latest(repository.check_runs(sha)) if one.name == name]
    statuses = [one for one in latest_statuses(repository, sha) if one.context == name]
    found = [
        "in_progress" if of_run(run) == "pending" else of_run(run)
        for run in runs
        if app_id in (None, run.suite.app.id)
    ]
    found += [of_status(one) for one in statuses if app_id in (None, one.creator.app_id)]
    none = "wrong_source" if runs or statuses else "expected"
    order = ("failing", "in_progress", "pending", "ok")
    return next((word for word in order if word in found), none)

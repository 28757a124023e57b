"""Runs of GitHub's own CI: looked at, and run again or stopped where that is granted.

Writing needs `actions: write` (GITHUB.md 2.4).
"""

from collections.abc import Sequence

from bot.github import answers, outcomes, refs
from bot.github.answers import WorkflowRun
from bot.github.line import Line
from bot.github.wire import Answer
from service.provider.values import (
    CiRun,
    NotPossible,
)
from service.vocabulary import CheckOutcome, Sha

NOT_GRANTED = NotPossible("The App does not have the permission Actions: write.")
AGAIN = frozenset({CheckOutcome.FAILED, CheckOutcome.INTERRUPTED})
CANNOT = (403, 409)  # too old, or still running


async def rerun(line: Line, sha: Sha, names: Sequence[str]) -> NotPossible | None:
    """Run the failed jobs of every finished workflow run that holds one of the names."""
    runs = await _runs(line, sha)
    if isinstance(runs, NotPossible):
        return runs
    wanted = frozenset(names)
    started = False
    for run in runs:
        if not _can_run_again(run) or not wanted & await _jobs(line, run):
            continue
        answer = await _ask(line, f"/actions/runs/{run.id}/rerun-failed-jobs")
        if answer.status >= 300:
            return NotPossible(answer.message or "GitHub does not run it again.")
        started = True
    return None if started else NotPossible("No finished workflow run holds these checks.")


async def stop_ci(line: Line, sha: Sha) -> NotPossible | None:
    """Cancel every workflow run of a commit that has not ended."""
    runs = await _runs(line, sha)
    if isinstance(runs, NotPossible):
        return runs
    for run in runs:
        if run.status != outcomes.COMPLETED:
            await _ask(line, f"/actions/runs/{run.id}/cancel")
    return None


async def ci_run(line: Line, run_id: str) -> CiRun | None:
    """One run by its id, None when this repository has none."""
    answer = await line.get(f"/actions/runs/{run_id}", expects=(404,))
    if answer.status == 404:
        await line.get("")
        return None
    return answers.ci_run_of(answer.fields)


async def _runs(line: Line, sha: Sha) -> tuple[WorkflowRun, ...] | NotPossible:
    grant = await line.client.tokens.of(line.repo)
    if grant.permissions.get("actions") != "write":
        return NOT_GRANTED
    listed, _ = await line.listed("/actions/runs", "workflow_runs", {"head_sha": sha})
    return tuple(answers.workflow_run_of(each) for each in listed)


async def _jobs(line: Line, run: WorkflowRun) -> frozenset[str]:
    listed, _ = await line.listed(f"/actions/runs/{run.id}/jobs", "jobs")
    return frozenset(answers.job_name_of(each) for each in listed)


async def _ask(line: Line, tail: str) -> Answer:
    """Both calls may be sent twice: a second one finds nothing left to do."""
    return await refs.repeated(line, lambda: line.send("POST", tail, expects=CANNOT))


def _can_run_again(run: WorkflowRun) -> bool:
    if run.status != outcomes.COMPLETED:
        return False
    return outcomes.of_run(run.status, run.conclusion, skipped_pass=True) in AGAIN

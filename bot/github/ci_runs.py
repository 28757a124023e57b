"""Runs of GitHub's own CI: looked at, and run again or stopped where that is granted.

Writing needs `actions: write` (GITHUB.md 2.4).
"""

from collections.abc import Sequence
from datetime import date

from bot.github import answers, outcomes, refs
from bot.github.answers import WorkflowRun
from bot.github.fields import Fields
from bot.github.line import Line
from bot.github.wire import Answer
from service.provider.ci import Artifact, CiJob, CiRun, PullRequestSource
from service.provider.errors import Gone, GoneKind
from service.provider.values import NotPossible
from service.vocabulary import CheckOutcome, Sha

NOT_GRANTED = NotPossible("The App does not have the permission Actions: write.")
AGAIN = frozenset({CheckOutcome.FAILED, CheckOutcome.INTERRUPTED})
LISTED_PAGES_MAX = 2
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


async def ci_run(line: Line, run_id: str, attempt: int | None) -> CiRun | None:
    """One attempt of a run, None when this repository has none."""
    number = "" if attempt is None else f"/attempts/{attempt}"
    answer = await line.get(f"/actions/runs/{run_id}{number}", expects=(404,))
    if answer.status == 404:
        await line.get("")
        return None
    return answers.ci_run_of(answer.fields)


async def claimed_run(line: Line, run_id: str) -> CiRun | None:
    """The newest attempt of a run, by one call."""
    answer = await line.get(f"/actions/runs/{run_id}", expects=(404,))
    return None if answer.status == 404 else answers.ci_run_of(answer.fields)


async def claimed_source(line: Line, number: int) -> PullRequestSource | None:
    """Where an open pull request comes from, by one call."""
    answer = await line.get(f"/pulls/{number}", expects=(404,))
    return None if answer.status == 404 else answers.pull_source_of(answer.fields)


async def ci_runs(line: Line, since: date) -> tuple[CiRun, ...]:
    """Ended runs, newest first. The question is the same all day, so that its ETag may hold."""
    asked = {"status": outcomes.COMPLETED, "created": f">={since.isoformat()}"}
    listed: list[Fields] = []
    pages = 0
    async for page in line.pages("/actions/runs", "workflow_runs", asked, is_kept=True):
        listed += [Fields(each) for each in page.listed]
        pages += 1
        if pages == LISTED_PAGES_MAX:
            break
    return tuple(answers.ci_run_of(each) for each in listed)


async def ci_jobs(line: Line, run_id: str, attempt: int) -> tuple[CiJob, ...]:
    """The jobs of one attempt."""
    listed = await _listed(line, f"/actions/runs/{run_id}/attempts/{attempt}/jobs", "jobs")
    return tuple(answers.ci_job_of(each) for each in listed)


async def ci_artifacts(line: Line, run_id: str) -> tuple[Artifact, ...]:
    """What a run left, oldest first; GitHub's list begins with the newest."""
    listed = await _listed(line, f"/actions/runs/{run_id}/artifacts", "artifacts")
    found = (answers.artifact_of(each) for each in listed)
    return tuple(sorted(found, key=lambda artifact: int(artifact.id)))


async def _listed(line: Line, tail: str, member: str) -> tuple[Fields, ...]:
    """All members; none when there is no such run. Raises Gone(REPOSITORY) as everywhere."""
    try:
        listed, _ = await line.listed(tail, member)
    except Gone as gone:
        if gone.kind in (GoneKind.REPOSITORY, GoneKind.INSTALLATION):
            raise
        return ()
    return listed


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

"""Runs of GitHub's own CI: read, and rerun or cancelled with the permission for it.

Writing needs `actions: write`.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date

from bot.github import outcomes, refs
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from bot.github.wire import Answer
from service.provider.ci import (
    Artifact,
    CiJob,
    CiProgress,
    CiRun,
    CiTrigger,
    FailedStep,
    PullRequestSource,
)
from service.provider.errors import Gone, GoneKind, NotPermitted
from service.provider.values import NotPossible
from service.vocabulary import CheckOutcome, Sha

NOT_GRANTED = NotPossible("The App does not have the permission Actions: write.")
AGAIN = frozenset({CheckOutcome.FAILED, CheckOutcome.INTERRUPTED})
BROKEN = AGAIN | {CheckOutcome.SKIPPED}
"""A job that CI skipped because one that it needs has failed runs with that one."""
LISTED_PAGES_MAX = 2
OWN_HEADS = (refs.PREFIX, "refs/pull/")
"""Beginnings of branches of ours; code scanning names the reference of a pull request, also of one
of ours. What has no branch was begun for the commit itself, such as for its deployment.
"""
CANNOT = (403, 409)  # too old, or still running


async def rerun(client: RepositoryClient, sha: Sha, names: Sequence[str]) -> NotPossible | None:
    """Run the failed jobs of these names again, and the jobs that need them.

    Starts nothing if one of the names is that of no failed job of a finished workflow run.
    """
    runs = await _runs(client, sha)
    if isinstance(runs, NotPossible):
        return runs
    missing, tails = set(names), []
    for run in runs:
        jobs = await _jobs(client, run) if _can_run_again(run) else ()
        wanted = [job for job in jobs if job.text("name") in names and _outcome_of(job) in BROKEN]
        if wanted:
            missing -= {job.text("name") for job in wanted}
            tails.append(_rerun_tail(run, jobs, wanted))
    if missing:
        named = ", ".join(f'"{name}"' for name in sorted(missing))
        return NotPossible(f"No finished workflow run of GitHub Actions holds {named}.")
    for tail in tails:
        answer = await _ask(client, tail)
        if answer.status >= 300:
            return NotPossible(answer.message or "GitHub does not run it again.")
    return None


def _rerun_tail(run: Fields, jobs: Sequence[Fields], wanted: Sequence[Fields]) -> str:
    """Return the call that repeats the wanted jobs: one alone if it needs none of the others.

    A job that runs again alone sees what the jobs that it needs have come to before, so one that
    looks at a failed job would fail again.
    """
    failed = [job for job in jobs if _outcome_of(job) in AGAIN]
    others = [job for job in failed if job is not wanted[0]]
    is_one = len(wanted) == 1 and wanted[0] in failed and others
    if is_one and not any(_may_need(wanted[0], other) for other in others):
        return f"/actions/jobs/{wanted[0].id('id')}/rerun"
    return f"/actions/runs/{run.id('id')}/rerun-failed-jobs"


def _may_need(job: Fields, other: Fields) -> bool:
    """Return whether the other one had ended when the job began, as one that it needs has."""
    began, ended = job.moment_or_none("started_at"), other.moment_or_none("completed_at")
    return began is None or ended is None or ended <= began


async def can_rerun(client: RepositoryClient) -> bool:
    """Return whether the App may run jobs again here."""
    grant = await client.github.tokens.of(client.repo)
    return grant.permissions.get("actions") == "write"


async def stop_ci(client: RepositoryClient, sha: Sha) -> NotPossible | None:
    """Cancel every workflow run of a commit that has not ended."""
    runs = await _runs(client, sha)
    if isinstance(runs, NotPossible):
        return runs
    for run in runs:
        if run.words("status") != outcomes.COMPLETED:
            await _ask(client, f"/actions/runs/{run.id('id')}/cancel")
    return None


async def ci_run(client: RepositoryClient, run_id: str, attempt: int | None) -> CiRun | None:
    """One attempt of a run, None when this repository has none."""
    number = "" if attempt is None else f"/attempts/{attempt}"
    answer = await client.find(f"/actions/runs/{run_id}{number}", absent=(404,))
    return None if answer is None else _ci_run_of(answer.fields)


async def claimed_run(client: RepositoryClient, run_id: str) -> CiRun | None:
    """The newest attempt of a run, by one call."""
    answer = await client.get(f"/actions/runs/{run_id}", expects=(404,))
    return None if answer.status == 404 else _ci_run_of(answer.fields)


async def claimed_source(client: RepositoryClient, number: int) -> PullRequestSource | None:
    """Return the source of an open pull request, by one call."""
    answer = await client.get(f"/pulls/{number}", expects=(404,))
    return None if answer.status == 404 else _pull_source_of(answer.fields)


async def ci_runs(client: RepositoryClient, since: date) -> tuple[CiRun, ...]:
    """Ended runs, newest first. The request is the same all day, so that its ETag may hold."""
    asked = {"status": outcomes.COMPLETED, "created": f">={since.isoformat()}"}
    runs: list[CiRun] = []
    pages = 0
    async for page in client.pages("/actions/runs", "workflow_runs", asked, is_kept=True):
        runs += [_ci_run_of(each) for each in page.objects]
        pages += 1
        if pages == LISTED_PAGES_MAX:
            break
    return tuple(runs)


async def ci_jobs(client: RepositoryClient, run_id: str, attempt: int) -> tuple[CiJob, ...]:
    """The jobs of one attempt."""
    listed = await _listed(client, f"/actions/runs/{run_id}/attempts/{attempt}/jobs", "jobs")
    return tuple(_ci_job_of(each) for each in listed)


async def ci_progress(
    client: RepositoryClient, sha: Sha, suites: AbstractSet[str]
) -> tuple[CiProgress, ...]:
    """Return the jobs of the runs in these check suites of a commit, each by its newest attempt."""
    listed, _ = await client.listed(
        "/actions/runs", "workflow_runs", {"head_sha": sha}, is_kept=True
    )
    found: list[CiProgress] = []
    for run in listed:
        suite = run.id("check_suite_id")
        if suite not in suites or run.text("head_sha") != sha:
            continue
        tail = f"/actions/runs/{run.id('id')}/jobs"
        jobs, _ = await client.listed(tail, "jobs", {"filter": "latest"}, is_kept=True)
        own = tuple(_ci_job_of(job) for job in jobs if job.text("head_sha") == sha)
        found.append(CiProgress(run.id("id"), run.words("path"), suite, own))
    return tuple(found)


async def attempts_of(
    client: RepositoryClient, sha: Sha, suites: AbstractSet[str]
) -> Mapping[str, int]:
    """Return the attempt of each job in these check suites of a commit, by its check run's id.

    A check run that is no job of GitHub's own CI has none. Raises the provider's errors, also
    NotPermitted.
    """
    if not suites:
        return {}
    listed, _ = await client.listed(
        "/actions/runs", "workflow_runs", {"head_sha": sha}, is_kept=True
    )
    found: dict[str, int] = {}
    for run in listed:
        if run.id("check_suite_id") in suites:
            tail = f"/actions/runs/{run.id('id')}/jobs"
            jobs, _ = await client.listed(tail, "jobs", {"filter": "all"}, is_kept=True)
            found |= {job.id("id"): int(job.id_or_none("run_attempt") or 1) for job in jobs}
    return found


async def pull_request_suites(client: RepositoryClient, sha: Sha) -> Collection[str]:
    """Return the check suites of a commit whose runs a pull request began; none without the right.

    A trigger that we do not know counts as one.
    """
    return frozenset(
        run.id("check_suite_id")
        for run in await _shown_runs(client, sha)
        if outcomes.CI_TRIGGERS.get(run.words("event")) is not CiTrigger.HEAD
    )


async def foreign_suites(client: RepositoryClient, sha: Sha, target: str) -> Collection[str]:
    """Return the check suites of a commit whose runs are of a fork, or of a branch of others.

    Ours are the target and those of our prefix. Of a run of a fork that is gone GitHub shows no
    repository. None without the right.
    """
    return frozenset(
        run.id("check_suite_id")
        for run in await _shown_runs(client, sha)
        if not _is_of_queue(run, target)
    )


def _is_of_queue(run: Fields, target: str) -> bool:
    head, branch = run.inner_or_none("head_repository"), run.words("head_branch")
    is_here = head is not None and head.id("id") == run.inner("repository").id("id")
    return is_here and (branch in ("", target) or branch.startswith(OWN_HEADS))


async def _shown_runs(client: RepositoryClient, sha: Sha) -> Sequence[Fields]:
    """Return the workflow runs of a commit; none without the right to read them."""
    try:
        listed, _ = await client.listed(
            "/actions/runs", "workflow_runs", {"head_sha": sha}, is_kept=True
        )
    except NotPermitted:
        return ()
    return listed


async def ci_artifacts(client: RepositoryClient, run_id: str) -> tuple[Artifact, ...]:
    """Return the artifacts of a run, oldest first; GitHub lists the newest first."""
    listed = await _of_all(client, run_id)
    if listed is None:
        listed = await _listed(client, f"/actions/runs/{run_id}/artifacts", "artifacts")
    found = (_artifact_of(each) for each in listed)
    return tuple(sorted(found, key=lambda artifact: int(artifact.id)))


async def _of_all(client: RepositoryClient, run_id: str) -> tuple[Fields, ...] | None:
    """Return those in the list of all artifacts, which costs nothing while there is no new one.

    None where one page does not list all.
    """
    now_s = client.clock.monotonic_s()
    if client.caches.is_crowded(client.repo, now_s):
        return None
    answer = await client.get("/actions/artifacts", {"per_page": 100}, is_kept=True)
    listed = answer.fields.each("artifacts")
    runs = [each.inner_or_none("workflow_run") for each in listed]
    if answer.next_page is not None or None in runs:
        client.caches.keep_crowded(client.repo, now_s)
        return None
    return tuple(
        each
        for each, run in zip(listed, runs, strict=True)
        if run is not None and run.id("id") == run_id
    )


async def _listed(client: RepositoryClient, tail: str, member: str) -> tuple[Fields, ...]:
    """All members; none when there is no such run. Raises Gone(REPOSITORY) as everywhere."""
    try:
        listed, _ = await client.listed(tail, member)
    except Gone as gone:
        if gone.kind in (GoneKind.REPOSITORY, GoneKind.INSTALLATION):
            raise
        return ()
    return listed


async def _runs(client: RepositoryClient, sha: Sha) -> tuple[Fields, ...] | NotPossible:
    if not await can_rerun(client):
        return NOT_GRANTED
    listed, _ = await client.listed("/actions/runs", "workflow_runs", {"head_sha": sha})
    return listed


async def _jobs(client: RepositoryClient, run: Fields) -> tuple[Fields, ...]:
    listed, _ = await client.listed(f"/actions/runs/{run.id('id')}/jobs", "jobs")
    return listed


async def _ask(client: RepositoryClient, tail: str) -> Answer:
    """Send a call that may be sent twice: a second one has no effect."""
    return await refs.retry_unknown(client, lambda: client.send("POST", tail, expects=CANNOT))


def _can_run_again(run: Fields) -> bool:
    return run.words("status") == outcomes.COMPLETED and _outcome_of(run) in AGAIN


def _ci_run_of(answer: Fields) -> CiRun:
    """One attempt of a workflow run; a deleted fork has no repository."""
    own = answer.inner("repository").id("id")
    head, actor = answer.inner_or_none("head_repository"), answer.inner_or_none("actor")
    status = answer.words("status")
    trigger = outcomes.CI_TRIGGERS.get(answer.words("event"), CiTrigger.UNKNOWN)
    return CiRun(
        id=answer.id("id"),
        attempt=int(answer.id_or_none("run_attempt") or 1),
        trigger=trigger,
        head_sha=Sha(answer.text("head_sha")),
        head_branch=answer.words("head_branch"),
        of_fork=trigger is CiTrigger.PULL_REQUEST and (head is None or head.id("id") != own),
        pull_requests=tuple(
            each.number("number")
            for each in answer.each("pull_requests")
            if each.inner("base").inner("repo").id("id") == own
        ),
        is_running=status != outcomes.COMPLETED,
        outcome=_outcome_of(answer),
        started_at=answer.moment_or_none("run_started_at") or answer.moment("created_at"),
        url=answer.words("html_url"),
        head_repo="" if head is None else head.id("id"),
        begun_by="" if actor is None else actor.id("id"),
    )


def _pull_source_of(answer: Fields) -> PullRequestSource | None:
    """The source of a pull request from `/pulls/{number}`; None when it is closed."""
    if answer.text("state") != "open":
        return None
    head, own = answer.inner("head"), answer.inner("base").inner("repo").id("id")
    repository = head.inner_or_none("repo")
    source = "" if repository is None else repository.id("id")
    return PullRequestSource(
        number=answer.number("number"),
        head_repo=source,
        head_branch=head.text("ref"),
        head_sha=Sha(head.text("sha")),
        is_fork=source != own,
    )


def _ci_job_of(answer: Fields) -> CiJob:
    """A job of a workflow run.

    The run's own `name` is a title that may differ from run to run; the workflow's stands here.
    """
    failures = tuple(
        FailedStep(each.words("name"), each.moment_or_none("completed_at"))
        for each in answer.each("steps")
        if _has_failed(each)
    )
    return CiJob(
        id=answer.id("id"),
        name=answer.text("name"),
        workflow=answer.words("workflow_name"),
        runner=answer.words("runner_name"),
        outcome=_outcome_of(answer),
        failed_steps=len(failures),
        started_at=answer.moment_or_none("started_at"),
        completed_at=answer.moment_or_none("completed_at"),
        failures=failures,
    )


def _has_failed(step: Fields) -> bool:
    """Return whether a step has failed: its conclusion is that after `continue-on-error`.

    A step that has not ended has no conclusion.
    """
    conclusion = step.text_or("conclusion", None)
    outcome = outcomes.of_run(outcomes.COMPLETED, conclusion, skipped_pass=True)
    return outcome is CheckOutcome.FAILED


def _artifact_of(answer: Fields) -> Artifact:
    """An artifact of a workflow run."""
    return Artifact(
        id=answer.id("id"),
        name=answer.text("name"),
        size=answer.number("size_in_bytes"),
        is_expired=answer.flag("expired"),
        created_at=answer.moment_or_none("created_at"),
    )


def _outcome_of(answer: Fields) -> CheckOutcome:
    conclusion = answer.text_or("conclusion", None)
    return outcomes.of_run(answer.words("status"), conclusion, skipped_pass=True)

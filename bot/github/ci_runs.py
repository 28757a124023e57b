"""Runs of GitHub's own CI: read, and rerun or cancelled with the permission for it.

Writing needs `actions: write`.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date

from bot.github import outcomes, refs
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from bot.github.wire import Answer
from service.provider.ci import Artifact, CiJob, CiRun, CiTrigger, PullRequestSource
from service.provider.errors import Gone, GoneKind
from service.provider.values import NotPossible
from service.vocabulary import CheckOutcome, Sha

NOT_GRANTED = NotPossible("The App does not have the permission Actions: write.")
AGAIN = frozenset({CheckOutcome.FAILED, CheckOutcome.INTERRUPTED})
LISTED_PAGES_MAX = 2
CANNOT = (403, 409)  # too old, or still running


async def rerun(client: RepositoryClient, sha: Sha, names: Sequence[str]) -> NotPossible | None:
    """Run the failed jobs of every finished workflow run that holds one of the names."""
    runs = await _runs(client, sha)
    if isinstance(runs, NotPossible):
        return runs
    wanted = frozenset(names)
    started = False
    for run in runs:
        if not _can_run_again(run) or not wanted & await _jobs(client, run):
            continue
        answer = await _ask(client, f"/actions/runs/{run.id('id')}/rerun-failed-jobs")
        if answer.status >= 300:
            return NotPossible(answer.message or "GitHub does not run it again.")
        started = True
    return None if started else NotPossible("No finished workflow run holds these checks.")


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
    grant = await client.github.tokens.of(client.repo)
    if grant.permissions.get("actions") != "write":
        return NOT_GRANTED
    listed, _ = await client.listed("/actions/runs", "workflow_runs", {"head_sha": sha})
    return listed


async def _jobs(client: RepositoryClient, run: Fields) -> frozenset[str]:
    listed, _ = await client.listed(f"/actions/runs/{run.id('id')}/jobs", "jobs")
    return frozenset(job.text("name") for job in listed)


async def _ask(client: RepositoryClient, tail: str) -> Answer:
    """Send a call that may be sent twice: a second one has no effect."""
    return await refs.retry_unknown(client, lambda: client.send("POST", tail, expects=CANNOT))


def _can_run_again(run: Fields) -> bool:
    return run.words("status") == outcomes.COMPLETED and _outcome_of(run) in AGAIN


def _ci_run_of(answer: Fields) -> CiRun:
    """One attempt of a workflow run; a deleted fork has no repository."""
    own = answer.inner("repository").id("id")
    head = answer.inner_or_none("head_repository")
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
    return CiJob(
        id=answer.id("id"),
        name=answer.text("name"),
        workflow=answer.words("workflow_name"),
        runner=answer.words("runner_name"),
        outcome=_outcome_of(answer),
        failed_steps=sum(
            outcomes.of_run(outcomes.COMPLETED, each.text_or("conclusion", None), skipped_pass=True)
            is CheckOutcome.FAILED
            for each in answer.each("steps")
        ),
        started_at=answer.moment_or_none("started_at"),
        completed_at=answer.moment_or_none("completed_at"),
    )


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

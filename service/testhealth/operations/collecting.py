"""Fetch reports that CI runs left as artifacts (docs/design/reports.md 10).

Fetches and sorts; what becomes of the reports is the intake's. Not to be called while a lane of
deliveries waits for it: an archive may take a minute.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from service.provider.archives import ArchiveFile, NoArchive, RefusedFile
from service.provider.ci import Artifact, CiJob, CiRun, CiTrigger
from service.provider.port import Provider
from service.testhealth.reports import collecting
from service.testhealth.reports.collecting import Ran
from service.vocabulary import RepoRef


@dataclass(frozen=True, slots=True)
class Collected:
    """An artifact as an upload, without its files: what a client would say as metadata.

    `job` is the job key; `machine` the runner of the one job of the artifact's name, None when
    there is none; `jobs` are all of the attempt. Class and code id: `reports/collecting.py`.
    """

    artifact: Artifact
    run: CiRun
    jobs: tuple[CiJob, ...]
    job: str
    machine: str | None

    @property
    def ran_at(self) -> datetime:
        """The time of every attempt of a test in it."""
        return self.run.started_at

    @property
    def ran(self) -> Ran:
        """What class and code id depend on."""
        return _ran(self.run)


class Intake(Protocol):
    """Who takes reports in, for one repository."""

    async def unseen(self, artifact_ids: Sequence[str]) -> frozenset[str]:
        """Which of them were neither taken in nor refused before."""
        ...

    async def take_in(
        self, collected: Collected, files: Iterator[ArchiveFile | RefusedFile]
    ) -> None:
        """Make an upload of it.

        `files` unpacks each file as it is asked for, once, in this call alone; not in the event
        loop's thread. None of them may be a report; a second call with the same is a duplicate.
        """
        ...

    async def refuse(self, collected: Collected, reason: str) -> None:
        """Keep an upload that cannot be read, now or later."""
        ...


async def collect(
    provider: Provider,
    repo: RepoRef,
    of: tuple[str, int],
    patterns: Sequence[str],
    intake: Intake,
) -> int:
    """Give the intake what an attempt of a CI run left, `of` being both; how many artifacts.

    Safe to repeat: what the intake has seen is not fetched again. A run that left nothing of
    interest costs one read. Raises the provider's errors;
    what was given before stays taken in.
    """
    run_id, attempt = of
    left = await provider.ci_artifacts(repo, run_id)
    wanted = [each for each in left if collecting.is_wanted(each.name, patterns)]
    unseen = await intake.unseen([each.id for each in wanted]) if wanted else frozenset()
    run = await provider.ci_run(repo, run_id, attempt) if unseen else None
    if run is None:
        return 0
    until = await _next_start(provider, repo, run)
    chosen = [each for each in wanted if each.id in unseen and _is_of(each, run, until)]
    jobs = tuple(await provider.ci_jobs(repo, run_id, attempt)) if chosen else ()
    for artifact in chosen:
        async with provider.ci_artifact(repo, artifact) as found:
            collected = _collected(artifact, run, jobs)
            if isinstance(found, NoArchive):
                await intake.refuse(collected, found.reason)
            else:
                await intake.take_in(collected, found.files())
    return len(chosen)


async def _next_start(provider: Provider, repo: RepoRef, run: CiRun) -> datetime | None:
    """When the following attempt began, None if there is none: what came later is its own."""
    following = await provider.ci_run(repo, run.id, run.attempt + 1)
    return None if following is None else following.started_at


def _is_of(artifact: Artifact, run: CiRun, until: datetime | None) -> bool:
    at = artifact.created_at
    return at is None or (run.started_at <= at and (until is None or at < until))


def _collected(artifact: Artifact, run: CiRun, jobs: tuple[CiJob, ...]) -> Collected:
    workflow = next((job.workflow for job in jobs if job.workflow), "")
    plain = collecting.plain_name(artifact.name, _ran(run))
    named = [job.runner for job in jobs if collecting.names_job(plain, job.name)]
    return Collected(
        artifact=artifact,
        run=run,
        jobs=jobs,
        job=collecting.job_key(workflow, plain),
        machine=(named[0] or None) if len(named) == 1 else None,
    )


def _ran(run: CiRun) -> Ran:
    return Ran(
        run_id=run.id,
        attempt=run.attempt,
        head_sha=run.head_sha,
        head_branch=run.head_branch,
        of_fork=run.of_fork,
        tests_head=run.trigger is CiTrigger.HEAD,
        tests_merge=run.trigger is CiTrigger.PULL_REQUEST,
    )

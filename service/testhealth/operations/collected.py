"""Collect artifacts of CI: note runs, fetch their artifacts, store uploads.

The rules are in docs/design/reports.md 10. A repository's settings say which artifacts are read;
each becomes an upload, or a refused one with the reason.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

import structlog

from service.accounts.store import access
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.errors import Invalid, Malformed, Overloaded
from service.provider.archives import NoArchive
from service.provider.ci import Artifact, CiJob, CiRun, CiTrigger
from service.provider.errors import ProviderError, Unavailable
from service.runtime import Runtime
from service.testhealth.operations import answers, classify, ingest, parsing
from service.testhealth.operations import settings as test_settings
from service.testhealth.operations.classify import Collected as Origin
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import collecting as decisions
from service.testhealth.reports import results
from service.testhealth.reports.collecting import CollectReports, Ran
from service.testhealth.reports.results import Fault, FileStatus, ReportFile
from service.testhealth.store import artifacts, quarantine, uploads
from service.testhealth.store.cases import Place
from service.testhealth.store.uploads import Upload
from service.vocabulary import Sha

"""Wakes whoever fetches; what a queue waits for is fetched with the other effects."""

"""Bytes of reports that are parsed together: time and memory are bounded for so much."""

NO_REPORT = "It holds no report of tests."

BEGUN_WITHIN = timedelta(days=1)
"""CI runs that began so long ago are looked through for lost reports."""
ATTEMPTS_MAX = 3
"""Newest attempts of one run: it may have been repeated before the sweep."""

log = structlog.get_logger()

outbox.EFFECT.add(CollectReports)


async def ask_for(
    runtime: Runtime, repository: RepositoryRecord, wanted: Sequence[CollectReports]
) -> None:
    """Note that attempts of CI runs have left what may be reports; a second call adds nothing.

    Only noted: the lane of deliveries must not wait for archives.
    """
    if await runtime.store.run(_ask_for, repository, wanted, runtime.clock.now()):
        outbox.wake(runtime.wakeups, {_lane_of(each) for each in wanted})


def _ask_for(
    session: Tx, repository: RepositoryRecord, wanted: Sequence[CollectReports], now: datetime
) -> bool:
    if not quarantine.settings_of(session, repository.id).collect_artifacts:
        return False
    items = [
        OutboxItem(
            _lane_of(each),
            _key(repository.id, each),
            "collect",
            each,
            next_at=now,
        )
        for each in wanted
    ]
    outbox.append(session, repository.id, None, 0, items)
    return True


def _lane_of(wanted: CollectReports) -> Lane:
    return Lane.REPORTS if wanted.is_awaited else Lane.COLLECT


async def look_for_lost(
    runtime: Runtime,
    repository: RepositoryRecord,
    at_most: int,
    awaited: Callable[[str], object] | None = None,
) -> int:
    """Request the reports of a repository's ended CI runs, newest first, that nobody asked for.

    `awaited`: only those of the repository's own branches that it accepts, since a queue waits for
    them. A branch of a fork may have any name.

    Return the number of attempts of which reports are requested; 0 if the provider is away.
    """
    provider = runtime.providers.get(repository.ref.host)
    settings = await test_settings.read(runtime, repository)
    if provider is None or not settings.collect_artifacts:
        return 0
    since = (runtime.clock.now() - BEGUN_WITHIN).date()
    try:
        ended = await provider.ci_runs(repository.ref, since, is_awaited=awaited is not None)
    except ProviderError as trouble:
        log.warning("lost_reports_postponed", repo=repository.ref.slug, why=trouble.message)
        return 0
    attempts = [
        CollectReports(run.id, attempt, awaited is not None)
        for run in ended
        if awaited is None or (run.head_repo == repository.provider_id and awaited(run.head_branch))
        for attempt in range(run.attempt, max(run.attempt - ATTEMPTS_MAX, 0), -1)
    ]
    lost = await runtime.store.read(_unasked, repository.id, attempts)
    if lost:
        await ask_for(runtime, repository, lost[:at_most])
        log.info("lost_reports", repo=repository.ref.slug, runs=len(lost))
    return min(len(lost), at_most)


def _unasked(
    session: Tx, repository_id: int, attempts: Sequence[CollectReports]
) -> tuple[CollectReports, ...]:
    """Those that nobody has asked for, within the time that effects are kept."""
    keys = {each: _key(repository_id, each) for each in attempts}
    keys_sent = outbox.stored_keys(session, keys.values())
    return tuple(each for each, key in keys.items() if key not in keys_sent)


def _key(repository_id: int, wanted: CollectReports) -> str:
    return f"collect/{repository_id}/{wanted.run_id}/{wanted.attempt}"


async def fetch(runtime: Runtime, repository_id: int, wanted: CollectReports) -> None:
    """Take in what the attempt left, as the settings are by now; safe to repeat.

    What was taken in or refused before is not fetched again. A run that left nothing of interest
    costs one read. Raises the provider's errors; what was taken in before one stays.
    """
    repository = await runtime.store.read(access.repository, repository_id)
    if repository is None:
        return
    settings = await test_settings.read(runtime, repository)
    if not settings.collect_artifacts:
        return
    ref = repository.ref
    provider = runtime.provider_of(ref.host)
    left = await provider.ci_artifacts(ref, wanted.run_id, is_awaited=wanted.is_awaited)
    named = [each for each in left if decisions.is_wanted(each.name, settings.artifact_patterns)]
    ids = [each.id for each in named]
    seen = await runtime.store.read(artifacts.seen, repository_id, ids) if ids else frozenset()
    unseen = [each for each in named if each.id not in seen]
    run = await provider.ci_run(ref, wanted.run_id, wanted.attempt) if unseen else None
    if run is None:
        return
    following = await provider.ci_run(ref, run.id, run.attempt + 1)
    until = None if following is None else following.started_at
    chosen = [each for each in unseen if _is_of(each, run, until)]
    if not chosen:
        return
    jobs = await provider.ci_jobs(ref, run.id, run.attempt)
    tested = await _tested(classify.Look(runtime, provider, repository), run)
    for artifact in chosen:
        source = _source_of(artifact, run, jobs, tested)
        async with provider.ci_artifact(ref, artifact, is_awaited=wanted.is_awaited) as archive:
            if isinstance(archive, NoArchive):
                files = (_whole(artifact, archive.reason),)
                await _keep_refused(runtime, repository, source, archive.reason, files)
            else:
                await _take_in(runtime, repository, source, archive)
    log.info("collected", repo=ref.slug, run=run.id, artifacts=len(chosen))


def _is_of(artifact: Artifact, run: CiRun, until: datetime | None) -> bool:
    """Return whether the attempt left the artifact; the next attempt began at `until`."""
    at = artifact.created_at
    return at is None or (run.started_at <= at and (until is None or at < until))


@dataclass(frozen=True, slots=True)
class _Source:
    """An artifact, what a client would say of it, and what CI itself says."""

    artifact: Artifact
    meta: UploadMeta
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Tested:
    """The subject of a run: pull requests, or its head as it stands with its tree and position."""

    prs: tuple[int, ...]
    tree: Sha | None
    position: int | None


def _source_of(artifact: Artifact, run: CiRun, jobs: Sequence[CiJob], tested: _Tested) -> _Source:
    ran = Ran(
        run_id=run.id,
        attempt=run.attempt,
        head_sha=run.head_sha,
        head_branch=run.head_branch,
        of_fork=run.of_fork,
        tests_head=run.trigger is CiTrigger.HEAD,
        tests_merge=run.trigger is CiTrigger.PULL_REQUEST,
    )
    workflow = next((job.workflow for job in jobs if job.workflow), "")
    plain = decisions.plain_name(artifact.name, ran)
    runners = [job.runner for job in jobs if decisions.names_job(plain, job.name)]
    meta = UploadMeta(
        sha=run.head_sha,
        branch=run.head_branch or None,
        pr_number=tested.prs[0] if tested.prs else None,
        run_id=run.id,
        run_attempt=run.attempt,
        run_url=run.url or None,
        job=decisions.job_key(workflow, plain),
        ran_at=run.started_at,
        machine=(runners[0] or None) if len(runners) == 1 else None,
    )
    origin = Origin(
        artifact.id, ran, tested.tree, tested.prs, tested.position, begun_by=run.begun_by
    )
    return _Source(artifact, meta, origin)


async def _tested(look: classify.Look, run: CiRun) -> _Tested:
    if run.trigger is not CiTrigger.HEAD:
        return _Tested(await _pull_requests(look.runtime, look.repository, run), None, None)
    commit = await look.provider.commit(look.repository.ref, run.head_sha)
    position = await classify.position_of(look, run.head_branch, run.head_sha)
    return _Tested((), None if commit is None else commit.tree, position)


async def _pull_requests(
    runtime: Runtime, repository: RepositoryRecord, run: CiRun
) -> tuple[int, ...]:
    """Return whom a run tested: the provider names none of forks, we may have seen the head."""
    if run.trigger is not CiTrigger.PULL_REQUEST:
        return ()
    pull_requests_at = runtime.links.of(QueueLinks).pull_requests_at
    seen = await runtime.store.read(pull_requests_at, repository.id, run.head_sha)
    return tuple(sorted({*seen, *run.pull_requests}))


async def _take_in(
    runtime: Runtime, repository: RepositoryRecord, source: _Source, packed: bytes
) -> None:
    """Make an upload of an artifact; a refused one where no report can be used.

    Raises Unavailable while too much else is being read, and the provider's errors.
    """
    read: list[ReportFile] = []
    try:
        async for portion in parsing.read_archive(runtime, repository, source.meta, packed):
            # What was refused before it was read has no digest, and is shown.
            read += [each for each in portion if not each.sha256 or decisions.is_report(each)]
            ingest.check_size(read)
        if not read:
            raise Invalid(NO_REPORT)
        await ingest.ingest_artifact(runtime, repository, source.meta, tuple(read), source.origin)
    except (Invalid, Malformed) as refusal:
        kept = read or [_whole(source.artifact, refusal.detail)]
        await _keep_refused(runtime, repository, source, refusal.detail, kept)
    except Overloaded as busy:
        # Like a provider that is away: it counts no try, for the reports are good.
        later = runtime.clock.now() + timedelta(seconds=busy.retry_after_s)
        raise Unavailable(busy.detail, later) from busy


async def _keep_refused(
    runtime: Runtime,
    repository: RepositoryRecord,
    source: _Source,
    reason: str,
    files: Sequence[ReportFile],
) -> None:
    """Store an upload without results, so that the artifact is not fetched again."""
    log.info("artifact_refused", repo=repository.ref.slug, artifact=source.artifact.id, why=reason)
    refusal = _Refusal(runtime.ids.uuid(), reason, files)
    await runtime.store.run(_refuse, runtime, repository, source, refusal)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An upload of which nothing counts."""

    upload_id: str
    reason: str
    files: Sequence[ReportFile]


def _refuse(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, source: _Source, refusal: _Refusal
) -> None:
    now = runtime.clock.now()
    place = Place(repository.org_id, repository.id)
    meta, origin = source.meta, source.origin
    settings = quarantine.settings_of(session, repository.id)
    facts = classify.Facts(session, runtime.links.of(QueueLinks), repository, settings)
    classified = classify.classified(facts, meta, origin)
    if not artifacts.note(session, place, origin.artifact_id, refusal.upload_id, now):
        return
    upload = Upload(
        id=refusal.upload_id,
        digest=_digest_of(repository, origin),
        kind=classified.kind.value,
        code_id=classified.code_id,
        sha=meta.sha,
        job=meta.job,
        ran_at=meta.ran_at or now,
        received_at=now,
        branch=meta.branch,
        pr_number=meta.pr_number,
        prs=classified.prs,
        run_id=meta.run_id,
        run_attempt=meta.run_attempt,
        run_url=meta.run_url,
        machine=meta.machine,
        counts=asdict(results.counts_of(refusal.files)),
        files=answers.stored_files(refusal.files),
        warnings=(refusal.reason,),
        refusal=refusal.reason,
        is_complete=False,
        is_eligible=False,
        is_partial=True,
    )
    uploads.record(session, place, upload, ())


def _digest_of(repository: RepositoryRecord, origin: Origin) -> str:
    """Nothing was read that could be told apart by its content, so the artifact itself is."""
    return hashlib.sha256(f"artifact\0{repository.id}\0{origin.artifact_id}".encode()).hexdigest()


def _whole(artifact: Artifact, reason: str) -> ReportFile:
    """Return the archive as the one file that was refused."""
    return ReportFile(None, FileStatus.REFUSED, fault=Fault(reason), name=artifact.name)

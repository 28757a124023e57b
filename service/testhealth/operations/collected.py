"""Collect artifacts of CI: note runs, fetch their artifacts, store uploads.

The rules are in docs/design/reports.md 10. A repository's settings say which artifacts are read;
each becomes an upload, or a refused one with the reason.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

import structlog

from service.accounts.store import access
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import OutboxItem
from service.database.records import Lane, RepositoryRecord
from service.errors import Invalid, Malformed, Overloaded
from service.provider.archives import ArchiveFile, RefusedFile
from service.provider.ci import CiRun, CiTrigger
from service.provider.errors import ProviderError, Unavailable
from service.runtime import Runtime
from service.testhealth.operations import (
    answers,
    classify,
    collecting,
    parsing,
    take_in,
)
from service.testhealth.operations import (
    settings as test_settings,
)
from service.testhealth.operations.classify import Collected as Known
from service.testhealth.operations.parsing import SentFile
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.operations.upload_values import ReadFile, UploadMeta
from service.testhealth.reports import collecting as decisions
from service.testhealth.reports import results
from service.testhealth.reports.collecting import CollectReports
from service.testhealth.reports.results import Fault, FileStatus, ReportFile
from service.testhealth.store import artifacts, quarantine, uploads
from service.testhealth.store.cases import Place
from service.testhealth.store.uploads import Upload
from service.vocabulary import Sha

TOPIC = "collecting"
"""Wakes whoever fetches."""

PORTION_BYTES = 20 * 1024 * 1024
"""Bytes of reports that are parsed together: time and memory are bounded for so much."""

NO_REPORT = "It holds no report of tests."

log = structlog.get_logger()

outbox.EFFECT.add(CollectReports)


async def ask_for(
    runtime: Runtime, repository: RepositoryRecord, wanted: Sequence[CollectReports]
) -> None:
    """Note that attempts of CI runs have left what may be reports; a second call adds nothing.

    Only noted: the lane of deliveries must not wait for archives.
    """
    if await runtime.store.run(_ask_for, repository, wanted, runtime.clock.now()):
        runtime.wakeups.wake(TOPIC)


def _ask_for(
    session: Tx, repository: RepositoryRecord, wanted: Sequence[CollectReports], now: datetime
) -> bool:
    if not quarantine.settings_of(session, repository.id).collect_artifacts:
        return False
    items = [
        OutboxItem(Lane.COLLECT, _key(repository.id, each), "collect", each, next_at=now)
        for each in wanted
    ]
    outbox.append(session, repository.id, None, 0, items)
    return True


def unasked(
    session: Tx, repository_id: int, attempts: Sequence[CollectReports]
) -> tuple[CollectReports, ...]:
    """Those that nobody has asked for, within the time that effects are kept."""
    keys = {each: _key(repository_id, each) for each in attempts}
    known = outbox.known(session, keys.values())
    return tuple(each for each, key in keys.items() if key not in known)


def _key(repository_id: int, wanted: CollectReports) -> str:
    return f"collect/{repository_id}/{wanted.run_id}/{wanted.attempt}"


async def fetch(runtime: Runtime, repository_id: int, wanted: CollectReports) -> None:
    """Take in what the attempt left, as the settings are by now; safe to repeat.

    Raises the provider's errors; what was taken in before one stays.
    """
    repository = await runtime.store.read(access.repository, repository_id)
    if repository is None:
        return
    settings = await test_settings.read(runtime, repository)
    if not settings.collect_artifacts:
        return
    provider = runtime.providers.get(repository.ref.host)
    if provider is None:
        raise ProviderError(f"No provider is set for {repository.ref.host}.")
    of = (wanted.run_id, wanted.attempt)
    intake = StoredIntake(runtime, repository)
    count = await collecting.collect(
        provider, repository.ref, of, settings.artifact_patterns, intake
    )
    log.info("collected", repo=repository.ref.slug, run=wanted.run_id, artifacts=count)


@dataclass(frozen=True, slots=True)
class _Told:
    """An artifact on its way in: what a client would say of it, and what CI itself says."""

    meta: UploadMeta
    known: Known


@dataclass(slots=True)
class StoredIntake:
    """Reports of one repository become its uploads; see `collecting.Intake`."""

    runtime: Runtime
    repository: RepositoryRecord
    trees: dict[Sha, Sha | None] = field(default_factory=dict)

    async def unseen(self, artifact_ids: Sequence[str]) -> frozenset[str]:
        """Those of which nothing is known."""
        seen = await self.runtime.store.read(artifacts.seen, self.repository.id, artifact_ids)
        return frozenset(artifact_ids) - seen

    async def take_in(
        self, collected: collecting.Collected, files: Iterator[ArchiveFile | RefusedFile]
    ) -> None:
        """Make an upload of it; a refused one where no report can be used.

        Raises Unavailable while too much else is being read, and the provider's errors.
        """
        told = await self._told(collected)
        read: list[ReadFile] = []
        try:
            await self._read(told.meta, files, read)
            if not read:
                await self._keep_refused(told, NO_REPORT, (_whole(collected, NO_REPORT),))
                return
            await take_in.take_in_collected(
                self.runtime, self.repository, told.meta, tuple(read), told.known
            )
        except (Invalid, Malformed) as refusal:
            kept = read or [_whole(collected, refusal.detail)]
            await self._keep_refused(told, refusal.detail, kept)
        except Overloaded as busy:
            # Like a provider that is away: it counts no try, for the reports are good.
            later = self.runtime.clock.now() + timedelta(seconds=busy.retry_after_s)
            raise Unavailable(busy.detail, later) from busy

    async def refuse(self, collected: collecting.Collected, reason: str) -> None:
        """Keep that it cannot be read, as an upload without results."""
        await self._keep_refused(await self._told(collected), reason, (_whole(collected, reason),))

    async def _read(
        self, meta: UploadMeta, files: Iterator[ArchiveFile | RefusedFile], read: list[ReadFile]
    ) -> None:
        """Add the reports among the files to `read`, some megabytes at a time."""
        while portion := await asyncio.to_thread(_portion, files):
            sent = [
                SentFile(each.name, each.content)
                for each in portion
                if isinstance(each, ArchiveFile)
            ]
            parsed = await parsing.read_files(self.runtime, self.repository, meta, sent)
            read += [each for each in parsed if decisions.is_report(each.report)]
            read += [_unread(each) for each in portion if isinstance(each, RefusedFile)]
            take_in.check_size(read)

    async def _told(self, collected: collecting.Collected) -> _Told:
        run = collected.run
        prs = await self._pull_requests(run)
        meta = UploadMeta(
            sha=run.head_sha,
            branch=run.head_branch or None,
            pr_number=prs[0] if prs else None,
            run_id=run.id,
            run_attempt=run.attempt,
            run_url=run.url or None,
            job=collected.job,
            ran_at=collected.ran_at,
            machine=collected.machine,
        )
        known = Known(collected.artifact.id, collected.ran, await self._tree(run), prs)
        return _Told(meta, known)

    async def _pull_requests(self, run: CiRun) -> tuple[int, ...]:
        """Whom a run tested: the provider names none of forks, we may have seen the head."""
        if run.trigger is not CiTrigger.PULL_REQUEST:
            return ()
        pull_requests_at = self.runtime.links.of(QueueLinks).pull_requests_at
        seen = await self.runtime.store.read(pull_requests_at, self.repository.id, run.head_sha)
        return tuple(sorted({*seen, *run.pull_requests}))

    async def _tree(self, run: CiRun) -> Sha | None:
        """The tree of a head that was tested as it stands, asked for once."""
        if run.trigger is not CiTrigger.HEAD:
            return None
        sha = run.head_sha
        if sha not in self.trees:
            ref = self.repository.ref
            commit = await self.runtime.providers[ref.host].commit(ref, sha)
            self.trees[sha] = None if commit is None else commit.tree
        return self.trees[sha]

    async def _keep_refused(self, told: _Told, reason: str, files: Sequence[ReadFile]) -> None:
        artifact = told.known.artifact_id
        log.info("artifact_refused", repo=self.repository.ref.slug, artifact=artifact, why=reason)
        await self.runtime.store.run(
            _refuse,
            self.runtime,
            self.repository,
            told,
            _Refusal(self.runtime.ids.uuid(), reason, files),
        )


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An upload of which nothing counts."""

    upload_id: str
    reason: str
    files: Sequence[ReadFile]


def _refuse(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, told: _Told, refusal: _Refusal
) -> None:
    now = runtime.clock.now()
    place = Place(repository.org_id, repository.id)
    meta, known = told.meta, told.known
    settings = quarantine.settings_of(session, repository.id)
    facts = classify.Facts(session, runtime.links.of(QueueLinks), repository, settings)
    found = classify.classified(facts, meta, known)
    if not artifacts.note(session, place, known.artifact_id, refusal.upload_id, now):
        return
    upload = Upload(
        id=refusal.upload_id,
        digest=_digest_of(repository, known),
        kind=found.kind.value,
        code_id=found.code_id,
        sha=meta.sha,
        job=meta.job,
        ran_at=meta.ran_at or now,
        received_at=now,
        branch=meta.branch,
        pr_number=meta.pr_number,
        prs=found.prs,
        run_id=meta.run_id,
        run_attempt=meta.run_attempt,
        run_url=meta.run_url,
        machine=meta.machine,
        counts=asdict(results.counts_of(each.report for each in refusal.files)),
        files=answers.stored_files(refusal.files),
        warnings=(refusal.reason,),
        refusal=refusal.reason,
        is_complete=False,
        is_eligible=False,
        is_partial=True,
    )
    uploads.record(session, place, upload, ())


def _digest_of(repository: RepositoryRecord, known: Known) -> str:
    """Nothing was read that could be told apart by its content, so the artifact itself is."""
    return hashlib.sha256(f"artifact\0{repository.id}\0{known.artifact_id}".encode()).hexdigest()


def _portion(files: Iterator[ArchiveFile | RefusedFile]) -> list[ArchiveFile | RefusedFile]:
    """The next files, until they hold enough; none: there are no more."""
    taken: list[ArchiveFile | RefusedFile] = []
    size = 0
    for each in files:
        taken.append(each)
        size += len(each.content) if isinstance(each, ArchiveFile) else 0
        if size >= PORTION_BYTES:
            break
    return taken


def _unread(file: RefusedFile) -> ReadFile:
    """A report that stayed in its archive."""
    return ReadFile(file.name, "", ReportFile(None, FileStatus.REFUSED, fault=Fault(file.reason)))


def _whole(collected: collecting.Collected, reason: str) -> ReadFile:
    """The archive as the one file that was refused."""
    return _unread(RefusedFile(collected.artifact.name, reason))

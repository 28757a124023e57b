"""An upload of test reports taken in: checked, classified, entered, counted, judged, answered.

Parsing happens before, away from the event loop; here a parsed file is a value. What an upload
changes is written in one transaction, so that readers see all of it or nothing (FLAKY.md 4).
"""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from service.errors import FieldError, Invalid, Malformed, NotFound
from service.flaky import duplicates, results
from service.flaky.evidence import is_mass_failure
from service.flaky.identity import RepositoryKey
from service.flaky.results import Counts, FileStatus, Outcome
from service.flaky.uploads import UploadClass
from service.notifications import upload_payloads
from service.notifications.upload_payloads import UploadTold
from service.operations import (
    access,
    judging,
    page_addresses,
    test_checks,
    test_messages,
    test_records,
    upload_answers,
    upload_cases,
    upload_class,
    upload_evidence,
    upload_news,
)
from service.operations.judging import Bench
from service.operations.test_records import Home
from service.operations.upload_cases import Entrance, Identified
from service.operations.upload_class import Classified, Collected, Doubts
from service.operations.upload_values import ReadFile, UploadAnswer, UploadMeta
from service.operations.views import Caller
from service.runtime import Runtime
from service.store import artifacts, evidence, subscribers, test_cases, uploads
from service.store.database import Tx
from service.store.records import RepositoryRecord
from service.store.standings import KeptStanding
from service.store.test_cases import Place
from service.store.test_evidence import Upload
from service.vocabulary import SYSTEM, Actor, Sha

TESTS_MAX = 500_000
"""Tests of one upload (API.md 8.4)."""

AGE_MAX = timedelta(days=45)
AHEAD_MAX = timedelta(minutes=5)
"""A client's clock may be so far ahead (FLAKY.md 2.2)."""

WARNINGS_MAX = 100

CLOCK_AHEAD = "clock_ahead: `ran_at` lies ahead of our clock; the time of receipt counts."


@dataclass(frozen=True, slots=True)
class Arrived:
    """An upload on its way in: what was sent, when, and what reading and asking said of it."""

    id: str
    actor: Actor
    repository: RepositoryRecord
    meta: UploadMeta
    files: tuple[ReadFile, ...]
    ran_at: datetime
    now: datetime
    known: Doubts | Collected
    counts: Counts

    @property
    def place(self) -> Place:
        """Whose tests it speaks of."""
        return Place(self.repository.org_id, self.repository.id)


async def take_in(
    runtime: Runtime,
    caller: Caller,
    repository: RepositoryRecord,
    meta: UploadMeta,
    files: tuple[ReadFile, ...],
) -> UploadAnswer:
    """Store an upload's evidence, judge its tests, and answer; a dry run stores nothing.

    The same content for the same run is answered as a duplicate and counted once. Raises
    Invalid(no_results, limit_reached), Malformed(invalid_field), Unauthenticated.
    """
    now = runtime.clock.now()
    _refuse_useless(files)
    arrived = Arrived(
        id=runtime.ids.uuid(),
        actor=access.actor_of(caller),
        repository=repository,
        meta=meta,
        files=files,
        ran_at=_ran_at(meta, now),
        now=now,
        known=await upload_class.doubts_of(runtime, caller, repository, meta),
        counts=results.counts_of(each.report for each in files),
    )
    if meta.dry_run:
        return await runtime.store.read(_tried, arrived)
    return await _enter(runtime, arrived)


async def take_in_collected(
    runtime: Runtime,
    repository: RepositoryRecord,
    meta: UploadMeta,
    files: tuple[ReadFile, ...],
    known: Collected,
) -> UploadAnswer:
    """The same for what we fetched ourselves, of which the provider alone tells.

    A duplicate, too, when uploads of the same attempt of the same CI run have all its files.
    Raises Invalid(no_results, limit_reached), Malformed(invalid_field).
    """
    now = runtime.clock.now()
    _refuse_useless(files)
    arrived = Arrived(
        id=runtime.ids.uuid(),
        actor=SYSTEM,
        repository=repository,
        meta=meta,
        files=files,
        ran_at=_ran_at(meta, now),
        now=now,
        known=known,
        counts=results.counts_of(each.report for each in files),
    )
    return await _enter(runtime, arrived)


async def _enter(runtime: Runtime, arrived: Arrived) -> UploadAnswer:
    """Enter its tests, complete it, and keep at hand what comes of it."""
    meta = arrived.meta
    found, name = await runtime.store.read(_identified, arrived)
    entrance = Entrance(arrived.place, name, meta.variant, arrived.ran_at)
    aliases = upload_cases.aliases_of(found, name, meta.variant)
    for chunk in upload_cases.chunks(found):
        await runtime.store.run(upload_cases.enter, entrance, chunk, aliases)
    answer, kept = await runtime.store.run(_complete, runtime, arrived, found, name)
    if kept is not None:
        runtime.store.standings.put(arrived.repository.id, kept)
        await upload_news.tell(runtime, arrived.repository.id)
        runtime.wakeups.wake("outbox")
    return answer


async def upload_answer(
    runtime: Runtime, repository: RepositoryRecord, upload_id: str
) -> UploadAnswer:
    """The answer to an earlier upload of the repository. Raises NotFound(upload_not_found)."""
    return await runtime.store.read(_remembered, runtime, repository, upload_id)


def _refuse_useless(files: tuple[ReadFile, ...]) -> None:
    told = [
        {
            "name": each.name,
            "format": each.report.format,
            "status": each.report.status.value,
            "tests": len(each.report.cases),
            "error": asdict(each.report.fault) if each.report.fault else None,
        }
        for each in files
    ]
    if all(each.report.status is FileStatus.REFUSED for each in files):
        raise Invalid(
            "No file could be read as a report of tests.",
            code="no_results",
            members={"files": told},
        )
    check_size(files)


def check_size(files: Iterable[ReadFile]) -> None:
    """Raise Invalid(limit_reached) when the files hold more tests than an upload may."""
    cases = sum(len(each.report.cases) for each in files)
    if cases > TESTS_MAX:
        raise Invalid(
            f"The upload has {cases:,} tests, more than {TESTS_MAX:,}: send its files in several.",
            code="limit_reached",
        )


def _ran_at(meta: UploadMeta, now: datetime) -> datetime:
    """The time of all its attempts; one that lies ahead is not believed."""
    if meta.ran_at is None or meta.ran_at > now + AHEAD_MAX:
        return now
    if meta.ran_at < now - AGE_MAX:
        message = f"must not be older than {AGE_MAX.days} days"
        fault = FieldError("/ran_at", "range", message)
        raise Malformed(f"/ran_at {message}.", errors=(fault,))
    return meta.ran_at


def digest_of(arrived: Arrived) -> str:
    """What is equal for the same content of the same run (FLAKY.md 2.4)."""
    meta = arrived.meta
    parts = [
        str(arrived.repository.id),
        meta.sha,
        meta.run_id or "",
        str(meta.run_attempt),
        meta.job,
        meta.variant,
        "" if meta.ran_at is None else meta.ran_at.isoformat(),
        *sorted(each.sha256 for each in arrived.files),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _identified(session: Tx, arrived: Arrived) -> tuple[Identified, RepositoryKey]:
    """The upload's tests, and the name under which new ones are entered."""
    repository = arrived.repository
    slug = subscribers.organization_slug(session, repository.org_id)
    present = test_checks.key_of(slug, repository.ref)
    names = test_checks.names_of(session, repository, present)
    cases = [case for each in arrived.files for case in each.report.cases]
    variant = arrived.meta.variant
    return upload_cases.identified(session, repository.id, names, variant, cases), present


def _tried(session: Tx, arrived: Arrived) -> UploadAnswer:
    """The answer that the upload would get."""
    found, _ = _identified(session, arrived)
    home = test_records.home_of(session, arrived.repository, arrived.now)
    classified = _classified(session, home, arrived)
    failing = upload_answers.failing_in(found.results, found.numbers)
    said = upload_answers.answered(
        session, home, failing, arrived.meta.variant, classified.started_at
    )
    upload = _upload(arrived, found, classified)
    return upload_answers.answer_of(upload, said, arrived.counts, None)


def _classified(session: Tx, home: Home, arrived: Arrived) -> Classified:
    return upload_class.classified(
        session, arrived.repository, home.settings, arrived.meta, arrived.known
    )


def _complete(
    session: Tx, runtime: Runtime, arrived: Arrived, found: Identified, name: RepositoryKey
) -> tuple[UploadAnswer, KeptStanding | None]:
    """All that the upload changes, and the answer; what to keep once this is committed."""
    place, repository = arrived.place, arrived.repository
    access.recheck(session, arrived.actor, arrived.now)
    test_cases.name_repository(session, place, name)
    evidence.lock(session, place.repository_id)
    home = test_records.home_of(session, repository, arrived.now)
    bench = Bench(session, runtime, home)
    classified = _classified(session, home, arrived)
    entered = evidence.numbers_of(session, place.repository_id, found.new)
    numbers = {**found.numbers, **entered}
    first = _first(session, arrived, classified)
    upload, standing = first, None
    by_no = {numbers[each].no: result for each, result in found.results.items()}
    if upload is None:
        draft = _upload(arrived, found, classified)
        upload, standing = upload_evidence.count(bench, draft, by_no, arrived.meta.codeowners)
    if isinstance(arrived.known, Collected):
        artifacts.note(session, place, arrived.known.artifact_id, upload.id, arrived.now)
    failing = upload_answers.failing_in(found.results, numbers)
    said = upload_answers.answered(
        session, home, failing, arrived.meta.variant, classified.started_at
    )
    address = page_addresses.upload(runtime.options, repository.ref, upload.id)
    answer = upload_answers.answer_of(upload, said, arrived.counts, address)
    if first is not None:
        return replace(answer, duplicate=True), None
    shielded = {each.test_id for each in said if each.quarantined}
    quarantined = {numbers[each].no for each in shielded}
    upload_evidence.record(bench, upload, by_no, quarantined, arrived.meta.source_root)
    _tell(bench, upload, answer)
    if classified.kind is UploadClass.QUEUE:
        upload_news.ask_again(session, runtime, repository, arrived.meta.sha)
    return answer, None if standing is None else judging.kept_of(bench, standing)


def _first(session: Tx, arrived: Arrived, classified: Classified) -> Upload | None:
    """The upload that this one repeats (FLAKY.md 2.4).

    What nobody trusts makes nothing a duplicate that is trusted: a fork could else hide a
    failure by sending the same file before.
    """
    here, meta = arrived.repository.id, arrived.meta
    same = uploads.by_digest(session, here, digest_of(arrived))
    if same is not None or not isinstance(arrived.known, Collected) or meta.run_id is None:
        return same
    is_trusted = classified.kind is not UploadClass.UNTRUSTED
    holders = {
        file.sha256: upload
        for upload in uploads.of_run(session, here, meta.run_id, meta.run_attempt)
        if upload.is_eligible or not is_trusted
        for file in upload.files
    }
    wanted = sorted({each.sha256 for each in arrived.files} - {""})
    return holders[wanted[0]] if wanted and holders.keys() >= set(wanted) else None


def _upload(arrived: Arrived, found: Identified, classified: Classified) -> Upload:
    meta, files = arrived.meta, arrived.files
    ran = [each for each in found.results.values() if each.outcome is not Outcome.SKIPPED]
    failed = sum(1 for each in ran if each.outcome is Outcome.FAILED)
    return Upload(
        id=arrived.id,
        digest=digest_of(arrived),
        kind=classified.kind.value,
        code_id=classified.code_id,
        sha=meta.sha,
        job=meta.job,
        ran_at=arrived.ran_at,
        received_at=arrived.now,
        tree_sha=meta.tree_sha,
        branch=meta.branch,
        pr_number=meta.pr_number,
        prs=classified.prs,
        run_id=meta.run_id,
        run_attempt=meta.run_attempt,
        run_url=meta.run_url,
        variant=meta.variant,
        machine=meta.machine,
        command_exit_code=meta.command_exit_code,
        counts=asdict(arrived.counts),
        files=upload_answers.stored_files(files),
        warnings=_warnings(arrived, found, classified),
        is_eligible=classified.kind is not UploadClass.UNTRUSTED,
        is_mass=is_mass_failure(len(ran), failed),
        is_partial=any(each.report.status is not FileStatus.ACCEPTED for each in files),
    )


def _warnings(arrived: Arrived, found: Identified, classified: Classified) -> tuple[str, ...]:
    """What a reader should know, at most 100 sentences."""
    said = list(classified.warnings)
    if arrived.meta.ran_at is not None and arrived.ran_at != arrived.meta.ran_at:
        said.append(CLOCK_AHEAD)
    for each in arrived.files:
        if each.report.status is not FileStatus.ACCEPTED:
            said.append(f"{each.name} was {each.report.status.value}.")
        said += [f"{each.name}: {warned.text}" for warned in each.report.warnings]
    muddled = duplicates.duplicates_warned(found.results.values())
    if muddled is not None:
        said.append(muddled.text)
    return tuple(said[:WARNINGS_MAX])


def _tell(bench: Bench, upload: Upload, answer: UploadAnswer) -> None:
    repository = bench.home.repository
    told = UploadTold(
        organization=subscribers.organization_slug(bench.session, repository.org_id),
        repo=repository.ref,
        id=upload.id,
        sha=Sha(upload.sha),
        tests=answer.counts.tests,
        failed=answer.counts.failed,
        quarantined_failures=answer.quarantined_failures,
        html_url=answer.html_url or "",
    )
    message = upload_payloads.processed(told, bench.home.now)
    test_messages.tell(bench.session, bench.runtime, repository, message)


def _remembered(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, upload_id: str
) -> UploadAnswer:
    found = uploads.by_id(session, upload_id)
    if found is None or found.place.repository_id != repository.id:
        raise NotFound(f"There is no upload {upload_id}.", code="upload_not_found")
    home = test_records.home_of(session, repository, runtime.clock.now())
    attempts = uploads.attempts_of(session, upload_id)
    failing = upload_answers.remembered(session, home, attempts)
    address = page_addresses.upload(runtime.options, repository.ref, upload_id)
    counts = Counts(**found.upload.counts)
    return upload_answers.answer_of(found.upload, failing, counts, address)

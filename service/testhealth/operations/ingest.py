"""Take in an upload of test reports: check, classify, store, judge, answer.

Files are parsed before, away from the event loop. An upload is stored with all of its evidence in
one transaction, so readers see all of it or none. Its new tests are entered before, some at a time,
and stay unlisted until the upload is stored.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from service.accounts import access, page_addresses
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.errors import FieldError, Invalid, Malformed
from service.http.callers import Caller
from service.notifications.store import subscribers
from service.parsers import Stopped
from service.runtime import Runtime
from service.testhealth.detector import completeness
from service.testhealth.detector.completeness import Account
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.operations import (
    answers,
    checks,
    classify,
    collector,
    early_failures,
    findings,
    identify,
    judge,
    messages,
    noting,
    owning,
    parsing,
    records,
)
from service.testhealth.operations.answers import Failing
from service.testhealth.operations.classify import Classified, Collected, Doubts
from service.testhealth.operations.findings import Arrived, Findings, NamedOwners
from service.testhealth.operations.identify import Identified, Lookup
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.operations.messages import UploadSummary
from service.testhealth.operations.parsing import SentFile
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.operations.upload_values import UploadAnswer, UploadMeta
from service.testhealth.reports import results
from service.testhealth.reports.duplicates import ResultsByTest
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.reading import FAILURES_MAX
from service.testhealth.reports.results import Counts, FileStatus, Outcome, ReportFile
from service.testhealth.reports.uploads import FAILED, PASSED, UploadClass
from service.testhealth.store import artifacts, case_times, code_owners, days, sets, uploads
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases as test_cases
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.uploads import Upload
from service.vocabulary import SYSTEM, Actor, Sha

TESTS_MAX = 500_000
"""Tests of one upload."""

AGE_MAX = timedelta(days=45)
AHEAD_MAX = timedelta(minutes=5)
"""A client's clock may be so far ahead."""


async def ingest_files(
    runtime: Runtime,
    caller: Caller,
    repository: RepositoryRecord,
    meta: UploadMeta,
    sent: Sequence[SentFile],
) -> UploadAnswer:
    """Read files as they were sent and take them in. Raises what reading and taking in raise."""
    with collector.put_off():
        # No variable holds the results: the collector would look through them afterwards.
        return await ingest_upload(
            runtime,
            caller,
            repository,
            meta,
            await parsing.read_files(runtime, repository, meta, sent),
        )


async def ingest_upload(
    runtime: Runtime,
    caller: Caller,
    repository: RepositoryRecord,
    meta: UploadMeta,
    files: tuple[ReportFile, ...],
) -> UploadAnswer:
    """Store an upload's evidence, judge its tests, and answer; a dry run stores nothing.

    One without a file only says how runners ended, and is no evidence.

    The same content for the same run is answered as a duplicate and counted once. Raises
    Invalid(no_results, limit_reached), Malformed(invalid_field), Unauthenticated.
    """
    now = runtime.clock.now()
    _refuse_useless(files)
    meta, doubts = await classify.checked(runtime, caller, repository, meta)
    arrived = await _arrived(runtime, (caller.actor, now), repository, (meta, doubts), files)
    if meta.dry_run:
        return await runtime.store.read(_tried, runtime, arrived)
    return await _enter(runtime, arrived)


async def ingest_artifact(
    runtime: Runtime,
    repository: RepositoryRecord,
    meta: UploadMeta,
    files: tuple[ReportFile, ...],
    source: Collected,
) -> UploadAnswer:
    """Take in an artifact that we fetched ourselves, so that no client makes claims about it.

    Also a duplicate if uploads of the same attempt of the same CI run have all its files.
    Raises Invalid(no_results, limit_reached), Malformed(invalid_field).
    """
    _refuse_useless(files)
    sender = (SYSTEM, runtime.clock.now())
    return await _enter(runtime, await _arrived(runtime, sender, repository, (meta, source), files))


async def _arrived(
    runtime: Runtime,
    sender: tuple[Actor, datetime],
    repository: RepositoryRecord,
    about: tuple[UploadMeta, Doubts | Collected],
    files: tuple[ReportFile, ...],
) -> Arrived:
    (actor, now), (meta, source) = sender, about
    return Arrived(
        id=runtime.ids.uuid(),
        actor=actor,
        repository=repository,
        meta=meta,
        files=files,
        ran_at=_ran_at(meta, now),
        now=now,
        source=source,
        counts=await asyncio.to_thread(_counted, files),
        owners=await _named_owners(runtime, repository, meta.codeowners, files),
    )


async def _named_owners(
    runtime: Runtime,
    repository: RepositoryRecord,
    codeowners: str | None,
    files: tuple[ReportFile, ...],
) -> NamedOwners | None:
    """Return the owners by the CODEOWNERS file of an upload. Raises Overloaded."""
    if codeowners is None:
        return None
    paths = await asyncio.to_thread(_paths_in, files)
    try:
        return NamedOwners(await owning.owners_of(runtime, repository.ref, codeowners, paths))
    except Stopped as stopped:
        trouble = f"codeowners_not_read: Reading CODEOWNERS {stopped.why}; tests keep their owners."
        return NamedOwners({}, trouble)


def _paths_in(files: tuple[ReportFile, ...]) -> frozenset[str]:
    return frozenset(case.file for each in files for case in each.cases)


async def _enter(runtime: Runtime, arrived: Arrived) -> UploadAnswer:
    """Enter the new tests of an upload, store it, note its tests, and answer."""
    queues = runtime.links.of(QueueLinks)
    with collector.put_off():
        here, answer, kept = arrived.repository.id, None, None
        # Uploads and tests may be removed meanwhile: then all is looked up again.
        while answer is None:
            ready = await _made_ready(runtime, arrived)
            answer, kept = await judge.run_serialized(
                runtime, here, _complete, runtime, arrived, ready
            )
    if not answer.duplicate:
        if ready.is_large:
            await noting.finish(runtime, arrived.id)
        if answer.trusted:
            later = ready.owners[noting.TESTS_AT_ONCE :]
            await noting.assign_owners(
                runtime, arrived.place, arrived.ran_at, later, ready.results.owners
            )
    if kept is not None:
        await queues.note_sending(runtime, arrived.repository.id)
        outbox.wake(runtime.wakeups)
    if isinstance(arrived.source, Doubts):
        about = (arrived.meta, arrived.source.check_run)
        cases = (case for each in arrived.files for case in each.cases)
        await early_failures.compare(runtime, arrived.repository, about, cases)
    is_of_many = (arrived.meta.session_uploads or 1) > 1
    answer = await queues.check_answer(runtime, arrived.repository, answer, is_of_many=is_of_many)
    if answer.quarantined_failures and answer.verdict.exit_code == 0:
        # An upload that contradicts this answer may have arrived meanwhile.
        sha = arrived.meta.sha
        await runtime.store.run(queues.explain_again, runtime, arrived.repository, sha)
        outbox.wake(runtime.wakeups)
    return answer


async def _made_ready(runtime: Runtime, arrived: Arrived) -> "_Ready":
    """Enter new tests, and prepare all that is stored of the upload."""
    tests, name = await runtime.store.read(_identified, arrived)
    variant, lookup, last_no = arrived.meta.variant, _lookup(arrived), tests.last_no
    new = await asyncio.to_thread(tests.new)
    aliases = await asyncio.to_thread(identify.aliases_of, new, tests, name, variant)
    numbers = dict(tests.existing.by_id)
    for chunk in identify.chunks(new):
        under = (name, last_no)
        entered, last_no = await runtime.store.run(identify.enter, lookup, under, chunk, aliases)
        numbers.update(entered)
    ready = await asyncio.to_thread(_ready, arrived, tests, numbers, name)
    if ready.results.owners:
        changed = await runtime.store.read(
            noting.changed_owners, arrived.place, ready.results.owners
        )
        apart = ready.results.apart
        ready = replace(ready, owners=sorted(changed, key=lambda no: (no not in apart, no)))
    return ready


@dataclass(frozen=True, slots=True)
class _Ready:
    """The results of an upload by the numbers of tests, and its repository's present name.

    `owners` are tests that get other owners, those apart first.
    """

    name: RepositoryKey
    tests: Identified
    has_new: bool
    failing: Sequence[Failing]
    results: Findings
    owners: Sequence[int] = ()

    @property
    def is_large(self) -> bool:
        """Return whether the upload is noted after it is stored, as other writers would wait."""
        return self.results.changes > noting.TESTS_AT_ONCE


def _ready(
    arrived: Arrived, tests: Identified, numbers: Mapping[str, int], name: RepositoryKey
) -> _Ready:
    by_no = ResultsByTest(
        {numbers[each]: case for each, case in tests.results.passed.items()},
        {numbers[each]: case for each, case in tests.results.others.items()},
    )
    existing = tests.existing
    new = numbers.keys() - existing.by_id.keys() if len(numbers) > len(existing.by_id) else ()
    unrun = existing.unrun.union(numbers[each] for each in new)
    results = findings.findings_of(arrived, by_no, unrun, existing.unpassed)
    return _Ready(name, tests, bool(new), _failing(tests, numbers), results)


def _failing(tests: Identified, numbers: Mapping[str, int]) -> list[Failing]:
    return [(each, numbers.get(each), case) for each, case in tests.failing.items()]


async def upload_answer(
    runtime: Runtime, repository: RepositoryRecord, upload_id: str
) -> UploadAnswer:
    """Return the answer to an earlier upload. Raises NotFound(upload_not_found)."""
    answer = await runtime.store.read(_remembered, runtime, repository, upload_id)
    return await runtime.links.of(QueueLinks).check_answer(runtime, repository, answer)


def _refuse_useless(files: tuple[ReportFile, ...]) -> None:
    described = [
        {
            "name": each.name,
            "format": each.format,
            "status": each.status.value,
            "tests": len(each.cases),
            "error": asdict(each.fault) if each.fault else None,
        }
        for each in files
    ]
    if files and all(each.status is FileStatus.REFUSED for each in files):
        raise Invalid(
            "No file could be read as a report of tests.",
            code="no_results",
            members={"files": described},
        )


def _counted(files: tuple[ReportFile, ...]) -> Counts:
    """Return the figures of files that are not too large. Raises Invalid(limit_reached)."""
    check_size(files)
    return results.counts_of(files)


def check_size(files: Iterable[ReportFile]) -> None:
    """Raise Invalid(limit_reached) when the files hold more than an upload may."""
    read = [each.cases for each in files]
    cases = sum(map(len, read))
    if cases > TESTS_MAX:
        raise Invalid(
            f"The upload has {cases:,} tests, more than {TESTS_MAX:,}: send its files in several.",
            code="limit_reached",
        )
    attempts = (attempt for each in read for case in each for attempt in case.explicit_attempts)
    failed = sum(1 for attempt in attempts if attempt.outcome is Outcome.FAILED)
    if failed > FAILURES_MAX:
        raise Invalid(
            f"The upload has {failed:,} failed attempts, more than {FAILURES_MAX:,}: send its files"
            " in several.",
            code="limit_reached",
        )


def _ran_at(meta: UploadMeta, now: datetime) -> datetime:
    """Return the time of all its attempts; a time in the future is replaced by the present."""
    if meta.ran_at is None or meta.ran_at > now + AHEAD_MAX:
        return now
    if meta.ran_at < now - AGE_MAX:
        message = f"must not be older than {AGE_MAX.days} days"
        fault = FieldError("/ran_at", "range", message)
        raise Malformed(f"/ran_at {message}.", errors=(fault,))
    return meta.ran_at


def _identified(session: Tx, arrived: Arrived) -> tuple[Identified, RepositoryKey]:
    """Return the upload's tests, and the name under which new ones are entered."""
    repository = arrived.repository
    slug = subscribers.organization_slug(session, repository.org_id)
    present = checks.key_of(slug, repository.ref)
    names = checks.names_of(session, repository, present)
    cases = [case for each in arrived.files for case in each.cases]
    tests = identify.identified(session, _lookup(arrived), names, cases, arrived.meta.job)
    return tests, present


def _lookup(arrived: Arrived) -> Lookup:
    return Lookup(arrived.place, arrived.meta.variant, arrived.ran_at)


def _tried(session: Tx, runtime: Runtime, arrived: Arrived) -> UploadAnswer:
    """Return the answer that the upload would get."""
    tests, _ = _identified(session, arrived)
    context = records.context_of(session, runtime, arrived.repository, arrived.now)
    classified = _classified(session, runtime, context, arrived)
    failing = _failing(tests, tests.existing.by_id)
    said = answers.answered(session, context, failing, arrived.meta.variant, classified.started_at)
    kin = findings.kin_of(session, arrived.repository.id, arrived.meta)
    upload = findings.upload_of(arrived, tests, classified, kin)
    return answers.answer_of(upload, said, arrived.counts, None)


def _classified(
    session: Tx, runtime: Runtime, context: RepositoryContext, arrived: Arrived
) -> Classified:
    facts = classify.Facts(
        session, runtime.links.of(QueueLinks), arrived.repository, context.settings
    )
    return classify.classified(facts, arrived.meta, arrived.source)


def _complete(
    session: Tx, runtime: Runtime, arrived: Arrived, ready: _Ready
) -> tuple[UploadAnswer | None, CachedIndex | None]:
    """Store all that the upload changes; return the answer, None if `ready` is stale."""
    place, repository = arrived.place, arrived.repository
    access.recheck(session, arrived.actor, arrived.now)
    test_cases.name_repository(session, place, ready.name)
    if test_cases.lock(session, place.repository_id).removal != ready.tests.removal:
        return None, None
    context = records.context_of(session, runtime, repository, arrived.now)
    tests = RepositoryTests(session, runtime, context)
    classified = _classified(session, runtime, context, arrived)
    kin = findings.kin_of(session, place.repository_id, arrived.meta)
    first = findings.first_of(session, arrived, classified, kin)
    upload, index = first, None
    if upload is None:
        draft = findings.upload_of(arrived, ready.tests, classified, kin)
        upload, index = _evidence_of(tests, draft, ready)
    if isinstance(arrived.source, Collected):
        artifacts.note(session, place, arrived.source.artifact_id, upload.id, arrived.now)
    said = answers.answered(
        session, context, ready.failing, arrived.meta.variant, classified.started_at
    )
    address = page_addresses.upload(runtime.options, repository.ref, upload.id)
    answer = answers.answer_of(upload, said, arrived.counts, address)
    if first is not None:
        _note_proof(session, first, findings.account_of(arrived))
        return replace(answer, duplicate=True), None
    _record(tests, upload, ready, said.quarantined)
    _announce(tests, upload, answer)
    if classified.kind is UploadClass.QUEUE:
        explain_again = runtime.links.of(QueueLinks).explain_again
        explain_again(session, runtime, repository, arrived.meta.sha)
    return answer, None if index is None else judge.kept_of(tests, index)


def _note_proof(session: Tx, first: Upload, account: Account) -> None:
    """Note the job that has sent what was collected or sent with a weaker proof before."""
    if completeness.is_enough(first.account.proof, account.proof):
        return
    proved = replace(first.account, proof=account.proof, check_run=account.check_run)
    uploads.note_account(session, first.id, proved)


def _evidence_of(
    tests: RepositoryTests, draft: Upload, ready: _Ready
) -> tuple[Upload, EvidenceIndex | None]:
    """Store the sets of the upload and judge by it; return the upload with its sets.

    An untrusted upload is no evidence.
    """
    session, place, results = tests.session, tests.place, ready.results
    passed = sets.put_set(session, place, results.passed, draft.ran_at)
    skipped = sets.put_set(session, place, results.skipped, draft.ran_at)
    for each in (results.passed, results.skipped):
        if each is not None:
            tests.sets.keep(each)
    upload = replace(draft, passed=passed, skipped=skipped)
    won = {no for no, letters in results.letters.items() if PASSED in letters}
    noting.note_runs(session, place, upload, (won, results.apart.keys() - won))
    if not ready.is_large:
        noting.note_runs(session, place, upload, (results.new_passed, results.new_skipped))
    if not upload.is_eligible:
        test_cases.note_change(session, place.repository_id)
        return upload, None
    failed = [no for no, letters in results.letters.items() if FAILED in letters]
    test_cases.note_failed(session, place.repository_id, failed, upload.ran_at)
    _look_after_owners(tests, has_new=ready.has_new)
    owners = {no: results.owners[no] for no in ready.owners[: noting.TESTS_AT_ONCE]}
    noting.assign_owners_within(tests.session, tests.sets.sets, place, upload.ran_at, owners)
    days.open_day(session, place, upload.ran_at, tests.context.now)
    letters = {no: each for no, each in results.letters.items() if each}
    muddled = frozenset(no for no in letters if not results.apart[no].is_comparable)
    evidence = uploads.evidence_of(upload, letters, muddled, results.passed_size)
    return upload, judge.judge(tests, [evidence])


def _look_after_owners(tests: RepositoryTests, *, has_new: bool) -> None:
    """Have the repository's own CODEOWNERS file read; new tests get their owners by it soon.

    The next sweep assigns them: the file may be long, and the tests may be many.
    """
    session, place = tests.session, tests.place
    path = code_owners.path_of(session, place.repository_id)
    if path is None:
        code_owners.begin(session, place, tests.context.now)
    elif path and has_new:
        code_owners.look_sooner(session, place.repository_id, tests.context.now)


def _record(tests: RepositoryTests, upload: Upload, ready: _Ready, quarantined: Set[int]) -> None:
    """Store the upload with its attempts, and note their failures unless it is large."""
    session, place = tests.session, tests.place
    attempts = [
        replace(
            each,
            is_eligible=upload.is_eligible,
            is_quarantined=each.no in quarantined and each.outcome is Outcome.FAILED,
        )
        if not upload.is_eligible or each.no in quarantined
        else each
        for each in ready.results.attempts
    ]
    if upload.is_eligible:
        blamed = {no for _, no, _ in ready.failing if no is not None} - quarantined
        attempts = _with_costs(attempts, blamed, upload.counts["test_time_ms"])
    uploads.record(session, place, upload, attempts, is_noted=not ready.is_large)
    if upload.is_eligible:
        case_times.put(session, place, upload, ready.results.times)
    if not ready.is_large:
        noting.note_failures(session, place, upload, attempts, tests.context.now)


def _with_costs(
    attempts: Sequence[StoredAttempt], blamed: Set[int], test_time_ms: int
) -> list[StoredAttempt]:
    """Return the attempts of one upload with what each cost (docs/design/detector.md 14).

    `blamed` are the tests for which the upload failed, by number. They share the time of all its
    tests equally; the first failed attempt of each has the share. A failed attempt of another
    test, which passed on a retry or was excused, costs its own time.
    """
    share = test_time_ms // len(blamed) if blamed else 0
    charged: set[int] = set()
    priced: list[StoredAttempt] = []
    for each in attempts:
        cost = 0
        if each.outcome is Outcome.FAILED and each.no not in blamed:
            cost = each.duration_ms or 0
        elif each.outcome is Outcome.FAILED and each.no not in charged:
            charged.add(each.no)
            cost = share
        priced.append(replace(each, cost_ms=cost) if cost else each)
    return priced


def _announce(tests: RepositoryTests, upload: Upload, answer: UploadAnswer) -> None:
    repository = tests.context.repository
    summary = UploadSummary(
        organization=subscribers.organization_slug(tests.session, repository.org_id),
        repo=repository.ref,
        id=upload.id,
        sha=Sha(upload.sha),
        tests=answer.counts.tests,
        failed=answer.counts.failed,
        quarantined_failures=answer.quarantined_failures,
        html_url=answer.html_url or "",
    )
    message = messages.processed(summary, tests.context.now)
    messages.tell(tests.session, tests.runtime, repository, message)
    if upload.kind == UploadClass.QUEUE.value:
        note_late_failures = tests.runtime.links.of(QueueLinks).note_late_failures
        note_late_failures(tests.session, tests.runtime, repository, upload, summary)


def _remembered(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, upload_id: str
) -> UploadAnswer:
    upload = records.find_upload(session, repository, upload_id)
    context = records.context_of(session, runtime, repository, runtime.clock.now())
    attempts = test_attempts.attempts_of(session, upload_id)
    return answers.answer_again(session, runtime, context, upload, attempts)

"""Uploads: stored, found again, read as evidence, removed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from service.database import bulk
from service.database.codec import JsonCodec, RowCodec
from service.testhealth.detector.completeness import Account
from service.testhealth.reports.results import Fault, FileStatus, Format, Outcome
from service.testhealth.reports.uploads import LETTERS, EvidenceUpload, UploadClass
from service.testhealth.runner_ends import RunnerEnd
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import bitmaps
from service.testhealth.store.attempts import PRS, StoredAttempt, attempts
from service.testhealth.store.cases import ASKED_AT_ONCE, Place, keys_of
from service.testhealth.store.sets import StoredSets
from service.testhealth.store.tables_costs import UploadTimesRow
from service.testhealth.store.tables_evidence import UploadRow
from service.vocabulary import Sha


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The result of reading one file of an upload; `error` None: it was accepted.

    `sha256` is the hex digest of its bytes without compression, empty if they were never read.
    """

    name: str
    format: Format | None
    status: FileStatus
    tests: int
    error: str | None = None
    line: int | None = None
    column: int | None = None
    sha256: str = ""

    @property
    def fault(self) -> Fault | None:
        """Why reading stopped, and where."""
        return None if self.error is None else Fault(self.error, self.line, self.column)


NO_ACCOUNT = Account()


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload as it is stored (docs/design/reports.md); `passed`, `skipped` are keys of sets.

    `refusal` is the reason for which none of it counts; only a complete upload has none.
    `position` is how many commits the history of `sha` has, None if unknown.
    """

    id: str
    digest: str
    kind: str
    code_id: str
    sha: str
    job: str
    ran_at: datetime
    received_at: datetime
    tree_sha: str | None = None
    branch: str | None = None
    pr_number: int | None = None
    prs: tuple[int, ...] = ()
    run_id: str | None = None
    run_attempt: int = 1
    run_url: str | None = None
    variant: str = ""
    machine: str | None = None
    command_exit_code: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    files: tuple[StoredFile, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str | None = None
    is_complete: bool = True
    is_eligible: bool = True
    is_mass: bool = False
    is_partial: bool = False
    passed: str | None = None
    skipped: str | None = None
    account: Account = NO_ACCOUNT
    position: int | None = None
    runner_ends: tuple[RunnerEnd, ...] = ()

    @property
    def failures(self) -> int:
        """Return how many of its tests, suites and packages failed."""
        return self.counts.get("failed", 0) + self.counts.get("suite_failures", 0)


class StoredUpload(NamedTuple):
    """An upload and its repository."""

    place: Place
    upload: Upload


class Contents(NamedTuple):
    """The time when an upload ran, and the keys of its sets."""

    ran_at: datetime
    passed: str | None
    skipped: str | None


uploads = UploadRow.__table__
times = UploadTimesRow.__table__

UPLOAD = RowCodec(Upload, uploads, keys={"org_id", "repository_id", "is_noted", "failed"})
ACCOUNT: JsonCodec[Account] = JsonCodec(Account)


def record(
    session: Connection,
    place: Place,
    upload: Upload,
    given: Sequence[StoredAttempt],
    *,
    is_noted: bool = True,
) -> None:
    """Store an upload with its attempts; without `is_noted` its tests are noted later."""
    failed = sorted(each.no for each in given if each.outcome is Outcome.FAILED)
    more = {"failed": bitmaps.packed_numbers(failed), "is_noted": is_noted}
    session.execute(insert(uploads), UPLOAD.row(upload) | keys_of(place) | more)
    test_attempts.add(session, place, given)


def remove(session: Connection, upload_id: str) -> None:
    """Delete an upload, its attempts and times; safe to repeat."""
    session.execute(delete(attempts).where(attempts.c.upload == upload_id))
    session.execute(delete(times).where(times.c.upload == upload_id))
    session.execute(delete(uploads).where(uploads.c.id == upload_id))


def note_account(session: Connection, upload_id: str, account: Account) -> None:
    """Change what an upload says about its own completeness."""
    statement = update(uploads).where(uploads.c.id == upload_id)
    session.execute(statement.values(account=ACCOUNT.encode(account)))


def unnoted(session: Connection) -> tuple[str, ...]:
    """Return the uploads of which tests are left to be noted."""
    statement = select(uploads.c.id).where(uploads.c.is_noted.is_(False)).order_by(uploads.c.id)
    return tuple(session.execute(statement).scalars())


def note_done(session: Connection, upload_id: str) -> None:
    """Note that all tests of an upload are noted."""
    session.execute(update(uploads).where(uploads.c.id == upload_id).values(is_noted=True))


def newest(session: Connection, repository_id: int, at_most: int) -> tuple[Upload, ...]:
    """Return the uploads that came last, the newest first, refused ones too."""
    columns = select(*UPLOAD.columns).where(uploads.c.repository_id == repository_id)
    ordered = columns.order_by(uploads.c.received_at.desc(), uploads.c.id).limit(at_most)
    return tuple(map(UPLOAD.value, session.execute(ordered)))


def newest_id(session: Connection, repository_id: int) -> str:
    """Return the id of the upload that came last, refused or not; empty: there is none."""
    of = select(uploads.c.id).where(uploads.c.repository_id == repository_id)
    ordered = of.order_by(uploads.c.received_at.desc(), uploads.c.id).limit(1)
    return session.execute(ordered).scalar() or ""


def by_digest(session: Connection, repository_id: int, digest: str) -> Upload | None:
    """Return the upload with this content, None if there is none."""
    stored = _stored(session, repository_id, uploads.c.digest == digest)
    return stored[0] if stored else None


def by_id(session: Connection, upload_id: str) -> StoredUpload | None:
    """Return an upload of any repository."""
    columns = (uploads.c.org_id, uploads.c.repository_id, *UPLOAD.columns)
    row = session.execute(select(*columns).where(uploads.c.id == upload_id)).first()
    return None if row is None else StoredUpload(Place(row[0], row[1]), UPLOAD.value(row[2:]))


def of_run(
    session: Connection, repository_id: int, run_id: str, attempt: int
) -> tuple[Upload, ...]:
    """Return the complete uploads of an attempt of a CI run, of all jobs, in any order."""
    is_of_run = (uploads.c.run_id == run_id, uploads.c.run_attempt == attempt)
    return _stored(session, repository_id, *is_of_run, uploads.c.is_complete.is_(True))


def count_of_job(session: Connection, repository_id: int, job: str, at_most: int) -> int:
    """Count the uploads of a job that are evidence, up to `at_most`."""
    kinds = [kind.value for kind in UploadClass if kind is not UploadClass.UNTRUSTED]
    some = (
        select(uploads.c.id)
        .where(uploads.c.repository_id == repository_id, uploads.c.kind.in_(kinds))
        .where(uploads.c.job == job, uploads.c.is_eligible.is_(True))
        .limit(at_most)
    )
    return session.execute(select(func.count()).select_from(some.subquery())).scalar_one()


def of_sha(session: Connection, repository_id: int, sha: str) -> tuple[Upload, ...]:
    """Return the complete uploads of a commit, of all jobs, in any order."""
    return _stored(session, repository_id, uploads.c.sha == sha, uploads.c.is_complete.is_(True))


def position_of(session: Connection, repository_id: int, sha: Sha) -> int | None:
    """Return how many commits the history of a commit has, None if no upload says so."""
    statement = (
        select(uploads.c.position)
        .where(uploads.c.repository_id == repository_id, uploads.c.sha == sha)
        .where(uploads.c.position.is_not(None))
        .limit(1)
    )
    return session.execute(statement).scalar()


def of_test_run(
    session: Connection, repository_id: int, sha: Sha, since: datetime
) -> tuple[Upload, ...]:
    """Return eligible uploads of a queue's test run received since it began, oldest first."""
    return _stored(
        session,
        repository_id,
        uploads.c.is_eligible.is_(True),
        uploads.c.received_at >= since,
        uploads.c.kind == UploadClass.QUEUE.value,
        uploads.c.sha == sha,
        order=(uploads.c.received_at, uploads.c.id),
    )


def of_heads(
    session: Connection, repository_id: int, heads: Iterable[Sha], since: datetime
) -> tuple[Upload, ...]:
    """Return eligible uploads of pull requests on these heads, oldest first."""
    return _stored(
        session,
        repository_id,
        uploads.c.is_eligible.is_(True),
        uploads.c.ran_at >= since,
        uploads.c.kind == UploadClass.PR.value,
        uploads.c.sha.in_(list(heads)),
        order=(uploads.c.ran_at, uploads.c.digest),
    )


def _stored(
    session: Connection,
    repository_id: int,
    *conditions: ColumnElement[bool],
    order: Sequence[ColumnElement[object]] = (),
) -> tuple[Upload, ...]:
    statement = select(*UPLOAD.columns).where(uploads.c.repository_id == repository_id, *conditions)
    return tuple(map(UPLOAD.value, session.execute(statement.order_by(*order))))


def prs_of(
    session: Connection, repository_id: int, digests: Iterable[str]
) -> dict[str, tuple[int, ...]]:
    """Return the digest of each upload → the pull requests that it tested."""
    prs_by_digest: dict[str, tuple[int, ...]] = {}
    for some in bulk.parts(sorted(set(digests)), ASKED_AT_ONCE):
        statement = select(uploads.c.digest, uploads.c.prs).where(
            uploads.c.repository_id == repository_id, uploads.c.digest.in_(some)
        )
        prs_by_digest |= {digest: PRS.decode(prs) for digest, prs in session.execute(statement)}
    return prs_by_digest


def eligible(session: Connection, repository_id: int, since: datetime) -> set[str]:
    """Return the ids of all uploads that are evidence."""
    return set(
        session.execute(select(uploads.c.id).where(*eligible_since(repository_id, since))).scalars()
    )


def contents(session: Connection, repository_id: int, since: datetime) -> list[Contents]:
    """Return the sets of all uploads that are evidence, oldest first."""
    columns = (uploads.c.ran_at, uploads.c.passed, uploads.c.skipped)
    statement = (
        select(*columns).where(*eligible_since(repository_id, since)).order_by(uploads.c.ran_at)
    )
    return [Contents(*row) for row in session.execute(statement)]


def eligible_since(repository_id: int, since: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions on uploads that are evidence and ran since a time."""
    return (
        uploads.c.repository_id == repository_id,
        uploads.c.is_eligible.is_(True),
        uploads.c.ran_at >= since,
    )


def evidence(session: Connection, sets: StoredSets, ids: Iterable[str]) -> Iterator[EvidenceUpload]:
    """Return these uploads as evidence, in any order."""
    for some in bulk.parts(sorted(ids), ASKED_AT_ONCE):
        letters, muddled = _letters(session, some)
        for row in session.execute(select(*UPLOAD.columns).where(uploads.c.id.in_(some))):
            upload = UPLOAD.value(row)
            size = 0 if upload.passed is None else sets.size(upload.passed)
            failed_letters = {no: word for no, word in letters[upload.id].items() if word}
            yield evidence_of(upload, failed_letters, frozenset(muddled[upload.id]), size)


def evidence_of(
    upload: Upload, letters: Mapping[int, str], muddled: frozenset[int], passed_size: int
) -> EvidenceUpload:
    """Return an upload as evidence; `letters` are those of its stored attempts without skips."""
    return EvidenceUpload(
        id=upload.id,
        digest=upload.digest,
        at=upload.ran_at,
        kind=UploadClass(upload.kind),
        job=upload.job,
        code=upload.code_id,
        sha=upload.sha,
        is_mass=upload.is_mass,
        passed=upload.passed,
        passed_size=passed_size,
        run=upload.run_id or "",
        run_attempt=upload.run_attempt,
        machine=upload.machine or "",
        branch=upload.branch or "",
        pr=upload.pr_number,
        attempts=letters,
        muddled=muddled,
        position=upload.position,
        begun_by=upload.account.begun_by,
    )


def _letters(
    session: Connection, ids: Sequence[str]
) -> tuple[Mapping[str, Mapping[int, str]], Mapping[str, set[int]]]:
    statement = (
        select(attempts.c.upload, attempts.c.no, attempts.c.outcome, attempts.c.is_comparable)
        .where(attempts.c.upload.in_(ids))
        .order_by(attempts.c.upload, attempts.c.no, attempts.c.n)
    )
    letters: defaultdict[str, defaultdict[int, str]] = defaultdict(lambda: defaultdict(str))
    muddled: defaultdict[str, set[int]] = defaultdict(set)
    for upload, no, outcome, is_comparable in session.execute(statement):
        letters[upload][no] += LETTERS[Outcome(outcome)]
        if not is_comparable:
            muddled[upload].add(no)
    return letters, muddled

"""Uploads as evidence: found again, read for judging, removed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from service.database.types import Utc
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import LETTERS, EvidenceUpload, UploadClass
from service.testhealth.store.cases import ASKED_AT_ONCE, Place
from service.testhealth.store.sets import StoredSets
from service.testhealth.store.uploads_rows import (
    ATTEMPT,
    UPLOAD,
    StoredAttempt,
    Upload,
    attempts,
    uploads,
)

_HERE: BindParameter[int] = bindparam("of_repository")
_IDS: BindParameter[str] = bindparam("of_ids", expanding=True)

SELECT_BY_DIGEST = select(*UPLOAD.columns).where(
    uploads.c.repository_id == _HERE, uploads.c.digest == bindparam("of_digest")
)
SELECT_BY_ID = select(uploads.c.org_id, uploads.c.repository_id, *UPLOAD.columns).where(
    uploads.c.id == bindparam("of_id")
)
SELECT_OF_RUN = select(*UPLOAD.columns).where(
    uploads.c.repository_id == _HERE,
    uploads.c.run_id == bindparam("of_run"),
    uploads.c.run_attempt == bindparam("of_attempt"),
    uploads.c.is_complete.is_(True),
)
SELECT_OF_SHA = select(*UPLOAD.columns).where(
    uploads.c.repository_id == _HERE,
    uploads.c.sha == bindparam("of_sha"),
    uploads.c.is_complete.is_(True),
)
SELECT_ELIGIBLE = select(uploads.c.id).where(
    uploads.c.repository_id == _HERE,
    uploads.c.is_eligible.is_(True),
    uploads.c.ran_at >= bindparam("since", type_=Utc),
)
SELECT_EVIDENCE = select(*UPLOAD.columns).where(uploads.c.id.in_(_IDS))
SELECT_LETTERS = (
    select(attempts.c.upload, attempts.c.no, attempts.c.outcome, attempts.c.is_comparable)
    .where(attempts.c.upload.in_(_IDS))
    .order_by(attempts.c.upload, attempts.c.no, attempts.c.n)
)
SELECT_CONTENTS = select(uploads.c.id, uploads.c.ran_at, uploads.c.passed, uploads.c.skipped).where(
    uploads.c.id.in_(_IDS)
)
SELECT_ATTEMPTS = (
    select(*ATTEMPT.columns)
    .where(attempts.c.upload == bindparam("of_id"))
    .order_by(attempts.c.no, attempts.c.n)
)
SELECT_UNNOTED = select(uploads.c.id).where(uploads.c.is_noted.is_(False)).order_by(uploads.c.id)
NOTE_DONE = update(uploads).where(uploads.c.id == bindparam("of_id")).values(is_noted=True)


class FoundUpload(NamedTuple):
    """An upload, and whose it is."""

    place: Place
    upload: Upload


class Contents(NamedTuple):
    """When an upload ran, and the keys of its sets."""

    id: str
    ran_at: datetime
    passed: str | None
    skipped: str | None


def by_digest(session: Connection, repository_id: int, digest: str) -> Upload | None:
    """The upload of this content, if it was ever taken in."""
    told = {"of_repository": repository_id, "of_digest": digest}
    row = session.execute(SELECT_BY_DIGEST, told).first()
    return None if row is None else UPLOAD.value(row)


def by_id(session: Connection, upload_id: str) -> FoundUpload | None:
    """An upload of any repository."""
    row = session.execute(SELECT_BY_ID, {"of_id": upload_id}).first()
    return None if row is None else FoundUpload(Place(row[0], row[1]), UPLOAD.value(row[2:]))


def of_run(
    session: Connection, repository_id: int, run_id: str, attempt: int
) -> tuple[Upload, ...]:
    """The complete uploads of an attempt of a CI run, whatever their jobs, in no order."""
    told = {"of_repository": repository_id, "of_run": run_id, "of_attempt": attempt}
    return tuple(UPLOAD.value(row) for row in session.execute(SELECT_OF_RUN, told))


def of_sha(session: Connection, repository_id: int, sha: str) -> tuple[Upload, ...]:
    """The complete uploads of a commit, whatever their jobs, in no order."""
    told = {"of_repository": repository_id, "of_sha": sha}
    return tuple(UPLOAD.value(row) for row in session.execute(SELECT_OF_SHA, told))


def attempts_of(session: Connection, upload_id: str) -> tuple[StoredAttempt, ...]:
    """Its stored attempts, by test and in order."""
    found = session.execute(SELECT_ATTEMPTS, {"of_id": upload_id})
    return tuple(ATTEMPT.value(row) for row in found)


def unnoted(session: Connection) -> tuple[str, ...]:
    """Return the uploads of which something is left to be noted."""
    return tuple(session.execute(SELECT_UNNOTED).scalars())


def note_done(session: Connection, upload_id: str) -> None:
    """Note that all of an upload is noted."""
    session.execute(NOTE_DONE, {"of_id": upload_id})


def eligible(session: Connection, repository_id: int, since: datetime) -> set[str]:
    """The ids of all uploads that are evidence."""
    told = {"of_repository": repository_id, "since": since}
    return set(session.execute(SELECT_ELIGIBLE, told).scalars())


def evidence(session: Connection, sets: StoredSets, ids: Iterable[str]) -> Iterator[EvidenceUpload]:
    """These uploads as evidence, in no order."""
    for some in _parts(sorted(ids), ASKED_AT_ONCE):
        letters, muddled = _letters(session, some)
        for row in session.execute(SELECT_EVIDENCE, {"of_ids": some}):
            upload = UPLOAD.value(row)
            size = 0 if upload.passed is None else sets.size(upload.passed)
            told = {no: word for no, word in letters[upload.id].items() if word}
            yield evidence_of(upload, told, frozenset(muddled[upload.id]), size)


def evidence_of(
    upload: Upload, letters: Mapping[int, str], muddled: frozenset[int], passed_size: int
) -> EvidenceUpload:
    """An upload as evidence; `letters` are those of its stored attempts, skips left out."""
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
    )


def _letters(
    session: Connection, ids: list[str]
) -> tuple[Mapping[str, Mapping[int, str]], Mapping[str, set[int]]]:
    letters: defaultdict[str, defaultdict[int, str]] = defaultdict(lambda: defaultdict(str))
    muddled: defaultdict[str, set[int]] = defaultdict(set)
    for upload, no, outcome, is_comparable in session.execute(SELECT_LETTERS, {"of_ids": ids}):
        letters[upload][no] += LETTERS[Outcome(outcome)]
        if not is_comparable:
            muddled[upload].add(no)
    return letters, muddled


def contents(session: Connection, ids: list[str]) -> Iterator[Contents]:
    """What these uploads hold beside attempts, in no order."""
    for some in _parts(ids, ASKED_AT_ONCE):
        for row in session.execute(SELECT_CONTENTS, {"of_ids": some}):
            yield Contents(*row)


def remove(session: Connection, upload_id: str) -> None:
    """Take an upload and its attempts out; absent is done."""
    session.execute(delete(attempts).where(attempts.c.upload == upload_id))
    session.execute(delete(uploads).where(uploads.c.id == upload_id))


def _parts(whole: list[str], size: int) -> Iterator[list[str]]:
    return (whole[first : first + size] for first in range(0, len(whole), size))

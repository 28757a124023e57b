"""What stored uploads say of a queue's test run, its pull requests and the tests that fail in it.

Only eligible uploads are asked.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from sqlalchemy import BindParameter, Connection, bindparam, exists, select

from service.database.codec import JsonCodec
from service.database.types import Utc
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store.cases import ASKED_AT_ONCE
from service.testhealth.store.uploads_rows import UPLOAD, Upload, attempts, uploads
from service.vocabulary import Sha

T = TypeVar("T")

PRS: JsonCodec[tuple[int, ...]] = JsonCodec(tuple[int, ...])

_HERE: BindParameter[int] = bindparam("of_repository")
_SINCE: BindParameter[datetime] = bindparam("since", type_=Utc)
_ELIGIBLE = (uploads.c.repository_id == _HERE, uploads.c.is_eligible.is_(True))

SELECT_OF_RUN = (
    select(*UPLOAD.columns)
    .where(
        *_ELIGIBLE,
        uploads.c.received_at >= _SINCE,
        uploads.c.kind == UploadClass.QUEUE.value,
        uploads.c.sha == bindparam("of_sha"),
    )
    .order_by(uploads.c.received_at, uploads.c.id)
)
SELECT_OF_HEADS = (
    select(*UPLOAD.columns)
    .where(
        *_ELIGIBLE,
        uploads.c.ran_at >= _SINCE,
        uploads.c.kind == UploadClass.PR.value,
        uploads.c.sha.in_(bindparam("of_shas", expanding=True)),
    )
    .order_by(uploads.c.ran_at, uploads.c.digest)
)
SELECT_PRS = select(uploads.c.digest, uploads.c.prs).where(
    uploads.c.repository_id == _HERE, uploads.c.digest.in_(bindparam("of_digests", expanding=True))
)
SELECT_KEYS = (
    select(attempts.c.no, attempts.c.failure, uploads.c.prs)
    .distinct()
    .join(uploads, uploads.c.id == attempts.c.upload)
    .where(
        attempts.c.repository_id == _HERE,
        attempts.c.no.in_(bindparam("of_numbers", expanding=True)),
        attempts.c.is_eligible.is_(True),
        attempts.c.failure.is_not(None),
        attempts.c.ran_at >= _SINCE,
        attempts.c.ran_at < bindparam("until", type_=Utc),
    )
)
SELECT_OUTCOMES = (
    select(attempts.c.upload, attempts.c.no, attempts.c.outcome)
    .where(
        attempts.c.upload.in_(bindparam("of_uploads", expanding=True)),
        attempts.c.no.in_(bindparam("of_numbers", expanding=True)),
    )
    .order_by(attempts.c.upload, attempts.c.no, attempts.c.n)
)
later = attempts.alias("later")
_TRIED_AGAIN = exists().where(
    later.c.upload == attempts.c.upload,
    later.c.no == attempts.c.no,
    later.c.n > attempts.c.n,
    later.c.outcome != Outcome.SKIPPED.value,
)
SELECT_FAILED = (
    select(attempts.c.no, attempts.c.is_quarantined, attempts.c.failure, attempts.c.upload)
    .where(
        attempts.c.upload.in_(bindparam("of_uploads", expanding=True)),
        attempts.c.outcome == Outcome.FAILED.value,
        ~_TRIED_AGAIN,
    )
    .order_by(attempts.c.no, attempts.c.upload)
    .limit(bindparam("at_most"))
)


class FailedIn(NamedTuple):
    """A test that failed in an upload, whether that counted as passed, and the failure's key."""

    no: int
    is_quarantined: bool
    failure: str | None
    upload: str


def of_run(
    session: Connection, repository_id: int, sha: Sha, since: datetime
) -> tuple[Upload, ...]:
    """Uploads of a test run's commit that came `since` it began, oldest first."""
    told = {"of_repository": repository_id, "of_sha": sha, "since": since}
    return tuple(UPLOAD.value(row) for row in session.execute(SELECT_OF_RUN, told))


def of_heads(
    session: Connection, repository_id: int, heads: Iterable[Sha], since: datetime
) -> tuple[Upload, ...]:
    """Uploads of pull requests on these heads, oldest first."""
    told = {"of_repository": repository_id, "of_shas": list(heads), "since": since}
    return tuple(UPLOAD.value(row) for row in session.execute(SELECT_OF_HEADS, told))


def prs_of(
    session: Connection, repository_id: int, digests: Iterable[str]
) -> dict[str, tuple[int, ...]]:
    """Digest of each upload → the pull requests that it tested."""
    found: dict[str, tuple[int, ...]] = {}
    for some in _parts(sorted(set(digests))):
        told = {"of_repository": repository_id, "of_digests": some}
        rows = session.execute(SELECT_PRS, told)
        found |= {digest: PRS.decode(prs) for digest, prs in rows}
    return found


def failure_keys(
    session: Connection, repository_id: int, nos: Iterable[int], span: tuple[datetime, datetime]
) -> Mapping[int, Mapping[str, frozenset[tuple[int, ...]]]]:
    """Number → the keys of the failures that a test had in `[since, until)`.

    Each with the sets of pull requests with which it was seen, an empty one for a branch.
    """
    found: defaultdict[int, defaultdict[str, set[tuple[int, ...]]]]
    found = defaultdict(lambda: defaultdict(set))
    since, until = span
    for some in _parts(sorted(set(nos))):
        told = {"of_repository": repository_id, "of_numbers": some, "since": since}
        for no, key, prs in session.execute(SELECT_KEYS, told | {"until": until}):
            found[no][key].add(PRS.decode(prs))
    return {no: {key: frozenset(seen) for key, seen in keys.items()} for no, keys in found.items()}


def outcomes(
    session: Connection, upload_ids: Sequence[str], nos: Iterable[int]
) -> Iterator[tuple[str, int, Outcome]]:
    """Upload, number and outcome of each stored attempt of these tests, a test's in order."""
    asked = sorted(set(nos))
    for here in _parts(upload_ids):
        for some in _parts(asked):
            told = {"of_uploads": here, "of_numbers": some}
            for upload, no, outcome in session.execute(SELECT_OUTCOMES, told):
                yield upload, no, Outcome(outcome)


def failed_in(session: Connection, upload_ids: Sequence[str], at_most: int) -> tuple[FailedIn, ...]:
    """The tests that failed in the end in these uploads, by number; one of several, several times.

    At most so many.
    """
    told = {"of_uploads": upload_ids, "at_most": at_most}
    return tuple(FailedIn(*row) for row in session.execute(SELECT_FAILED, told))


def _parts(whole: Sequence[T]) -> Iterator[Sequence[T]]:
    return (whole[first : first + ASKED_AT_ONCE] for first in range(0, len(whole), ASKED_AT_ONCE))

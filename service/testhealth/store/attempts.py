"""Attempts of tests, groups of equal failures, and the pull requests that tests failed for.

Storing failure groups and impacts is idempotent: the newest wins.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import JsonCodec, RowCodec
from service.database.types import Utc
from service.testhealth.detector import figures
from service.testhealth.reports.results import Outcome
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import ASKED_AT_ONCE, Place, in_parts, keys_of
from service.testhealth.store.days import Span
from service.testhealth.store.tables_evidence import (
    CaseAttemptRow,
    FailureGroupRow,
    ImpactRow,
    UploadRow,
)
from service.testhealth.store.tables_tests import CaseRow

EXPIRED_AT_ONCE = 1000

PRS: JsonCodec[tuple[int, ...]] = JsonCodec(tuple[int, ...])


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """The `n`th attempt of a test in an upload, counted from 1.

    `cost_ms` is the CI time that it lost.
    """

    upload: str
    no: int
    n: int
    ran_at: datetime
    outcome: Outcome
    failure: str | None = None
    headline: str | None = None
    stack: str | None = None
    duration_ms: int | None = None
    cost_ms: int = 0
    is_quarantined: bool = False
    is_eligible: bool = True
    is_comparable: bool = True


class Attempted(NamedTuple):
    """The times of a test's first and last stored attempt with an outcome."""

    no: int
    outcome: Outcome
    first: datetime
    last: datetime


attempts = CaseAttemptRow.__table__
groups = FailureGroupRow.__table__
impacts = ImpactRow.__table__
uploads = UploadRow.__table__
cases = CaseRow.__table__

ATTEMPT = RowCodec(StoredAttempt, attempts, keys={"org_id", "repository_id"})

_KEYS = ("org_id", "repository_id")
INSERT_ATTEMPTS = bulk.inserted(attempts, ATTEMPT.columns, [attempts.c[name] for name in _KEYS])
_group = upsert(groups)
PUT_GROUP = _group.on_conflict_do_update(
    index_elements=["repository_id", "key"],
    set_={name: _group.excluded[name] for name in ("headline", "sample", "last_at")},
    # Of two failures at once either may be shown; which one must not depend on their order.
    where=(groups.c.last_at < _group.excluded.last_at)
    | (
        (groups.c.last_at == _group.excluded.last_at)
        & (groups.c.headline < _group.excluded.headline)
    ),
)
_impact = bulk.inserted(
    impacts,
    [impacts.c.no, impacts.c.pr],
    [impacts.c[name] for name in ("last_at", "is_counted", *_KEYS)],
)
PUT_IMPACTS = _impact.on_conflict_do_update(
    index_elements=["repository_id", "no", "pr"],
    set_={name: _impact.excluded[name] for name in ("last_at", "is_counted")},
    where=impacts.c.last_at < _impact.excluded.last_at,
)
EXPIRE = (
    update(impacts)
    .where(
        impacts.c.repository_id == bindparam("of_repository"),
        impacts.c.no == bindparam("of_number"),
        impacts.c.pr == bindparam("of_pr"),
    )
    .values(is_counted=False)
)


# Attempts.


def add(session: Connection, place: Place, given: Sequence[StoredAttempt]) -> None:
    """Store attempts."""
    rows = [tuple(ATTEMPT.row(each).values()) for each in given]
    bulk.send(session, INSERT_ATTEMPTS, rows, **keys_of(place))


def attempts_of(session: Connection, upload_id: str) -> tuple[StoredAttempt, ...]:
    """Return the stored attempts of an upload, by test and in order."""
    statement = (
        select(*ATTEMPT.columns)
        .where(attempts.c.upload == upload_id)
        .order_by(attempts.c.no, attempts.c.n)
    )
    return tuple(map(ATTEMPT.value, session.execute(statement)))


def outcomes(
    session: Connection, upload_ids: Sequence[str], nos: Iterable[int]
) -> Iterator[tuple[str, int, Outcome]]:
    """Return upload, number and outcome of each stored attempt of these tests, in order."""
    for some in bulk.parts(upload_ids, ASKED_AT_ONCE):
        statement = (
            select(attempts.c.upload, attempts.c.no, attempts.c.outcome)
            .where(attempts.c.upload.in_(some), bulk.among(attempts.c.no, "of_numbers"))
            .order_by(attempts.c.upload, attempts.c.no, attempts.c.n)
        )
        for upload, no, outcome in in_parts(session, statement, nos):
            yield upload, no, Outcome(outcome)


def failed_in(
    session: Connection, upload_ids: Sequence[str], at_most: int
) -> tuple[StoredAttempt, ...]:
    """Return the last attempts of the tests that failed in these uploads, by number."""
    later = attempts.alias("later")
    was_tried_again = exists().where(
        later.c.upload == attempts.c.upload,
        later.c.no == attempts.c.no,
        later.c.n > attempts.c.n,
        later.c.outcome != Outcome.SKIPPED.value,
    )
    statement = (
        select(*ATTEMPT.columns)
        .where(
            attempts.c.upload.in_(upload_ids),
            attempts.c.outcome == Outcome.FAILED.value,
            ~was_tried_again,
        )
        .order_by(attempts.c.no, attempts.c.upload)
        .limit(at_most)
    )
    return tuple(map(ATTEMPT.value, session.execute(statement)))


def failure_keys(
    session: Connection, repository_id: int, nos: Iterable[int], span: Span
) -> Mapping[int, Mapping[str, frozenset[tuple[int, ...]]]]:
    """Return the number of each test → keys of its failures in the span.

    Each key has the sets of pull requests with which it was seen, an empty one for a branch.
    """
    statement = (
        select(attempts.c.no, attempts.c.failure, uploads.c.prs)
        .distinct()
        .join(uploads, uploads.c.id == attempts.c.upload)
        .where(
            attempts.c.repository_id == repository_id,
            bulk.among(attempts.c.no, "of_numbers"),
            attempts.c.is_eligible.is_(True),
            attempts.c.failure.is_not(None),
            attempts.c.ran_at >= span.since,
            attempts.c.ran_at < span.until,
        )
    )
    prs_by_key: defaultdict[int, defaultdict[str, set[tuple[int, ...]]]]
    prs_by_key = defaultdict(lambda: defaultdict(set))
    for no, key, prs in in_parts(session, statement, nos):
        prs_by_key[no][key].add(PRS.decode(prs))
    return {
        no: {key: frozenset(seen) for key, seen in keys.items()} for no, keys in prs_by_key.items()
    }


def attempted(
    session: Connection, repository_id: int, nos: Iterable[int], since: datetime
) -> Iterator[Attempted]:
    """Return when these tests were first and last attempted with each outcome."""
    statement = (
        select(
            attempts.c.no,
            attempts.c.outcome,
            func.min(attempts.c.ran_at, type_=Utc),
            func.max(attempts.c.ran_at, type_=Utc),
        )
        .where(
            attempts.c.repository_id == repository_id,
            bulk.among(attempts.c.no, "of_numbers"),
            attempts.c.is_eligible.is_(True),
            attempts.c.ran_at >= since,
        )
        .group_by(attempts.c.no, attempts.c.outcome)
    )
    for no, outcome, first, last in in_parts(session, statement, nos):
        yield Attempted(no, Outcome(outcome), first, last)


# Failure groups and impacts.


def note_failures(session: Connection, place: Place, failed: Iterable[StoredAttempt]) -> None:
    """Store the newest headline of each failure group, with its stack."""
    newest = {
        each.failure: each
        for each in sorted(failed, key=lambda each: (each.ran_at, each.headline or ""))
        if each.failure is not None
    }
    rows = [
        {"key": key, "headline": each.headline or "", "sample": each.stack or ""}
        | {"last_at": each.ran_at}
        | keys_of(place)
        for key, each in sorted(newest.items())
    ]
    if rows:
        session.execute(PUT_GROUP, rows)


def note_impact(
    session: Connection, place: Place, hit: Iterable[tuple[int, int]], at: datetime, now: datetime
) -> None:
    """Note that tests, by number, failed at an instant for pull requests."""
    rows = sorted(set(hit))
    is_counted = at > now - figures.WEEK
    bulk.send(session, PUT_IMPACTS, rows, last_at=at, is_counted=is_counted, **keys_of(place))
    _renew_ranks(session, {(place.repository_id, no) for no, _ in rows})


def expire_impacts(session: Connection, now: datetime) -> int:
    """Stop counting at most 1,000 impacts that are 168 hours old; return how many they were."""
    expired = session.execute(
        select(impacts.c.repository_id, impacts.c.no, impacts.c.pr)
        .where(impacts.c.is_counted.is_(True), impacts.c.last_at <= now - figures.WEEK)
        .order_by(impacts.c.last_at)
        .limit(EXPIRED_AT_ONCE)
    ).all()
    if expired:
        rows = [
            dict(zip(("of_repository", "of_number", "of_pr"), row, strict=True)) for row in expired
        ]
        session.execute(EXPIRE, rows)
        _renew_ranks(session, {(each.repository_id, each.no) for each in expired})
    return len(expired)


def renew_impacts(
    session: Connection, place: Place, hit: Set[tuple[int, int]], now: datetime
) -> None:
    """Note anew when these tests last failed for these pull requests, by stored uploads."""
    here = place.repository_id
    for no, pr in sorted(hit):
        failed = session.execute(
            select(attempts.c.ran_at, uploads.c.prs)
            .join(uploads, uploads.c.id == attempts.c.upload)
            .where(
                attempts.c.repository_id == here,
                attempts.c.no == no,
                attempts.c.outcome == Outcome.FAILED.value,
            )
        )
        times = [ran_at for ran_at, prs in failed if pr in PRS.decode(prs)]
        of_both = (impacts.c.repository_id == here, impacts.c.no == no, impacts.c.pr == pr)
        if times:
            at = max(times)
            values = {"last_at": at, "is_counted": at > now - figures.WEEK}
            session.execute(update(impacts).where(*of_both).values(**values))
        else:
            session.execute(delete(impacts).where(*of_both))
    _renew_ranks(session, {(here, no) for no, _ in hit})


def _renew_ranks(session: Connection, tests: Set[tuple[int, int]]) -> None:
    """Copy how many pull requests were hit to where lists read it."""
    impact = (
        select(-func.count())
        .where(
            impacts.c.repository_id == cases.c.repository_id,
            impacts.c.no == cases.c.no,
            impacts.c.is_counted.is_(True),
        )
        .scalar_subquery()
    )
    # In one order, so that two transactions never wait for each other.
    for repository_id, group in groupby(sorted(tests), itemgetter(0)):
        test_cases.change(session, repository_id, [no for _, no in group], impact_rank=impact)
        test_cases.note_change(session, repository_id)

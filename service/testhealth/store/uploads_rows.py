"""Rows of uploads: themselves, their attempts, failure groups, pull requests that tests failed for.

Noting failure groups and pull requests is idempotent: the newest wins.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, Integer, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import JsonCodec, RowCodec
from service.testhealth.detector import figures
from service.testhealth.detector.completeness import Account
from service.testhealth.reports.results import FileStatus, Format, Outcome
from service.testhealth.store import bitmaps
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.tables_evidence import (
    CaseAttemptRow,
    FailureGroupRow,
    ImpactRow,
    UploadRow,
)
from service.testhealth.store.tables_tests import CaseRow

EXPIRED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class StoredFile:
    """How one file of an upload was read; `error` None: it was accepted.

    `sha256` is the hex digest of its bytes without compression, empty when nobody has read them.
    """

    name: str
    format: Format | None
    status: FileStatus
    tests: int
    error: str | None = None
    line: int | None = None
    column: int | None = None
    sha256: str = ""


NO_ACCOUNT = Account()


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload as it is stored (FLAKY.md 2.2, 2.3); `passed`, `skipped` are keys of sets.

    `refusal` is the sentence for which nothing of it counts; only a complete one has none.
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

    @property
    def failures(self) -> int:
        """How many of its tests, suites and packages failed."""
        return self.counts.get("failed", 0) + self.counts.get("suite_failures", 0)


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """The `n`th attempt of a test in an upload, counted from 1."""

    upload: str
    no: int
    n: int
    ran_at: datetime
    outcome: Outcome
    failure: str | None = None
    headline: str | None = None
    stack: str | None = None
    duration_ms: int | None = None
    is_quarantined: bool = False
    is_eligible: bool = True
    is_comparable: bool = True


@dataclass(frozen=True, slots=True)
class SeenFailure:
    """A failed attempt, by the key of its failure group."""

    key: str
    headline: str
    stack: str
    at: datetime


uploads = UploadRow.__table__
attempts = CaseAttemptRow.__table__
groups = FailureGroupRow.__table__
impacts = ImpactRow.__table__
cases = CaseRow.__table__

UPLOAD = RowCodec(Upload, uploads, keys={"org_id", "repository_id", "is_noted", "failed"})
ATTEMPT = RowCodec(StoredAttempt, attempts, keys={"org_id", "repository_id"})

ACCOUNT: JsonCodec[Account] = JsonCodec(Account)
INSERT_UPLOAD = insert(uploads)
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
_IS_COUNTED = impacts.c.is_counted.is_(True)
_impact_of = (
    select(-func.count())
    .where(
        impacts.c.repository_id == cases.c.repository_id, impacts.c.no == cases.c.no, _IS_COUNTED
    )
    .scalar_subquery()
)
RENEW_IMPACT = (
    update(cases)
    .where(
        cases.c.repository_id == bindparam("of_repository"),
        cases.c.no.in_(bulk.firsts(Integer)),
    )
    .values(impact_rank=_impact_of)
)
SELECT_EXPIRED = (
    select(impacts.c.repository_id, impacts.c.no, impacts.c.pr)
    .where(_IS_COUNTED, impacts.c.last_at <= bindparam("before"))
    .order_by(impacts.c.last_at)
    .limit(EXPIRED_AT_ONCE)
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


def note_account(session: Connection, upload_id: str, account: Account) -> None:
    """Change what an upload says about its own completeness."""
    row = {"account": ACCOUNT.encode(account)}
    session.execute(update(uploads).where(uploads.c.id == upload_id).values(**row))


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
    session.execute(INSERT_UPLOAD, UPLOAD.row(upload) | keys_of(place) | more)
    common = bulk.same(**keys_of(place))
    for some in bulk.parts(given):
        told = bulk.told(tuple(ATTEMPT.row(each).values()) for each in some)
        session.execute(INSERT_ATTEMPTS, told | common)


def note_failures(session: Connection, place: Place, given: Iterable[SeenFailure]) -> None:
    """Keep the newest headline of each failure group, with its stack."""
    newest: dict[str, SeenFailure] = {}
    for each in sorted(given, key=lambda seen: (seen.at, seen.headline)):
        newest[each.key] = each
    rows = [
        {"key": key, "headline": seen.headline, "sample": seen.stack, "last_at": seen.at}
        | keys_of(place)
        for key, seen in sorted(newest.items())
    ]
    if rows:
        session.execute(PUT_GROUP, rows)


def note_impact(
    session: Connection, place: Place, hit: Iterable[tuple[int, int]], at: datetime, now: datetime
) -> None:
    """Tests, by number, failed `at` for pull requests; their figures for lists follow."""
    is_counted = at > now - figures.WEEK
    rows = sorted(set(hit))
    common = bulk.same(last_at=at, is_counted=is_counted, **keys_of(place))
    for some in bulk.parts(rows):
        session.execute(PUT_IMPACTS, bulk.told(some) | common)
    _renew(session, {(place.repository_id, no) for no, _ in rows})


def expire_impacts(session: Connection, now: datetime) -> int:
    """Count no more what is 168 hours old, at most 1,000 rows; how many those were."""
    found = session.execute(SELECT_EXPIRED, {"before": now - figures.WEEK}).all()
    if found:
        session.execute(
            EXPIRE,
            [
                {"of_repository": each.repository_id, "of_number": each.no, "of_pr": each.pr}
                for each in found
            ],
        )
        _renew(session, {(each.repository_id, each.no) for each in found})
    return len(found)


def _renew(session: Connection, tests: Set[tuple[int, int]]) -> None:
    # In one order, so that two transactions never wait for each other.
    for repository_id, group in groupby(sorted(tests), itemgetter(0)):
        for some in bulk.parts([(no,) for _, no in group]):
            session.execute(RENEW_IMPACT, bulk.told(some) | {"of_repository": repository_id})
        test_cases.note_change(session, repository_id)

"""What an upload leaves behind: itself, sets of passing tests, attempts, counts, failures.

Each function adds its part; that an upload is folded once, and in one transaction with what
completes it, is the caller's matter (FLAKY.md 4).
"""

import hashlib
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, Integer, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.database.codec import JsonCodec, RowCodec
from service.testhealth.detector import figures
from service.testhealth.detector.completeness import Account
from service.testhealth.reports.results import FileStatus, Format, Outcome
from service.testhealth.store import cases as test_cases
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.tables_evidence import (
    CaseAttemptRow,
    DailyRow,
    FailureDailyRow,
    FailureGroupRow,
    ImpactRow,
    OutcomeSetRow,
    UploadRow,
)
from service.testhealth.store.tables_tests import CaseRow

NO_BYTES = "I"
"""Numbers of tests as they are packed: unsigned, 32 bits, the lowest byte first."""

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
class Day:
    """What a test's day gains: results, those with a pass, and attempts by outcome."""

    no: int
    day: int
    results: int = 0
    passing_results: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class SeenFailure:
    """A failed attempt of a test, by the key of its group."""

    no: int
    key: str
    headline: str
    stack: str
    at: datetime


uploads = UploadRow.__table__
sets = OutcomeSetRow.__table__
attempts = CaseAttemptRow.__table__
daily = DailyRow.__table__
groups = FailureGroupRow.__table__
group_days = FailureDailyRow.__table__
impacts = ImpactRow.__table__
cases = CaseRow.__table__

UPLOAD = RowCodec(Upload, uploads, keys={"org_id", "repository_id", "revision"})
ATTEMPT = RowCodec(StoredAttempt, attempts, keys={"org_id", "repository_id"})
DAY = RowCodec(Day, daily, keys={"org_id", "repository_id"})

ACCOUNT: JsonCodec[Account] = JsonCodec(Account)
INSERT_UPLOAD = insert(uploads)
_KEYS = ("org_id", "repository_id")
INSERT_ATTEMPTS = bulk.inserted(attempts, ATTEMPT.columns, [attempts.c[name] for name in _KEYS])

_set = upsert(sets)
PUT_SET = _set.on_conflict_do_update(
    index_elements=["repository_id", "hash"],
    set_={"used_at": _set.excluded.used_at},
    where=sets.c.used_at < _set.excluded.used_at,
)

_COUNTED = [name for name in DAY.names if name not in {"no", "day"}]


_days = bulk.inserted(daily, DAY.columns, [daily.c[name] for name in _KEYS])
ADD_DAYS = _days.on_conflict_do_update(
    index_elements=["repository_id", "no", "day"],
    set_={name: daily.c[name] + _days.excluded[name] for name in _COUNTED},
)

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
_group_day = bulk.inserted(
    group_days,
    [group_days.c[name] for name in ("no", "key", "day", "count")],
    [group_days.c[name] for name in _KEYS],
)
ADD_GROUP_DAYS = _group_day.on_conflict_do_update(
    index_elements=["repository_id", "no", "key", "day"],
    set_={"count": group_days.c.count + _group_day.excluded.count},
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


def record_upload(session: Connection, place: Place, upload: Upload) -> None:
    """Store an upload; its attempts become visible with it."""
    row = UPLOAD.row(upload) | keys_of(place)
    came = test_cases.next_revision(session, place.repository_id) if upload.is_eligible else None
    session.execute(INSERT_UPLOAD, row | {"revision": came})


class PackedSet(NamedTuple):
    """A set of tests, sorted, and as it is stored under its key."""

    key: str
    nos: "array[int]"
    packed: bytes


def packed_set(nos: Iterable[int]) -> PackedSet | None:
    """The set of these tests, None for the empty one."""
    members = array(NO_BYTES, sorted(set(nos)))
    if not members:
        return None
    packed = _lowest_first(members[:]).tobytes()
    return PackedSet(hashlib.sha256(packed).hexdigest(), members, zlib.compress(packed))


def put_set(session: Connection, place: Place, given: PackedSet | None, at: datetime) -> str | None:
    """Store a set of tests for an upload that ran `at`; its key, None for the empty set."""
    if given is None:
        return None
    row = {"hash": given.key, "nos": given.packed, "used_at": at}
    session.execute(PUT_SET, row | keys_of(place))
    return given.key


def numbers_in(packed: bytes) -> "array[int]":
    """The numbers of a stored set, sorted."""
    return _lowest_first(array(NO_BYTES, zlib.decompress(packed)))


def _lowest_first(numbers: "array[int]") -> "array[int]":
    """From this machine's order of bytes to the stored one, and back."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def record_attempts(session: Connection, place: Place, given: Sequence[StoredAttempt]) -> None:
    """Store attempts."""
    common = bulk.same(**keys_of(place))
    for some in bulk.parts(given):
        told = bulk.told(tuple(ATTEMPT.row(each).values()) for each in some)
        session.execute(INSERT_ATTEMPTS, told | common)


def add_days(session: Connection, place: Place, given: Sequence[Day]) -> None:
    """Count on."""
    common = bulk.same(**keys_of(place))
    for some in bulk.parts(given):
        told = bulk.told(tuple(DAY.row(each).values()) for each in some)
        session.execute(ADD_DAYS, told | common)


def note_failures(session: Connection, place: Place, given: Sequence[SeenFailure]) -> None:
    """Count failures by group; the newest headline of a group is the one that is shown."""
    keys = keys_of(place)
    if not given:
        return
    newest: dict[str, SeenFailure] = {}
    for each in sorted(given, key=lambda seen: (seen.at, seen.headline)):
        newest[each.key] = each
    session.execute(
        PUT_GROUP,
        [
            {"key": key, "headline": seen.headline, "sample": seen.stack, "last_at": seen.at} | keys
            for key, seen in newest.items()
        ],
    )
    days: dict[tuple[int, str, int], int] = {}
    for each in given:
        day = (each.no, each.key, figures.day_of(each.at))
        days[day] = days.get(day, 0) + 1
    counted = [(*day, count) for day, count in days.items()]
    for some in bulk.parts(counted):
        session.execute(ADD_GROUP_DAYS, bulk.told(some) | bulk.same(**keys))


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

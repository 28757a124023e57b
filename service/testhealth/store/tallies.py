"""What uploads say of tests that passed or were skipped at once, until it is in those tests' days.

Nearly every result is of this kind, so an upload leaves one row that names its sets, and not a
row for each of its tests. Rows of a day are added up together and then are gone; whoever reads
days before adds those rows that are left (FLAKY.md 4).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, delete, desc, func, insert, or_, select
from sqlalchemy import update as updated

from service.database import bulk
from service.database.codec import Raw
from service.database.direct import Direct
from service.database.types import Utc
from service.testhealth.detector import figures
from service.testhealth.detector.tallying import Piece, Tallied
from service.testhealth.store import evidence_rows
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.tables_evidence import TallyRow
from service.testhealth.store.uploads_rows import Upload, daily

SUMMED_MAX = 64
"""Rows that are added up together at most; those of today wait until they are so many."""

TESTS_MAX = bulk.AT_ONCE
"""Tests whose days one transaction adds to."""

tallies = TallyRow.__table__

_HERE: BindParameter[int] = bindparam("of_repository")
_UPLOAD: BindParameter[str] = bindparam("of_upload")
_DAY: BindParameter[int] = bindparam("of_day")
_IDS: BindParameter[int] = bindparam("of_ids", expanding=True)

INSERT = insert(tallies)
TAKE_OUT = (
    delete(tallies)
    .where(tallies.c.upload == _UPLOAD, tallies.c.counted_to == 0)
    .returning(tallies.c.id)
)
SELECT_BEGUN = select(tallies.c.org_id, tallies.c.repository_id, tallies.c.day).where(
    tallies.c.upload == _UPLOAD, tallies.c.counted_to > 0
)
SELECT_DUE = (
    select(tallies.c.org_id, tallies.c.repository_id, tallies.c.day)
    .group_by(tallies.c.repository_id, tallies.c.day, tallies.c.org_id)
    .having(or_(tallies.c.day < bindparam("of_today"), func.count() >= bindparam("of_many")))
    .order_by(tallies.c.repository_id, tallies.c.day)
)
# Those that are being added up come first: they are finished before others are begun.
SELECT_BATCH = (
    select(tallies)
    .where(tallies.c.repository_id == _HERE, tallies.c.day == _DAY)
    .order_by(desc(tallies.c.counted_to), tallies.c.id)
    .limit(SUMMED_MAX)
)
SELECT_LATER = (
    select(tallies.c.passed, tallies.c.skipped, tallies.c.ran_at)
    .where(
        tallies.c.repository_id == _HERE,
        tallies.c.ran_at > bindparam("of_after", type_=Utc),
        tallies.c.weight > 0,
    )
    .order_by(desc(tallies.c.ran_at))
)
SELECT_PASSED = Direct(
    select(tallies.c.passed, tallies.c.counted_to, func.sum(tallies.c.weight))
    .where(tallies.c.repository_id == _HERE, tallies.c.passed.is_not(None))
    .group_by(tallies.c.passed, tallies.c.counted_to)
)
STILL_THERE = select(func.count()).where(
    tallies.c.id.in_(_IDS), tallies.c.counted_to == bindparam("of_after")
)
MOVE_ON = updated(tallies).where(tallies.c.id.in_(_IDS)).values(counted_to=bindparam("to_number"))
DROP = delete(tallies).where(tallies.c.id.in_(_IDS))

_told = ("no", "passed", "passing_results", "skipped", "results")
_days = bulk.inserted(
    daily,
    [daily.c[name] for name in _told],
    [daily.c[name] for name in ("day", "failed", "quarantined", "org_id", "repository_id")],
)
ADD_DAYS = _days.on_conflict_do_update(
    index_elements=["repository_id", "no", "day"],
    set_={name: daily.c[name] + _days.excluded[name] for name in _told[1:]},
)


class Due(NamedTuple):
    """A day of a repository that has rows to be added up."""

    place: Place
    day: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are added up together, by id, and what they come to; `after`: done that far."""

    due: Due
    ids: Sequence[int]
    tallied: tuple[Tallied, ...]
    after: int


def put(session: Connection, place: Place, upload: Upload) -> None:
    """Leave the sets of an upload to be counted."""
    _put(session, place, upload, 1)


def take_back(session: Connection, place: Place, upload: Upload) -> None:
    """Count the sets of an upload no more.

    Of one whose row is being added up nothing may be taken back before that is done.
    """
    left = session.execute(TAKE_OUT, {"of_upload": upload.id}).first()
    if left is None:
        _put(session, place, upload, -1)


def due(session: Connection, today: int) -> tuple[Due, ...]:
    """Days that are over, and days with many rows."""
    found = session.execute(SELECT_DUE, {"of_today": today, "of_many": SUMMED_MAX})
    return tuple(Due(Place(org, repository), day) for org, repository, day in found)


def batch(session: Connection, sets: OutcomeSets, asked: Due) -> Batch | None:
    """The next rows of a day; None: there are no more."""
    told = {"of_repository": asked.place.repository_id, "of_day": asked.day}
    rows = session.execute(SELECT_BATCH, told).all()
    if not rows:
        return None
    after = rows[0].counted_to
    together = [row for row in rows if row.counted_to == after]
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    last_at: dict[str, datetime] = {}
    for row in together:
        if row.passed is not None:
            counts[row.passed]["passed"] += row.weight
            counts[row.passed]["passing"] += 0 if row.is_mass else row.weight
        if row.skipped is not None:
            counts[row.skipped]["skipped"] += row.weight
        for key in filter(None, (row.passed, row.skipped) if row.weight > 0 else ()):
            last_at[key] = max(row.ran_at, last_at.get(key, row.ran_at))
    tallied = tuple(
        Tallied(
            nos=sets.numbers(session, asked.place.repository_id, key),
            passed=count["passed"],
            passing=count["passing"],
            skipped=count["skipped"],
            last_at=last_at.get(key),
        )
        for key, count in counts.items()
    )
    return Batch(asked, [row.id for row in together], tallied, after)


def begun(session: Connection, sets: OutcomeSets, upload_id: str) -> Batch | None:
    """The rows that are being added up, if that of the upload is one of them."""
    row = session.execute(SELECT_BEGUN, {"of_upload": upload_id}).first()
    if row is None:
        return None
    return batch(session, sets, Due(Place(row.org_id, row.repository_id), row.day))


def add(session: Connection, given: Batch, after: int, piece: Piece) -> bool:
    """Add a piece of a batch to the days of tests, of which everything up to `after` is added.

    False, and nothing is added, if somebody else has gone on with it.
    """
    here = given.due.place.repository_id
    evidence_rows.lock(session, here)
    told = {"of_ids": given.ids}
    left = session.execute(STILL_THERE, told | {"of_after": after}).scalar_one()
    if left != len(given.ids):
        return False
    common = bulk.same(day=given.due.day, failed=0, quarantined=0, **keys_of(given.due.place))
    rows = ((*each, each.passed) for each in piece.sums)
    session.execute(ADD_DAYS, bulk.told(rows) | common)
    for at, nos in piece.last_runs.items():
        evidence_rows.note_last(session, here, nos, at)
    if piece.is_last:
        session.execute(DROP, told)
    else:
        session.execute(MOVE_ON, told | {"to_number": piece.counted_to})
    return True


def passed(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int]
) -> Counter[int]:
    """Number → how often the test passed at once in what is not in its days."""
    rows = SELECT_PASSED.rows(session, {"of_repository": repository_id})
    return weighed(session, sets, repository_id, rows, nos)


def weighed(
    session: Connection,
    sets: OutcomeSets,
    repository_id: int,
    rows: Sequence[Raw],
    nos: Sequence[int],
) -> Counter[int]:
    """The same by rows: the key of a set, up to which number it is counted, and how often."""
    members = sets.members(session, repository_id, {key for key, _, _ in rows}, nos)
    found: Counter[int] = Counter()
    for key, counted_to, many in rows:
        for no in members.get(key, ()):
            if no > counted_to:
                found[no] += many
    return found


def last_run(
    session: Connection, sets: OutcomeSets, repository_id: int, no: int, known: datetime
) -> datetime:
    """When a test ran last, which is known of it but for what is not in its days."""

    def has_it(*keys: str | None) -> bool:
        return any(sets.members(session, repository_id, filter(None, keys), [no]).values())

    rows = session.execute(SELECT_LATER, {"of_repository": repository_id, "of_after": known}).all()
    # The newest set has nearly every test: only of one that it lacks others are decoded, too.
    return next((row.ran_at for row in rows if has_it(row.passed, row.skipped)), known)


def ran_after(
    session: Connection, sets: OutcomeSets, repository_id: int, nos: Sequence[int], at: datetime
) -> set[int]:
    """Those of the tests that ran later, by what is not in their days."""
    rows = session.execute(SELECT_LATER, {"of_repository": repository_id, "of_after": at}).all()
    keys = {key for row in rows for key in (row.passed, row.skipped) if key is not None}
    members = sets.members(session, repository_id, keys, nos)
    return {no for some in members.values() for no in some}


def _put(session: Connection, place: Place, upload: Upload, weight: int) -> None:
    if upload.passed is None and upload.skipped is None:
        return
    row = {
        "upload": upload.id,
        "day": figures.day_of(upload.ran_at),
        "ran_at": upload.ran_at,
        "weight": weight,
        "passed": upload.passed,
        "skipped": upload.skipped,
        "is_mass": upload.is_mass,
        "counted_to": 0,
    }
    session.execute(INSERT, row | keys_of(place))

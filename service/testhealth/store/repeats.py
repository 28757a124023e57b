"""Plans of repeats, and the rounds that jobs have reported."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from service.database import bulk
from service.database.codec import Raw, RowCodec
from service.testhealth.detector.repeats import Repeats
from service.testhealth.repeats import PlanRounds, Portion
from service.testhealth.reports.uploads import EvidenceUpload, UploadClass
from service.testhealth.store import uploads as test_uploads
from service.testhealth.store.attempts import cases
from service.testhealth.store.cases import IS_UNHEALTHY, Place, in_parts, keys_of
from service.testhealth.store.tables_costs import TimesOfWeekRow
from service.testhealth.store.tables_repeats import RepeatPlanRow, RepeatsRow
from service.testhealth.store.uploads import Upload, uploads
from service.vocabulary import Health


@dataclass(frozen=True, slots=True)
class RepeatPlan:
    """The tests that a job repeats after its upload; `spent_ms` None: it has not reported."""

    id: str
    upload: str
    kind: UploadClass
    tests: tuple[Portion, ...]
    asked_at: datetime
    reserved_ms: int
    reported_at: datetime | None = None
    spent_ms: int | None = None


class Spent(NamedTuple):
    """Seconds that are spent or reserved, and how many of these by pull requests."""

    seconds: float
    in_pulls: float


CANDIDATES_MAX = 500
"""Tests of one kind that a plan is chosen from."""

plans = RepeatPlanRow.__table__
rounds = RepeatsRow.__table__
weeks = TimesOfWeekRow.__table__

PLAN = RowCodec(RepeatPlan, plans, keys={"org_id", "repository_id"})
ROUNDS = RowCodec(PlanRounds, rounds, keys={"org_id", "repository_id"})


def put_plan(session: Connection, place: Place, plan: RepeatPlan) -> None:
    """Store a new plan."""
    session.execute(insert(plans), PLAN.row(plan) | keys_of(place))


def plan_of(session: Connection, repository_id: int, plan_id: str) -> RepeatPlan | None:
    """Return a plan of the repository, None if it has none of this id."""
    statement = select(*PLAN.columns).where(
        plans.c.id == plan_id, plans.c.repository_id == repository_id
    )
    row = session.execute(statement).first()
    return None if row is None else PLAN.value(row)


def has_plan(session: Connection, upload_id: str) -> bool:
    """Return whether the job of an upload has got a plan."""
    return (
        session.execute(select(plans.c.id).where(plans.c.upload == upload_id)).first() is not None
    )


def spent(session: Connection, repository_id: int, since: datetime) -> Spent:
    """Return what was spent since a moment, or reserved by jobs that have not reported."""
    statement = (
        select(plans.c.kind, func.sum(func.coalesce(plans.c.spent_ms, plans.c.reserved_ms)))
        .where(
            plans.c.repository_id == repository_id,
            plans.c.asked_at >= since,
        )
        .group_by(plans.c.kind)
    )
    by_kind = {kind: int(total) / 1000 for kind, total in session.execute(statement)}
    stable = by_kind.get(UploadClass.STABLE.value, 0.0)
    return Spent(sum(by_kind.values()), sum(by_kind.values()) - stable)


def note_report(
    session: Connection, place: Place, plan: RepeatPlan, found: Sequence[PlanRounds]
) -> None:
    """Store what a job reports of its plan."""
    changed = {"reported_at": plan.reported_at, "spent_ms": plan.spent_ms}
    session.execute(update(plans).where(plans.c.id == plan.id).values(changed))
    if found:
        keys = keys_of(place)
        session.execute(insert(rounds), [ROUNDS.row(each) | keys for each in found])


def repeats_of(
    session: Connection, repository_id: int, nos: Iterable[int]
) -> Mapping[int, tuple[tuple[str, Repeats], ...]]:
    """Return, by test, its repeats with the ids of the uploads whose jobs made them."""
    statement = select(*ROUNDS.columns, *test_uploads.UPLOAD.columns).join(
        uploads, uploads.c.id == rounds.c.upload
    )
    found: defaultdict[int, list[tuple[str, Repeats]]] = defaultdict(list)
    width = len(ROUNDS.columns)
    for row in in_parts(session, _of_tests(statement, repository_id), nos):
        each = ROUNDS.value(row[:width])
        upload = test_uploads.UPLOAD.value(row[width:])
        found[each.no].append((upload.id, _repeats(each, upload)))
    return {no: tuple(each) for no, each in found.items()}


def _repeats(stored: PlanRounds, upload: Upload) -> Repeats:
    evidence: EvidenceUpload = test_uploads.evidence_of(upload, {}, frozenset(), 0)
    return Repeats(
        at=upload.ran_at,
        upload=upload.digest,
        job=upload.job,
        code=upload.code_id,
        letters=stored.letters,
        tested=stored.tested,
        disagreeing=stored.disagreeing,
        source=evidence.source,
        author=evidence.author,
        branch=upload.branch or "",
        machine=upload.machine or "",
        sha=upload.sha,
    )


def _of_tests(statement: Select[Raw], repository_id: int) -> Select[Raw]:
    return statement.where(
        rounds.c.repository_id == repository_id, bulk.among(rounds.c.no, "of_numbers")
    )


def failing(session: Connection, repository_id: int) -> frozenset[int]:
    """Return the tests that failed while they were repeated."""
    statement = select(rounds.c.no).where(
        rounds.c.repository_id == repository_id, rounds.c.has_failed.is_(True)
    )
    return frozenset(session.execute(statement.distinct()).scalars())


def remove(session: Connection, upload_id: str) -> None:
    """Delete what the job of an upload repeated; what was spent stays spent."""
    session.execute(delete(rounds).where(rounds.c.upload == upload_id))


# What a plan is made from.


def history_of(
    session: Connection, repository_id: int, nos: Iterable[int], since: datetime
) -> Mapping[int, list[PlanRounds]]:
    """Return, by test, its repeats since a moment, oldest first."""
    statement = select(*ROUNDS.columns).where(rounds.c.ran_at >= since)
    found: defaultdict[int, list[PlanRounds]] = defaultdict(list)
    for row in in_parts(session, _of_tests(statement, repository_id), nos):
        each = ROUNDS.value(row)
        found[each.no].append(each)
    return {no: sorted(each, key=lambda one: one.ran_at) for no, each in found.items()}


def flaky(session: Connection, repository_id: int) -> tuple[int, ...]:
    """Return tests that are flaky."""
    is_flaky = and_(cases.c.status == Health.FLAKY.value, IS_UNHEALTHY)
    return _nos(session, repository_id, is_flaky, cases.c.status_since.desc())


def failed_since(session: Connection, repository_id: int, since: datetime) -> tuple[int, ...]:
    """Return healthy tests that failed since a moment, the newest failures first."""
    is_healthy = cases.c.status == Health.HEALTHY.value
    recent = and_(is_healthy, cases.c.last_failed_at >= since)
    return _nos(session, repository_id, recent, cases.c.last_failed_at.desc())


def new_since(session: Connection, repository_id: int, since: datetime) -> tuple[int, ...]:
    """Return tests that ran first since a moment; none while the repository has only such."""
    here = (cases.c.repository_id == repository_id, cases.c.is_known.is_(True))
    older = select(cases.c.no).where(*here, cases.c.first_run_at < since)
    is_older = older.order_by(cases.c.no).limit(1)
    if session.execute(is_older).first() is None:
        return ()
    return _nos(session, repository_id, cases.c.first_run_at >= since, cases.c.no.desc())


def _nos(
    session: Connection,
    repository_id: int,
    chosen: ColumnElement[bool],
    order: ColumnElement[object],
) -> tuple[int, ...]:
    statement = (
        select(cases.c.no)
        .where(cases.c.repository_id == repository_id, cases.c.is_known.is_(True), chosen)
        .order_by(order, cases.c.no)
        .limit(CANDIDATES_MAX)
    )
    return tuple(session.execute(statement).scalars())


def seconds_of(session: Connection, repository_id: int, nos: Iterable[int]) -> dict[int, float]:
    """Return the median time of each test in its last counted week; those without are left out."""
    statement = select(weeks.c.no, weeks.c.median_rank).where(
        weeks.c.repository_id == repository_id, bulk.among(weeks.c.no, "of_numbers")
    )
    return {row.no: -row.median_rank / 1000 for row in in_parts(session, statement, nos)}

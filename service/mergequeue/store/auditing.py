"""Rows as an audit reads them: everything of one queue, in one snapshot."""

from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import BindParameter, Connection, Row, bindparam, or_, select

from service.accounts.store import audit
from service.database.codec import JsonCodec
from service.database.outbox import OutboxState
from service.database.tables_deliveries import InstanceRow, OutboxRow
from service.database.tables_tenants import RepositoryRow
from service.mergequeue.auditing.records import (
    EffectRecord,
    EntryRecord,
    MemberRecord,
    QueueRows,
    RunRecord,
    StepRecord,
)
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Landing, Tip
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.landing_records import StoredLanding
from service.mergequeue.store.landing_evidence import WAITS, evidence
from service.mergequeue.store.landings import LANDING, landings
from service.mergequeue.store.restored import ACTION as RESTORED
from service.mergequeue.store.rows import TESTED, entries, members, queues, runs
from service.vocabulary import MergeMethod, QueueRef, RepoRef, Sha

repositories = RepositoryRow.__table__
effects = OutboxRow.__table__
instances = InstanceRow.__table__


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of a run that an audit reads."""

    merge_method: MergeMethod = MergeMethod.MERGE_COMMIT
    mode: Mode = Mode.SINGLE


@dataclass(frozen=True, slots=True)
class _Kept:
    """The tip of a move of the target that was not taken in yet."""

    tip: Tip


SETTINGS: JsonCodec[_Settings] = JsonCodec(_Settings)
TIP: JsonCodec[Tip] = JsonCodec(Tip)
STEPS: JsonCodec[tuple[StepRecord, ...]] = JsonCodec(tuple[StepRecord, ...])
KEPT: JsonCodec[_Kept] = JsonCodec(_Kept)
FLIGHT: JsonCodec[Landing] = JsonCodec(Landing)

OPEN_EFFECTS = [OutboxState.READY.value, OutboxState.SENT.value, OutboxState.UNKNOWN.value]

_QUEUE: BindParameter[int] = bindparam("of_queue")

SELECT_QUEUES = (
    select(
        queues.c.id,
        queues.c.org_id,
        queues.c.repository_id,
        queues.c.branch,
        queues.c.deleted,
        queues.c.landing,
        queues.c.tip,
        queues.c.kept_move,
        repositories.c.host,
        repositories.c.owner,
        repositories.c.name,
        repositories.c.provider_id,
    )
    .join(repositories, repositories.c.id == queues.c.repository_id)
    .order_by(queues.c.id)
)
SELECT_ENTRIES = (
    select(
        entries.c.id,
        entries.c.pr,
        entries.c.head,
        entries.c.live,
        entries.c.state,
        entries.c.reason,
        entries.c.rank,
        entries.c.run,
        entries.c.verified_by,
        entries.c.landed_sha,
    )
    .where(entries.c.queue_id == _QUEUE)
    .order_by(entries.c.no)
)
SELECT_RUNS = (
    select(runs.c.id, runs.c.live, runs.c.status, runs.c.config, runs.c.base_tip, runs.c.steps)
    .where(runs.c.queue_id == _QUEUE)
    .order_by(runs.c.no)
)
SELECT_MEMBERS = (
    select(members.c.run_id, members.c.entry, members.c.pr)
    .join(runs, runs.c.id == members.c.run_id)
    .where(runs.c.queue_id == _QUEUE, runs.c.live.is_(True), members.c.role == TESTED)
    .order_by(members.c.run_id, members.c.position)
)
SELECT_LANDINGS = (
    select(*LANDING.columns).where(landings.c.queue_id == _QUEUE).order_by(landings.c.id)
)
SELECT_EFFECTS = (
    select(
        effects.c.id,
        effects.c.kind,
        effects.c.idem_key,
        effects.c.state,
        effects.c.is_open,
        effects.c.claimed_by,
    )
    .where(
        effects.c.queue_id == _QUEUE,
        or_(effects.c.is_open.is_(True), effects.c.state.in_(OPEN_EFFECTS)),
    )
    .order_by(effects.c.id)
)
SELECT_EVIDENCE = (
    select(evidence.c.no, evidence.c.sha, evidence.c.pr, evidence.c.envelope, evidence.c.at)
    .where(evidence.c.queue_id == _QUEUE, evidence.c.key_id != WAITS)
    .order_by(evidence.c.no)
)
SELECT_WAITING = (
    select(evidence.c.no, evidence.c.sha, evidence.c.pr, evidence.c.envelope, evidence.c.at)
    .where(evidence.c.queue_id == _QUEUE, evidence.c.key_id == WAITS)
    .order_by(evidence.c.no)
)


def rows_of_queues(session: Connection) -> tuple[QueueRows, ...]:
    """Return the rows of every queue, deleted ones too: their landings stay."""
    names = frozenset(session.execute(select(instances.c.id)).scalars())
    every = [_rows(session, one, names) for one in session.execute(SELECT_QUEUES).all()]
    landed: dict[int, set[tuple[int, Sha]]] = defaultdict(set)
    for rows in every:
        landed[rows.queue.repository_id] |= {
            (rows.queue.id, one.landed_sha) for one in rows.landings if one.landed_sha is not None
        }
    return tuple(
        replace(
            rows,
            others=frozenset(
                sha for queue, sha in landed[rows.queue.repository_id] if queue != rows.queue.id
            ),
        )
        for rows in every
    )


def evidence_of(
    session: Connection, queue_id: int
) -> tuple[list[StoredLanding], list[StoredLanding]]:
    """Return the signed evidence of a queue, and that which waits to be signed."""
    binds = {"of_queue": queue_id}
    signed = [StoredLanding(*row) for row in session.execute(SELECT_EVIDENCE, binds)]
    return signed, [StoredLanding(*row) for row in session.execute(SELECT_WAITING, binds)]


def _rows(
    session: Connection, one: Row[*tuple[object, ...]], instance_ids: frozenset[str]
) -> QueueRows:
    binds = {"of_queue": one.id}
    repo = RepoRef(one.host, one.owner, one.name)
    flight = None if one.landing is None else FLIGHT.decode(one.landing)
    return QueueRows(
        queue=QueueRef(one.id, one.org_id, one.repository_id, repo, one.branch),
        provider_id=one.provider_id,
        deleted=bool(one.deleted),
        tip=_tip(one),
        landing=None if flight is None else (flight.run, flight.number),
        entries=tuple(_entry(row) for row in session.execute(SELECT_ENTRIES, binds)),
        runs={row.id: _run(row) for row in session.execute(SELECT_RUNS, binds)},
        members=tuple(MemberRecord(*row) for row in session.execute(SELECT_MEMBERS, binds)),
        landings=tuple(LANDING.value(row) for row in session.execute(SELECT_LANDINGS, binds)),
        effects=tuple(EffectRecord(*row) for row in session.execute(SELECT_EFFECTS, binds)),
        instances=instance_ids,
        returned=_returned(session, one.org_id, f"{repo.host}/{repo.slug}@{one.branch}"),
    )


def _tip(one: Row[*tuple[object, ...]]) -> Sha | None:
    """Return the newest commit of the target that was read, also if it waits for a person."""
    if one.kept_move is not None:
        return KEPT.decode(one.kept_move).tip.sha
    return None if one.tip is None else TIP.decode(one.tip).sha


def _returned(session: Connection, org_id: int, subject: str) -> dict[Sha, int | None]:
    """Return the commits that a restored service found as its own, as the audit log has them."""
    found: dict[Sha, int | None] = {}
    for entry in audit.of_subject(session, org_id, RESTORED, subject):
        landed = entry.data.get("landed")
        for number, commit in landed.items() if isinstance(landed, dict) else ():
            if commit is not None:
                found[Sha(commit)] = int(number)
    return found


def _entry(row: Row[*tuple[object, ...]]) -> EntryRecord:
    return EntryRecord(
        row.id,
        row.pr,
        row.head,
        bool(row.live),
        EntryState(row.state),
        row.reason,
        row.rank,
        row.run,
        row.verified_by,
        row.landed_sha,
    )


def _run(row: Row[*tuple[object, ...]]) -> RunRecord:
    settings = SETTINGS.decode(row.config)
    return RunRecord(
        row.id,
        bool(row.live),
        RunStatus(row.status),
        settings.merge_method,
        settings.mode is Mode.PARALLEL,
        TIP.decode(row.base_tip).tree,
        STEPS.decode(row.steps),
    )

"""Failed parts of CI, and how the required checks ended that they may doom."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import BindParameter, Connection, Row, bindparam, desc, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.mergequeue.early_rules import Ending, Observation, PartKind, Rule
from service.mergequeue.store.tables_early import FailedPartRow
from service.provider.ci import FailedPart
from service.vocabulary import QueueRef, Sha

OBSERVATIONS_MAX = 1000
"""Newest failed parts of a queue from which its rules follow."""

parts = FailedPartRow.__table__

_QUEUE: BindParameter[int] = bindparam("of_queue")
SELECT_NEWEST = (
    select(parts)
    .where(parts.c.queue_id == _QUEUE)
    .order_by(desc(parts.c.at))
    .limit(OBSERVATIONS_MAX)
)
SELECT_OPEN_OF_RUN = select(parts).where(
    parts.c.queue_id == _QUEUE,
    parts.c.run == bindparam("of_run"),
    parts.c.attempt == bindparam("of_attempt"),
    parts.c.ending.is_(None),
)
SELECT_OPEN = (
    select(parts)
    .where(
        parts.c.ending.is_(None),
        parts.c.at > bindparam("since", type_=parts.c.at.type),
        parts.c.at < bindparam("until", type_=parts.c.at.type),
    )
    .order_by(parts.c.at)
    .limit(bindparam("at_most"))
)
CLOSE = (
    update(parts)
    .where(
        parts.c.queue_id == _QUEUE,
        parts.c.run == bindparam("of_run"),
        parts.c.attempt == bindparam("of_attempt"),
        parts.c.required == bindparam("of_required"),
        parts.c.ending.is_(None),
    )
    .values(ending=bindparam("now_ending"), at=bindparam("now_at", type_=parts.c.at.type))
)
_PUT = upsert(parts)
_KEY = ["queue_id", "run", "attempt", "required", "check_name", "kind", "step"]
# What was told to the engine stays known as told; how a check ended is the newest word. But a row
# that refutes its rule stays: a job that repairs one failed test may fail by the next one.
PUT = _PUT.on_conflict_do_update(
    index_elements=_KEY,
    set_={
        "test": _PUT.excluded.test,
        "ending": _PUT.excluded.ending,
        "at": _PUT.excluded.at,
        "early_s": _PUT.excluded.early_s,
        "is_foreseen": parts.c.is_foreseen | _PUT.excluded.is_foreseen,
    },
    where=or_(parts.c.ending.is_(None), parts.c.ending != Ending.REFUTED.value),
)


@dataclass(frozen=True, slots=True)
class SeenPart:
    """A failed part of a run's CI with the required check that it may doom by a rule."""

    rule: Rule
    run: str
    attempt: int
    sha: Sha
    part: FailedPart
    suite: str
    at: datetime
    ending: Ending | None = None
    is_foreseen: bool = False
    early_s: int | None = None

    @property
    def observation(self) -> Observation:
        """Return what the rules take of it."""
        return Observation(
            self.rule, self.run, self.at, self.ending, self.is_foreseen, self.early_s
        )


def note(session: Connection, queue: QueueRef, seen: Collection[SeenPart]) -> None:
    """Store failed parts; one that is known is replaced unless it refutes its rule. Idempotent."""
    rows = [_row_of(queue, each) for each in seen]
    if rows:
        session.execute(PUT, rows)


def newest(session: Connection, queue_id: int) -> tuple[Observation, ...]:
    """Return what was observed of a queue's runs, the newest first."""
    rows = session.execute(SELECT_NEWEST, {"of_queue": queue_id})
    return tuple(_seen_of(row).observation for row in rows)


def open_of_run(session: Connection, queue_id: int, run: str, attempt: int) -> tuple[SeenPart, ...]:
    """Return the failed parts of an attempt whose required checks have not ended."""
    binds = {"of_queue": queue_id, "of_run": run, "of_attempt": attempt}
    return tuple(_seen_of(row) for row in session.execute(SELECT_OPEN_OF_RUN, binds))


def left_open(
    session: Connection, since: datetime, until: datetime, at_most: int
) -> Sequence[tuple[int, SeenPart]]:
    """Return failed parts that were seen in this time and are open still, with their queues."""
    binds = {"since": since, "until": until, "at_most": at_most}
    return [(row.queue_id, _seen_of(row)) for row in session.execute(SELECT_OPEN, binds)]


def close(session: Connection, queue_id: int, of: SeenPart) -> None:
    """Store how the required check of an attempt ended, for all of its open parts."""
    binds = {
        "of_queue": queue_id,
        "of_run": of.run,
        "of_attempt": of.attempt,
        "of_required": of.rule.required,
        "now_ending": of.ending,
        "now_at": of.at,
    }
    session.execute(CLOSE, binds)


def ended(one: SeenPart, ending: Ending, now: datetime) -> SeenPart:
    """Return a failed part whose required check has ended now."""
    return replace(one, ending=ending, at=now)


def _row_of(queue: QueueRef, one: SeenPart) -> dict[str, object]:
    return {
        "org_id": queue.org_id,
        "queue_id": queue.id,
        "run": one.run,
        "attempt": one.attempt,
        "sha": one.sha,
        "file": one.rule.file,
        "version": one.rule.version,
        "required": one.rule.required,
        "job": one.rule.job,
        "kind": one.rule.kind,
        "step": one.rule.step,
        "test": one.part.test,
        "check_name": one.part.job,
        "check_id": one.part.check,
        "suite": one.suite,
        "url": one.part.url,
        "at": one.at,
        "is_foreseen": one.is_foreseen,
        "ending": one.ending,
        "early_s": one.early_s,
    }


def _seen_of(row: Row[tuple[object, ...]]) -> SeenPart:
    rule = Rule(row.file, row.version, row.required, row.job, PartKind(row.kind), row.step)
    part = FailedPart(row.check_id, row.check_name, row.step, row.test, row.url)
    ending = None if row.ending is None else Ending(row.ending)
    return SeenPart(
        *(rule, row.run, row.attempt, Sha(row.sha), part, row.suite, row.at),
        ending=ending,
        is_foreseen=row.is_foreseen,
        early_s=row.early_s,
    )

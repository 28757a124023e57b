"""Records of pull requests: newest head, impacted targets."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BindParameter,
    Connection,
    ScalarSelect,
    bindparam,
    case,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.tables_tenants import RepositoryRow
from service.database.types import Utc
from service.mergequeue.engine.targets import Targets
from service.mergequeue.store import target_sets
from service.mergequeue.store.tables_queues import (
    ImpactedTargetsRow,
    PullRequestRow,
)
from service.provenance import ProviderTime
from service.vocabulary import Sha

pull_requests = PullRequestRow.__table__
impacted = ImpactedTargetsRow.__table__
repositories = RepositoryRow.__table__

_SEEN = upsert(pull_requests).values(
    org_id=select(repositories.c.org_id)
    .where(repositories.c.id == bindparam("of_repository"))
    .scalar_subquery(),
    repository_id=bindparam("of_repository"),
    number=bindparam("of_number"),
    head=bindparam("of_head"),
    seen_at=bindparam("of_time"),
    shown_at=bindparam("of_shown"),
)
_IS_SAME = pull_requests.c.head == _SEEN.excluded.head
_IS_FIRST = _SEEN.excluded.shown_at < pull_requests.c.shown_at
_IS_LATER = pull_requests.c.shown_at <= _SEEN.excluded.shown_at
_HAS_BEEN_AWAY = _IS_SAME & (pull_requests.c.shown_at <= bindparam("of_return", type_=Utc))
REMEMBER_HEAD = _SEEN.on_conflict_do_update(
    index_elements=["repository_id", "number"],
    set_={
        "head": _SEEN.excluded.head,
        "seen_at": case((_IS_SAME, pull_requests.c.seen_at), else_=_SEEN.excluded.seen_at),
        "shown_at": _SEEN.excluded.shown_at,
    },
    where=case(
        (_SEEN.excluded.shown_at.is_(None), pull_requests.c.shown_at.is_(None) & ~_IS_SAME),
        (pull_requests.c.shown_at.is_(None), true()),
        (_HAS_BEEN_AWAY, true()),
        (_IS_SAME, _IS_FIRST),
        else_=_IS_LATER,
    ),
)
_PAIRS: BindParameter[tuple[int, str]] = bindparam("of_pairs", expanding=True)
_OF_PAIRS = (impacted.c.repository_id == bindparam("of_repository")) & tuple_(
    impacted.c.number, impacted.c.head
).in_(_PAIRS)
SELECT_TARGETS = select(impacted.c.number, impacted.c.head, impacted.c.targets).where(_OF_PAIRS)
SELECT_TARGETS_KNOWN = select(impacted.c.number, impacted.c.head).where(_OF_PAIRS)


@dataclass(frozen=True, slots=True)
class PullRequestHead:
    """One head of one pull request."""

    repository_id: int
    number: int
    head: Sha


def remember_head(
    session: Connection,
    head: PullRequestHead,
    shown_at: ProviderTime | None,
    now: datetime,
    returned_after: ProviderTime | None = None,
) -> None:
    """Store the head that the provider showed at one of its times; an older head changes nothing.

    Of several times the earliest is kept that is later than `returned_after`: the head may have
    been another one until then. A head without a time replaces none that has one.
    """
    seen = {"of_repository": head.repository_id, "of_number": head.number, "of_time": now}
    shown = None if shown_at is None else shown_at.at
    returned = None if returned_after is None else returned_after.at
    of_head = {"of_head": head.head, "of_shown": shown, "of_return": returned}
    session.execute(REMEMBER_HEAD, {**seen, **of_head})


@dataclass(frozen=True, slots=True)
class KnownHead:
    """The newest head of a pull request.

    `shown_at` is the earliest time of the provider with which it was shown: everything that is
    later by the provider's clock was done when this head was there. None: no time is known.
    """

    head: Sha
    shown_at: ProviderTime | None


def known_head(session: Connection, repository_id: int, number: int) -> KnownHead | None:
    """Return the newest head seen."""
    statement = select(pull_requests.c.head, pull_requests.c.shown_at).where(
        pull_requests.c.repository_id == repository_id, pull_requests.c.number == number
    )
    row = session.execute(statement).first()
    if row is None:
        return None
    shown_at = None if row.shown_at is None else ProviderTime(row.shown_at)
    return KnownHead(Sha(row.head), shown_at)


def with_head(session: Connection, repository_id: int, head: Sha) -> tuple[int, ...]:
    """Return numbers of the pull requests whose newest head this is, lowest first."""
    statement = (
        select(pull_requests.c.number)
        .where(pull_requests.c.repository_id == repository_id, pull_requests.c.head == head)
        .order_by(pull_requests.c.number)
    )
    return tuple(session.execute(statement).scalars())


def put_targets(session: Connection, head: PullRequestHead, targets: Targets, at: datetime) -> None:
    """Store the impacted targets of one head; the newest upload counts."""
    target_sets.keep(session, [targets])
    statement = upsert(impacted).values(
        org_id=org_of(head),
        **_key(head),
        head=head.head,
        targets=target_sets.word_of(targets),
        at=at,
    )
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["repository_id", "number", "head"],
            set_={"targets": statement.excluded.targets, "at": statement.excluded.at},
        )
    )


def targets_of(
    session: Connection, repository_id: int, pairs: Iterable[tuple[int, Sha]]
) -> dict[tuple[int, Sha], Targets]:
    """Return targets by (number, head); a pair without an upload is left out."""
    wanted = list(pairs)
    if not wanted:
        return {}
    binds = {"of_repository": repository_id, "of_pairs": wanted}
    rows = session.execute(SELECT_TARGETS, binds).all()
    held = target_sets.at_hand(session, (row.targets for row in rows))
    restored = ((row, target_sets.of_word(row.targets)) for row in rows)
    found = {(row.number, Sha(row.head)): each for row, each in restored if each is not None}
    del held
    return found


def targets_known(
    session: Connection, repository_id: int, pairs: Iterable[tuple[int, Sha]]
) -> frozenset[tuple[int, Sha]]:
    """Return the (number, head) pairs that have uploaded targets."""
    wanted = list(pairs)
    if not wanted:
        return frozenset()
    binds = {"of_repository": repository_id, "of_pairs": wanted}
    rows = session.execute(SELECT_TARGETS_KNOWN, binds)
    return frozenset((row.number, Sha(row.head)) for row in rows)


def _key(head: PullRequestHead) -> dict[str, int]:
    return {"repository_id": head.repository_id, "number": head.number}


def org_of(head: PullRequestHead) -> ScalarSelect[int]:
    """Return a subquery for the organization of the pull request's repository."""
    statement = select(repositories.c.org_id).where(repositories.c.id == head.repository_id)
    return statement.scalar_subquery()

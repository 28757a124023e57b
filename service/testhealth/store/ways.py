"""The ways in which tests failed over a span: counted once, then moved with time and with uploads.

Few tests fail most of the times, and those are the ones that lists show: to go through all their
failed attempts after every upload takes longer than everything else.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, bindparam, func, select

from service.database import bulk
from service.database.direct import Direct
from service.database.types import Utc, instant
from service.testhealth.reports.results import Outcome
from service.testhealth.store.listings import HERE, Span
from service.testhealth.store.uploads_rows import attempts, groups

SHOWN_MAX = 5
"""Ways that are shown of a test (API.md 8.2)."""

KEPT_MAX = 10_000
"""Ways that are kept of a span, and tests whose ways are kept as they are shown: some 20 MiB."""


@dataclass(frozen=True, slots=True)
class CommonFailure:
    """One way to fail: its headline, how many attempts failed so, and when the last one did."""

    headline: str
    count: int
    last_at: datetime


class Way(NamedTuple):
    """How many attempts failed so, when the last one ran, and the group."""

    many: int
    last_at: datetime
    key: str


class Move(NamedTuple):
    """Attempts of a test that failed in one way, and came into a span (1) or left it (-1)."""

    sign: int
    no: int
    many: int
    key: str
    last_at: datetime


Ways: TypeAlias = tuple[Way, ...]
"""All of a test, the most common first, then the newest."""

LATEST = func.max(attempts.c.ran_at, type_=Utc)

SELECT_WAYS = Direct(
    select(attempts.c.no, func.count(), LATEST, attempts.c.failure)
    .where(
        attempts.c.repository_id == HERE,
        bulk.among(attempts.c.no, "of_numbers"),
        attempts.c.is_eligible.is_(True),
        # Of a few tests: SQLite would go through all that failed in the span if it could.
        attempts.c.outcome.concat("") == Outcome.FAILED.value,
        attempts.c.failure.is_not(None),
        attempts.c.ran_at >= bindparam("since", type_=Utc),
        attempts.c.ran_at < bindparam("until", type_=Utc),
    )
    .group_by(attempts.c.no, attempts.c.failure)
)
_keys = bulk.placed()
SELECT_HEADLINES = Direct(
    select(_keys.c.value, groups.c.headline).select_from(
        _keys.outerjoin(groups, and_(groups.c.repository_id == HERE, groups.c.key == _keys.c.value))
    )
)


def common_failures(
    session: Connection, repository_id: int, nos: Sequence[int], span: Span
) -> dict[int, tuple[CommonFailure, ...]]:
    """Number of each test → its ways to fail in the span, the most common first, then the newest.

    Tests without any are left out.
    """
    return shown(session, repository_id, counted(session, repository_id, nos, span))


def counted(
    session: Connection, repository_id: int, nos: Sequence[int], span: Span
) -> dict[int, Ways]:
    """Number of each of these tests → all its ways, from its failed attempts."""
    if not nos:
        return {}
    by_test: dict[int, list[Way]] = {no: [] for no in nos}
    told = {
        "of_repository": repository_id,
        "of_numbers": nos,
        "since": span.since,
        "until": span.until,
    }
    for no, many, last_at, key in SELECT_WAYS.rows(session, told):
        by_test[no].append(Way(many, instant(last_at), key))
    return {no: _in_order(ways) for no, ways in by_test.items()}


def moved(known: Mapping[int, Ways], moves: Iterable[Move]) -> dict[int, Ways]:
    """What was counted, after attempts came into the span anywhere, or left it at its start."""
    by_test: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        if move.no in known:
            by_test[move.no].append(move)
    return {**known, **{no: _moved(known[no], some) for no, some in by_test.items()}}


def keep(ways: dict[int, Ways], read: Mapping[int, Ways]) -> None:
    """Keep these beside the others, or nothing at all when they have become too many."""
    together = {**ways, **read}
    if sum(map(len, together.values())) + len(together) <= KEPT_MAX:
        ways.update(read)
    else:
        ways.clear()


def shown(
    session: Connection, repository_id: int, ways: Mapping[int, Ways]
) -> dict[int, tuple[CommonFailure, ...]]:
    """Number of each test → the ways that are shown of it; those without any are left out."""
    first = {no: each[:SHOWN_MAX] for no, each in ways.items() if each}
    keys = {way.key for way in chain.from_iterable(first.values())}
    if not keys:
        return {}
    told = {"of_repository": repository_id} | bulk.texts_told(sorted(keys))
    headlines: dict[str, str | None] = dict(SELECT_HEADLINES.rows(session, told))
    return {
        no: _with_headlines(each, tuple([headlines[way.key] for way in each]))
        for no, each in first.items()
    }


@lru_cache(KEPT_MAX)
def _with_headlines(ways: Ways, headlines: tuple[str | None, ...]) -> tuple[CommonFailure, ...]:
    """The same object for the same ways, from which it is seen that nothing is different."""
    return tuple(
        CommonFailure(headline or "", way.many, way.last_at)
        for way, headline in zip(ways, headlines, strict=True)
    )


def _moved(known: Ways, moves: Iterable[Move]) -> Ways:
    ways = {way.key: way for way in known}
    for sign, _, many, key, last_at in moves:
        before = ways.get(key, Way(0, last_at, key))
        # What has left is older than all that is still there.
        ways[key] = Way(before.many + sign * many, max(before.last_at, last_at), key)
    return _in_order(way for way in ways.values() if way.many > 0)


def _in_order(ways: Iterable[Way]) -> Ways:
    return tuple(sorted(ways, reverse=True))

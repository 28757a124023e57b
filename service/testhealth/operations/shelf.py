"""Pages of lists of tests, kept as long as they would be found the same.

A page stands under a stamp, which one small question tells, and until a moment at which time
alone changes it: an override expires, an upload leaves a window of the rates. Rows that come
from here are the same object while they stand, so that their bytes can be kept beside them
(PERFORMANCE.md V9).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime
from operator import is_
from typing import Generic, TypeVar

from service.database.database import Tx
from service.database.stamps import Renewal
from service.runtime import Runtime
from service.testhealth.operations.pages import Cut

Row = TypeVar("Row")
Stamp = TypeVar("Stamp", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Found(Generic[Row]):
    """Where a page begins and what it shows; `until` None: time alone changes nothing of it.

    `rules` are what all its rows were judged by.
    """

    cut: Cut
    rows: tuple[Row, ...]
    until: datetime | None
    rules: object = None


@dataclass(frozen=True, slots=True)
class Question(Generic[Row, Stamp]):
    """A page: what tells it from others, how to tell under what it stands, and to find it.

    It is found with the page as it was before, where time alone has not changed that.
    """

    key: Hashable
    stamp: Callable[[Tx], Stamp]
    find: Callable[[Tx, Stamp, Found[Row] | None], Found[Row]]


@dataclass(frozen=True, slots=True)
class Kept(Generic[Row]):
    """A page that was found under a stamp."""

    stamp: object
    found: Found[Row]


async def found(runtime: Runtime, question: Question[Row, Stamp], now: datetime) -> Found[Row]:
    """The page as it is now; the same rows while nothing of them changed."""
    shelf = runtime.memory.test_pages
    kept: object = shelf.get(question.key)
    before: Found[Row] | None = None
    known: tuple[object, Found[Row]] | None = None
    if isinstance(kept, Kept) and (kept.found.until is None or now < kept.found.until):
        before = kept.found
        known = kept.stamp, kept.found

    def find(session: Tx, stamp: Stamp) -> Found[Row]:
        return _with_rows_of(before, question.find(session, stamp, before))

    stamp, present = await runtime.store.renewed(Renewal(known, question.stamp, find))
    if present is not before:
        shelf[question.key] = Kept(stamp, present)
    return present


def rows_by(rules: object, before: Found[Row] | None) -> tuple[Row, ...]:
    """The rows from before, if they were judged by the same rules."""
    return before.rows if before is not None and before.rules == rules else ()


def _with_rows_of(before: Found[Row] | None, fresh: Found[Row]) -> Found[Row]:
    """The page with the very rows from before if they are all the same objects."""
    if before is None or len(before.rows) != len(fresh.rows):
        return fresh
    if all(map(is_, before.rows, fresh.rows)):
        return replace(fresh, rows=before.rows)
    return fresh

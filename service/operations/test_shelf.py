"""Pages of lists of tests, kept as long as they would be found the same.

A page stands under a stamp, which one small question tells, and until a moment at which time
alone changes it: an override expires, an upload leaves a window of the rates. Rows that come
from here are the same object while they stand, so that their bytes can be kept beside them
(PERFORMANCE.md V9).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from service.operations.test_pages import Cut
from service.runtime import Runtime
from service.store.database import Tx

Row = TypeVar("Row")
Stamp = TypeVar("Stamp", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Found(Generic[Row]):
    """Where a page begins and what it shows; `until` None: time alone changes nothing of it."""

    cut: Cut
    rows: tuple[Row, ...]
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Question(Generic[Row, Stamp]):
    """A page: what tells it from others, how to tell under what it stands, and to find it."""

    key: Hashable
    stamp: Callable[[Tx], Stamp]
    find: Callable[[Tx, Stamp], Found[Row]]


@dataclass(frozen=True, slots=True)
class Kept(Generic[Row]):
    """A page that was found under a stamp."""

    stamp: Hashable
    found: Found[Row]


async def found(runtime: Runtime, question: Question[Row, Stamp], now: datetime) -> Found[Row]:
    """The page as it is now; the same object while nothing of it changed."""
    shelf = runtime.memory.test_pages
    kept = shelf.get(question.key)
    if isinstance(kept, Kept) and await _holds(runtime, question, kept, now):
        known: Found[Row] = kept.found
        return known
    fresh = await runtime.store.read(_find, question)
    shelf[question.key] = fresh
    return fresh.found


async def _holds(
    runtime: Runtime, question: Question[Row, Stamp], kept: Kept[Row], now: datetime
) -> bool:
    until = kept.found.until
    if until is not None and now >= until:
        return False
    return await runtime.store.read(question.stamp) == kept.stamp


def _find(session: Tx, question: Question[Row, Stamp]) -> Kept[Row]:
    stamp = question.stamp(session)
    return Kept(stamp, question.find(session, stamp))

"""Pages of lists of tests, with counts and tokens to their neighbors (API.md 8.1).

A list answers three questions: how many rows it has, those behind a key, those before one. A
page is cut out of it in one snapshot; the tokens are made from what was cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from service.operations import paging
from service.operations.paging import Boundary, KeyPart, Listing
from service.runtime import Keys
from service.store.database import Tx

FIELD = "/page_query/page_token"

Row = TypeVar("Row")
Found = TypeVar("Found")
Key = tuple[KeyPart, ...]


class Rows(Protocol[Row]):
    """A list in its order."""

    def count(self, session: Tx) -> int:
        """How many rows there are."""
        ...

    def after(self, session: Tx, key: Key | None, limit: int) -> Sequence[Row]:
        """The rows behind a key; None: the first ones."""
        ...

    def before(self, session: Tx, key: Key | None, limit: int) -> Sequence[Row]:
        """The rows before a key, nearest ones, in the list's order; None: the last ones."""
        ...

    def key(self, row: Row) -> Key:
        """A row's place in the order."""
        ...


@dataclass(frozen=True, slots=True)
class PageWish:
    """How many rows, and which: what a token says, none is the first page."""

    size: int
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Cut(Generic[Row]):
    """A page's rows, the number of those before it, and where its neighbors begin.

    `following` and `preceding` are None where there is no such page.
    """

    rows: tuple[Row, ...]
    total: int
    start: int
    following: Boundary | None = None
    preceding: Boundary | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """A page as clients get it; an empty token says that there is no such page."""

    rows: tuple[Row, ...]
    total_rows: int
    total_pages: int
    index: int
    next_token: str
    prev_token: str
    last_token: str


def cut(session: Tx, rows: Rows[Row], boundary: Boundary | None, size: int) -> Cut[Row]:
    """The page at the boundary, or the first one.

    A page that lies before a row and has lost all its rows is the first page; one that lies
    behind a row stays empty, or rows that were read would be read again.
    """
    total = rows.count(session)
    if boundary is not None and boundary.backwards:
        found = _backwards(session, rows, boundary, total, size)
        if found.rows:
            return found
        boundary = None
    return _forwards(session, rows, boundary or Boundary(()), total, size)


def _forwards(session: Tx, rows: Rows[Row], boundary: Boundary, total: int, size: int) -> Cut[Row]:
    start = boundary.rows_before
    found = rows.after(session, boundary.key or None, size + 1)
    shown = tuple(found[:size])
    following = preceding = None
    if len(found) > size:
        following = Boundary(rows.key(shown[-1]), start + size)
    if boundary.key:
        # An empty page has no row to stand before; what is before it is the end of the list.
        key = rows.key(shown[0]) if shown else ()
        preceding = Boundary(key, start, backwards=True) if shown or total else None
    return Cut(shown, total, start, following, preceding)


def _backwards(session: Tx, rows: Rows[Row], boundary: Boundary, total: int, size: int) -> Cut[Row]:
    is_end = not boundary.key
    if is_end and total:
        size = total % size or size
    found = rows.before(session, boundary.key or None, size + 1)
    has_more = len(found) > size
    shown = tuple(found[-size:])
    end = total if is_end else boundary.rows_before
    start = max(0, end - len(shown)) if has_more else 0
    following = preceding = None
    if shown and not is_end:
        following = Boundary(rows.key(shown[-1]), start + len(shown))
    if has_more:
        preceding = Boundary(rows.key(shown[0]), start, backwards=True)
    return Cut(shown, total, start, following, preceding)


def page_of(
    keys: Keys, listing: Listing, found: Cut[Row], rows: Sequence[Found], wish: tuple[int, datetime]
) -> Page[Found]:
    """The page of what was cut, with its rows as they are shown; `wish`: its size, and now."""
    size, now = wish
    pages = -(-found.total // size)
    last = Boundary((), found.total, backwards=True) if pages > 1 else None

    def token(boundary: Boundary | None) -> str:
        return "" if boundary is None else paging.token(keys, listing, boundary, now)

    return Page(
        rows=tuple(rows),
        total_rows=found.total,
        total_pages=pages,
        index=found.start // size,
        next_token=token(found.following),
        prev_token=token(found.preceding),
        last_token=token(last),
    )

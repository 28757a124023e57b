"""Pages of lists of tests, with counts and tokens to their neighbors.

A list returns how many rows it has, those after a key, and those before one. A page is cut out of
it in one snapshot, and its tokens are made from the rows at its ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from service.database import paging
from service.database.database import Tx
from service.database.paging import Boundary, Listing
from service.runtime import Keys, Runtime
from service.testhealth.store.keyset import Key

FIELD = "/page_query/page_token"

Row = TypeVar("Row")


class Rows(Protocol[Row]):
    """A list in its order."""

    def count(self, session: Tx) -> int:
        """Return how many rows there are."""
        ...

    def after(self, session: Tx, key: Key | None, limit: int) -> Sequence[Row]:
        """Return the rows after a key, or the first ones."""
        ...

    def before(self, session: Tx, key: Key | None, limit: int) -> Sequence[Row]:
        """Return the rows before a key, or the last ones, in the list's order."""
        ...

    def key(self, row: Row) -> Key:
        """Return a row's place in the order."""
        ...


@dataclass(frozen=True, slots=True)
class PageRequest:
    """How many rows, and from where: as a token says, without one the first page."""

    size: int
    token: str | None = None


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where a page begins, how many rows it has, and when it is read."""

    boundary: Boundary | None
    size: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Cut:
    """How many rows there are, how many before the page, and where its neighbors begin.

    `following` and `preceding` are None where there is no such page.
    """

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


def place_of(runtime: Runtime, listing: Listing, wanted: PageRequest) -> PagePlace:
    """Return where a page begins. Raises Malformed(invalid_page_token, page_token_expired)."""
    now = runtime.clock.now()
    boundary = paging.boundary_of(runtime.keys, listing, wanted.token, now, FIELD)
    return PagePlace(boundary, wanted.size, now)


def cut(session: Tx, rows: Rows[Row], place: PagePlace) -> tuple[Cut, Sequence[Row]]:
    """Return a page and its rows.

    A page before a row that has lost all its rows is the first page. A page after a row stays
    empty, or rows that were read would be read again.
    """
    total, boundary = rows.count(session), place.boundary
    if boundary is not None and boundary.backwards:
        page, shown = _backwards(session, rows, boundary, (total, place.size))
        if shown:
            return page, shown
        boundary = None
    return _forwards(session, rows, boundary or Boundary(()), (total, place.size))


def _forwards(
    session: Tx, rows: Rows[Row], boundary: Boundary, counts: tuple[int, int]
) -> tuple[Cut, Sequence[Row]]:
    total, size = counts
    start = boundary.rows_before
    fetched = rows.after(session, boundary.key or None, size + 1)
    shown = fetched[:size]
    following = preceding = None
    if len(fetched) > size:
        following = Boundary(rows.key(shown[-1]), start + size)
    if boundary.key:
        # An empty page has no row to stand before; what is before it is the end of the list.
        key = rows.key(shown[0]) if shown else ()
        preceding = Boundary(key, start, backwards=True) if shown or total else None
    return Cut(total, start, following, preceding), shown


def _backwards(
    session: Tx, rows: Rows[Row], boundary: Boundary, counts: tuple[int, int]
) -> tuple[Cut, Sequence[Row]]:
    total, size = counts
    is_end = not boundary.key
    if is_end and total:
        size = total % size or size
    fetched = rows.before(session, boundary.key or None, size + 1)
    has_more = len(fetched) > size
    shown = fetched[-size:]
    end = total if is_end else boundary.rows_before
    start = max(0, end - len(shown)) if has_more else 0
    following = preceding = None
    if shown and not is_end:
        following = Boundary(rows.key(shown[-1]), start + len(shown))
    if has_more:
        preceding = Boundary(rows.key(shown[0]), start, backwards=True)
    return Cut(total, start, following, preceding), shown


def page_of(
    keys: Keys, listing: Listing, place: PagePlace, page: Cut, rows: Sequence[Row]
) -> Page[Row]:
    """Return a page with its rows as they are shown, and with fresh tokens."""
    pages = -(-page.total // place.size)
    last = Boundary((), page.total, backwards=True) if pages > 1 else None

    def token(boundary: Boundary | None) -> str:
        return "" if boundary is None else paging.token(keys, listing, boundary, place.now)

    return Page(
        rows=tuple(rows),
        total_rows=page.total,
        total_pages=pages,
        index=page.start // place.size,
        next_token=token(page.following),
        prev_token=token(page.preceding),
        last_token=token(last),
    )

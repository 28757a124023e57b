"""Pages of lists of tests, with counts and tokens to their neighbors.

The first page settles the order: the first tests of the list, at most `TOP_MAX`, as they are then,
and all others by number. Every token holds the numbers of these first ones. So whatever changes
while pages are read, each test that is in the list throughout is on exactly one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from service.database import paging
from service.database.database import Tx
from service.database.paging import Boundary, KeyPart, Listing
from service.runtime import Keys, Runtime
from service.testhealth.store.numbered import ABOVE_ALL, NumberedTests

FIELD = "/page_query/page_token"

TOP_MAX = 200
"""Tests whose order a token holds; numbers of ten digits still fit into it."""

Row = TypeVar("Row")
Key = tuple[KeyPart, ...]
"""A place in the order: one in the top, and a number behind it."""


@dataclass(frozen=True, slots=True)
class SettledTests:
    """The numbers of a list in the order that its first page settled."""

    tests: NumberedTests
    top: tuple[int, ...]

    def after(self, session: Tx, key: Key | None, limit: int) -> list[int]:
        """Return the numbers after a place, or the first ones."""
        place, no = (-1, 0) if key is None else (int(key[0]), int(key[1]))
        found = self._of_top(session, self.top[place + 1 :])[:limit]
        if len(found) < limit:
            found += self._others(self.tests.after(session, no, self._enough(limit)))
        return found[:limit]

    def before(self, session: Tx, key: Key | None, limit: int) -> list[int]:
        """Return the numbers before a place, or the last ones, in the list's order."""
        place, no = (len(self.top), ABOVE_ALL) if key is None else (int(key[0]), int(key[1]))
        found: list[int] = []
        if place == len(self.top):
            found = self._others(self.tests.before(session, no, self._enough(limit)))[-limit:]
        if len(found) < limit:
            found = self._of_top(session, self.top[:place]) + found
        return found[-limit:]

    def key(self, no: int) -> Key:
        """Return a place in the order."""
        if no in self.top:
            return self.top.index(no), 0
        return len(self.top), no

    def _of_top(self, session: Tx, nos: Sequence[int]) -> list[int]:
        left = self.tests.among(session, nos)
        return [no for no in nos if no in left]

    def _others(self, nos: Sequence[int]) -> list[int]:
        return [no for no in nos if no not in self.top]

    def _enough(self, limit: int) -> int:
        return limit + len(self.top)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """How many rows, and from where: as a token says, without one the first page."""

    size: int
    token: str | None = None


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where a page begins, how many rows it has, and when it is read.

    `top` is what the first page settled; None: this is the first one.
    """

    boundary: Boundary | None
    size: int
    now: datetime
    top: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """How many rows there are, how many before the page, and where its neighbors begin.

    `following` and `preceding` are None where there is no such page.
    """

    total: int
    start: int
    following: Boundary | None = None
    preceding: Boundary | None = None
    top: tuple[int, ...] = ()


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
    boundary = paging.boundary_of(runtime.keys, _settled(listing), wanted.token, now, FIELD)
    if boundary is None:
        return PagePlace(None, wanted.size, now)
    top, *key = boundary.key
    numbers = tuple(int(no) for no in str(top).split(",") if no)
    return PagePlace(replace(boundary, key=tuple(key)), wanted.size, now, numbers)


def _settled(listing: Listing) -> Listing:
    """Return the list as its tokens name it, unlike tokens that hold no top."""
    return replace(listing, filters=("top", *listing.filters))


def cut(session: Tx, tests: NumberedTests, place: PagePlace) -> tuple[Cut, Sequence[int]]:
    """Return a page and the numbers of its tests.

    A page before a row that has lost all its rows is the first page. A page after a row stays
    empty, or rows that were read would be read again.
    """
    total, boundary = tests.count(session), place.boundary
    top = tuple(tests.top(session, TOP_MAX)) if place.top is None else place.top
    settled = SettledTests(tests, top)
    if boundary is not None and boundary.backwards:
        page, shown = _backwards(session, settled, boundary, (total, place.size))
        if shown:
            return replace(page, top=top), shown
        boundary = None
    page, shown = _forwards(session, settled, boundary or Boundary(()), (total, place.size))
    return replace(page, top=top), shown


def _forwards(
    session: Tx, tests: SettledTests, boundary: Boundary, counts: tuple[int, int]
) -> tuple[Cut, Sequence[int]]:
    total, size = counts
    start = boundary.rows_before
    fetched = tests.after(session, boundary.key or None, size + 1)
    shown = fetched[:size]
    following = preceding = None
    if len(fetched) > size:
        following = Boundary(tests.key(shown[-1]), start + size)
    if boundary.key:
        # An empty page has no row to stand before; what is before it is the end of the list.
        key = tests.key(shown[0]) if shown else ()
        preceding = Boundary(key, start, backwards=True) if shown or total else None
    return Cut(total, start, following, preceding), shown


def _backwards(
    session: Tx, tests: SettledTests, boundary: Boundary, counts: tuple[int, int]
) -> tuple[Cut, Sequence[int]]:
    total, size = counts
    is_end = not boundary.key
    if is_end and total:
        size = total % size or size
    fetched = tests.before(session, boundary.key or None, size + 1)
    has_more = len(fetched) > size
    shown = fetched[-size:]
    end = total if is_end else boundary.rows_before
    start = max(0, end - len(shown)) if has_more else 0
    following = preceding = None
    if shown and not is_end:
        following = Boundary(tests.key(shown[-1]), start + len(shown))
    if has_more:
        preceding = Boundary(tests.key(shown[0]), start, backwards=True)
    return Cut(total, start, following, preceding), shown


def page_of(
    keys: Keys, listing: Listing, place: PagePlace, page: Cut, rows: Sequence[Row]
) -> Page[Row]:
    """Return a page with its rows as they are shown, and with fresh tokens."""
    pages = -(-page.total // place.size)
    last = Boundary((), page.total, backwards=True) if pages > 1 else None

    top = ",".join(map(str, page.top))

    def token(boundary: Boundary | None) -> str:
        if boundary is None:
            return ""
        settled = replace(boundary, key=(top, *boundary.key))
        return paging.token(keys, _settled(listing), settled, place.now)

    return Page(
        rows=tuple(rows),
        total_rows=page.total,
        total_pages=pages,
        index=page.start // place.size,
        next_token=token(page.following),
        prev_token=token(page.preceding),
        last_token=token(last),
    )

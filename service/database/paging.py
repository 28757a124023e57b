"""Pages of lists: the one way in which any list of the API or of a page is read in parts.

A list has an order whose keys do not move while its pages are read. A store reads the rows behind
a key, one more than a page has; `Place` decodes the token that names the key, cuts the page, and
makes the tokens of its neighbors.

    place = paging.place_of(runtime, Listing("listQueues", org_id), selection)
    rows = await runtime.store.read(queues_behind, place.key, place.limit)
    page = place.page(rows, lambda row: (row.repository_id, row.branch))

A `CountedList` also reads backwards and counts its rows: `place.cut` gives pages with totals, and
tokens of the page before and of the last one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from service.clock import Clock
from service.database import page_tokens
from service.database.database import Tx
from service.database.page_tokens import Key, Listing, PageStart, TagKeys

Row = TypeVar("Row")
Other = TypeVar("Other")


class Deployment(Protocol):
    """The parts of a deployment on which tokens depend; a `Runtime` has them."""

    @property
    def keys(self) -> TagKeys:
        """Return the keys that prove a token."""
        ...

    @property
    def clock(self) -> Clock:
        """Return the clock by which a token grows old."""
        ...


class CountedList(Protocol[Row]):
    """A list that is read in both directions; its keys do not move while pages are read."""

    @property
    def end(self) -> Key:
        """Return the key of the end of the list, before which is its last row."""
        ...

    def count(self, session: Tx) -> int:
        """Return how many rows there are."""
        ...

    def key(self, row: Row) -> Key:
        """Return the key of a row."""
        ...

    def after(self, session: Tx, key: Key, limit: int) -> Sequence[Row]:
        """Return the rows behind a key; an empty one is the beginning."""
        ...

    def before(self, session: Tx, key: Key, limit: int) -> Sequence[Row]:
        """Return the last rows before a key, in the order of the list."""
        ...


@dataclass(frozen=True, slots=True)
class PageSelection:
    """The selection of a page: how many rows, and from where by its token; without one the first.

    `field` is where the token was sent; refusals name it.
    """

    size: int
    token: str | None = None
    field: str = "cursor"


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list, and the token of the next page; None at the end of the list."""

    rows: tuple[Row, ...]
    next_cursor: str | None

    def with_rows(self, rows: Sequence[Other]) -> "Page[Other]":
        """Return the same page with its rows as they are shown."""
        return Page(tuple(rows), self.next_cursor)


@dataclass(frozen=True, slots=True)
class CountedPage(Generic[Row]):
    """A page that knows its list: how many rows and pages it has, and tokens of other pages.

    A token is None where there is no such page.
    """

    rows: tuple[Row, ...]
    next_cursor: str | None = None
    prev_cursor: str | None = None
    last_cursor: str | None = None
    total_rows: int = 0
    total_pages: int = 0
    index: int = 0

    def with_rows(self, rows: Sequence[Other]) -> "CountedPage[Other]":
        """Return the same page with its rows as they are shown."""
        return CountedPage(
            tuple(rows),
            self.next_cursor,
            self.prev_cursor,
            self.last_cursor,
            self.total_rows,
            self.total_pages,
            self.index,
        )


@dataclass(frozen=True, slots=True)
class _Cut(Generic[Row]):
    """The rows of a page, how many are before it, and where its neighbors begin."""

    rows: Sequence[Row]
    start: int
    following: PageStart | None = None
    preceding: PageStart | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a page of a list begins, how many rows it has, and when it is read."""

    listing: Listing
    size: int
    now: datetime
    page_start: PageStart | None
    keys: TagKeys = field(repr=False)

    @property
    def key(self) -> Key:
        """Return the key behind which the page begins; empty: it is the first page."""
        return () if self.page_start is None else self.page_start.key

    @property
    def rows_before(self) -> int:
        """Return how many rows were before the page when its token was made."""
        return 0 if self.page_start is None else self.page_start.rows_before

    @property
    def limit(self) -> int:
        """Return how many rows to read: one more than shown, to know whether any follows."""
        return self.size + 1

    def token(self, page_start: PageStart | None) -> str | None:
        """Return the token of a page that begins there."""
        if page_start is None:
            return None
        return page_tokens.token(self.keys, self.listing, page_start, self.now)

    def page(self, fetched: Sequence[Row], key_of: Callable[[Row], Key]) -> Page[Row]:
        """Return the page of the rows behind the key, of which at most `limit` were read."""
        cut = self._forwards(fetched, key_of, self.rows_before)
        return Page(tuple(cut.rows), self.token(cut.following))

    def page_of_all(self, rows: Sequence[Row], key_of: Callable[[Row], Key]) -> Page[Row]:
        """Return the page of a short list, of which all rows were read, sorted by their keys."""
        behind = [row for row in rows if not self.key or key_of(row) > self.key]
        return self.page(behind, key_of)

    def cut(self, session: Tx, rows: CountedList[Row]) -> CountedPage[Row]:
        """Return a page of a list that counts its rows.

        A page before a row that has lost all its rows is the first page. A page after a row stays
        empty, or rows that were read would be read again.
        """
        total, page_start = rows.count(session), self.page_start
        cut: _Cut[Row] | None = None
        if page_start is not None and page_start.backwards:
            cut = self._backwards(session, rows, page_start, total)
            page_start = None
        if cut is None:
            cut = self._from(session, rows, page_start or PageStart(()), total)
        pages = -(-total // self.size)
        last = PageStart(rows.end, total, backwards=True) if pages > 1 else None
        return CountedPage(
            rows=tuple(cut.rows),
            next_cursor=self.token(cut.following),
            prev_cursor=self.token(cut.preceding),
            last_cursor=self.token(last),
            total_rows=total,
            total_pages=pages,
            index=cut.start // self.size,
        )

    def _forwards(
        self, fetched: Sequence[Row], key_of: Callable[[Row], Key], start: int
    ) -> _Cut[Row]:
        shown = fetched[: self.size]
        has_more = len(fetched) > self.size
        following = PageStart(key_of(shown[-1]), start + self.size) if has_more else None
        return _Cut(shown, start, following)

    def _from(
        self, session: Tx, rows: CountedList[Row], page_start: PageStart, total: int
    ) -> _Cut[Row]:
        start = page_start.rows_before
        fetched = rows.after(session, page_start.key, self.limit)
        cut = self._forwards(fetched, rows.key, start)
        if not page_start.key or not (cut.rows or total):
            return cut
        # An empty page has no row to stand before; what is before it is the end of the list.
        key = rows.key(cut.rows[0]) if cut.rows else rows.end
        return _Cut(cut.rows, start, cut.following, PageStart(key, start, backwards=True))

    def _backwards(
        self, session: Tx, rows: CountedList[Row], page_start: PageStart, total: int
    ) -> _Cut[Row] | None:
        """Return the page before a row, None if it has lost all its rows."""
        is_end = page_start.key == rows.end
        size = total % self.size or self.size if is_end else self.size
        fetched = rows.before(session, page_start.key, size + 1)
        if not fetched:
            return None
        shown = fetched[-size:]
        end = total if is_end else page_start.rows_before
        following = preceding = None
        start = 0
        if len(fetched) > size:
            start = max(0, end - len(shown))
            preceding = PageStart(rows.key(shown[0]), start, backwards=True)
        if not is_end:
            following = PageStart(rows.key(shown[-1]), start + len(shown))
        return _Cut(shown, start, following, preceding)


def place_of(deployment: Deployment, listing: Listing, selection: PageSelection) -> Place:
    """Return where a page begins.

    Raises Malformed: page_token_expired after 24 hours, invalid_page_token for any other fault.
    """
    now = deployment.clock.now()
    page_start = page_tokens.page_start_of(
        deployment.keys, listing, selection.token, now, selection.field
    )
    return Place(listing, selection.size, now, page_start, deployment.keys)


def cursor(deployment: Deployment, listing: Listing, key: Key) -> str:
    """Return the token of what comes behind a key, for a client that follows a list."""
    return page_tokens.token(deployment.keys, listing, PageStart(key), deployment.clock.now())

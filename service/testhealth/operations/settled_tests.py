"""The order of a list of tests, which its first page settles.

It is that of the first tests of the list as they are then, at most `TOP_MAX`, and all others by
number. Every token holds the numbers of these first ones. So whatever changes while pages are
read, each test that is in the list throughout is on exactly one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.database.page_tokens import Key, Listing
from service.database.paging import CountedPage, Place
from service.testhealth.store.numbered import ABOVE_ALL, NumberedTests

TOP_MAX = 200
"""Tests whose order a token holds; numbers of ten digits still fit into it."""


@dataclass(frozen=True, slots=True)
class SettledTests:
    """The numbers of a list in the order that its first page settled.

    A key is the settled numbers, a place among them, and a number behind them.
    """

    tests: NumberedTests
    top: tuple[int, ...]

    @property
    def end(self) -> Key:
        """Return the key of the end of the list."""
        return (",".join(map(str, self.top)),)

    def count(self, session: Tx) -> int:
        """Return how many tests the list has."""
        return self.tests.count(session)

    def key(self, no: int) -> Key:
        """Return the key of a test."""
        if no in self.top:
            return (*self.end, self.top.index(no), 0)
        return (*self.end, len(self.top), no)

    def after(self, session: Tx, key: Key, limit: int) -> list[int]:
        """Return the numbers behind a key, or the first ones."""
        place, no = (int(key[1]), int(key[2])) if key else (-1, 0)
        found = self._of_top(session, self.top[place + 1 :])[:limit]
        if len(found) < limit:
            found += self._others(self.tests.after(session, no, self._enough(limit)))
        return found[:limit]

    def before(self, session: Tx, key: Key, limit: int) -> list[int]:
        """Return the last numbers before a key, in the list's order."""
        is_end = key == self.end
        place, no = (len(self.top), ABOVE_ALL) if is_end else (int(key[1]), int(key[2]))
        found: list[int] = []
        if place == len(self.top):
            found = self._others(self.tests.before(session, no, self._enough(limit)))[-limit:]
        if len(found) < limit:
            found = self._of_top(session, self.top[:place]) + found
        return found[-limit:]

    def _of_top(self, session: Tx, nos: Sequence[int]) -> list[int]:
        left = self.tests.among(session, nos)
        return [no for no in nos if no in left]

    def _others(self, nos: Sequence[int]) -> list[int]:
        return [no for no in nos if no not in self.top]

    def _enough(self, limit: int) -> int:
        return limit + len(self.top)


def listing(endpoint: str, repository: RepositoryRecord, *filters: object) -> Listing:
    """Return a list of tests of a repository; its tokens begin with the settled numbers."""
    return Listing(endpoint, repository.org_id, repository.id, ("top", *filters))


def cut(session: Tx, tests: NumberedTests, place: Place) -> CountedPage[int]:
    """Return the numbers of the tests on a page."""
    if place.key:
        top = tuple(int(no) for no in str(place.key[0]).split(",") if no)
    else:
        top = tuple(tests.top(session, TOP_MAX))
    return place.cut(session, SettledTests(tests, top))

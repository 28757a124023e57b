"""Count the uploads of each day in which a test passed, for all tests of an upload at once.

A day's counts lie across numbers: the first has the lowest binary digit of every test's count,
the next one the second, so that an upload is one addition and not one for each of its tests.
"""

from collections.abc import Mapping
from types import MappingProxyType

_NONE: Mapping[int, int] = MappingProxyType({})


class DailyPasses:
    """Counts by day and test; tests are bits, days are numbers as `date.toordinal`."""

    def __init__(self) -> None:
        self._digits: dict[int, list[int]] = {}
        self._changes = 0
        self._changed: dict[int, int] = {}
        self._counted: dict[int, tuple[int, Mapping[int, int]]] = {}

    def add(self, day: int, tests: int) -> None:
        """These tests passed in one more upload of the day."""
        if not tests:
            return
        digits, carried = self._digits.setdefault(day, []), tests
        for place, digit in enumerate(digits):
            digits[place], carried = digit ^ carried, digit & carried
        if carried:
            digits.append(carried)
        self._note(day)

    def add_new(self, day: int, tests: int) -> None:
        """The same of tests that nobody has asked for: what is known of all others stands."""
        changes, changed = self._changes, self.changed(day)
        self.add(day, tests)
        if changed:
            self._changes, self._changed[day] = changes, changed

    def take(self, day: int, tests: int) -> None:
        """These tests passed in one upload less of the day, all of which are counted."""
        if not tests:
            return
        digits, borrowed = self._digits[day], tests
        for place, digit in enumerate(digits):
            digits[place], borrowed = digit ^ borrowed, ~digit & borrowed
        if any(digits):
            self._note(day)
            return
        # So that only days that are there are gone through.
        del self._digits[day], self._changed[day]
        self._counted.clear()

    def changed(self, day: int) -> int:
        """A number that is another whenever the day's counts are; 0: it has none."""
        return self._changed.get(day, 0)

    def by_day(self, bit: int) -> Mapping[int, int]:
        """Day → in how many uploads a test passed; days without any are left out."""
        since, counted = self._counted.get(bit, (0, _NONE))
        if since == self._changes:
            return counted
        counts = dict(counted)
        for day, changed in self._changed.items():
            if changed > since:
                counts[day] = self._count(day, bit)
        counts = {day: many for day, many in counts.items() if many}
        self._counted[bit] = (self._changes, counts)
        return counts

    def _note(self, day: int) -> None:
        self._changes += 1
        self._changed[day] = self._changes

    def _count(self, day: int, bit: int) -> int:
        digits = enumerate(self._digits[day])
        return sum((digit >> bit & 1) << place for place, digit in digits)

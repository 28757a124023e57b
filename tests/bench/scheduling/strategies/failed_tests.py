"""Who can have broken each test, by what has failed and passed so far."""

from collections import Counter
from dataclasses import dataclass

Test = tuple[int, int]
"""A test that one breaks alone (it stands there twice), or that two break together.

A flaky one has the number of the run, below zero, twice.
"""


@dataclass(frozen=True)
class Accusation:
    """One that alone can have broken a test: the first run that failed it, and how many did."""

    pr: int
    test: Test
    first: int
    failures: int


class Names:
    """Who can have broken each test, by what has failed and passed so far."""

    def __init__(self) -> None:
        self.suspects: dict[Test, set[int]] = {}
        self.first: dict[Test, int] = {}
        self.failures: Counter[Test] = Counter()
        self.seen: list[tuple[frozenset[int], frozenset[Test]]] = []

    def note(self, run: int, members: frozenset[int], failed: frozenset[Test]) -> None:
        """A run of these has ended."""
        self.failures.update(failed)
        for test in failed - self.suspects.keys():
            self.first[test] = run
            self.suspects[test] = set(members)
            for others, tests in self.seen:
                self._narrow(test, others, tests)
        self.seen.append((members, failed))
        for test in self.suspects:
            self._narrow(test, members, failed)

    def accusations(self) -> list[Accusation]:
        """Those that alone can have broken some test."""
        return [
            Accusation(pr, test, self.first[test], self.failures[test])
            for test, left in self.suspects.items()
            if len(left) == 1
            for pr in left
        ]

    def _narrow(self, test: Test, members: frozenset[int], failed: frozenset[Test]) -> None:
        if test in failed:
            self.suspects[test] &= members
        else:
            self.suspects[test] -= members

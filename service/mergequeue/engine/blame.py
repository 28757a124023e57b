"""Find the pull requests that can have caused a failure, by the tests that failed in each run.

Two rules, where the failed tests are known:

1. A pull request that breaks a test breaks it in each run. So one that was in a failed run in which
   the test passed did not break it.
2. If one test failed in two runs, both have the same cause. So it is a pull request that was in
   both.

If the rules exclude every pull request, the test is flaky, or several pull requests break it. Then
each pull request of the run is a suspect, as if nothing were known of its tests.

A pull request may also fail only together with another one. So one that only the first rule
excludes can still be a part of the cause: a `partner`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from service.mergequeue.engine.records import UNKNOWN, FailedTest, Record


@dataclass(frozen=True, slots=True)
class Cause:
    """The entries that can have caused a failure, and those that can be a part of its cause."""

    suspects: frozenset[str]
    partners: frozenset[str]


def causes(records: Sequence[Record]) -> dict[str, dict[FailedTest, Cause]]:
    """Return the possible causes of each unexplained failed test, by run."""
    seen = _Seen(records)
    return {
        record.run: {failed: seen.cause_of(record, failed) for failed in record.unexplained}
        for record in records
        if record.unexplained
    }


def explained(records: tuple[Record, ...], culprits: Iterable[str]) -> tuple[Record, ...]:
    """Return the records without the failures that these convicted culprits can have caused.

    A record is dropped when no unexplained test is left, or if it names none.
    """
    bad = set(culprits)
    known = causes(records)
    left = [_left_of(record, known.get(record.run, {}), bad) for record in records]
    return tuple(record for record in left if record is not None)


def _left_of(record: Record, known: Mapping[FailedTest, Cause], bad: set[str]) -> Record | None:
    charged = {one.entry for one in record.suspects if one.chance} & bad
    if not charged:
        return record
    left = tuple(each for each, cause in known.items() if cause.suspects.isdisjoint(charged))
    if not left:
        return None
    return replace(record.cleared_of(charged, have_merged=False), unexplained=left)


class _Seen:
    """The runs that had each entry, and those in which each test failed or passed.

    Sets of runs are numbers with one bit for each. `known` has the causes by run and by what is
    seen of a failure: many fail alike, and what is believed of 100 runs with 250 failed tests each
    took 25 ms of CPU with it, and 174 ms without (2026-11-27).
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.having: defaultdict[str, int] = defaultdict(int)
        self.failing: defaultdict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.known: dict[tuple[str, int, int], Cause] = {}
        self.passing: defaultdict[str, int] = defaultdict(int)
        self.naming: defaultdict[str, int] = defaultdict(int)
        for place, record in enumerate(records):
            for one in record.suspects:
                self.having[one.entry] |= 1 << place
            for check, tests in record.tests.items():
                self._note(record, check, tests, 1 << place)

    def _note(self, record: Record, check: str, tests: Sequence[str], run: int) -> None:
        failing = self.failing[check]
        for test in tests:
            failing[test] |= run
        if record.is_whole and not tests:
            self.passing[check] |= run
        elif record.is_whole and UNKNOWN not in tests:
            self.naming[check] |= run

    def cause_of(self, record: Record, failed: FailedTest) -> Cause:
        """Return which suspects of the record can have caused this failure."""
        passed, together = self.passing[failed.check], 0
        if failed.test != UNKNOWN:
            together = self.failing[failed.check][failed.test]
            passed |= self.naming[failed.check] & ~together
        alike = (record.run, passed, together)
        if alike not in self.known:
            self.known[alike] = self._cause_by(record, passed, together)
        return self.known[alike]

    def _cause_by(self, record: Record, passed: int, together: int) -> Cause:
        """Return which suspects can have caused what failed and passed in these runs."""
        everyone = frozenset(one.entry for one in record.suspects)
        partners = frozenset(one for one in everyone if not together & ~self.having[one])
        suspects = frozenset(one for one in partners if not passed & self.having[one])
        if any(one.chance for one in record.suspects if one.entry in suspects):
            return Cause(suspects, partners)
        return Cause(everyone, everyone)

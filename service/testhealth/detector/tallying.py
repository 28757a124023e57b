"""Uploads of a day added up, test by test: what those say that hold a test in a set (FLAKY.md 4).

Sets are sorted numbers of tests. A sum is made a piece at a time, in the order of numbers, so
that none takes long to write.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Tallied:
    """The uploads of a day that hold one set, those taken out again subtracted.

    `passed` of them hold it as tests that passed, of which `passing` are no mass failures, and
    `skipped` as tests that were skipped. `last_at` is when the last of them ran, None when all
    there is was taken out.
    """

    nos: Sequence[int]
    passed: int
    passing: int
    skipped: int
    last_at: datetime | None


class Sum(NamedTuple):
    """What a test's day gains."""

    no: int
    passed: int
    passing: int
    skipped: int


class Piece(NamedTuple):
    """Sums of some tests, in order, and when those ran last, by time.

    All tests up to number `counted_to` are summed with it; `is_last`: there are no others.
    """

    sums: tuple[Sum, ...]
    last_runs: Mapping[datetime, Sequence[int]]
    counted_to: int
    is_last: bool


def piece(tallied: Iterable[Tallied], after: int, at_most: int) -> Piece:
    """The sums of the next tests, at most so many, above a number."""
    ahead = [(each, _next(each.nos, after, at_most)) for each in tallied]
    nos = sorted({no for _, some in ahead for no in some})
    here = nos[:at_most]
    counted_to = here[-1] if here else after
    counts: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    last_at: dict[int, datetime] = {}
    for each, some in ahead:
        for no in some[: bisect_right(some, counted_to)]:
            count = counts[no]
            count[0] += each.passed
            count[1] += each.passing
            count[2] += each.skipped
            if each.last_at is not None and (no not in last_at or last_at[no] < each.last_at):
                last_at[no] = each.last_at
    last_runs: defaultdict[datetime, list[int]] = defaultdict(list)
    for no, at in sorted(last_at.items()):
        last_runs[at].append(no)
    sums = tuple(Sum(no, *counts[no]) for no in here)
    return Piece(sums, last_runs, counted_to, len(nos) <= at_most)


def _next(nos: Sequence[int], after: int, at_most: int) -> Sequence[int]:
    # One more than are wanted, by which the end is told from more to come.
    first = bisect_right(nos, after)
    return nos[first : first + at_most + 1]

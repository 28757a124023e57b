"""Indexed series of a repository: their points, and the tests that are alone at each point.

The rules are in docs/design/detector.md 4. Verdicts are bits, one for each test that ever failed.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

from service.testhealth.detector import series
from service.testhealth.detector.index_uploads import bits_of
from service.testhealth.detector.series import Place, Point, Series, Track

PointKey = tuple[str, str]
"""Code id and CI run."""


KNOWN_MAX = 5000
"""Tests whose verdicts are kept as letters: at most 3 MB a series."""


class Verdicts(NamedTuple):
    """The verdicts of one point, which ran at `at`; `green` and `red` have a bit for each test."""

    at: datetime
    sha: str
    position: int | None
    tests_run: int
    green: int
    red: int
    machine: str = ""

    @property
    def ran(self) -> int:
        """A bit for each test that has a verdict here."""
        return self.green | self.red


@dataclass(slots=True)
class IndexedSeries:
    """One series. `alone`: by point, the tests whose verdict differs from both neighbors."""

    branch: str
    job: str
    points: dict[PointKey, Verdicts] = field(default_factory=dict)
    order: list[PointKey] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    """The times of the points in `order`, as `series.in_order` gives them."""
    alone: defaultdict[PointKey, set[int]] = field(default_factory=lambda: defaultdict(set))
    lonely: dict[int, frozenset[PointKey]] = field(default_factory=dict)
    shown: Series | None = None
    in_order: list[Verdicts] | None = None
    days: list[int] = field(default_factory=list)
    red: int = 0
    """A bit for each test with a failed verdict: no other test can be alone or broken here."""
    letters_of: dict[int, str] = field(default_factory=dict)
    """By bit, cached verdicts of tests, as far as they are still valid."""

    def put(self, changed: Mapping[PointKey, Verdicts | None]) -> tuple[int, set[int]]:
        """Replace points, None removes one.

        Return the bits of the tests with a verdict there, or at a point that has moved by this,
        and the days of the points that came, went or moved.
        """
        touched, was = 0, dict(zip(self.order, self.times, strict=True))
        for key, after in changed.items():
            before = self.points.pop(key, None)
            touched |= before.ran if before else 0
            if after is not None:
                self.points[key] = after
                touched |= after.ran
        places = (Place(each.at, *key, each.position) for key, each in self.points.items())
        order = series.in_order(places)[-series.POINTS_MAX :]
        self.order = [(each.code, each.run) for each in order]
        self.times = [each.at for each in order]
        self.shown = self.in_order = None
        self.days = [at.toordinal() for at in self.times]
        self.red = bits_of(each.red for each in self._verdicts())
        self._keep_letters(list(was), changed)
        now = dict(zip(self.order, self.times, strict=True))
        touched |= bits_of(self.points[key].ran for key in _moved(was, now))
        return touched, {at.toordinal() for _, at in was.items() ^ now.items()}

    def _keep_letters(
        self, was: list[PointKey], changed: Mapping[PointKey, Verdicts | None]
    ) -> None:
        """Keep cached verdicts up to the first changed point; most new points are the newest."""
        gone = was.index(self.order[0]) if self.order and self.order[0] in was else len(was)
        pairs = zip(was[gone:], self.order, strict=False)
        same = takewhile(lambda pair: pair[0] == pair[1] and pair[0] not in changed, pairs)
        until = gone + sum(1 for _ in same)
        if until == gone:
            self.letters_of.clear()
        elif gone or until < len(was):
            self.letters_of = {bit: letters[gone:until] for bit, letters in self.letters_of.items()}

    def note_passed(self, key: PointKey, passing: int) -> None:
        """Add tests that are followed from now on and passed at this point."""
        point = self.points[key]
        self.points[key] = point._replace(green=point.green | passing)
        self.in_order = None

    def renew_lonely(self, tests: Iterable[tuple[int, int]]) -> set[PointKey]:
        """Find anew where these tests are alone; return the points where their number changed.

        Tests are given as number and bit.
        """
        bare, changed = self._series(), set()
        for no, bit in tests:
            keys = frozenset[PointKey]()
            if self.red >> bit & 1:
                track = Track(bare, self.letters(bit))
                keys = frozenset((point.code, point.run) for point in series.lonely_points(track))
            before = self.lonely.pop(no, frozenset())
            if keys:
                self.lonely[no] = keys
            for key in before ^ keys:
                (self.alone[key].add if key in keys else self.alone[key].discard)(no)
                changed.add(key)
        if changed:
            self.shown = None
        return changed

    def letters(self, bit: int) -> str:
        """Return the verdicts of a test, one for each point."""
        cached, mark = self.letters_of.get(bit, ""), 1 << bit
        if len(cached) == len(self.order) and cached:
            return cached
        letters = cached + "".join(
            [
                series.PASSED
                if each.green & mark
                else series.FAILED
                if each.red & mark
                else series.ABSENT
                for each in self._verdicts()[len(cached) :]
            ]
        )
        if cached or len(self.letters_of) < KNOWN_MAX:
            self.letters_of[bit] = letters
        return letters

    def verdicts_within(self, bit: int, days: range) -> int:
        """Return how many verdicts a test has on these days."""
        first, end = bisect_left(self.days, days.start), bisect_left(self.days, days.stop)
        return end - first - self.letters(bit).count(series.ABSENT, first, end)

    def _verdicts(self) -> list[Verdicts]:
        """Return its points in order."""
        if self.in_order is None:
            self.in_order = [self.points[key] for key in self.order]
        return self.in_order

    def track(self, bit: int) -> Track | None:
        """Return a test in this series, None if it never ran there."""
        letters = self.letters(bit)
        if letters.count(series.ABSENT) == len(letters):
            return None
        return Track(self._series(), letters)

    def _series(self) -> Series:
        if self.shown is None:
            points = tuple(self._shown_points())
            self.shown = Series(self.branch, self.job, points)
        return self.shown

    def _shown_points(self) -> Iterator[Point]:
        for (code, run), at in zip(self.order, self.times, strict=True):
            point = self.points[code, run]
            alone = len(self.alone.get((code, run), ()))
            yield Point(
                at, code, run, point.sha, point.tests_run, alone, point.position, point.machine
            )


def _moved(was: Mapping[PointKey, datetime], now: Mapping[PointKey, datetime]) -> set[PointKey]:
    """Return the points that have another time, or another place among those that stayed."""
    before = [each for each in was.items() if each[0] in now]
    after = [each for each in now.items() if each[0] in was]
    pairs = zip(before, after, strict=True)
    return {key for old, new in pairs if old != new for key, _ in (old, new)}

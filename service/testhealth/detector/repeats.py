"""Runs of a test that Headgate itself started to learn more (docs/design/active-evidence.md).

The rounds of one plan, in one job on one code, are one observation: they share a machine and a
minute. Rounds compare with rounds alone, since the suite around a test is missing in them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate, islice
from math import fsum, log

from service.testhealth.detector.evidence import WINDOW_DAYS, Event, Passes, Stream, crowd_of
from service.testhealth.detector.score import RepeatTally
from service.testhealth.reports.uploads import FAILED, PASSED

NEXT = "/"
"""Between the letters of two processes."""

CONTRADICTED_SLOWER, CONTRADICTED_DAYS = 4.0, 3
"""Rounds that fail so many times as often as ordinary runs do not stand for these.

The runs are those from so many days before the first disagreement to the day of the last.
"""

VERIFIED_SLOWER, UNLIKELY = 2.0, 0.001
"""Mended: at its rate in earlier rounds over VERIFIED_SLOWER, 1 in 1,000 tests is so quiet."""

LIKELY_PLAN, PLAN_SLOWER = 0.05, 1.5
"""The same of whole plans, whose rounds are alike: 1 in 20."""

VERIFIED_FAILED_MIN = 3
"""Fewer failed rounds say too little of the rate, or that rounds do not show the fault at all."""


@dataclass(frozen=True, slots=True, order=True)
class Repeats:
    """The rounds of one test in one plan, at the `ran_at` of the upload whose job repeated it.

    `letters` are PASSED and FAILED in order, with NEXT between processes. The plan repeated
    `tested` tests, of which `disagreeing` disagreed with themselves. `upload` is a digest;
    `source` and `author` are those of the upload, the source is empty for a stable branch.
    """

    at: datetime
    upload: str
    job: str
    code: str
    letters: str
    tested: int = 1
    disagreeing: int = 1
    source: str = ""
    author: str = ""
    branch: str = ""
    machine: str = ""
    sha: str = ""

    @property
    def rounds(self) -> int:
        """Return how often the test ran."""
        return self.letters.count(PASSED) + self.failed

    @property
    def failed(self) -> int:
        """Return how often it failed."""
        return self.letters.count(FAILED)


@dataclass(frozen=True, slots=True)
class Verified:
    """A test that is mended: so many rounds on stable branches, the last on `sha`, did not fail.

    `failed` of `before` rounds had failed before.
    """

    until: datetime
    rounds: int
    sha: str
    failed: int
    before: int


def disagrees(letters: str) -> bool:
    """Return whether a failed round was followed by a passed one that it compares with.

    These are the rounds of one process, and the first ones of all processes. A test that cannot run
    twice in a process passes and then fails each time, which is no disagreement.
    """
    processes = [each for each in letters.split(NEXT) if each]
    firsts = "".join(each[0] for each in processes)
    return any(FAILED + PASSED in each for each in (firsts, *processes))


def standing(
    repeats: Iterable[Repeats], passes: Passes, failures: Sequence[datetime]
) -> tuple[Repeats, ...]:
    """Return the repeats in order; none if ordinary runs contradict what they show.

    If only those of one account's pull requests are why, these alone are left out: nobody silences
    others.
    """
    ordered = tuple(sorted(repeats))
    if not _is_contradicted(ordered, passes, failures):
        return ordered
    for author in sorted({each.author for each in ordered if each.source}):
        others = tuple(each for each in ordered if not each.source or each.author != author)
        if not _is_contradicted(others, passes, failures):
            return others
    return ()


def _is_contradicted(
    ordered: Sequence[Repeats], passes: Passes, failures: Sequence[datetime]
) -> bool:
    """Return whether ordinary runs fail far less often than these.

    A test may fail when it is repeated because it is repeated, or is alone.
    """
    showing = [each for each in ordered if disagrees(each.letters)]
    if not showing:
        return False
    rounds = sum(each.rounds for each in ordered)
    rate = sum(each.failed for each in showing) / rounds / CONTRADICTED_SLOWER
    first, last = showing[0].at.toordinal() - CONTRADICTED_DAYS, showing[-1].at.toordinal()
    failed = sum(1 for at in failures if first <= at.toordinal() <= last)
    expected = rate * (passes.between(first, last) + failed)
    if failed >= expected:
        return False
    # A bound of the chance of so few failures, by Chernoff.
    unlikely = expected - failed + (failed * log(failed / expected) if failed else 0.0)
    return unlikely >= -log(UNLIKELY)


def events_of(repeats: Iterable[Repeats]) -> tuple[Event, ...]:
    """Return an event of stream R for each plan in which the test disagreed with itself."""
    return tuple(
        Event(
            at=each.at,
            stream=Stream.R,
            job=each.job,
            code=each.code,
            weight=round(min(1.0, crowd_of(each.tested) / max(each.disagreeing, 1)), 6),
            upload=each.upload,
            source=each.source,
            author=each.author,
            branch=each.branch,
            machine=each.machine,
            rounds=each.rounds,
        )
        for each in repeats
        if disagrees(each.letters)
    )


@dataclass(frozen=True)
class Rounds:
    """The repeats of a test in order, as the fold counts them."""

    repeats: tuple[Repeats, ...] = ()
    _times: tuple[datetime, ...] = field(init=False, repr=False)
    _sums: tuple[int, ...] = field(init=False, repr=False)
    _stable: tuple[Repeats, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_times", tuple(each.at for each in self.repeats))
        sums = accumulate((each.rounds for each in self.repeats), initial=0)
        object.__setattr__(self, "_sums", tuple(sums))
        stable = tuple(each for each in self.repeats if not each.source)
        object.__setattr__(self, "_stable", stable)

    def between(self, start: datetime, at: datetime) -> tuple[int, int]:
        """Return how many rounds and plans there were, both ends included."""
        first, end = bisect_left(self._times, start), bisect_right(self._times, at)
        return self._sums[end] - self._sums[first], end - first

    def tally(
        self, events: Iterable[Event], weight: float, start: datetime, at: datetime
    ) -> RepeatTally:
        """Return the contents of a window: `weight` is that of its events of stream R."""
        logs = [(each.weight, log(each.rounds)) for each in events if each.stream is Stream.R]
        if not logs or not weight:
            return RepeatTally()
        mean = fsum(part * each for part, each in logs) / fsum(part for part, _ in logs)
        rounds, plans = self.between(start, at)
        return RepeatTally(weight, rounds, plans, mean)

    def verified(
        self, last: datetime, failures: Sequence[datetime], until: datetime
    ) -> Verified | None:
        """Return when a test was mended that disagreed at `last` for the last time.

        None: not yet, at `until`.

        Only stable branches say so, and only of what rounds on them have shown before. Each
        failure, of a round or of an ordinary run, begins the count anew.
        """
        start = last - timedelta(days=WINDOW_DAYS)
        known, since = _Shown(), last
        clean: list[Repeats] = []
        for each in islice(self._stable, bisect_left(self._stable, start, key=_time), None):
            if each.at > until:
                break
            newest = bisect_right(failures, each.at) - 1
            if newest >= 0 and failures[newest] > since:
                since, clean = failures[newest], []
            if each.at <= last or each.failed:
                known.take([*clean, each])
                since, clean = max(since, each.at), []
                continue
            clean.append(each)
            rounds = sum(one.rounds for one in clean)
            if known.is_over(rounds, len(clean)):
                return Verified(each.at, rounds, each.sha, known.failed, known.rounds)
        return None


def _time(repeats: Repeats) -> datetime:
    return repeats.at


@dataclass
class _Shown:
    """The rounds of a test on stable branches so far, and how many failed."""

    plans: int = 0
    failing: int = 0
    rounds: int = 0
    failed: int = 0

    def take(self, some: Iterable[Repeats]) -> None:
        """Count more of them."""
        for each in some:
            self.plans, self.failing = self.plans + 1, self.failing + bool(each.failed)
            self.rounds, self.failed = self.rounds + each.rounds, self.failed + each.failed

    def is_over(self, rounds: int, plans: int) -> bool:
        """Return whether so many clean rounds, in so many plans, make the same rates unlikely."""
        if self.failed < VERIFIED_FAILED_MIN:
            return False
        by_round = (self.failed - 0.5) / self.rounds / VERIFIED_SLOWER
        by_plan = (self.failing + 0.5) / (self.plans + 1) / PLAN_SLOWER
        return (1 - by_round) ** rounds <= UNLIKELY and (1 - by_plan) ** plans <= LIKELY_PLAN

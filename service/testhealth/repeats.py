"""Choose the tests that a job repeats when it is done (docs/design/active-evidence.md 2).

A plan buys evidence with minutes of CI: on flaky tests that may be mended, on tests that have
shown something but not enough, and on new and changed ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from service.testhealth.detector import figures
from service.testhealth.detector.repeats import NEXT, disagrees
from service.testhealth.reports.uploads import PASSED, UploadClass


class RepeatedBecause(StrEnum):
    """The reason for which a test is repeated.

    FAILED: it failed in this job; a few rounds tell whether it is broken. FLAKY: it is flaky, and
    repeats tell whether it still is. SUSPECTED: it disagreed, but not often enough, or failed and
    passed when it was repeated. NEW: this job is among the first that know it. CHANGED: its file
    was changed.
    """

    FAILED = "failed"
    FLAKY = "flaky"
    SUSPECTED = "suspected"
    NEW = "new"
    CHANGED = "changed"


class PlanStanding(StrEnum):
    """The answer to a job that asks what to repeat: a plan, or the first reason for none.

    OFF: the setting allows no minutes. NOT_ABLE: the runner cannot repeat single tests. NOT_HERE:
    the job is neither of a stable branch nor of a pull request, or its upload is no evidence.
    UNPROVED: nothing shows that the asker is the job. ALREADY: it has got a plan. BUSY: a queue
    waits for test runs. SPENT: the minutes of the day are gone. NOTHING: no test is worth it.
    """

    PLANNED = "planned"
    OFF = "off"
    NOT_ABLE = "not_able"
    NOT_HERE = "not_here"
    UNPROVED = "unproved"
    ALREADY = "already"
    BUSY = "busy"
    SPENT = "spent"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class PlanRounds:
    """The rounds of one test in one plan; `is_probe`: it had failed in the job itself."""

    no: int
    plan: str
    upload: str
    ran_at: datetime
    letters: str
    tested: int
    disagreeing: int
    is_probe: bool
    has_failed: bool

    @property
    def count(self) -> int:
        """Return how often the test ran."""
        return len(self.letters) - self.letters.count(NEXT)

    @property
    def is_suspicious(self) -> bool:
        """Return whether it disagreed, or failed in a job and passed when it was repeated there."""
        return (self.is_probe and PASSED in self.letters) or disagrees(self.letters)


@dataclass(frozen=True, slots=True)
class JobTests:
    """The numbers of tests that ran in a job, and what is known of them.

    `watched` may be suspected: healthy tests that failed lately, those that failed while they were
    repeated, and those that `failed` in the job. `history` is that of SUSPECTED_FOR, oldest first.
    A test takes its `seconds`, or `usual` if it has none.
    """

    flaky: Sequence[int] = ()
    watched: Sequence[int] = ()
    failed: Sequence[int] = ()
    new: Sequence[int] = ()
    changed: Sequence[int] = ()
    scores: Mapping[int, float] = field(default_factory=dict)
    history: Mapping[int, Sequence[PlanRounds]] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)
    usual: float = 0.0

    def is_suspected(self, no: int) -> bool:
        """Return whether a test has a high score, or has disagreed with itself."""
        is_likely = self.scores.get(no, 0.0) >= SUSPECTED_FROM
        return is_likely or any(each.is_suspicious for each in self.history.get(no, ()))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A test that could be repeated, and how long one run of it takes.

    `rounds` so far: of a flaky test since the beginning of the day, of a suspected one since it
    was suspected last, else ever.
    """

    no: int
    because: RepeatedBecause
    seconds: float
    rounds: int = 0

    @property
    def rounds_left(self) -> int:
        """Return how many more rounds would tell something."""
        return ROUNDS_MAX[self.because] - self.rounds


@dataclass(frozen=True, slots=True)
class Portion:
    """The number of times that a test is to run."""

    no: int
    because: RepeatedBecause
    times: int


SUSPECTED_FOR = timedelta(days=28)
"""A test is suspected for so long after it disagreed, or failed and passed when repeated."""

SUSPECTED_FROM = 2.0
"""The score from which a test is suspected that is not flaky yet."""

NEW_FOR = timedelta(days=3)
FAILED_MAX = 10
"""Failed tests of a job that are repeated; more of them were broken by its code."""

TESTS_MAX = 50
"""Tests of one plan."""

TIMES, TIMES_MAX = 20, 40
"""Rounds that each test gets before another gets more, and the most in one plan.

Rounds of several plans tell more than as many of one (docs/design/active-evidence.md 4).
"""

ROUNDS_MAX = {
    RepeatedBecause.FAILED: 5,
    RepeatedBecause.FLAKY: 400,
    RepeatedBecause.SUSPECTED: 1000,
    RepeatedBecause.NEW: 60,
    RepeatedBecause.CHANGED: 60,
}
"""Rounds after which more would tell little; those of `Candidate.rounds`."""

SHARES = {
    RepeatedBecause.FAILED: 0.2,
    RepeatedBecause.FLAKY: 0.35,
    RepeatedBecause.SUSPECTED: 0.35,
    RepeatedBecause.NEW: 0.05,
    RepeatedBecause.CHANGED: 0.05,
}
"""Parts of the time; what one reason leaves goes to the next, and then to the first again."""

FLAKY_RESTS = timedelta(hours=6)
"""A flaky test is left alone for so long after it failed when it was repeated: it is flaky still,
and its rounds would take the time of those that may be mended."""

FLAKY_IN_PULLS_MAX = 60
"""Rounds a day of a flaky test in jobs of pull requests: they keep a flag up, and end none."""

PULL_SHARE = 0.2
"""A job of a pull request repeats for so much of its own test time."""

PULLS_OF_DAY, JOB_OF_DAY = 0.5, 0.25
"""Parts of a day's time: what is spent in pull requests, and in one job."""

SECONDS_MIN = 0.05
"""A test takes at least so long, with what the runner does around it."""


def seconds_of(
    kind: UploadClass, test_time: float, daily: float, spent: float, in_pulls: float
) -> float:
    """Return how long a job may repeat tests: of `daily` seconds `spent` are gone or reserved.

    `in_pulls` of these went to pull requests, of which none may delay its own check for long.
    """
    left = min(daily - spent, JOB_OF_DAY * daily)
    if kind is UploadClass.STABLE:
        return max(0.0, left)
    return max(0.0, min(left, PULLS_OF_DAY * daily - in_pulls, PULL_SHARE * test_time))


def candidates(known: JobTests, kind: UploadClass, now: datetime) -> Iterator[Candidate]:
    """Return every test of a job that could be repeated, each once, by its strongest reason."""
    midnight = figures.beginning_of(figures.day_of(now))
    reasons: dict[int, RepeatedBecause] = {}
    for because, nos in (
        (RepeatedBecause.FLAKY, known.flaky),
        (RepeatedBecause.SUSPECTED, [no for no in known.watched if known.is_suspected(no)]),
        (RepeatedBecause.FAILED, known.failed if len(known.failed) <= FAILED_MAX else ()),
        (RepeatedBecause.NEW, known.new),
        (RepeatedBecause.CHANGED, known.changed),
    ):
        for no in nos:
            reasons.setdefault(no, because)
    for no, because in reasons.items():
        history = known.history.get(no, ())
        rounds = _rounds_of(because, history, midnight)
        if because is RepeatedBecause.FLAKY:
            rests = any(each.has_failed and each.ran_at > now - FLAKY_RESTS for each in history)
            if rests or (kind is UploadClass.PR and rounds >= FLAKY_IN_PULLS_MAX):
                continue
        yield Candidate(no, because, known.seconds.get(no, known.usual), rounds)


def _rounds_of(because: RepeatedBecause, history: Sequence[PlanRounds], midnight: datetime) -> int:
    """Return the rounds of a test that `Candidate` counts."""
    if because is RepeatedBecause.FAILED:
        return 0
    counted: list[PlanRounds] = []
    for each in history:
        if because is RepeatedBecause.SUSPECTED and each.is_suspicious:
            counted.clear()
        elif because is not RepeatedBecause.FLAKY or each.ran_at >= midnight:
            counted.append(each)
    return sum(each.count for each in counted)


def planned(candidates: Iterable[Candidate], seconds: float) -> tuple[Portion, ...]:
    """Return the tests to repeat within this time, the most telling first."""
    ordered = sorted(
        (each for each in candidates if each.rounds_left > 0),
        key=lambda each: (each.rounds, each.no),
    )
    known: dict[int, Candidate] = {}
    times: dict[int, int] = {}
    carried = 0.0
    for because, share in SHARES.items():
        carried += share * seconds
        own = [each for each in ordered if each.because is because and each.no not in known]
        carried -= _fill(own, carried, known, times)
    _fill([each for each in ordered if known.get(each.no, each) is each], carried, known, times)
    return tuple(Portion(no, known[no].because, count) for no, count in times.items())


def _fill(
    candidates: list[Candidate], seconds: float, known: dict[int, Candidate], times: dict[int, int]
) -> float:
    """Spend the time on these tests in turns; return how much was spent."""
    spent, begun = 0.0, -1.0
    while spent != begun:
        begun = spent
        for each in candidates:
            if each.no not in known and len(known) >= TESTS_MAX:
                continue
            one = max(each.seconds, SECONDS_MIN)
            most = min(TIMES_MAX, each.rounds_left)
            more = min(TIMES, most - times.get(each.no, 0), int((seconds - spent) / one))
            if more > 0:
                known[each.no] = each
                times[each.no] = times.get(each.no, 0) + more
                spent += more * one
    return spent

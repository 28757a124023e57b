"""Search for the landing that broke a check of the target branch (docs/design/red-target.md 2).

A commit that passes is not broken: a pass is believed at once. A failure may be a flake: it counts
only when it is repeated, and the one that began the search not at all, because a search begins
with every flake. So the culprit is the first commit whose runs all fail, if the commit before it
passes in a run of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import ceil, log2

from service.vocabulary import RequiredName, Sha


@dataclass(frozen=True, slots=True)
class Proof:
    """The failed runs that blame a commit: of itself, and of it and all later ones together."""

    own: int
    total: int


USUAL = Proof(2, 3)
"""One flake in ten runs blames wrongly in one of a thousand searches."""

WARY = Proof(3, 5)
"""Of a check whose last search named no culprit."""

SILENT_MAX = 2
"""Probes without any report after which the check is taken for one that never runs on them."""


class Result(StrEnum):
    """The results of a check on a commit. SILENT: it did not report in time, or was not built."""

    GREEN = "green"
    RED = "red"
    SILENT = "silent"


class End(StrEnum):
    """The ends of a search that names no culprit, and of a break.

    FLAKE: the newest red commit passes. REPAIRED: a later commit of the target passes. OUTSIDE: the
    commit that passed before fails now, so none of the landings is the reason. UNSTEADY: a commit
    passes after one that fails each time. SILENT: the check does not run on test branches.
    SPENT: all runs are used. STILL_RED: the revert landed and a later commit fails. UNWATCHED: the
    settings do not name the check any more, or the target is not watched.
    """

    FLAKE = "flake"
    REPAIRED = "repaired"
    REVERTED = "reverted"
    OUTSIDE = "outside"
    UNSTEADY = "unsteady"
    SILENT = "silent"
    SPENT = "spent"
    STILL_RED = "still_red"
    UNWATCHED = "unwatched"


OVER = frozenset({End.FLAKE, End.REPAIRED, End.REVERTED, End.UNWATCHED})
"""Ends after which the same check may break again; after the others the target is still red."""


@dataclass(frozen=True, slots=True)
class TargetCommit:
    """A commit of the target's first-parent history, and the pull request that landed with it.

    `pr` None: it was not landed by the queue. `is_revert`: it is a revert that we opened.
    """

    sha: Sha
    tree: Sha
    pr: int | None = None
    is_revert: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A run of the check on `commits[place]`, on a test branch that changes nothing.

    `sha` is the head of that branch, None until it is built. `is_retired`: the branch is deleted.
    """

    branch: str
    place: int
    sha: Sha | None = None
    built_at: datetime | None = None
    result: Result | None = None
    is_retired: bool = False


class RevertState(StrEnum):
    """The states of a revert. REFUSED: it conflicts, or the provider refused it."""

    WANTED = "wanted"
    OPEN = "open"
    REFUSED = "refused"
    UNWANTED = "unwanted"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Revert:
    """The revert of the culprit, and its pull request.

    `why`: why there is none, or why the queue did not take it, in words.
    """

    state: RevertState = RevertState.WANTED
    number: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Break:
    """One check that is red on a target branch.

    `commits` are in the order of landing: the first passed, the last is where the check was seen
    red, with the report at `url`. `culprit` is a place in them, as are the `suspects` of a search
    without one. `is_wary`: the last search for this check named no culprit. `stopped`: why the
    search ended without a culprit, or the break with one; `passed`: the commit on which the check
    passed then. `reverts`: the culprit is reverted, `tells`: its author is told.
    """

    id: str
    check: RequiredName
    url: str
    commits: tuple[TargetCommit, ...]
    runs_max: int
    reverts: bool
    tells: bool = True
    is_wary: bool = False
    probes: tuple[Probe, ...] = ()
    culprit: int | None = None
    stopped: End | None = None
    revert: Revert | None = None
    is_told: bool = False
    suspects: tuple[int, ...] = ()
    passed: Sha | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the check is still taken for broken: no second break is opened."""
        return self.stopped not in OVER

    @property
    def is_searching(self) -> bool:
        """Return whether the culprit is still sought."""
        return self.culprit is None and self.stopped is None

    @property
    def last(self) -> int:
        """The place at which the check was seen red."""
        return len(self.commits) - 1

    @property
    def culprit_commit(self) -> TargetCommit | None:
        """The commit that broke the check; None while it is not known."""
        return None if self.culprit is None else self.commits[self.culprit]

    @property
    def commit_before(self) -> TargetCommit | None:
        """The commit before it, which passes."""
        return None if self.culprit is None else self.commits[self.culprit - 1]

    @property
    def red_runs(self) -> tuple[Probe, ...]:
        """The probes by which the culprit was confirmed."""
        return self._of(self.culprit, Result.RED)

    @property
    def green_runs(self) -> tuple[Probe, ...]:
        """The probes by which the commit before the culprit was confirmed."""
        return self._of(None if self.culprit is None else self.culprit - 1, Result.GREEN)

    def _of(self, place: int | None, result: Result) -> tuple[Probe, ...]:
        if place is None:
            return ()
        tree = self.commits[place].tree
        return tuple(
            one
            for one in self.probes
            if self.commits[one.place].tree == tree and one.result is result
        )


@dataclass(frozen=True, slots=True)
class StoredBreak:
    """A break with its queue and its times."""

    queue_id: int
    value: Break
    opened_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class VerifiedCommit:
    """The newest commit of a target on which all watched checks passed, and when this was seen."""

    sha: Sha
    at: datetime


@dataclass(frozen=True, slots=True)
class Test:
    """Test these places, each as often as it is named."""

    __test__ = False
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Blame:
    """The commit at this place is the culprit."""

    place: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The search ends without a culprit; the remaining suspects are at these places."""

    end: End
    suspects: tuple[int, ...] = ()


Decision = Test | Blame | Stop | None
"""None: wait for the probes that run."""


def decide(one: Break) -> Decision:
    """Return what to do next in a search, by all results so far. The same value, the same answer.

    Results are shared by commits with the same tree.
    """
    return _Search(one).decision()


class _Search:
    def __init__(self, one: Break) -> None:
        self._break = one
        self._proof = WARY if one.is_wary else USUAL
        self._places = range(len(one.commits))
        self._trees = trees = [commit.tree for commit in one.commits]
        results: dict[Sha, list[Result | None]] = {tree: [] for tree in trees}
        for probe in one.probes:
            results[trees[probe.place]].append(probe.result)
        self._results = results
        self._lo = max((each for each in self._places if self._is_green(each)), default=None)
        above = self._lo or 0
        reds = [each for each in self._places if each >= above and self._reds(each)]
        self._hi = min((each for each in reds if not self._is_green(each)), default=one.last)

    def decision(self) -> Decision:
        one, lo, hi = self._break, self._lo, self._hi
        if self._is_green(one.last):
            return Stop(End.FLAKE)
        if self._is_red(0):
            return Stop(End.OUTSIDE)
        if lo is not None and any(self._is_red(each) for each in range(lo)):
            return Stop(End.UNSTEADY, self._suspects())
        if lo is not None and hi == lo + 1 and not self._missing(hi):
            return Blame(hi)
        if self._is_silent():
            return Stop(End.SILENT, self._suspects())
        if any(each is None for results in self._results.values() for each in results):
            return None
        places = tuple(self._next())
        if not places or len(places) > one.runs_max - len(one.probes):
            return Stop(End.SPENT, self._suspects())
        return Test(places)

    def _suspects(self) -> tuple[int, ...]:
        """Return the places of which each may be the culprit."""
        first = 0 if self._lo is None else self._lo
        return tuple(range(first + 1, max(self._hi, first + 1) + 1))

    def _next(self) -> Iterator[int]:
        """Yield the places of one round: all that decides it if the runs suffice, else a part."""
        one, lo, hi = self._break, self._lo, self._hi
        if one.is_wary and not one.probes:
            yield one.last
            return
        bottom = 0 if lo is None else lo
        inner = list(range(bottom + 1, hi))
        left = one.runs_max - len(one.probes)
        proof = [hi] * self._missing(hi) + [bottom] * (lo is None)
        whole = [*(each for each in inner for _ in range(self._proof.own)), *proof]
        if len(whole) <= left:
            yield from whole
            return
        if not one.probes:
            # Most flakes are known by the first round.
            yield one.last
            left -= 1
        yield from _spread(inner, _width(len(inner), left, self._proof.total))

    def _reds(self, place: int) -> int:
        return self._results[self._trees[place]].count(Result.RED)

    def _missing(self, place: int) -> int:
        """Return how many more failures of a place are needed to blame it."""
        later = set(self._trees[place:])
        total = sum(self._results[tree].count(Result.RED) for tree in later)
        return max(self._proof.own - self._reds(place), self._proof.total - total, 0)

    def _is_green(self, place: int) -> bool:
        return Result.GREEN in self._results[self._trees[place]]

    def _is_red(self, place: int) -> bool:
        return self._reds(place) >= self._proof.own and not self._is_green(place)

    def _is_silent(self) -> bool:
        results = [probe.result for probe in self._break.probes]
        answered = {Result.GREEN, Result.RED}.intersection(results)
        return results.count(Result.SILENT) >= SILENT_MAX and not answered


def _width(inner: int, left: int, reserve: int) -> int:
    """Return how many of so many commits to test at once, so that the runs last to the end."""
    widest = 1
    for width in range(1, inner + 1):
        rest = ceil((inner - width) / (width + 1))
        if width + ceil(log2(rest + 1)) + reserve <= left:
            widest = width
    return min(widest, inner)


def _spread(places: list[int], count: int) -> list[int]:
    """Return so many of the places, evenly spread."""
    step = (len(places) + 1) / (count + 1)
    return sorted({places[round(step * (each + 1)) - 1] for each in range(count)})


def with_probes(one: Break, branches: Sequence[str], places: Sequence[int]) -> Break:
    """Return the break with probes of these places on these branches."""
    made = tuple(Probe(each, place) for each, place in zip(branches, places, strict=True))
    return replace(one, probes=(*one.probes, *made))


def with_probe(one: Break, changed: Probe) -> Break:
    """Return the break with this probe instead of the one on the same branch."""
    probes = tuple(changed if each.branch == changed.branch else each for each in one.probes)
    return replace(one, probes=probes)


def concluded(one: Break) -> Break:
    """Return the break after what its results decide, new probes left out."""
    decision = decide(one) if one.is_searching else None
    match decision:
        case Blame(place=place):
            commit = one.commits[place]
            # A revert of a revert would bring back what that was for, and so on.
            may_revert = one.reverts and commit.pr is not None and not commit.is_revert
            revert = Revert() if may_revert else None
            return replace(one, culprit=place, revert=revert)
        case Stop(end=end, suspects=suspects):
            passed = one.commits[one.last].sha if end is End.FLAKE else None
            return replace(one, stopped=end, suspects=suspects, passed=passed)
        case _:
            return one


def ended(one: Break, end: End, passed: Sha | None = None) -> Break:
    """Return the break after it ended, by a pass on this commit if there is one.

    The branch of its revert is unwanted then, landed or not. What is open when the watch ends is
    left to people.
    """
    revert = one.revert
    unwanted = {RevertState.WANTED} | ({RevertState.OPEN} if end is not End.UNWATCHED else set())
    if revert is not None and revert.state in unwanted:
        revert = replace(revert, state=RevertState.UNWANTED)
    return replace(one, stopped=end, revert=revert, passed=passed)


def is_to_be_told(one: Break) -> bool:
    """Return whether the author of the culprit is to be told now: once, with the revert if any."""
    is_known = one.tells and one.culprit is not None and one.commits[one.culprit].pr is not None
    is_waiting = one.revert is not None and one.revert.state is RevertState.WANTED
    return is_known and not is_waiting and not one.is_told and one.stopped is None


def work_of(one: Break) -> frozenset[str]:
    """Return what is to be done at the provider, each by a name of its own; empty: nothing."""
    wanted = (RevertState.WANTED, RevertState.UNWANTED)
    work = {
        f"build {each.branch}"
        for each in one.probes
        if each.sha is None and not is_spent(one, each)
    }
    work.update(
        f"retire {each.branch}"
        for each in one.probes
        if is_spent(one, each) and not each.is_retired
    )
    if one.revert is not None and one.revert.state in wanted:
        work.add(f"revert {one.revert.state.value}")
    return frozenset(work)


def is_spent(one: Break, probe: Probe) -> bool:
    """Return whether a probe is not needed any more."""
    return probe.result is not None or not one.is_searching

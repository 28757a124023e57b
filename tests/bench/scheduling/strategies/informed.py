"""Relaxed queues for chains: they guess as any queue must, and are given what a real one pays for.

A relaxed queue does not know what will fail. It builds on pull requests before their first run has
ended, loses what it built on a bad one, and merges only what a run has passed with. But it learns
the truth about a failure too early or for nothing, in one of seven ways (`Gifts`):

- HEDGES: the end of a failed run names its culprits, or says that it was a flake. What is left out
  of the line costs nothing: each run behind it has it if it is good, and lacks it if it is bad.
- BLAME: the first of these two. What is left out is tested on the line while nothing is built on
  it. It merges in place if nothing runs behind it, else it is tested once more in the line.
- ISOLATION: a failed run says only that it failed. Isolating runs begin at once, take no slot, are
  not counted, and end with the truth.
- NAMES: the same, but a failed run also says which tests failed. So a flake is recognized, and one
  that alone can have broken a test is rejected without a second run. What broke a test was in each
  run that failed it, and in no run that did not.
- SEARCH: it knows the failed tests and no more than a real queue. A flake looks like a broken
  test, and a verdict needs as many failures of one test as a real one. A search takes as many
  runs, one after the other, as halving takes to find the first culprit and to test it alone; they
  take slots and are counted. It is given the others of a group for nothing.
- EACH: the same, but a search finds its first culprit and clears what comes before that one. The
  rest is searched next if one of them broke another test.
- UNNAMED: the same, but it does not know which tests failed. What it has not cleared goes back.

The law of leaving out: building on one that fails with chance q disturbs its n followers with
chance q; leaving it out disturbs itself with chance 1 - q. Leaving it out is better from
q = 1 / (1 + n) on, where n arrive while a run takes its time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Eject,
    Event,
    MakeStrategy,
    Merge,
    PrSubmitted,
    PrView,
    RunFinished,
    SetTimer,
    StartRun,
    StrategyConfig,
)
from tests.bench.scheduling.strategies.failed_tests import Accusation, Names, Test
from tests.bench.scheduling.workload import DAY_S, HOUR_S, MINUTE_S, Workload

MakeRelaxed = Callable[[Workload], MakeStrategy]
"""Makes the strategy for a workload, of which it is told the truth."""

CERTAIN = 0.98
"""What a verdict needs (docs/explanation/belief.md)."""

OUTAGE_PERIOD_S = 3 * DAY_S
"""CI is assumed to break once in this time: then a verdict needs more (the same page)."""


class Gifts(Enum):
    """What a relaxed queue is given, most first."""

    HEDGES = "hedges"
    BLAME = "blame"
    NAMES = "names"
    ISOLATION = "isolation"
    SEARCH = "search"
    EACH = "each"
    UNNAMED = "unnamed"

    @property
    def reads(self) -> bool:
        """Whether it knows which tests failed."""
        return self in (Gifts.NAMES, Gifts.SEARCH, Gifts.EACH)

    @property
    def isolates(self) -> bool:
        """Whether a failed run says who caused it only after further runs."""
        return self not in (Gifts.HEDGES, Gifts.BLAME)

    @property
    def searches(self) -> bool:
        """Whether these runs take slots."""
        return self in (Gifts.SEARCH, Gifts.EACH, Gifts.UNNAMED)


class Failing(Enum):
    """What becomes of a failed group of the line while it is isolated."""

    OUT = "leaves as soon as all ahead of it is known"
    OUT_AT_ONCE = "leaves at once; what is ahead of it is isolated too"
    STAYS = "stays until the truth is known; what is ahead of it is isolated too"


@dataclass(frozen=True)
class Policy:
    """What a relaxed queue decides by itself.

    `leaves_out`: from which multiple of the law on. `is_thrifty`: all that waits starts as one
    group, else it is spread over the free slots. `failing` is for those that isolate.
    """

    leaves_out: float = 1.0
    is_thrifty: bool = False
    failing: Failing = Failing.OUT

    @property
    def words(self) -> str:
        """Tell it from the others."""
        thrifty = ("thrifty",) * self.is_thrifty
        failing = () if self.failing is Failing.OUT else (self.failing.name.lower(),)
        return "-".join([f"{self.leaves_out:g}", *thrifty, *failing])


POLICIES: dict[Gifts, tuple[Policy, ...]] = {
    Gifts.HEDGES: tuple(Policy(is_thrifty=thrifty) for thrifty in (False, True)),
    Gifts.BLAME: tuple(
        Policy(leaves_out, is_thrifty=thrifty)
        for leaves_out in (1.0, 1.5, 2.0)
        for thrifty in (False, True)
    ),
    **dict.fromkeys(
        (gifts for gifts in Gifts if gifts.isolates),
        (
            *(Policy(leaves_out, failing=each) for leaves_out in (1.0, 1.5) for each in Failing),
            Policy(is_thrifty=True),
        ),
    ),
}
"""The policies of which the best counts."""


def name_of(gifts: Gifts, policy: Policy) -> str:
    """Return the name of a relaxed queue in the tables."""
    return f"{gifts.value}-{policy.words}"


def relaxed(gifts: Gifts) -> dict[str, MakeRelaxed]:
    """The relaxed queues with these gifts, by name."""
    return {
        name_of(gifts, policy): partial(_make, gifts=gifts, policy=policy)
        for policy in POLICIES[gifts]
    }


def _make(workload: Workload, gifts: Gifts, policy: Policy) -> MakeStrategy:
    return partial(Informed, workload=workload, gifts=gifts, policy=policy)


@dataclass(slots=True, eq=False)
class _Node:
    """A group under test on `members`: all that was ahead of it, and itself, in order."""

    run: int
    prs: tuple[int, ...]
    members: tuple[int, ...]
    merged_before: int
    is_running: bool = True
    is_examined: bool = False


@dataclass(slots=True, eq=False)
class _Search:
    """A search among `prs` for who made a run fail: it still takes `left` runs."""

    prs: tuple[int, ...]
    run: int
    left: int
    is_repeated: bool = False


class Informed:
    """The line, runs of those that are left out of it, and isolating runs by their end."""

    def __init__(
        self, config: StrategyConfig, workload: Workload, gifts: Gifts, policy: Policy
    ) -> None:
        self.name = name_of(gifts, policy)
        self.config = config
        self.workload = workload
        self.gifts = gifts
        self.policy = policy
        followers = workload.config.rate * config.minutes * MINUTE_S / HOUR_S
        self.leaves_out_from = policy.leaves_out / (1 + followers)
        self.now = 0.0
        self.merges: list[int] = []
        self.merged: set[int] = set()
        self.undecided: dict[int, None] = {}
        self.cleared: set[int] = set()
        self.waiting: list[int] = []
        self.left_out: list[int] = []
        self.line: list[_Node] = []
        self.apart: list[_Node] = []
        self.isolated: list[tuple[float, tuple[int, ...], int]] = []
        self.unsearched: list[_Search] = []
        self.searches: dict[int, _Search] = {}
        self.passed_at = 0.0
        self.failed_at: dict[int, float] = {}
        self.doubted: set[tuple[int, Test]] = set()
        self.set_aside: set[int] = set()
        self.names = Names()
        self.last_run = 0

    def answer(self, event: Event) -> list[Action]:
        self.now = event.t
        out: list[Action] = []
        if isinstance(event, PrSubmitted):
            self._admit(event.pr)
        elif isinstance(event, RunFinished):
            self._note_time(event)
            if event.run in self.searches:
                self._go_on(self.searches.pop(event.run))
            else:
                out += self._finished(event)
        out += self._learn()
        out += self._fill()
        return out

    def _note_time(self, event: RunFinished) -> None:
        if event.passed:
            self.passed_at = self.now
        self.failed_at[event.run] = self.now

    def _finished(self, event: RunFinished) -> Iterator[Action]:
        node = next(node for node in self._nodes() if node.run == event.run)
        node.is_running = False
        if self.gifts.reads:
            self._read(node, passed=event.passed)
        yield from self._passed(node) if event.passed else self._failed(node)

    def _admit(self, view: PrView) -> None:
        self.undecided[view.id] = None
        is_out = self._q(view.id) >= self.leaves_out_from
        if is_out and self.gifts is Gifts.HEDGES:
            is_out = view.id in self._culprits(self.undecided)
        (self.left_out if is_out else self.waiting).append(view.id)

    def _q(self, pr: int) -> float:
        """The chance that it is bad before anything ran."""
        return 1 - self.workload.views[pr].p_ok * (1 - self.config.conflict_rate)

    # -- what runs tell --------------------------------------------------------------------------

    def _passed(self, node: _Node) -> Iterator[Action]:
        members = set(node.members)
        is_behind = any(
            other.is_running and not members.issuperset(other.prs) for other in self.line
        )
        since = self.merges[node.merged_before :]
        if node in self.line or not (is_behind or set(since) - members):
            yield from self._merge(node)
        else:
            self.apart.remove(node)
            self.cleared.update(node.members)
            self._wait(node.prs)

    def _merge(self, node: _Node) -> Iterator[Action]:
        """All that it passed with; their own runs are of no use any more."""
        group = tuple(pr for pr in node.members if pr in self.undecided)
        yield Merge(group, node.run)
        self.merges.extend(group)
        self.merged.update(group)
        for pr in group:
            del self.undecided[pr]
        yield from self._drop([each for each in self._nodes() if self.merged.issuperset(each.prs)])

    def _failed(self, node: _Node) -> Iterator[Action]:
        is_apart = node in self.apart
        if is_apart:
            self.apart.remove(node)
        if not self.gifts.isolates:
            yield from self._reveal(node.members, node.run)
            self._wait(node.prs if is_apart else ())
            return
        yield from self._reject_known()
        left = [pr for pr in node.prs if pr in self.undecided and pr not in self.set_aside]
        if is_apart and self.cleared.issuperset(left):
            self._wait(left)
        elif is_apart:
            self.set_aside.update(left)
            yield from self._isolate(tuple(left), node.run)

    def _read(self, node: _Node, *, passed: bool) -> None:
        """Learn from the names of the tests that failed in a run."""
        failed = frozenset[Test]() if passed else self._broken_in(node)
        if not (passed or failed) and self.gifts.searches:
            failed = frozenset({(-node.run, -node.run)})
        self.names.note(node.run, frozenset(node.members), failed)
        if not failed:
            self.cleared.update(node.members)
            node.is_examined = True

    def _reject_known(self) -> Iterator[Action]:
        """Reject those that alone can have broken a test, or isolate them first."""
        for found in self.names.accusations():
            if found.pr not in self.undecided:
                continue
            if self._is_proved(found):
                yield from self._reveal((found.pr,), found.first)
            elif (found.pr, found.test) not in self.doubted:
                self.doubted.add((found.pr, found.test))
                yield from self._isolate((found.pr,), found.first)
                if self.policy.failing is not Failing.STAYS:
                    self.set_aside.add(found.pr)
                    yield from self._restart((found.pr,))

    def _is_proved(self, found: Accusation) -> bool:
        if self.gifts is Gifts.NAMES or self._is_convicted(found.pr):
            return True
        return found.failures > 1 + self._may_be_outage((found.pr,), found.first)

    def _may_be_outage(self, prs: Iterable[int], run: int) -> bool:
        """Whether CI itself may have failed a run: nothing has passed since, or long before."""
        q = max(map(self._q, prs))
        unseen = self.failed_at[run] - self.passed_at
        return unseen > 0 and q / (1 - q) < CERTAIN / (1 - CERTAIN) * unseen / OUTAGE_PERIOD_S

    def _broken_in(self, node: _Node) -> frozenset[Test]:
        """The tests that the tree of a run fails."""
        there = {*node.members, *self.merges[: node.merged_before]}
        alone = {(pr, pr) for pr in node.members if self.workload.broken[pr]}
        pairs = {
            (min(pr, other), max(pr, other))
            for pr in node.members
            for other in self.workload.conflicts[pr]
            if other in there
        }
        return frozenset(alone | pairs)

    def _learn(self) -> Iterator[Action]:
        """Isolating runs that have ended, and failed ones behind what is known by now."""
        yield from self._reject_known()
        self.unsearched = [each for each in self.unsearched if self._is_open(each.prs)]
        for run in [run for run, each in self.searches.items() if not self._is_open(each.prs)]:
            del self.searches[run]
            yield CancelRun(run)
        ended = [each for each in self.isolated if each[0] <= self.now]
        self.isolated = [each for each in self.isolated if each[0] > self.now]
        for _, prs, run in ended:
            known = self._found(prs)
            yield from self._reveal(known, run)
            self._wait(self.set_aside.intersection(known))
            self.set_aside.difference_update(known)
            rest = prs[len(known) :]
            if rest and self.gifts.reads:
                yield from self._isolate(rest, run)
            elif rest:
                self._give_up(rest)
        if self.gifts.isolates:
            failed = [node for node in self.line if not (node.is_running or node.is_examined)]
            for node in failed:
                if node in self.line:
                    yield from self._examine(node)
        yield from self._restart(())

    def _give_up(self, prs: Sequence[int]) -> None:
        """Test these again as if nothing had failed: it is not known whether one of them did."""
        back = [pr for pr in prs if pr in self.set_aside]
        self.set_aside.difference_update(back)
        risky = [pr for pr in back if self._q(pr) >= self.leaves_out_from]
        self.left_out += risky
        self._wait({*back}.difference(risky))

    def _is_open(self, prs: Iterable[int]) -> bool:
        return not self.undecided.keys().isdisjoint(prs)

    def _examine(self, node: _Node) -> Iterator[Action]:
        """Isolate a failed group of the line; by policy it waits for what is ahead of it first."""
        known = self.cleared | self.merged
        base = tuple(pr for pr in node.members if pr not in node.prs and pr not in known)
        failing = self.policy.failing
        if base and failing is Failing.OUT:
            return
        node.is_examined = True
        yield from self._isolate(node.prs, node.run)
        if base:
            yield from self._isolate(base, node.run)
        if failing is not Failing.STAYS:
            self.set_aside.update(node.prs)
            yield from self._restart(node.prs)

    def _isolate(self, prs: tuple[int, ...], run: int) -> Iterator[Action]:
        """Find out the truth of these, at once if the failure alone is enough for a verdict."""
        is_convicted = len(prs) == 1 and self._is_convicted(prs[0])
        if self.gifts.searches and not is_convicted:
            self.unsearched.append(_Search(prs, run, self._runs_of_search(prs)))
            return
        takes = 0.0 if is_convicted else max(self.workload.duration[pr] for pr in prs)
        self.isolated.append((self.now + takes, prs, run))
        yield SetTimer(self.now + takes)

    def _runs_of_search(self, prs: Sequence[int]) -> int:
        """The runs that halving takes until the first culprit has failed alone.

        If none of these is one, both halves pass.
        """
        culprits = {*self._culprits(self.undecided)}.intersection(prs)
        if len(prs) == 1 or not culprits:
            return min(len(prs), 2)
        place = min(map(prs.index, culprits))
        low, high, runs, is_tested = 0, len(prs), 0, False
        while high - low > 1:
            middle = (low + high) // 2
            is_tested = place < middle
            low, high = (low, middle) if is_tested else (middle, high)
            runs += 1
        return runs if is_tested else runs + 1

    def _found(self, prs: tuple[int, ...]) -> tuple[int, ...]:
        """The first of these, of which a search that has ended tells the truth."""
        culprits = {*self._culprits(self.undecided)}.intersection(prs)
        if self.gifts not in (Gifts.EACH, Gifts.UNNAMED) or len(culprits) < 2:
            return prs
        return prs[: 1 + min(map(prs.index, culprits))]

    def _go_on(self, search: _Search) -> None:
        """A run of a search has ended: start the next one, or know the truth."""
        search.left -= 1
        if not search.left and not search.is_repeated:
            search.is_repeated = True
            search.left = int(self._may_be_outage(search.prs, search.run))
        if search.left:
            self.unsearched.insert(0, search)
        else:
            self.isolated.append((self.now, search.prs, search.run))

    def _is_convicted(self, pr: int) -> bool:
        """Whether one failure alone makes it certain enough."""
        q = self._q(pr)
        return q >= CERTAIN * (q + (1 - q) * self.config.flake_prior)

    def _reveal(self, prs: Iterable[int], run: int) -> Iterator[Action]:
        """Reject the bad ones of these, and clear the others."""
        known = set(prs)
        culprits = [pr for pr in self._culprits(self.undecided) if pr in known]
        self.cleared.update(known.difference(culprits))
        for pr in culprits:
            del self.undecided[pr]
            yield Eject(pr, run)
        yield from self._restart(culprits)

    def _culprits(self, members: Iterable[int]) -> list[int]:
        """Those that are bad if all of these merge in this order."""
        broken, conflicts = self.workload.broken, self.workload.conflicts
        culprits: list[int] = []
        good: set[int] = set()
        for pr in members:
            if broken[pr] or any(other in good or other in self.merged for other in conflicts[pr]):
                culprits.append(pr)
            else:
                good.add(pr)
        return culprits

    # -- the line --------------------------------------------------------------------------------

    def _restart(self, out: Iterable[int]) -> Iterator[Action]:
        """Begin anew what was built on these, and what failed if no run holds it any more."""
        gone = set(out)
        lost = [node for node in self._nodes() if not gone.isdisjoint(node.members)]
        kept = [node for node in self.line if node not in lost]
        while kept and not kept[-1].is_running and self._may_restart(kept[-1]):
            lost.append(kept.pop())
        again = [node.prs for node in lost if node in self.line]
        apart = [node.prs for node in lost if node in self.apart]
        yield from self._drop(lost)
        self._wait(pr for prs in again for pr in prs if pr not in self.set_aside)
        back = [pr for prs in apart for pr in prs if pr in self.undecided]
        self.left_out[:0] = [pr for pr in back if pr not in self.set_aside]

    def _may_restart(self, node: _Node) -> bool:
        return not self.gifts.isolates or node.is_examined

    def _nodes(self) -> list[_Node]:
        return [*self.line, *self.apart]

    def _drop(self, nodes: Iterable[_Node]) -> Iterator[Action]:
        for node in nodes:
            if node.is_running:
                yield CancelRun(node.run)
            (self.line if node in self.line else self.apart).remove(node)

    def _wait(self, prs: Iterable[int]) -> None:
        self.waiting = sorted({*self.waiting, *(pr for pr in prs if pr in self.undecided)})

    # -- starting --------------------------------------------------------------------------------

    def _fill(self) -> Iterator[Action]:
        running = sum(node.is_running for node in self._nodes()) + len(self.searches)
        free = self.config.workers - running
        while free and self.unsearched:
            search = self.unsearched.pop(0)
            self.last_run += 1
            self.searches[self.last_run] = search
            yield StartRun(self.last_run, (), search.prs)
            free -= 1
        if free and self.left_out and (not self.apart or len(self.waiting) < free):
            group, self.left_out = tuple(self.left_out), []
            yield self._start(group, self.apart)
            free -= 1
        while free and self.waiting:
            count = len(self.waiting) if self.policy.is_thrifty else -(-len(self.waiting) // free)
            group, self.waiting = tuple(self.waiting[:count]), self.waiting[count:]
            yield self._start(group, self.line)
            free -= 1

    def _start(self, group: tuple[int, ...], among: list[_Node]) -> Action:
        base = tuple(pr for node in self.line for pr in node.prs)
        self.last_run += 1
        among.append(_Node(self.last_run, group, (*base, *group), len(self.merges)))
        return StartRun(self.last_run, base, group)

"""The world around a simulated queue: the target branch and CI. Pure.

A tree is the sum of the changes in it, so that equal sets of changes are equal trees in
whatever order they came.
"""

import hashlib
import heapq
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from service.mergequeue.engine.model import RunStep, Tip
from service.mergequeue.engine.outputs import HeadToMerge
from service.mergequeue.simulation.history import GOOD, Arrival, Fate, History
from service.vocabulary import Sha

TREES = 1 << 160
"""A tree id has 40 hexadecimal digits."""

DURATION_S = 20 * 60.0
"""The duration of a test if the history has no durations."""


class Target:
    """The target branch, and which changes every commit of it contains."""

    def __init__(self, arrivals: Sequence[Arrival]) -> None:
        self._fates = {one.head: one.fate for one in arrivals}
        self._broken_by: defaultdict[int, set[Sha]] = defaultdict(set)
        for one in arrivals:
            for partner in one.fate.breaks_with:
                self._broken_by[partner].add(one.head)
        self._tree = 0
        self._sums: dict[Sha, tuple[int, int]] = {}
        self._landed: dict[int | Sha, int] = {}
        self.tip = self._move(sha_of("first"))

    def fate_of(self, head: Sha) -> Fate:
        """Return the effect of the change on the tests."""
        return self._fates.get(head, GOOD)

    def with_change(self, pr: int, head: Sha) -> Sha:
        """The tree of the tip with one change."""
        return _tree_id(self._tree + change_of(pr, head))

    def built(self, base_tip: Tip, heads: Sequence[HeadToMerge]) -> tuple[RunStep, ...]:
        """Commit and tree after each head, merged one by one onto a commit of the branch."""
        commit, (tree, _) = base_tip.sha, self._sums[base_tip.sha]
        steps = []
        for one in heads:
            tree += change_of(one.pr, one.head)
            commit = sha_of(commit, one.head)
            steps.append(RunStep(one.pr, one.head, commit, _tree_id(tree), contained=False))
        return tuple(steps)

    def breaks(self, base_tip: Tip, heads: Sequence[HeadToMerge]) -> bool:
        """Return whether the tests fail on that tree for what is in it.

        Two changes that break each other and have both landed are taken as mended: else
        nothing would pass ever after.
        """
        _, landed = self._sums[base_tip.sha]
        present: set[int | Sha] = {one.pr for one in heads} | {one.head for one in heads}

        def has(what: int | Sha) -> bool:
            return what in present or self._landed.get(what, landed) < landed

        return any(
            self.fate_of(one.head).breaks
            or any(has(partner) for partner in self.fate_of(one.head).breaks_with)
            or any(has(head) for head in self._broken_by.get(one.pr, ()))
            for one in heads
        )

    def land(self, pr: int, head: Sha, commit: Sha | None) -> Tip:
        """The change comes onto the branch, as `commit` or as a new one: the new tip."""
        number = len(self._sums)
        self._landed[pr] = self._landed[head] = number
        self._tree = (self._tree + change_of(pr, head)) % TREES
        self.tip = self._move(commit or sha_of("landed", str(number)))
        return self.tip

    def _move(self, sha: Sha) -> Tip:
        self._sums[sha] = (self._tree, len(self._sums) + 1)
        return Tip(sha, _tree_id(self._tree))


@cache
def change_of(pr: int, head: Sha) -> int:
    """Return what a change adds to the number of a tree."""
    return int(sha_of(str(pr), head), 16)


def sha_of(*words: str) -> Sha:
    """A commit id that the words alone determine."""
    return Sha(hashlib.sha1("/".join(words).encode(), usedforsecurity=False).hexdigest())


def _tree_id(tree: int) -> Sha:
    return Sha(f"{tree % TREES:040x}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One test of a run: its commit, whether it passes once it has ended, and after how long."""

    run: str
    sha: Sha
    passes: bool
    takes_s: float


class Ci:
    """CI: running tests and those that wait for a worker, in order of request."""

    def __init__(self, history: History, seed: int) -> None:
        self._history = history
        self._seed = seed
        self._own_s = {one.head: one.ci_s for one in history.arrivals}
        self._ends: list[tuple[datetime, int, Attempt]] = []
        self._begun: dict[str, tuple[datetime, Attempt]] = {}
        self._waiting: list[Attempt] = []
        self._count = 0
        self.busy_s = 0.0

    @property
    def runs(self) -> int:
        """Tests that were begun."""
        return self._count

    def next_end(self) -> datetime | None:
        """Return when the next test ends."""
        return self._ends[0][0] if self._ends else None

    def ask(self, attempt: Attempt, now: datetime) -> None:
        """Test it as soon as a worker is free."""
        self._waiting.append(attempt)
        self._begin(now)

    def ended(self) -> Attempt | None:
        """Take the test that ends next; None when it was stopped on the way."""
        now, _, attempt = heapq.heappop(self._ends)
        if self._begun.get(attempt.run, (now, None))[1] is not attempt:
            return None
        self._free(attempt.run, now)
        return attempt

    def stop(self, run: str, now: datetime) -> None:
        """Stop the run's test, if one is under way or waits."""
        self._waiting = [one for one in self._waiting if one.run != run]
        if run in self._begun:
            self._free(run, now)

    def seconds_of(self, tested: Sequence[Sha]) -> float:
        """Return the duration of a test of these heads: the average of their tests."""
        own = [self._own_s.get(head) or self._drawn(head) for head in tested]
        return sum(own) / len(own)

    def flakes(self, run: str, number: int) -> bool:
        """Return whether this attempt of the run fails although its tree is good."""
        if not self._history.flake_rate:
            return False
        chance = random.Random(f"{self._seed}/flake/{run}/{number}")
        return chance.random() < self._history.flake_rate

    def _drawn(self, head: Sha) -> float:
        if not self._history.durations_s:
            return DURATION_S
        return random.Random(f"{self._seed}/duration/{head}").choice(self._history.durations_s)

    def _free(self, run: str, now: datetime) -> None:
        since, _ = self._begun.pop(run)
        self.busy_s += (now - since).total_seconds()
        self._begin(now)

    def _begin(self, now: datetime) -> None:
        workers = self._history.workers
        while self._waiting and (workers is None or len(self._begun) < workers):
            attempt = self._waiting.pop(0)
            self._count += 1
            self._begun[attempt.run] = (now, attempt)
            end = now + timedelta(seconds=attempt.takes_s)
            heapq.heappush(self._ends, (end, self._count, attempt))

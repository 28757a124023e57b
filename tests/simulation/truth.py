"""What is true: which changes are broken, which do not go together, what CI answers.

Nothing here is told to the engine but through reports.
"""

import random
from dataclasses import dataclass, field

from service.vocabulary import Check, CheckKind, CheckOutcome, Sha
from tests.mergequeue.trees import Change, Tree
from tests.simulation.settings import TARGETS

CI, OTHER_APP = "7", "13"


def number_of(change: Change) -> int | None:
    """Whose change it is, None for one of others."""
    what = change[0]
    return int(what.removeprefix("pr ")) if what.startswith("pr ") else None


@dataclass
class Truth:
    """Broken changes by the check that shows it, and pairs that fail or conflict together.

    `touched` are the targets that a change truly has to do with; only changes that share one
    can fail or conflict together. What is said of targets is never less than that.
    """

    touched: dict[Change, frozenset[str]] = field(default_factory=dict)
    broken: dict[Change, str] = field(default_factory=dict)
    fail_together: set[frozenset[Change]] = field(default_factory=set)
    conflict: set[frozenset[Change]] = field(default_factory=set)

    def fails(self, tree: Tree, name: str) -> bool:
        """Whether a check of this name truly fails on a tree."""
        if any(self.broken.get(change) == name for change in tree):
            return True
        return name == "unit" and any(pair <= tree for pair in self.fail_together)

    def failed_tests(self, tree: Tree, name: str) -> tuple[str, ...]:
        """The tests that truly fail: one for each broken change, one for each pair."""
        found = {f"breaks {change}" for change in tree if self.broken.get(change) == name}
        if name == "unit":
            found |= {f"breaks {sorted(pair)}" for pair in self.fail_together if pair <= tree}
        return tuple(sorted(found))

    def is_good(self, tree: Tree, names: tuple[str, ...]) -> bool:
        return not any(self.fails(tree, name) for name in names)

    def touch(self, change: Change, chance: random.Random) -> None:
        """Draw what a change has to do with, once."""
        if change not in self.touched:
            count = chance.choice((1, 1, 1, 2))
            self.touched[change] = frozenset(chance.sample(TARGETS, count))

    def share(self, pair: frozenset[Change]) -> bool:
        """Whether changes have to do with a common target."""
        one, other = (self.touched.get(change, frozenset()) for change in pair)
        return not one.isdisjoint(other)

    def conflicts(self, tree: Tree, change: Change) -> bool:
        return any(pair <= tree | {change} for pair in self.conflict if change in pair)


@dataclass
class Commit:
    """A commit that CI runs on: its reports now, and what is still to come."""

    tree: Tree
    reports: dict[str, Check] = field(default_factory=dict)
    coming: list[tuple[str, CheckOutcome]] = field(default_factory=list)
    is_ignored: bool = False


class Ci:
    """Runs checks on commits; reports have growing ids."""

    def __init__(self, truth: Truth, chance: random.Random, flake_rate: float) -> None:
        self.truth = truth
        self.chance = chance
        self.flake_rate = flake_rate
        self.commits: dict[Sha, Commit] = {}
        self.made = 0
        self.flaked: set[tuple[Sha, str]] = set()
        self.skips = random.Random(0)
        self.skip_rate = 0.0

    def begin(self, commit: Sha, tree: Tree, names: tuple[str, ...]) -> None:
        """A new commit is there; checks of these names will report, some in odd ways."""
        if commit in self.commits:
            return
        entry = Commit(tree)
        self.commits[commit] = entry
        if self.chance.random() < 0.04:
            entry.is_ignored = True
            return
        for name in names:
            self._plan(commit, name)
        if self.chance.random() < 0.1:
            self._put(entry, names[0], CheckOutcome.PASSED, OTHER_APP)

    def skipped_on_head(self) -> tuple[str, ...]:
        """Names that CI skips on the own head of a pull request."""
        if not self.skip_rate:
            return ()
        return self.skips.choice(((), (), ("lint",), ("unit",), ("lint", "unit")))

    def again(self, commit: Sha, names: tuple[str, ...]) -> None:
        """These checks run once more."""
        for name in names:
            self._plan(commit, name)

    def need(self, names: tuple[str, ...]) -> None:
        """A check was added: it runs on every commit that is tested."""
        for sha, commit in self.commits.items():
            known = {check.name for check in commit.reports.values()}
            planned = {name for name, _ in commit.coming}
            for name in names:
                if name not in known | planned and not commit.is_ignored:
                    self._plan(sha, name)

    def move(self, commit: Sha) -> bool:
        """One thing happens on a commit; False when nothing is left."""
        entry = self.commits[commit]
        if not entry.coming:
            return False
        name, outcome = entry.coming.pop(0)
        self._put(entry, name, outcome, CI)
        return True

    def reports(self, commit: Sha) -> tuple[Check, ...]:
        return tuple(self.commits[commit].reports.values()) if commit in self.commits else ()

    def _plan(self, sha: Sha, name: str) -> None:
        entry = self.commits[sha]
        fails = self.truth.fails(entry.tree, name)
        if self.chance.random() < self.flake_rate:
            fails = True
            self.flaked.add((sha, name))
        last = CheckOutcome.FAILED if fails else CheckOutcome.PASSED
        if self.skip_rate and self.skips.random() < self.skip_rate:
            last = CheckOutcome.SKIPPED
        odd = self.chance.random()
        entry.coming.append((name, CheckOutcome.RUNNING))
        if odd < 0.04:
            entry.coming.append((name, CheckOutcome.INTERRUPTED))
            return
        if odd < 0.08:
            entry.coming.append((name, CheckOutcome.UNKNOWN))
        elif odd < 0.12:
            entry.coming.append((name, CheckOutcome.BLOCKED))
        entry.coming.append((name, last))

    def _put(self, entry: Commit, name: str, outcome: CheckOutcome, source: str) -> None:
        key = f"{source} {name}"
        known = entry.reports.get(key)
        begins = outcome is CheckOutcome.RUNNING or known is None
        if begins:
            self.made += 1
        number = str(self.made) if known is None or begins else known.id
        entry.reports[key] = Check(
            kind=CheckKind.SUITE_RUN,
            name=name,
            source_id=source,
            group=f"suite of {source}",
            id=number,
            outcome=outcome,
            raw=outcome.value,
            url=f"https://ci.example/{number}",
        )

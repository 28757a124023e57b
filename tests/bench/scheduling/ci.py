"""How long a run takes and when it ends, in the world of its workload (world.py)."""

import math
from dataclasses import dataclass

from tests.bench.scheduling import chance
from tests.bench.scheduling.audit import NEVER, Ledger, Run
from tests.bench.scheduling.workload import HOUR_S, MINUTE_S, Workload


@dataclass(slots=True, eq=False)
class OwnRun:
    """A run of CI on the branch of a pull request: it takes a slot of the account."""

    takes: float
    is_running: bool = False


class Times:
    """Times of runs, and what earlier runs leave behind for later ones."""

    def __init__(self, workload: Workload, ledger: Ledger, *, is_oracle: bool) -> None:
        self.workload = workload
        self.ledger = ledger
        self.is_oracle = is_oracle
        self.attempts: dict[tuple[int, ...], int] = {}
        self.built: set[int] = set()
        self.failed_trees: set[frozenset[int]] = set()

    def begin(self, run: Run, now: float) -> float:
        """Decide by chance whether the run is flaky; return the seconds until it ends."""
        config, world = self.workload.config, self.workload.config.world
        attempt = self.attempts.get(run.prs, 0)
        self.attempts[run.prs] = attempt + 1
        key = chance.run_key(config.seed, run.prs, attempt)
        takes = max(self.workload.duration[pr] for pr in run.prs)
        takes *= chance.noise(config.d_noise, key) * world.time_factor(key)
        rate = world.flake_rate(config.flake, config.seed, now)
        run.passed = self.is_oracle or not chance.flakes(rate, key)
        if self.built.issuperset(run.prs):
            takes *= world.built_before
        run.built_at = now + takes * (1.0 - world.built_before)
        if world.second_look < 1.0 and self._tree(run) in self.failed_trees:
            takes *= world.second_look
        if world.first_failure:
            takes *= self._known_after(run, key)
        return takes

    def end(self, run: Run, now: float, *, has_failed: bool) -> None:
        """Keep what a run that ends or is cancelled leaves behind."""
        world = self.workload.config.world
        if world.built_before < 1.0 and now >= run.built_at:
            self.built.update(run.prs)
        if world.second_look < 1.0 and has_failed:
            self.failed_trees.add(self._tree(run))

    def _known_after(self, run: Run, key: int) -> float:
        """What share of its time passes until the first failure; note which tests it shows."""
        config, world = self.workload.config, self.workload.config.world
        causes = self.ledger.causes(run)
        if world.is_drawn_by_run:
            return world.known_after(key) if causes or not run.passed else 1.0
        shares = {
            test: world.known_after(chance.run_key(config.seed, cause, 0))
            for test, cause in causes.items()
        }
        if not run.passed:
            shares[self.flaky_test(run)] = world.known_after(key)
        first = min(shares.values(), default=1.0)
        run.known_tests = frozenset(test for test, share in shares.items() if share <= first)
        return first

    def failed_tests(self, run: Run, *, is_flake: bool, is_hit: bool) -> tuple[str, ...]:
        """The failed tests that a run reports: all, or those of its first failure."""
        failed = set(self.ledger.causes(run))
        if is_flake:
            failed.add(self.flaky_test(run))
        if run.known_tests:
            failed.intersection_update(run.known_tests)
        if is_hit:
            failed.add("outage")
        return tuple(sorted(failed))

    def flaky_test(self, run: Run) -> str:
        """The test that fails if the run is flaky."""
        return f"flaky {chance.flaky_test(self.workload.config.seed, run.id)}"

    def _tree(self, run: Run) -> frozenset[int]:
        """What is in the tree of the run beside what had merged long before."""
        merged = self.ledger.merge_log[: run.main_seq]
        in_main = (pr for pr in merged if self.ledger.merge_seq[pr] != NEVER)
        return frozenset((*in_main, *run.base, *run.prs))


def own_slots(workload: Workload) -> int:
    """The slots that the own runs of pull requests need on average, at the rate of the cell."""
    config = workload.config
    an_hour = config.rate * config.world.own_runs * config.minutes * MINUTE_S / HOUR_S
    return math.ceil(an_hour)

"""How long one step of the engine takes, by the number of entries in the queue.

A crowded queue in its daily work: reports of checks, passes and landings, new submissions,
pushes, failures. 100 runs are live at 100 entries and above, in a line
and in lanes whose targets overlap. It is CPU time that counts, so a busy machine does not.
"""

import gc
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

from service.mergequeue.engine import engine, inputs, targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.model import MergeQueue, Proof, Run, RunStep
from service.mergequeue.engine.outputs import Action, BuildTestBranch, Land
from service.mergequeue.engine.targets import Targets
from service.vocabulary import CheckOutcome, Sha
from tests.bench.scheduling import scenarios, simulator, workload
from tests.bench.scheduling.engine_strategy import EngineStrategy
from tests.bench.scheduling.interface import Action as SimulatorAction
from tests.bench.scheduling.interface import Event
from tests.bench.tables import Row
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, START, a_check, a_queue, facts_of

SIZES = (10, 100, 1000, 4000, 5000)
GROWTH = (100, 1000, 5000)
GOALS: Row = {"median_goal_ms": 1.0, "p99_goal_ms": 5.0}
"""Of a step at 1,000 entries."""

TIMES_MAX = 6.0
"""How many times as long as at 1,000 entries a step may take at 4,000."""

KIB_PER_ENTRY_MAX = 20.0
EVENTS_PER_S_MIN = 20_000
SLOTS_MAX = 100
NAMES = 200
NAMES_EACH = 2
"""Targets to choose from, and of one change: it meets about two of a hundred others."""

ALL_SHARE = 0.01
"""Changes that meet every other."""

IN_FLIGHT = 100
PULL_REQUESTS = 600
"""Of the simulated queue, times the scale."""

STEPS = 1500
"""Measured steps at each size, times the scale."""


def run(scale: float = 1.0) -> list[Row]:
    """Steps by mode and number of live entries, what follows from them, memory, and events."""
    rows: list[Row] = []
    for mode in Mode:
        means: dict[int, float] = {}
        for size in SIZES:
            row, means[size] = _measured(size, int(STEPS * scale), mode)
            rows.append(row)
        rows += _growth(mode, means)
        rows.append(_memory(mode))
    return [*rows, _events(scale)]


def _measured(size: int, steps: int, mode: Mode) -> tuple[Row, float]:
    """The figures of one size, and the mean step in ms."""
    work = Work(size, mode)
    times: list[float] = []
    for one in work.inputs():
        begun = time.process_time()
        step = engine.step(work.queue, one, work.now)
        times.append((time.process_time() - begun) * 1000)
        work.take(step.queue, step.actions)
        if len(times) >= steps:
            break
    times.sort()
    mean = statistics.fmean(times)
    row: Row = {
        "subject": f"one step, {mode.value}, {size} entries",
        "steps_per_s": round(1000 / mean),
        "median_ms": round(statistics.median(times), 3),
        "p99_ms": round(times[int(len(times) * 0.99)], 3),
        "mean_ms": round(mean, 3),
    }
    if size == 1000:
        row |= GOALS
    return row, mean


def _growth(mode: Mode, means: dict[int, float]) -> list[Row]:
    first = means[GROWTH[0]]
    factors = " ".join(f"{size}:{means[size] / first:.2f}" for size in GROWTH)
    return [
        {"subject": f"growth of a step, {mode.value}", "factor": factors},
        {
            "subject": f"4,000 entries to 1,000, {mode.value}",
            "factor": round(means[4000] / means[1000], 2),
            "factor_goal": TIMES_MAX,
        },
    ]


def _memory(mode: Mode, size: int = 1000) -> Row:
    """What a value holds with its index, by entry."""
    tracemalloc.start()
    work = Work(size, mode)
    work.waiting.clear()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "subject": f"memory, {mode.value}, {len(work.queue.entries)} entries",
        "kib_per_entry": round(held / len(work.queue.entries) / 1024, 1),
        "kib_per_entry_goal": KIB_PER_ENTRY_MAX,
    }


def _events(scale: float) -> Row:
    """Events of the simulator a second, the simulator's own work included."""
    count = 0

    class Counting(EngineStrategy):
        def answer(self, event: Event) -> list[SimulatorAction]:
            nonlocal count
            count += 1
            return super().answer(event)

    pulls = int(PULL_REQUESTS * scale)
    work = workload.generate(scenarios.monorepo(IN_FLIGHT, n=pulls))
    begun = time.process_time()
    simulator.simulate(work, partial(Counting, name="headgate"), IN_FLIGHT)
    spent = time.process_time() - begun
    return {
        "subject": f"events of the simulator, {IN_FLIGHT} in flight, {pulls} pull requests",
        "events_per_s": round(count / spent),
        "pull_requests_per_s": round(pulls / spent),
        "events_per_s_floor": EVENTS_PER_S_MIN,
    }


class Work:
    """A queue kept at one size, and the shell's answers."""

    def __init__(self, size: int, mode: Mode) -> None:
        self.chance = random.Random(size)
        self.mode = mode
        self.now = START
        self.next_pr = 1
        self.size = size
        self.waiting: list[Input] = []
        self.queue: MergeQueue = a_queue(QueueConfig(mode=mode, concurrency=min(SLOTS_MAX, size)))
        while len(self.queue.entries) < size:
            self._settle(self._submission())

    def inputs(self) -> Iterator[Input]:
        """What comes in, for ever: answers first, then one thing of a day's work."""
        kinds: tuple[tuple[int, Callable[[], Input]], ...] = (
            (60, self._running),
            (22, self._passed),
            (4, self._failed),
            (4, self._push),
            (6, self._facts),
            (4, inputs.TimePassed),
        )
        weights = [weight for weight, _ in kinds]
        while True:
            self.now += timedelta(seconds=1)
            if self.waiting:
                yield self.waiting.pop(0)
            elif len(self.queue.entries) < self.size:
                yield self._submission()
            else:
                yield self.chance.choices([kind for _, kind in kinds], weights)[0]()

    def take(self, queue: MergeQueue, actions: tuple[Action, ...]) -> None:
        """Go on from this value; builds and landings are answered in order."""
        self.queue = queue
        for action in actions:
            if isinstance(action, BuildTestBranch):
                self.waiting.append(_built(action))
            elif isinstance(action, Land):
                step = action.steps[0]
                commit = trees.sha("landed", step.pr)
                is_exact = action.proof is Proof.EXACT_TREE
                tree = step.tree if is_exact else trees.sha("beside", step.pr)
                self.waiting.append(inputs.Landed(action.run, step.position, commit, tree))

    def _settle(self, one: Input) -> None:
        step = engine.step(self.queue, one, self.now)
        self.take(step.queue, step.actions)
        while self.waiting:
            step = engine.step(self.queue, self.waiting.pop(0), self.now)
            self.take(step.queue, step.actions)

    def _submission(self) -> Input:
        self.next_pr += 1
        return inputs.Submit(facts_of(self.next_pr), ALICE, targets=self._targets())

    def _targets(self) -> Targets | None:
        if self.mode is Mode.SINGLE:
            return None
        if self.chance.random() < ALL_SHARE:
            return targets.ALL
        return targets.of(f"t{self.chance.randrange(NAMES)}" for _ in range(NAMES_EACH))

    def _any_run(self) -> Run | None:
        runs = [run for run in self.queue.runs.values() if run.sha is not None]
        return self.chance.choice(runs) if runs else None

    def _running(self) -> Input:
        return self._report(CheckOutcome.RUNNING)

    def _passed(self) -> Input:
        return self._report(CheckOutcome.PASSED)

    def _failed(self) -> Input:
        return self._report(CheckOutcome.FAILED)

    def _report(self, outcome: CheckOutcome) -> Input:
        run = self._any_run()
        if run is None:
            return inputs.TimePassed()
        checks = (a_check("unit", outcome, self.chance.randrange(10**6)),)
        return inputs.ChecksReported(run.id, run.sha or Sha(""), checks, True)

    def _push(self) -> Input:
        entry = self.chance.choice(list(self.queue.entries.values()))
        return inputs.FactsChanged(replace(entry.facts, head=trees.sha("push", entry.pr)))

    def _facts(self) -> Input:
        entry = self.chance.choice(list(self.queue.entries.values()))
        return inputs.FactsChanged(replace(entry.facts, title=f"{entry.facts.title}!"))


def _built(action: BuildTestBranch) -> Input:
    steps: list[RunStep] = []
    tree = action.base_tip.tree
    for step in action.steps:
        tree = trees.sha(tree, step.head)
        steps.append(RunStep(step.pr, step.head, trees.sha("commit", tree), tree, False))
    branch = f"headgate/{action.run}"
    return inputs.TestBranchBuilt(action.run, steps[-1].commit, tuple(steps), branch, True)


if __name__ == "__main__":
    for row in run():
        print(row)

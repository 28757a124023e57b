"""How long one step of the engine takes, by the number of entries in the queue.

A crowded queue in its daily work: reports of checks, passes and landings, new submissions,
pushes, failures. 100 runs are live at 1,000 entries and above (PERFORMANCE.md 2.4). It is CPU
time that counts, so a busy machine does not.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

from service.mergequeue import engine, inputs
from service.mergequeue.config import QueueConfig
from service.mergequeue.inputs import Input
from service.mergequeue.model import MergeQueue, Run, RunStep
from service.mergequeue.outputs import Action, BuildTestBranch, Land
from service.vocabulary import CheckOutcome, Sha
from tests.mergequeue import trees
from tests.mergequeue.stage import ALICE, START, a_check, a_queue, facts_of

SIZES = (10, 100, 1000, 4000)
SLOTS_MAX = 100
STEPS = 1500
"""Measured steps at each size, times the scale."""

Row = dict[str, object]


def run(scale: float = 1.0) -> list[Row]:
    """Steps per second, median and 99th percentile in ms, for each number of live entries."""
    return [_measured(size, int(STEPS * scale)) for size in SIZES]


def _measured(size: int, steps: int) -> Row:
    work = Work(size)
    times: list[float] = []
    for one in work.inputs():
        begun = time.process_time()
        step = engine.step(work.queue, one, work.now)
        times.append(time.process_time() - begun)
        work.take(step.queue, step.actions)
        if len(times) >= steps:
            break
    times.sort()
    return {
        "subject": f"one step, {size} entries",
        "steps_per_s": round(len(times) / sum(times)),
        "median_ms": round(statistics.median(times) * 1000, 3),
        "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 3),
        "mean_ms": round(statistics.fmean(times) * 1000, 3),
    }


class Work:
    """A queue kept at one size, and the shell's answers."""

    def __init__(self, size: int) -> None:
        self.chance = random.Random(size)
        self.now = START
        self.next_pr = 1
        self.size = size
        self.waiting: list[Input] = []
        self.queue: MergeQueue = a_queue(QueueConfig(concurrency=min(SLOTS_MAX, size)))
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
                self.waiting.append(inputs.Landed(action.run, 1, commit, step.tree))

    def _settle(self, one: Input) -> None:
        step = engine.step(self.queue, one, self.now)
        self.take(step.queue, step.actions)
        while self.waiting:
            step = engine.step(self.queue, self.waiting.pop(0), self.now)
            self.take(step.queue, step.actions)

    def _submission(self) -> Input:
        self.next_pr += 1
        return inputs.Submit(facts_of(self.next_pr), ALICE)

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

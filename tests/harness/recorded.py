"""A queue whose past is real rows: submissions of a history, taken through real turns.

Builds and landings are answered at once, tests by the same target branch and CI that
simulations have.
"""

import asyncio
from collections import deque
from datetime import UTC, datetime, timedelta

from service.accounts import repositories
from service.database.database import Store
from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.engine.inputs import Input
from service.mergequeue.engine.outputs import Action, BuildTestBranch, Land
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.operations import queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.simulation.history import Arrival, History
from service.mergequeue.simulation.world import Attempt, Ci, Target
from service.mergequeue.store import queues as stored_queues
from service.runtime import Runtime
from service.vocabulary import (
    SYSTEM,
    Actor,
    ActorKind,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    QueueRef,
    Sha,
)
from tests.harness.databases import SetClock, opened_at
from tests.harness.runtimes import a_runtime
from tests.harness.values import ValuesProvider

ALICE = Actor(ActorKind.PERSON, "alice", "1")
HOST = "values.test"


def runtime_of(store: Store, clock: SetClock) -> Runtime:
    """The parts of a process around a store, with a provider made of values."""
    return a_runtime(store, clock, {HOST: ValuesProvider(HOST)})


async def made(runtime: Runtime, **settings: ConfigValue) -> QueueRef:
    """The queue of `main` of `octo/widgets`."""
    provider = runtime.providers[HOST]
    (fresh,) = await provider.repositories()
    record = await runtime.store.run(repositories.upsert, fresh)
    await queues.create(runtime, record, "main", QueueRequest(settings), SYSTEM)
    (found,) = await runtime.store.read(stored_queues.all_queues)
    return found


class Recording:
    """The queue while it lives through a history."""

    def __init__(self, runtime: Runtime, clock: SetClock, queue: QueueRef, history: History):
        self.runtime = runtime
        self.clock = clock
        self.queue = queue
        self.target = Target(history.arrivals)
        self.ci = Ci(history, 1)
        acts = [(one.at, False, one) for one in history.arrivals]
        acts += [(one.cancelled_at, True, one) for one in history.arrivals if one.cancelled_at]
        self.acts = deque(sorted(acts, key=lambda act: act[:2]))
        self.wake_at: datetime | None = None
        self.merged: list[int] = []
        self.checks = 0
        self.builds = 0

    async def play(self) -> list[int]:
        """Until nothing happens any more; the pull requests that merged, in order."""
        await self.tell(inputs.TargetMoved(self.target.tip))
        while (at := self._next_at()) is not None:
            self.clock.present = max(at, self.clock.present)
            if self.ci.next_end() == at:
                attempt = self.ci.ended()
                if attempt is not None:
                    outcome = CheckOutcome.PASSED if attempt.passes else CheckOutcome.FAILED
                    await self.tell(self._report(attempt.run, attempt.sha, outcome))
            elif self.acts and self.acts[0][0] == at:
                _, is_cancel, arrival = self.acts.popleft()
                await self._act(arrival, is_cancel)
            else:
                await self.tell(inputs.TimePassed())
        return self.merged

    async def tell(self, one: Input) -> None:
        """One turn, and a turn for each answer."""
        waiting = [one]
        while waiting:
            (step,) = await turn.take(self.runtime, self.queue.id, [waiting.pop(0)])
            self.wake_at = step.wake_at
            self.merged += [each.pr for each in step.finished_entries if each.state == "MERGED"]
            for action in step.actions:
                waiting += self._answers(action)

    def _next_at(self) -> datetime | None:
        coming = (self.acts[0][0] if self.acts else None, self.ci.next_end(), self.wake_at)
        return min((at for at in coming if at is not None), default=None)

    async def _act(self, arrival: Arrival, is_cancel: bool) -> None:
        if is_cancel:
            await self.tell(inputs.Cancel(arrival.pr, Reason.USER_REQUESTED, ALICE))
        elif arrival.pr not in self.merged:
            facts, targets = facts_of(arrival), arrival.targets
            actor = arrival.submitted_by or Actor(ActorKind.PERSON, arrival.author)
            submission = inputs.Submit(facts, actor, priority=arrival.priority, targets=targets)
            await self.tell(submission)

    def _answers(self, action: Action) -> list[Input]:
        if isinstance(action, Land):
            landed: list[Input] = []
            for step in action.steps:
                tip = self.target.land(step.pr, step.head, None)
                landed.append(inputs.Landed(action.run, step.position, tip.sha, tip.tree))
            return landed
        return self._build(action) if isinstance(action, BuildTestBranch) else []

    def _build(self, action: BuildTestBranch) -> list[Input]:
        if any(self.target.fate_of(one.head).conflicts for one in action.steps):
            pr = action.steps[-1].pr
            return [inputs.TestBranchConflicted(action.run, pr, True, None, ("README.md",))]
        steps = self.target.built(action.base_tip, action.steps)
        sha = steps[-1].commit
        passes = not self.target.breaks(action.base_tip, action.steps)
        # Ids of runs are made by chance: the same flakes every time go by number.
        self.builds += 1
        passes = passes and not self.ci.flakes(f"run-{self.builds}", 1)
        seconds = self.ci.seconds_of([one.head for one in action.steps if one.tested])
        self.ci.ask(Attempt(action.run, sha, passes, seconds), self.clock.now())
        branch = f"headgate/merge/{action.run}"
        built = inputs.TestBranchBuilt(action.run, sha, steps, branch, True)
        return [built, self._report(action.run, sha, CheckOutcome.RUNNING)]

    def _report(self, run: str, sha: Sha, outcome: CheckOutcome) -> Input:
        self.checks += 1
        number = str(self.checks)
        check = Check(CheckKind.SUITE_RUN, "unit", "7", "", number, outcome, "-", "https://ci.test")
        return inputs.ChecksReported(run, sha, (check,), True)


def facts_of(arrival: Arrival) -> Facts:
    """What the provider says of the pull request: it is ready."""
    return Facts(
        pr=arrival.pr,
        head=arrival.head,
        base="main",
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title=f"Change {arrival.pr}",
        author=arrival.author or "alice",
        is_fork=False,
    )


def days_ago(days: float) -> datetime:
    """An instant of the machine's own past: commands read the machine's clock."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(days=days)


def record_at(url: str, history: History, **settings: ConfigValue) -> list[int]:
    """Let a queue live through the history in the database at `url`; who merged, in order."""

    async def record() -> list[int]:
        store = await opened_at(url)
        clock = SetClock(history.arrivals[0].at - timedelta(minutes=1))
        runtime = runtime_of(store, clock)
        try:
            queue = await made(runtime, **settings)
            return await Recording(runtime, clock, queue, history).play()
        finally:
            await store.close()

    return asyncio.run(record())

"""A queue about to land, before the sandbox: several pull requests in one run that passed.

The queue's value is written by hand, so that a landing is driven by
`mergequeue/operations/landing.py` alone; what becomes of the queue afterwards is the engine's and
is not looked at here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from service.accounts import repositories
from service.crash_points import CrashPoints, NoCrashes
from service.database.database import Store, Tx
from service.mergequeue.engine import targets
from service.mergequeue.engine.model import (
    Entry,
    LandedStep,
    Landing,
    LandMode,
    Member,
    MergeQueue,
    Proof,
    RequiredSet,
    Run,
    RunStep,
    Tip,
)
from service.mergequeue.engine.outputs import Land, LandStep, Step
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus
from service.mergequeue.landing_records import LandingRecord
from service.mergequeue.operations import facts, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import landings
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.runtime import Runtime
from service.vocabulary import SYSTEM, MergeMethod, QueueRef, RequiredName, RequiredSource, Sha
from tests.harness.runtimes import a_runtime
from tests.provider.stage import Stage

Pull = tuple[int, Sha]


def runtime_of(stage: Stage, store: Store, crash_points: CrashPoints | None = None) -> Runtime:
    """The parts of a process before this stage."""
    return a_runtime(
        store,
        stage.clock,
        {stage.repo.host: stage.provider},
        crash_points=crash_points or NoCrashes(),
    )


async def three(stage: Stage) -> list[Pull]:
    """Pull requests of which the last two change the same file."""
    return [
        await stage.open({"a.txt": "a\n"}),
        await stage.open({"app.py": "0\n1\n2\n3\n"}),
        await stage.open({"app.py": "1\n2\n3\n4\n"}),
    ]


@dataclass(slots=True)
class Unit:
    """A run that passed, and the landing of it: `land` gives the action for some positions."""

    stage: Stage
    runtime: Runtime
    queue: QueueRef
    run: Run
    method: MergeMethod
    asked: list[int] = field(default_factory=list)

    async def land(
        self, positions: Sequence[int], mode: LandMode, proof: Proof = Proof.EXACT_TREE
    ) -> Land:
        """The next landing, asked for as the engine would ask: in flight, with its rows.

        The engine may have asked for it already; then this one takes its place.
        """
        number = (await self.value()).next_landing
        self.asked.append(number)
        tip = self.stage.tip()
        action = Land(
            number=number,
            run=self.run.id,
            mode=mode,
            method=self.method,
            expected_tip=Tip(tip, self.stage.tree(tip)),
            steps=tuple(self._step(position) for position in positions),
            proof=proof,
        )
        await self.runtime.store.run(self._ask, action)
        self.runtime.store.caches.of(QueueCache).drop(self.queue.id)
        return action

    def _ask(self, session: Tx, action: Land) -> None:
        before = stored_queues.load(session, self.queue.id)
        landing = Landing(
            action.number,
            action.run,
            tuple(step.position for step in action.steps),
            action.mode,
            action.expected_tip,
            self.runtime.clock.now(),
            action.proof,
        )
        after = replace(
            before,
            tip=action.expected_tip,
            landed=(*before.landed, *_moved(before, action.expected_tip)),
            landing=landing,
            next_landing=action.number + 1,
            runs={**before.runs, self.run.id: self.run},
            entries=self._entries(before, {step.pr for step in action.steps}),
        )
        stored_queues.save(session, before, Step(after, (), (), None, None))
        landings.intend(session, self.queue.id, action)

    def _entries(self, before: MergeQueue, landing: set[int]) -> dict[int, Entry]:
        return {
            pr: replace(
                entry,
                state=EntryState.TESTS_PASSED,
                run=self.run.id,
                verified_by=self.run.id,
                held_by=(),
            )
            if pr in landing
            else entry
            for pr, entry in before.entries.items()
        }

    def _step(self, position: int) -> LandStep:
        step = self.run.steps[position - 1]
        before = self.run.steps[position - 2].tree if position > 1 else self.run.base_tip.tree
        member = (*self.run.base, *self.run.entries)[position - 1]
        tested = self.run.steps[-1].tree
        return LandStep(
            position, step.pr, member.entry, step.head, before, step.tree, step.commit, tested
        )

    async def records(self) -> list[LandingRecord]:
        """The landings that were asked for here, in order."""
        rows = await self.runtime.store.read(landings.landings_of_run, self.run.id)
        return [row for row in rows if row.number in self.asked]

    async def value(self) -> MergeQueue:
        """The queue as it is now."""
        return await turn.value(self.runtime, self.queue.id)


async def a_unit(
    runtime: Runtime, stage: Stage, pulls: Sequence[Pull], *, base: int = 0, **settings: Any
) -> Unit:
    """These pull requests in one run that passed; the first `base` of them are its base."""
    record = await runtime.store.run(
        repositories.upsert, await runtime.providers[stage.repo.host].repository(stage.repo)
    )
    wish = QueueRequest({"required_statuses": ("unit",), **settings})
    await queues.create(runtime, record, "main", wish, SYSTEM)
    (queue,) = await runtime.store.read(stored_queues.all_queues)
    value = await turn.value(runtime, queue.id)
    run = await _passed_run(runtime, stage, value, pulls, base)
    entries = {}
    for place, (number, _) in enumerate(pulls, start=1):
        pull = await stage.provider.pull_request(stage.repo, number)
        known = await facts.facts_of(runtime, queue, value.config, pull)
        entries[number] = _entry(known, run, place)
    await runtime.store.run(_write, value, entries, run)
    runtime.store.caches.of(QueueCache).drop(queue.id)
    return Unit(stage, runtime, queue, run, value.config.merge_method)


async def _passed_run(
    runtime: Runtime, stage: Stage, value: MergeQueue, pulls: Sequence[Pull], base: int
) -> Run:
    tip = Tip(stage.tip(), stage.tree(stage.tip()))
    request = stage.request(*pulls)
    built = await stage.provider.build(request)
    await stage.settle()
    checks = await stage.provider.checks(stage.repo, built.tip, skipped_pass=True)
    members = tuple(Member(number, f"entry-{number}", head) for number, head in pulls)
    now = runtime.clock.now()
    return Run(
        id=request.run_id,
        number=1,
        kind=RunKind.MAIN,
        entries=members[base:],
        base=members[:base],
        base_tip=tip,
        status=RunStatus.SUCCEEDED,
        phase=RunPhase.TESTING,
        required=(RequiredName("unit"),),
        required_source=RequiredSource.MERGE_INSTANCE,
        config=value.config,
        created_at=now,
        steps=tuple(
            RunStep(prefix.number, head, prefix.commit, prefix.tree, prefix.contained)
            for prefix, (_, head) in zip(built.prefixes, pulls, strict=True)
        ),
        sha=built.tip,
        branch=built.branch,
        checks=checks.items,
        built_at=now,
        start_clock=now,
        finished_at=now,
    )


def _entry(known: Facts, run: Run, place: int) -> Entry:
    return Entry(
        id=f"entry-{known.pr}",
        pr=known.pr,
        facts=known,
        head=known.head,
        submitted_by=SYSTEM,
        submitted_at=run.created_at,
        priority=100,
        no_batch=False,
        state=EntryState.TESTS_PASSED,
        state_since=run.created_at,
        reason=Reason.RUN_PASSED,
        seq=place,
        rank=place,
        run=run.id,
        verified_by=run.id,
        targets=targets.of(["//unit"]),
        wide=targets.of(["//unit"]),
    )


def _moved(before: MergeQueue, tip: Tip) -> list[LandedStep]:
    """A push that the queue was not told of: of others, and meeting nothing of the unit."""
    if before.tip is None or before.tip.sha == tip.sha:
        return []
    return [LandedStep(0, before.tip.sha, tip.sha, tip.tree, targets.of(["//other"]))]


def _write(session: Tx, value: MergeQueue, entries: dict[int, Entry], run: Run) -> None:
    required = RequiredSet((RequiredName("unit"),), RequiredSource.MERGE_INSTANCE)
    after = replace(
        value, entries=entries, runs={run.id: run}, required=required, next_run=2, next_seq=99
    )
    stored_queues.save(session, value, Step(after, (), (), None, None))

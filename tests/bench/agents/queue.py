"""Headgate's engine as a queue of this benchmark: its own settings, its own decisions.

`EngineStrategy` of the scheduling benchmark translates. Here its git can refuse a merge and knows
equal trees, each submitter is an actor (agents have tokens, people ask in comments), and the chance
that a head fails is estimated from how earlier submissions ended.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.engine.explaining.estimates import OwnCi, Signs, Track
from service.mergequeue.engine.inputs import Configure, Report, Submit, TestBranchConflicted
from service.mergequeue.engine.outputs import Action, BuildTestBranch, HeadToMerge, Land, Step
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.vocabulary import Actor, ActorKind, Channel
from tests.bench.agents.interface import Git
from tests.bench.scheduling.engine_strategy import AUTHOR, EngineStrategy
from tests.bench.scheduling.interface import PrView, StrategyConfig


class HeadgateQueue(EngineStrategy):
    """A queue of the engine under settings that differ from the recommended ones by `changes`.

    Submitters from `people_from` on are people.
    """

    def __init__(
        self,
        told: StrategyConfig,
        git: Git,
        *,
        settings: str,
        changes: Mapping[str, ConfigValue],
        people_from: int,
    ) -> None:
        super().__init__(told, settings)
        self._git = git
        self._people_from = people_from
        self._ahead: list[int] = []
        self._track = Track()
        self._signs: dict[int, Signs] = {}
        self._failures: Counter[int] = Counter()
        if changes:
            self._take(Configure(changes, AUTHOR))

    def _submission(self, view: PrView) -> Submit:
        is_person = view.author >= self._people_from
        name = f"{'person' if is_person else 'agent'}-{view.author}"
        kind, channel = (
            (ActorKind.PERSON, Channel.COMMENT) if is_person else (ActorKind.TOKEN, Channel.API)
        )
        signs = Signs(name, self._failures[self._git.pull_request(view.id)], OwnCi.PASSED)
        self._signs[view.id] = signs
        submit = super()._submission(view)
        return replace(
            submit,
            facts=replace(submit.facts, author=name),
            actor=Actor(kind, name, str(view.author), channel),
            p_fail=self._track.p_fail(signs),
        )

    def _keep(self, step: Step) -> tuple[Action, ...]:
        """Learn from the ends of submissions, as the product does."""
        for entry in step.finished_entries:
            signs, head = self._signs.pop(entry.pr - 1), entry.pr - 1
            is_failed = entry.state is EntryState.FAILED
            if entry.reason is not Reason.CONFLICT_TARGET:
                self._track.count(signs, failed=is_failed)
                self._failures[self._git.pull_request(head)] += is_failed
        return super()._keep(step)

    def _build(self, action: BuildTestBranch) -> Iterator[Report]:
        """Merge head by head until one clashes; each says whether it changes the tree at all."""
        ahead: list[int] = []
        for head in action.steps:
            clash = self._git.clash_of(head.pr - 1, ahead)
            if clash is not None:
                culprit = None if clash.head is None else clash.head + 1
                with_base, paths = clash.head is None, ("a file",)
                yield TestBranchConflicted(action.run, head.pr, with_base, culprit, paths)
                return
            ahead.append(head.pr - 1)
        self._ahead = ahead
        yield from super()._build(action)

    def _tree_after(self, tree: int, head: HeadToMerge) -> int:
        ahead = self._ahead[: self._ahead.index(head.pr - 1)]
        is_contained = self._git.is_contained(head.pr - 1, ahead)
        return tree if is_contained else super()._tree_after(tree, head)

    def _land(self, action: Land) -> Iterator[Report]:
        for step in action.steps:
            self._git.land(step.pr - 1)
        return super()._land(action)

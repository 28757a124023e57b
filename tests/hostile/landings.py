"""Merge calls at the provider, and what a person with push access does just before or after."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from service.mergequeue.engine.model import LandMode
from service.mergequeue.engine.outputs import Land
from service.provider.values import Merged
from service.vocabulary import Sha
from tests.hostile.repository import Branch, Change
from tests.mergequeue import trees


class Ambush(StrEnum):
    """What somebody does while a landing is under way, with a message like that of the landing."""

    BELOW = "pushes, so that the landing is on top"
    EMPTY_BELOW = "pushes a commit that changes no file, so that the landing is on top"
    ABOVE = "pushes on top of the landing"
    INSTEAD = "merges the pull request by hand, with another change in it"
    BACK = "moves the branch back after the landing"


@dataclass
class Landings:
    """What landed by calls of the queue: each commit with the tree that it truly has."""

    target: Branch
    chance: random.Random
    changes: Mapping[int, Change]
    ambush: Ambush | None = None
    own: dict[Sha, Sha] = field(default_factory=dict)

    def land(self, action: Land) -> Merged:
        """Answer a merge call, or what is read back after its answer was lost."""
        way, self.ambush = self.ambush, None
        expected = action.expected_tip.sha
        if action.mode is LandMode.CAS and way is not Ambush.ABOVE:
            way = None
        if way in (Ambush.BELOW, Ambush.EMPTY_BELOW):
            self._push(is_empty=way is Ambush.EMPTY_BELOW)
        commit = self._merge(action, is_by_hand=way is Ambush.INSTEAD)
        if way is Ambush.ABOVE:
            self._push(is_empty=self.chance.random() < 0.5)
        if way is Ambush.BACK:
            self.target.go_back(expected)
        return Merged(commit, self.target.chain(expected))

    def is_true(self, action: Land, commit: Sha) -> bool:
        """Whether a commit of the target is our landing, on the tested base, with the tested tree.

        An advance lands the tested commits themselves.
        """
        last = action.steps[-1]
        is_whole = self.own.get(commit) == last.tree and self._is_on_target(commit)
        below = commit
        for _ in action.steps:
            below = self.target.parents.get(below, Sha(""))
        return is_whole and below == action.expected_tip.sha

    def _is_on_target(self, commit: Sha) -> bool:
        at: Sha | None = self.target.tip.sha
        while at is not None and at != commit:
            at = self.target.parents.get(at)
        return at is not None

    def _merge(self, action: Land, *, is_by_hand: bool) -> Sha:
        commit = self.target.tip.sha
        for step in action.steps:
            tree = self.target.tree | {trees.change_of(step.pr, step.head)}
            if is_by_hand:
                tree |= {self._foreign()}
            commit = self.target.move(tree, step.commit if action.mode is LandMode.CAS else None)
            self.target.change(self.changes.get(step.pr))
            if not is_by_hand:
                self.own[commit] = self.target.tip.tree
        return commit

    def _push(self, *, is_empty: bool) -> None:
        more = frozenset() if is_empty else frozenset({self._foreign()})
        self.target.move(self.target.tree | more)

    def _foreign(self) -> trees.Change:
        return "foreign", f"by hand {len(self.target.commits)}"

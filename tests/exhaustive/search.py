"""Breadth first over canonical states, to a scope's number of inputs."""

from array import array
from dataclasses import dataclass

from service.mergequeue.engine import engine, inputs, invariants
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.inputs import Report
from service.mergequeue.engine.state import holds
from service.mergequeue.engine.states import EntryState, QueueState
from tests.exhaustive import moves, scene
from tests.exhaustive.canonical import Key, key_of
from tests.exhaustive.properties import Violation
from tests.exhaustive.scene import Scene
from tests.exhaustive.scopes import Scope

BY_PEOPLE = (
    *("submit", "cancel", "restart", "targets", "push", "foreign", "crash"),
    *(state.value for state in QueueState),
    *(mode.value for mode in Mode),
)
"""Moves that nobody may count on."""


@dataclass(frozen=True)
class Found:
    """What a search went through: `is_all` when no input leads to anything new any more."""

    scope: str
    states: int
    edges: int
    inputs: int
    is_all: bool

    def __str__(self) -> str:
        end = "all there are" if self.is_all else f"all within {self.inputs} inputs"
        return f"{self.scope}: {self.states:,} states, {self.edges:,} edges, {end}"


class Search:
    """One scope's states, with the input by which each was first reached."""

    def __init__(self, scope: Scope, inputs_max: int) -> None:
        self.scope = scope
        self.inputs_max = inputs_max
        self.seen: set[Key] = set()
        self.parents = array("l")
        self.words: list[str] = []
        self.edges = 0

    def run(self) -> Found:
        """Go through everything. Whatever is raised carries the inputs that led to it as a note."""
        level = [(scene.beginning(self.scope), self._add("", -1))]
        self.seen.add(key_of(level[0][0], self.scope))
        depth = 0
        while level and depth < self.inputs_max:
            level = [found for one, number in level for found in self._from(one, number)]
            depth += 1
        return Found(self.scope.name, len(self.seen), self.edges, depth, is_all=not level)

    def _from(self, one: Scene, number: int) -> list[tuple[Scene, int]]:
        """The scenes that are new among those that follow."""
        found = []
        word = ""
        is_stuck = True
        try:
            for word, follow in moves.of(one, self.scope):
                is_stuck = is_stuck and word.startswith(BY_PEOPLE)
                after = follow()
                if after is one:
                    continue
                self.edges += 1
                key = key_of(after, self.scope)
                if key in self.seen:
                    continue
                self.seen.add(key)
                _judge_state(after)
                found.append((after, self._add(word, number)))
            word = ""
            if is_stuck:
                _judge_stuck(one)
        except Exception as broken:
            broken.add_note(f"in {self.scope.name!r}: {' ; '.join([*self._way(number), word])}")
            raise
        return found

    def _add(self, word: str, parent: int) -> int:
        self.parents.append(parent)
        self.words.append(word)
        return len(self.words) - 1

    def _way(self, number: int) -> list[str]:
        way = []
        while number > 0:
            way.append(self.words[number])
            number = self.parents[number]
        return way[::-1]


def _judge_state(one: Scene) -> None:
    """What a state alone can show, and what a repeated report must not change."""
    invariants.check_whole(one.queue, one.now)
    again = engine.step(one.queue, inputs.TimePassed(), one.now)
    if again.queue is not one.queue or again.actions or again.events:
        raise Violation("E8: planning again changed something")
    if isinstance(one.heard, Report):
        again = engine.step(one.queue, one.heard, one.now)
        if again.queue is not one.queue or again.actions or again.events:
            raise Violation(f"S6: {type(one.heard).__name__} counted twice")


def _judge_stuck(one: Scene) -> None:
    """S5: while the queue runs, somebody's move is left for every entry that is ready."""
    queue = one.queue
    if queue.state is not QueueState.RUNNING or holds.stops_starts(queue) or one.wake_at:
        return
    waiting = [e.pr for e in queue.entries.values() if e.state is not EntryState.NOT_READY]
    if waiting:
        raise Violation(f"S5: nothing is left to happen for {waiting}")

"""GitHub's merge queue, by the rules that its documentation states.

https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
says: first in, first out; each entry gets a build of its own, of the branch, those ahead and
itself; at most "build concurrency" builds at once; merge limits combine merges and no builds; a
failing entry is removed, and the branches behind it are made again without it; one that conflicts
is removed. "Only merge non-failing pull requests" is on.

Where it says nothing, the reading is the one that costs GitHub least: builds of branches that
are made again stop at once, those behind a failure are made again at once, and an entry that
fails leaves only when those ahead of it have passed, since it may have failed by their fault.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tests.bench.agents.interface import Git
from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Eject,
    Event,
    Merge,
    PrSubmitted,
    RunFinished,
    StartRun,
    StrategyConfig,
)

CONCURRENCY_MAX = 100
"""The most that "build concurrency" takes."""


class _State(Enum):
    UNBUILT = auto()
    BUILDING = auto()
    PASSED = auto()
    FAILED = auto()


@dataclass(slots=True, eq=False)
class _Entry:
    head: int
    state: _State = _State.UNBUILT
    run: int = -1


class GitHubRules:
    """The line of one branch, with as many builds at once as CI has slots."""

    name = "GitHub's rules"

    def __init__(self, told: StrategyConfig, git: Git) -> None:
        self._concurrency = min(told.workers, CONCURRENCY_MAX)
        self._git = git
        self._line: list[_Entry] = []
        self._waiting: deque[int] = deque()
        self._building: dict[int, _Entry] = {}
        self._runs = 0

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, PrSubmitted):
            self._waiting.append(event.pr.id)
        elif isinstance(event, RunFinished):
            out += self._finish(event)
        out += self._settle_front()
        out += self._build()
        return out

    def _finish(self, event: RunFinished) -> Iterator[Action]:
        entry = self._building.pop(event.run)
        entry.state = _State.PASSED if event.passed else _State.FAILED
        if entry.state is _State.FAILED:
            yield from self._reset_behind(entry)

    def _reset_behind(self, entry: _Entry) -> Iterator[Action]:
        for other in self._line[self._line.index(entry) + 1 :]:
            if other.state is _State.BUILDING:
                del self._building[other.run]
                yield CancelRun(other.run)
            other.state = _State.UNBUILT

    def _settle_front(self) -> Iterator[Action]:
        """Merge from the front what has passed, and remove what fails with all ahead merged."""
        while self._line and self._line[0].state in {_State.PASSED, _State.FAILED}:
            entry = self._line.pop(0)
            if entry.state is _State.PASSED:
                self._git.land(entry.head)
                yield Merge((entry.head,), entry.run)
            else:
                yield Eject(entry.head, entry.run)

    def _build(self) -> Iterator[Action]:
        while len(self._line) < self._concurrency and self._waiting:
            self._line.append(_Entry(self._waiting.popleft()))
        ahead: list[int] = []
        for entry in list(self._line):
            if entry.state is _State.UNBUILT:
                if self._git.clash_of(entry.head, ahead) is not None:
                    self._line.remove(entry)
                    yield Eject(entry.head)
                    continue
                self._runs += 1
                entry.run, entry.state = self._runs, _State.BUILDING
                self._building[entry.run] = entry
                yield StartRun(entry.run, tuple(ahead), (entry.head,))
            if entry.state is not _State.FAILED:
                ahead.append(entry.head)

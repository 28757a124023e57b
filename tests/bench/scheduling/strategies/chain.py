"""A chain in which each is tested on top of all that do not fail ahead of it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Clock,
    Eject,
    Event,
    Merge,
    PrCancelled,
    PrSubmitted,
    RunFinished,
    StartRun,
    StrategyConfig,
)


class State(IntEnum):
    """Where a link of a chain stands."""

    WAITING = 0
    RUNNING = 1
    PASSED = 2
    FAILED = 3


@dataclass(slots=True, eq=False)
class _Link:
    pr: int
    state: State = State.WAITING
    run: int = -1
    tries: int = 0


@dataclass(frozen=True)
class Window:
    """How many of a chain are tested at once.

    With `is_moving` it grows by one a merge and is halved by a failure, not below `floor`.
    """

    size: int = 20
    floor: int = 3
    is_moving: bool = True


class Zuul:
    """An optimistic chain with a moving window.

    A failure tests everything behind it anew without it. A failing one is reported only when it
    comes to the front, when its base has really merged. A smaller window stops new starts and
    aborts nothing.
    """

    name = "zuul"

    def __init__(
        self, _config: StrategyConfig, window: Window | None = None, retries: int = 0
    ) -> None:
        self.rule = window or Window()
        self.window = self.rule.size
        self.retries = retries
        self.chain: list[_Link] = []
        self.waiting: deque[int] = deque()
        self.of_run: dict[int, _Link] = {}
        self.next_run = 0

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, Clock):
            return out
        if isinstance(event, PrSubmitted):
            self.waiting.append(event.pr.id)
        elif isinstance(event, RunFinished):
            out += self._finished(event)
        else:
            out += self._cancelled(event)
        out += self._decide_front()
        out += self._fill()
        return out

    def _finished(self, event: RunFinished) -> Iterator[Action]:
        link = self.of_run.pop(event.run)
        if event.passed:
            link.state = State.PASSED
        elif link.tries < self.retries:
            link.tries += 1
            link.state = State.WAITING
        else:
            link.state = State.FAILED
            yield from self._reset_behind(self.chain.index(link))

    def _cancelled(self, event: PrCancelled) -> Iterator[Action]:
        for index, link in enumerate(self.chain):
            if link.pr == event.pr:
                yield from self._stop(link)
                if link.state is not State.FAILED:
                    yield from self._reset_behind(index)
                del self.chain[index]
                return
        if event.pr in self.waiting:
            self.waiting.remove(event.pr)

    def _stop(self, link: _Link) -> Iterator[Action]:
        if link.state is State.RUNNING:
            del self.of_run[link.run]
            yield CancelRun(link.run)

    def _reset_behind(self, index: int) -> Iterator[Action]:
        for link in self.chain[index + 1 :]:
            yield from self._stop(link)
            link.state = State.WAITING
            link.tries = 0

    def _decide_front(self) -> Iterator[Action]:
        count = 0
        for link in self.chain:
            if link.state is State.PASSED:
                yield Merge((link.pr,), link.run)
                self.window += self.rule.is_moving
            elif link.state is State.FAILED:
                yield Eject(link.pr, link.run)
                if self.rule.is_moving:
                    self.window = max(self.rule.floor, self.window // 2)
            else:
                break
            count += 1
        del self.chain[:count]

    def _fill(self) -> Iterator[Action]:
        while len(self.chain) < self.window and self.waiting:
            self.chain.append(_Link(self.waiting.popleft()))
        base: list[int] = []
        for place, link in enumerate(self.chain):
            if link.state is State.WAITING and place < self.window:
                self.next_run += 1
                link.run = self.next_run
                link.state = State.RUNNING
                self.of_run[link.run] = link
                yield StartRun(link.run, tuple(base), (link.pr,))
            if link.state is not State.FAILED:
                base.append(link.pr)


class Prefix(Zuul):
    """The same with a fixed number of builds at once: hosted merge queues and merge trains."""

    name = "prefix"

    def __init__(self, config: StrategyConfig, cap: int = 100, retries: int = 0) -> None:
        fixed = Window(size=min(config.workers, cap), is_moving=False)
        super().__init__(config, fixed, retries)

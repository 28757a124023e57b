"""One run at a time: alone (serial), or a batch that is halved on failure (bors)."""

from collections import deque
from collections.abc import Iterator

from tests.bench.scheduling.interface import (
    Action,
    CancelRun,
    Eject,
    Event,
    Merge,
    PrCancelled,
    PrSubmitted,
    RunFinished,
    StartRun,
    StrategyConfig,
)

Batch = tuple[int, ...]


class Serial:
    """One pull request at a time on the tip of main; a failed run is run `retries` times more."""

    name = "serial"

    def __init__(self, _config: StrategyConfig, retries: int = 0) -> None:
        self.waiting: deque[int] = deque()
        self.current: int | None = None
        self.run = 0
        self.tries = 0
        self.retries = retries

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, PrSubmitted):
            self.waiting.append(event.pr.id)
        elif isinstance(event, RunFinished):
            out += self._finished(event)
        elif isinstance(event, PrCancelled):
            out += self._cancelled(event.pr)
        if self.current is None and self.waiting:
            self.current = self.waiting.popleft()
            self.tries = 0
            out.append(self._start(self.current))
        return out

    def _finished(self, event: RunFinished) -> Iterator[Action]:
        if self.current is None:
            return
        if not event.passed and self.tries < self.retries:
            self.tries += 1
            yield self._start(self.current)
            return
        if event.passed:
            yield Merge((self.current,), event.run)
        else:
            yield Eject(self.current, event.run)
        self.current = None

    def _cancelled(self, pr: int) -> Iterator[Action]:
        if pr == self.current:
            yield CancelRun(self.run)
            self.current = None
        elif pr in self.waiting:
            self.waiting.remove(pr)

    def _start(self, pr: int) -> Action:
        self.run += 1
        return StartRun(self.run, (), (pr,))


class Bors:
    """All that wait, up to `max_batch`, on one staging branch; halved on failure."""

    name = "bors"

    def __init__(self, _config: StrategyConfig, max_batch: int = 16, retries: int = 0) -> None:
        self.max_batch = max_batch
        self.retries = retries
        self.waiting: deque[int] = deque()
        self.halves: list[Batch] = []
        self.current: Batch = ()
        self.tries = 0
        self.run = 0

    def answer(self, event: Event) -> list[Action]:
        out: list[Action] = []
        if isinstance(event, PrSubmitted):
            self.waiting.append(event.pr.id)
        elif isinstance(event, RunFinished):
            out += self._finished(event)
        elif isinstance(event, PrCancelled):
            out += self._cancelled(event.pr)
        if not self.current:
            out += self._next()
        return out

    def _finished(self, event: RunFinished) -> Iterator[Action]:
        batch, self.current = self.current, ()
        if event.passed:
            yield Merge(batch, event.run)
        elif len(batch) > 1:
            middle = len(batch) // 2
            self.halves += [batch[middle:], batch[:middle]]
        elif self.tries < self.retries:
            self.tries += 1
            yield self._start(batch)
            return
        else:
            yield Eject(batch[0], event.run)
        self.tries = 0

    def _cancelled(self, pr: int) -> Iterator[Action]:
        if pr in self.current:
            yield CancelRun(self.run)
            rest = _without(self.current, pr)
            self.current = ()
            self.halves += [rest] if rest else []
            return
        self.halves = [half for half in (_without(half, pr) for half in self.halves) if half]
        if pr in self.waiting:
            self.waiting.remove(pr)

    def _next(self) -> Iterator[Action]:
        if self.halves:
            yield self._start(self.halves.pop())
        elif self.waiting:
            count = min(self.max_batch, len(self.waiting))
            yield self._start(tuple(self.waiting.popleft() for _ in range(count)))

    def _start(self, batch: Batch) -> Action:
        self.run += 1
        self.current = batch
        return StartRun(self.run, (), batch)


def _without(batch: Batch, pr: int) -> Batch:
    return tuple(each for each in batch if each != pr)

"""An event loop of one thread whose time is virtual: it jumps to the next timer, and never waits.

What is given to threads runs at once, and connections are those of `network.py`. Each process of
a history has a name; a process that dies takes no further step, not even one of its clean-up.
"""

import asyncio
import heapq
import selectors
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any
from weakref import WeakKeyDictionary

PROCESS: ContextVar[str] = ContextVar("process", default="")
"""The name of the process whose code runs; empty for everything around the service."""

ROUNDS_MAX = 200_000
"""A history of an hour has some 10,000."""


class NothingLeft(Exception):
    """Everybody waits for somebody else, and no timer runs."""


async def rest(seconds: float) -> None:
    """Let so much virtual time pass."""
    await asyncio.sleep(seconds)


class NeverEnds(Exception):
    """Something happens again and again, and no time passes."""


class JumpingSelector(selectors.DefaultSelector):
    """Lets the time of every wait pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return nothing: no connection is the system's."""
        if timeout is None:
            raise NothingLeft
        self.rounds += 1
        if self.rounds > ROUNDS_MAX:
            raise NeverEnds(f"more than {ROUNDS_MAX} rounds until {self.now_s:.3f} s")
        self.now_s += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module."""

    _ready: deque[Any]
    _scheduled: list[Any]

    def __init__(self) -> None:
        self.jumping = JumpingSelector()
        self.dead: set[str] = set()
        self.steps = 0
        self._parked: list[Any] = []
        self._strikes: list[tuple[int, Callable[[], None]]] = []
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        super().__init__(self.jumping)
        self.set_task_factory(_known)

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self.jumping.now_s

    def run_in_executor(  # type: ignore[override]  # as typeshed has it, without its overloads
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function at once."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_soon(  # type: ignore[override]  # as typeshed has it, without its type variables
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call it next, unless it is of a process that has died."""
        self.steps += 1
        made = super().call_soon(callback, *args, context=context)
        if self.dead and _process_of(made) in self.dead:
            self._parked.append(self._ready.pop())
        while self._strikes and self._strikes[0][0] <= self.steps:
            super().call_soon(self._strikes.pop(0)[1], context=Context())
        return made

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # as above

    def call_at(  # type: ignore[override]  # as typeshed has it, without its type variables
        self, when: float, callback: Callable[..., object], *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:  # fmt: skip
        """Call it later, unless it is of a process that has died."""
        if self.dead and (context or copy_context()).get(PROCESS, "") in self.dead:
            late = asyncio.TimerHandle(when, callback, args, self, context)
            self._parked.append(late)
            return late
        return super().call_at(when, callback, *args, context=context)

    def after_steps(self, steps: int, strike: Callable[[], None]) -> None:
        """Call it once so many steps have been planned from now on."""
        self._strikes.append((self.steps + steps, strike))
        self._strikes.sort(key=lambda one: one[0])

    def forget_strikes(self) -> None:
        """Call none of what was to be called after some steps."""
        self._strikes.clear()

    def kill(self, process: str) -> None:
        """Let a process take no further step: what it was about to do is put aside."""
        self.dead.add(process)
        for place, handle in enumerate(self._ready):
            if _process_of(handle) == process:
                self._parked.append(handle)
                self._ready[place] = asyncio.Handle(_nothing, (), self, Context())
        late = [handle for handle in self._scheduled if _process_of(handle) == process]
        self._scheduled = [one for one in self._scheduled if _process_of(one) != process]
        heapq.heapify(self._scheduled)
        for handle in late:
            handle._scheduled = False
        self._parked += late

    def bury(self) -> list[asyncio.Task[Any]]:
        """Return the tasks of dead processes, which may end now that nobody sees it."""
        left = [task for task, process in self._tasks.items() if process in self.dead]
        self.dead.clear()
        self._ready += self._parked
        return [task for task in left if not task.done()]

    def know(self, task: "asyncio.Task[Any]", process: str) -> None:
        """Remember whose task it is."""
        self._tasks[task] = process


def _known(
    loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None
) -> "asyncio.Task[Any]":
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    if isinstance(loop, VirtualLoop):
        process = PROCESS.get() if context is None else context.get(PROCESS, "")
        loop.know(task, process)
    return task


def _nothing() -> None:
    pass


def _process_of(handle: asyncio.Handle) -> str:
    context: Context = handle._context  # type: ignore[attr-defined]
    return context.get(PROCESS, "")

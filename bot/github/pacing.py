"""Who may call now: one limiter for each installation, in memory (GITHUB.md 2.5).

Reads and writes wait in two lines, each strictly by priority, so that a landing never waits
behind a comment. Waiting goes through the clock; a wait that is too long for the caller is
`Throttled` instead.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from bot.github import limits
from bot.github.limits import Finding, Trouble
from service.clock import Clock
from service.provider.errors import Throttled

IN_FLIGHT_MAX = 20
POINTS_MAX = 600  # a minute
CONTENT_MINUTE_MAX = 70
CONTENT_HOUR_MAX = 450
RESERVED_MINUTE = 10  # of these two, for landing
RESERVED_HOUR = 60
PATIENCE_S = 60.0
LANDING_PATIENCE_S = 5.0  # a permit lives 30 s
STRANGER_PATIENCE_S = 1.0  # a caller without a token holds no connection for long
THROTTLED_SPACING_S = 1.0
AFTER_RESET_S = 1.0
LAST_CALLS = 100


class Priority(IntEnum):
    """Whose turn comes first."""

    LANDING = 0
    VERDICT = 1
    BUILD = 2
    ANSWER = 3
    NOTICE = 4
    SWEEP = 5
    STRANGER = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call takes: GitHub's points, and whether it makes content people see."""

    priority: Priority
    is_write: bool
    points: int
    is_content: bool = False
    resource: str = "core"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a primary limit; `reset` in seconds since 1970."""

    limit: int
    remaining: int
    reset: float


class Pacer:
    """The limiter of one installation.

    `is_limited` false: a host of its own, which limits nobody unless an admin says so; our own
    allowances then begin with the first limit it names.
    """

    def __init__(self, clock: Clock, spacing_s: float, *, is_limited: bool) -> None:
        self._clock = clock
        self._spacing_s = spacing_s
        self._is_limited = is_limited
        self._numbers = itertools.count()
        self._lines: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        self._in_flight = 0
        self._is_writing = False
        self._next_write_s = 0.0
        self._points: deque[tuple[float, int]] = deque()
        self._content: deque[float] = deque()
        self._closed_until_s = 0.0
        self._strikes = 0
        self._allowances: dict[str, Allowance] = {}
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self, cost: Cost) -> AsyncIterator[None]:
        """Wait for the turn and hold it. Raises Throttled when that would take too long."""
        await self._enter(cost)
        try:
            yield
        finally:
            self._in_flight -= 1
            if cost.is_write:
                self._is_writing = False
                self._next_write_s = self._clock.monotonic_s() + self._spacing_s
            self._wake()

    def note(self, headers: Mapping[str, str]) -> None:
        """Remember what an answer says is left of its limit."""
        limit, left = headers.get("x-ratelimit-limit", ""), headers.get("x-ratelimit-remaining", "")
        reset = headers.get("x-ratelimit-reset", "")
        if limit.isdecimal() and left.isdecimal() and reset.isdecimal():
            resource = headers.get("x-ratelimit-resource", "core")
            self._allowances[resource] = Allowance(int(limit), int(left), float(reset))

    @property
    def remaining(self) -> int | None:
        """What is left of the limit that is nearest its end, None while nothing was told."""
        return min((one.remaining for one in self._allowances.values()), default=None)

    def left_of(self, resource: str) -> int | None:
        """What is left of one limit, None while it is unknown or begins anew."""
        held = self._allowances.get(resource)
        if held is None or held.reset <= self._clock.now().timestamp():
            return None
        return held.remaining

    def fine(self) -> None:
        """An answer without a limit came: the next secondary limit begins at its shortest."""
        self._strikes = 0

    def strike(self, finding: Finding, resource: str) -> float:
        """Obey a limit; the seconds until the next call makes sense."""
        self._is_limited = True
        now_s = self._clock.monotonic_s()
        if finding.trouble is Trouble.PRIMARY:
            reset = finding.reset or self._clock.now().timestamp() + limits.SECONDARY_S
            held = self._allowances.get(resource)
            self._allowances[resource] = Allowance(held.limit if held else 0, 0, reset)
            return max(reset - self._clock.now().timestamp(), 0.0) + AFTER_RESET_S
        wait_s = finding.wait_s
        if wait_s is None:
            times, longest_s = self._strikes, limits.SECONDARY_MAX_S
            wait_s = limits.doubled_s(limits.SECONDARY_S, times, longest_s)
            self._strikes += 1
        self._spacing_s = max(self._spacing_s, THROTTLED_SPACING_S)
        self._closed_until_s = max(self._closed_until_s, now_s + wait_s)
        return wait_s

    async def _enter(self, cost: Cost) -> None:
        line = self._lines[cost.is_write]
        ticket = (int(cost.priority), next(self._numbers))
        heapq.heappush(line, ticket)
        give_up_s = self._clock.monotonic_s() + _patience_s(cost)
        try:
            while True:
                if line[0] != ticket or not self._has_room(cost):
                    await self._changed.wait()
                    continue
                wait_s = self._wait_s(cost)
                if wait_s <= 0:
                    break
                if self._clock.monotonic_s() + wait_s > give_up_s:
                    raise Throttled(
                        "GitHub's rate limit is used up for now.",
                        self._clock.now() + timedelta(seconds=wait_s),
                    )
                await self._clock.sleep(wait_s)
            self._account(cost)
        finally:
            line.remove(ticket)
            heapq.heapify(line)
            self._wake()

    def _has_room(self, cost: Cost) -> bool:
        return self._in_flight < IN_FLIGHT_MAX and not (cost.is_write and self._is_writing)

    def _account(self, cost: Cost) -> None:
        now_s = self._clock.monotonic_s()
        self._in_flight += 1
        self._is_writing = self._is_writing or cost.is_write
        self._points.append((now_s, cost.points))
        if cost.is_content:
            self._content.append(now_s)

    def _wait_s(self, cost: Cost) -> float:
        now_s = self._clock.monotonic_s()
        waits = [
            self._closed_until_s - now_s,
            self._allowance_wait_s(cost),
        ]
        if self._is_limited:
            waits.append(self._points_wait_s(now_s, cost))
        if cost.is_write and cost.priority is not Priority.LANDING:
            waits.append(self._next_write_s - now_s)
        if cost.is_content and self._is_limited:
            waits.append(self._content_wait_s(now_s, cost))
        return max(waits)

    def _allowance_wait_s(self, cost: Cost) -> float:
        held = self._allowances.get(cost.resource)
        if held is None or held.remaining > _floor(cost.priority, held.limit):
            return 0.0
        left_s = held.reset - self._clock.now().timestamp()
        return left_s + AFTER_RESET_S if left_s > 0 else 0.0

    def _points_wait_s(self, now_s: float, cost: Cost) -> float:
        while self._points and self._points[0][0] <= now_s - 60:
            self._points.popleft()
        over = sum(points for _, points in self._points) + cost.points - POINTS_MAX
        if over <= 0:
            return 0.0
        freed = 0
        for at_s, points in self._points:
            freed += points
            if freed >= over:
                return at_s + 60 - now_s
        return 60.0

    def _content_wait_s(self, now_s: float, cost: Cost) -> float:
        while self._content and self._content[0] <= now_s - 3600:
            self._content.popleft()
        is_landing = cost.priority is Priority.LANDING
        minute = CONTENT_MINUTE_MAX - (0 if is_landing else RESERVED_MINUTE)
        hour = CONTENT_HOUR_MAX - (0 if is_landing else RESERVED_HOUR)
        waits = [0.0]
        for most, span_s in ((minute, 60), (hour, 3600)):
            if len(self._content) >= most:
                waits.append(self._content[-most] + span_s - now_s)
        return max(waits)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _patience_s(cost: Cost) -> float:
    if cost.priority is Priority.STRANGER:
        return STRANGER_PATIENCE_S
    return LANDING_PATIENCE_S if cost.priority is Priority.LANDING else PATIENCE_S


def _floor(priority: Priority, limit: int) -> int:
    """What must be left for a call of this priority: landing may use the last one."""
    floors = {
        Priority.STRANGER: limit // 5,
        Priority.SWEEP: limit // 5,
        Priority.NOTICE: limit // 10,
        Priority.LANDING: 0,
    }
    return floors.get(priority, min(LAST_CALLS, limit // 10))

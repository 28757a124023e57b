"""Rate limits kept in memory: one `Pacer` per installation, outages, anonymous callers.

REST reads, GraphQL queries and writes wait in three queues, each strictly by priority, so that a
landing never waits behind a comment. The queues share the limits, and each priority may use only
a part of them. Every wait uses the clock; a wait that is too long for the caller raises `Throttled`
instead.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from math import inf

from cachetools import LRUCache
from gidgethub.sansio import RateLimit

from bot.github import limits, told_times
from bot.github.limits import Limit
from service.clock import Clock
from service.provider.budget import Budget, LimitName, LimitUse, Pressure
from service.provider.errors import Throttled
from service.telemetry import SILENT, Meter

IN_FLIGHT_MAX = 20
# Per minute. GitHub allows 900 and 2,000, counted apart, and does not publish the points of some
# REST endpoints: hence the distance.
POINTS_MAX: Mapping[str, int] = {"core": 750, "graphql": 1700}
CONTENT_MINUTE_MAX = 70
CONTENT_HOUR_MAX = 450
PUSHES_MAX = 6  # per minute and repository
CAREFUL_S = 3600.0  # after a secondary limit, everything that people see counts as content

# Of each limit used so far: middle states thin out, then are left to the next state.
HIGH_SHARE = 0.7
CRITICAL_SHARE = 0.85
WRITES_WAITING_MAX = 60  # about as many are sent in the time that a call waits at most
WAITING_MAX = 500  # in one line, by the shares below: a further call is put off at once
PATIENCE_S = 60.0
LANDING_PATIENCE_S = 5.0  # a permit lives 30 s
ANONYMOUS_PATIENCE_S = 1.0  # a caller without a token holds no connection for long
THROTTLED_SPACING_S = 1.0
AFTER_RESET_S = 1.0
LAST_CALLS = 100
WRITES = "writes"
POINTS_NAMES = {"core": LimitName.REST_POINTS_MINUTE, "graphql": LimitName.GRAPHQL_POINTS_MINUTE}

# Without a bound, any caller could use up an installation's limit and stop its queues.
ANONYMOUS_SHARE = 0.05  # of what is left of an installation's limit, for all its repositories
REPOSITORY_SHARE = 0.02  # for one repository, so that one under attack leaves room for others
MINUTE_S, WINDOW_S = 60.0, 3600.0
LEFT_ASSUMED = 5000  # the smallest limit of an installation, also for a host without limits
KEYS_MAX = 10_000

_MINUTE_S, _HOUR_S = 60.0, 3600.0
_REPOSITORIES_MAX = 10_000


class CallKind(StrEnum):
    """The kind of a call by GitHub's limits (docs/design/limits.md 8)."""

    READ = "read"
    FREE_READ = "free_read"
    QUERY = "query"
    WRITE = "write"
    CONTENT = "content"
    PUSH = "push"


class _Counts:
    """The number of calls of each kind an installation made, and of pull requests it landed."""

    def __init__(self, clock: Clock, telemetry: Meter) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self._calls: dict[CallKind, deque[float]] = {kind: deque() for kind in CallKind}
        self._landed: deque[float] = deque()
        self._pushes: LRUCache[str, deque[float]] = LRUCache(_REPOSITORIES_MAX)

    def add(self, kind: CallKind) -> None:
        """Count one call."""
        self._within(self._calls[kind], _HOUR_S)
        self._calls[kind].append(self._clock.monotonic_s())
        self._telemetry.count("headgate_provider_calls_total", kind.value)

    def add_push(self, repo: str) -> None:
        """Count one push by git."""
        self.add(CallKind.PUSH)
        self.pushes(repo)
        self._pushes.setdefault(repo, deque()).append(self._clock.monotonic_s())

    def add_landed(self, pull_requests: int) -> None:
        """Count landed pull requests."""
        self._within(self._landed, _HOUR_S)
        for _ in range(pull_requests):
            self._landed.append(self._clock.monotonic_s())
            self._telemetry.count("headgate_provider_landed_total")

    def of_hour(self) -> Mapping[str, int]:
        """Return the calls of the last hour by kind."""
        return {kind.value: self._within(calls, _HOUR_S) for kind, calls in self._calls.items()}

    def landed_of_hour(self) -> int:
        """Return the pull requests landed in the last hour."""
        return self._within(self._landed, _HOUR_S)

    def pushes(self, repo: str) -> int:
        """Return the pushes to a repository in the last minute."""
        return self._within(self._pushes.get(repo, deque()), _MINUTE_S)

    def _within(self, times: deque[float], span_s: float) -> int:
        since_s = self._clock.monotonic_s() - span_s
        while times and times[0] <= since_s:
            times.popleft()
        return len(times)


class Priority(IntEnum):
    """Priorities of calls, the most urgent first."""

    LANDING = 0
    VERDICT = 1
    FINAL = 2
    BUILD = 3
    ANSWER = 4
    NOTICE = 5
    REFRESH = 6
    SWEEP = 7
    ANONYMOUS = 8


# How much of the content limits may be used before a call of this priority waits. What ends a
# submission goes before the start of another one, so that a queue at its limit tests less.
CONTENT_SHARES = {
    Priority.LANDING: 1.0,
    Priority.FINAL: 0.95,
    Priority.BUILD: 0.9,
    Priority.REFRESH: 0.4,
}
CONTENT_SHARE = 0.85  # of the others

# How much of the points of a minute, and of the calls in flight, may be used before a call of this
# priority waits. So calls that decide always find some left.
SHARES: Mapping[Priority, float] = {
    Priority.LANDING: 1.0,
    Priority.VERDICT: 0.95,
    Priority.FINAL: 0.85,
    Priority.BUILD: 0.85,
    Priority.ANSWER: 0.9,
    Priority.NOTICE: 0.7,
    Priority.REFRESH: 0.5,
    Priority.SWEEP: 0.5,
    Priority.ANONYMOUS: 0.5,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call: GitHub's points, and whether it creates content.

    `is_seen`: people see it, so it may count as content, although GitHub does not say so.
    """

    priority: Priority
    is_write: bool
    points: int
    is_content: bool = False
    is_seen: bool = False
    resource: str = "core"

    @property
    def kind(self) -> CallKind:
        """Return the kind that the call counts as."""
        if self.is_content:
            return CallKind.CONTENT
        if self.is_write:
            return CallKind.WRITE
        return CallKind.QUERY if self.resource == "graphql" else CallKind.READ

    @property
    def line(self) -> str:
        """Return the queue in which the call waits: a read waits behind none of another API."""
        return WRITES if self.is_write else self.resource


@dataclass(frozen=True, slots=True)
class HourLimit:
    """A primary limit and when it is reset, by the monotonic clock: nobody can set that."""

    limit: int
    remaining: int
    reset_s: float


class Pacer:
    """The limiter of one installation.

    `is_limited` false: an Enterprise Server, which has no limits by default; our own limits then
    start with the first limit that it reports.
    """

    def __init__(
        self, clock: Clock, spacing_s: float, telemetry: Meter = SILENT, *, is_limited: bool
    ) -> None:
        self._clock = clock
        self._spacing_s = spacing_s
        self._is_limited = is_limited
        self._numbers = itertools.count()
        self._queues: dict[str, list[tuple[int, int]]] = {
            line: [] for line in (*POINTS_MAX, WRITES)
        }
        self._give_up_s: dict[tuple[int, int], float] = {}
        self._in_flight = 0
        self._is_writing = False
        self._next_write_s = 0.0
        self._points: dict[str, deque[tuple[float, int]]] = {api: deque() for api in POINTS_MAX}
        self._content: deque[tuple[float, bool]] = deque()
        self._careful_until_s = 0.0
        self._closed_until_s = 0.0
        self._strikes = 0
        self._rate_limits: dict[str, HourLimit] = {}
        self._changed = asyncio.Event()
        self.counts = _Counts(clock, telemetry)

    @asynccontextmanager
    async def turn(self, cost: Cost) -> AsyncIterator[None]:
        """Wait for the turn. Raises Throttled if that would take too long."""
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
        """Store the rate limit that an answer reports."""
        try:
            limit = RateLimit.from_http(headers)
        except ValueError:
            return
        if limit is not None:
            left_s = told_times.until_reset_s(headers, self._clock.now()) or 0.0
            resource = headers.get("x-ratelimit-resource", "core")
            self._set_limit(resource, limit.limit, limit.remaining, left_s)

    @property
    def remaining(self) -> int | None:
        """The fewest calls left of any limit; None before any limit was reported."""
        return min((one.remaining for one in self._rate_limits.values()), default=None)

    def left_of(self, resource: str) -> int | None:
        """Return the calls left of one limit; None while it is unknown or starts anew."""
        limit = self._rate_limits.get(resource)
        if limit is None or self._left_s(limit) <= 0:
            return None
        return limit.remaining

    def spent_until(self, resource: str) -> datetime | None:
        """Return when a limit is reset that has too little left for a test branch; else None."""
        limit = self._rate_limits.get(resource)
        if limit is None or limit.remaining > _floor(Priority.BUILD, limit.limit):
            return None
        left_s = self._left_s(limit)
        return self._clock.now() + timedelta(seconds=left_s) if left_s > 0 else None

    def budget(self, repo: str) -> Budget:
        """Return what is used of the limits that apply to a repository, `owner/name`."""
        counts = self.counts
        uses = self._uses(repo)
        calls, landed = counts.of_hour(), counts.landed_of_hour()
        return Budget(self._pressure(uses), uses, calls, landed)

    @property
    def content_left(self) -> int | None:
        """Return how much content may be created this hour; None where it is not limited."""
        if not self._is_limited:
            return None
        return max(CONTENT_HOUR_MAX - len(self._content_times(self._clock.monotonic_s())), 0)

    def _uses(self, repo: str) -> tuple[LimitUse, ...]:
        now, now_s = self._clock.now(), self._clock.monotonic_s()
        times = self._content_times(now_s)
        spans = (
            (LimitName.CONTENT_MINUTE, MINUTE_S, CONTENT_MINUTE_MAX),
            (LimitName.CONTENT_HOUR, WINDOW_S, CONTENT_HOUR_MAX),
        )
        found = []
        for name, span_s, most in spans if self._is_limited else ():
            recent = [at for at in times if at > now_s - span_s]
            frees = now + timedelta(seconds=recent[0] + span_s - now_s) if recent else None
            found.append(LimitUse(name, len(recent), most, frees))
        for api, name in POINTS_NAMES.items() if self._is_limited else ():
            points = self._points_of(api, now_s)
            frees = now + timedelta(seconds=points[0][0] + MINUTE_S - now_s) if points else None
            used = sum(each for _, each in points)
            found.append(LimitUse(name, used, POINTS_MAX[api], frees))
        found.append(LimitUse(LimitName.PUSHES_MINUTE, self.counts.pushes(repo), PUSHES_MAX))
        names = {"core": LimitName.REST_HOUR, "graphql": LimitName.GRAPHQL_HOUR}
        for resource, limit in self._rate_limits.items():
            left_s = self._left_s(limit)
            if resource in names and limit.limit and left_s > 0:
                used, reset = limit.limit - limit.remaining, now + timedelta(seconds=left_s)
                found.append(LimitUse(names[resource], used, limit.limit, reset))
        return tuple(found)

    def _pressure(self, uses: Sequence[LimitUse]) -> Pressure:
        waiting = len(self._queues[WRITES]) / WRITES_WAITING_MAX
        shares = [use.used / use.most for use in uses if use.name is not LimitName.PUSHES_MINUTE]
        most = max([waiting, *shares])
        if self._closed_until_s > self._clock.monotonic_s() or most >= CRITICAL_SHARE:
            return Pressure.CRITICAL
        return Pressure.HIGH if most >= HIGH_SHARE else Pressure.NONE

    def reset_strikes(self) -> None:
        """Note an answer without a limit: the next secondary limit starts at its shortest."""
        self._strikes = 0

    def strike(self, limit: Limit, resource: str) -> float:
        """Obey a limit; return the seconds until the next call makes sense."""
        self._is_limited = True
        now_s = self._clock.monotonic_s()
        if limit.is_primary:
            left_s = limits.SECONDARY_S if limit.wait_s is None else limit.wait_s
            known = self._rate_limits.get(resource)
            self._set_limit(resource, 0 if known is None else known.limit, 0, left_s)
            return left_s + AFTER_RESET_S
        wait_s = limit.wait_s
        if wait_s is None:
            times, longest_s = self._strikes, limits.SECONDARY_MAX_S
            wait_s = limits.doubled_s(limits.SECONDARY_S, times, longest_s)
            self._strikes += 1
        self._spacing_s = max(self._spacing_s, THROTTLED_SPACING_S)
        self._closed_until_s = max(self._closed_until_s, now_s + wait_s)
        self._careful_until_s = now_s + CAREFUL_S
        return wait_s

    def refuse_if_closed(self) -> None:
        """Raise Throttled while a limit holds; for a call that waits in no line."""
        core = self._rate_limits.get("core")
        waits = [self._closed_until_s - self._clock.monotonic_s()]
        if core is not None and core.remaining == 0:
            waits.append(self._left_s(core))
        if max(waits) > 0:
            raise self._throttled(max(waits))

    async def _enter(self, cost: Cost) -> None:
        queue = self._queues[cost.line]
        if len(queue) >= WAITING_MAX * SHARES[cost.priority]:
            raise self._throttled(PATIENCE_S)
        ticket = (int(cost.priority), next(self._numbers))
        heapq.heappush(queue, ticket)
        give_up_s = self._clock.monotonic_s() + _patience_s(cost)
        self._give_up_s[ticket] = give_up_s
        try:
            while True:
                is_next = queue[0] == ticket and self._has_room(cost)
                wait_s = self._wait_s(cost) if is_next else 0.0
                if is_next and wait_s <= 0:
                    break
                now_s = self._clock.monotonic_s()
                if now_s + wait_s > give_up_s or (not is_next and now_s >= give_up_s):
                    raise self._throttled(wait_s or PATIENCE_S)
                await (self._stand_first(queue, wait_s) if is_next else self._changed.wait())
            self._account(cost)
        finally:
            queue.remove(ticket)
            heapq.heapify(queue)
            del self._give_up_s[ticket]
            self._wake()

    def _throttled(self, wait_s: float) -> Throttled:
        later = self._clock.now() + timedelta(seconds=wait_s)
        return Throttled("GitHub's rate limit is used up for now.", later)

    async def _stand_first(self, queue: Sequence[tuple[int, int]], wait_s: float) -> None:
        """Wait at the head of a line, at most until the next one behind gives up."""
        behind = [self._give_up_s[ticket] for ticket in queue[1:]]
        left_s = min(behind, default=inf) - self._clock.monotonic_s()
        await self._clock.sleep(min(wait_s, max(left_s, 0.0)))
        if left_s < wait_s:
            self._wake()
            await self._clock.sleep(0.0)  # those behind go first

    def _has_room(self, cost: Cost) -> bool:
        most = int(IN_FLIGHT_MAX * SHARES[cost.priority])
        return self._in_flight < most and not (cost.is_write and self._is_writing)

    def _account(self, cost: Cost) -> None:
        now_s = self._clock.monotonic_s()
        self._in_flight += 1
        self._is_writing = self._is_writing or cost.is_write
        # Old ones are dropped here, too: where no limits hold, nothing else looks at them.
        self._points_of(cost.resource, now_s).append((now_s, cost.points))
        if cost.is_content or cost.is_seen:
            self._content_times(now_s)
            self._content.append((now_s, cost.is_content))

    def _wait_s(self, cost: Cost) -> float:
        now_s = self._clock.monotonic_s()
        waits = [
            self._closed_until_s - now_s,
            self._rate_limit_wait_s(cost),
        ]
        if self._is_limited:
            waits.append(self._points_wait_s(now_s, cost))
        if cost.is_write and cost.priority is not Priority.LANDING:
            waits.append(self._next_write_s - now_s)
        if self._is_limited and (cost.is_content or (cost.is_seen and self._is_careful(now_s))):
            waits.append(self._content_wait_s(now_s, cost))
        return max(waits)

    def _rate_limit_wait_s(self, cost: Cost) -> float:
        limit = self._rate_limits.get(cost.resource)
        if limit is None or limit.remaining > _floor(cost.priority, limit.limit):
            return 0.0
        left_s = self._left_s(limit)
        return left_s + AFTER_RESET_S if left_s > 0 else 0.0

    def _set_limit(self, resource: str, limit: int, remaining: int, left_s: float) -> None:
        reset_s = self._clock.monotonic_s() + left_s
        self._rate_limits[resource] = HourLimit(limit, remaining, reset_s)

    def _left_s(self, limit: HourLimit) -> float:
        """Return the seconds until a limit is reset."""
        return limit.reset_s - self._clock.monotonic_s()

    def _points_wait_s(self, now_s: float, cost: Cost) -> float:
        points = self._points_of(cost.resource, now_s)
        most = int(POINTS_MAX[cost.resource] * SHARES[cost.priority])
        over = sum(each for _, each in points) + cost.points - most
        freed = 0
        for at_s, each in points if over > 0 else ():
            freed += each
            if freed >= over:
                return at_s + MINUTE_S - now_s
        return 0.0

    def _points_of(self, api: str, now_s: float) -> deque[tuple[float, int]]:
        """Return when points of an API were used in the last minute, and how many."""
        points = self._points[api]
        while points and points[0][0] <= now_s - MINUTE_S:
            points.popleft()
        return points

    def _content_wait_s(self, now_s: float, cost: Cost) -> float:
        times = self._content_times(now_s)
        share = CONTENT_SHARES.get(cost.priority, CONTENT_SHARE)
        waits = [0.0]
        for limit, span_s in ((CONTENT_MINUTE_MAX, 60), (CONTENT_HOUR_MAX, 3600)):
            most = int(limit * share)
            if len(times) >= most:
                waits.append(times[-most] + span_s - now_s)
        return max(waits)

    def _content_times(self, now_s: float) -> list[float]:
        """Return when the content of the last hour was created."""
        while self._content and self._content[0][0] <= now_s - WINDOW_S:
            self._content.popleft()
        is_careful = self._is_careful(now_s)
        return [at for at, is_content in self._content if is_content or is_careful]

    def _is_careful(self, now_s: float) -> bool:
        return now_s < self._careful_until_s

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _patience_s(cost: Cost) -> float:
    if cost.priority is Priority.ANONYMOUS:
        return ANONYMOUS_PATIENCE_S
    return LANDING_PATIENCE_S if cost.priority is Priority.LANDING else PATIENCE_S


def _floor(priority: Priority, limit: int) -> int:
    """Return how many calls must be left for one of this priority; a landing may use the last."""
    floors = {
        Priority.ANONYMOUS: limit // 5,
        Priority.SWEEP: limit // 5,
        Priority.REFRESH: limit // 5,
        Priority.NOTICE: limit // 10,
        Priority.LANDING: 0,
    }
    return floors.get(priority, min(LAST_CALLS, limit // 10))


class Outage:
    """One wait shared by all calls: 60 s, doubled up to 15 min while GitHub stays unusable.

    A call that fails during a wait does not lengthen it: with a doubling per call, the many calls
    of one short outage would end in a wait of 15 minutes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits = 0
        self._over_at_s = 0.0

    def failed(self) -> float:
        """Note a failed call; return the seconds until the next one makes sense."""
        now_s = self._clock.monotonic_s()
        if not self._waits or now_s >= self._over_at_s:
            self._waits += 1
            self._over_at_s = now_s + self._wait_s()
        return self._wait_s()

    def answered(self) -> None:
        """Note an answer of GitHub: the next wait starts at its shortest."""
        self._waits = 0

    def _wait_s(self) -> float:
        return limits.doubled_s(limits.UNAVAILABLE_S, self._waits - 1, limits.UNAVAILABLE_MAX_S)


class AnonymousShare:
    """The share of GitHub's rate limit that callers without a token may use.

    Counts the calls of the last hour, repeated ones too, by installation and by repository.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: LRUCache[str, deque[float]] = LRUCache(KEYS_MAX)

    def take(self, installation: str, repo: str, left: int | None) -> None:
        """Count one call. Raises Throttled, without counting, when a share is used up.

        `left`: what is left of the installation's limit, None when that is unknown.
        """
        rest = LEFT_ASSUMED if left is None else left
        now_s = self._clock.monotonic_s()
        keys = (
            (installation, ANONYMOUS_SHARE),
            (f"{installation} {repo.lower()}", REPOSITORY_SHARE),
        )
        counted = [(self._calls_of(key, now_s), int(rest * share)) for key, share in keys]
        waits = [_free_after_s(calls, most, now_s) for calls, most in counted if len(calls) >= most]
        if waits:
            raise Throttled(
                "Callers without a token have used their share of GitHub's rate limit",
                self._clock.now() + timedelta(seconds=max(waits)),
            )
        for calls, _ in counted:
            calls.append(now_s)

    def _calls_of(self, key: str, now_s: float) -> deque[float]:
        calls = self._calls.setdefault(key, deque())
        while calls and calls[0] <= now_s - WINDOW_S:
            calls.popleft()
        return calls


def _free_after_s(calls: deque[float], most: int, now_s: float) -> float:
    """Return the seconds until a call is free again: an hour when the share is zero."""
    return calls[-most] + WINDOW_S - now_s if most else WINDOW_S

"""Measure how much of a provider's limits is used (docs/design/limits.md 8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum


class Pressure(IntEnum):
    """The degrees of nearness to the limits; the higher, the fewer notices are written.

    HIGH: no reactions, and comments of states that are not final wait. CRITICAL: check runs of
    such states wait too.
    """

    NONE = 0
    HIGH = 1
    CRITICAL = 2


class LimitName(StrEnum):
    """A limit and the time that it counts."""

    REST_HOUR = "rest_hour"
    GRAPHQL_HOUR = "graphql_hour"
    REST_POINTS_MINUTE = "rest_points_minute"
    GRAPHQL_POINTS_MINUTE = "graphql_points_minute"
    CONTENT_MINUTE = "content_minute"
    CONTENT_HOUR = "content_hour"
    PUSHES_MINUTE = "pushes_minute"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The used part of a limit; `frees_at` is when some of it becomes free."""

    name: LimitName
    used: int
    most: int
    frees_at: datetime | None = None

    @property
    def left(self) -> int:
        """Return how much of it is left."""
        return max(self.most - self.used, 0)


@dataclass(frozen=True, slots=True)
class Budget:
    """The use of the limits that apply to a repository, by one process.

    A limit is absent before the provider reported it, or where the host has none. `calls` and
    `landed` are of the last hour, calls by kind.
    """

    pressure: Pressure
    limits: tuple[LimitUse, ...]
    calls: Mapping[str, int]
    landed: int

"""The plan of a history: which faults it has, how much of them, and how the queue is set."""

import random
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox.records import Json
from tests.whole_service.faults import CALLS, DELIVERIES, Write

STORM_S = 600.0
"""So long faults happen, in seconds of virtual time."""

ACTS = {
    "submit": 6,
    "cancel": 2,
    "push": 2,
    "close": 1,
    "pause": 1,
    "resume": 2,
    "drain": 1,
    "settings": 2,
    "push_main": 1,
    "merge_by_hand": 1,
    "delete_queue": 1,
    "retry": 1,
    "open": 3,
    "stop": 1,
}
KINDS = ("writes", "reads", "outages", "calls", "deliveries", "kills", "jumps")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a seed has drawn. Times are seconds of virtual time; kills are in steps of the loop."""

    seed: int
    writes: dict[Write, float] = field(default_factory=dict)
    reads: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()
    calls: tuple[Json, ...] = ()
    call_rate: float = 0.0
    deliveries: tuple[Json, ...] = ()
    delivery_rate: float = 0.0
    kills: tuple[int, ...] = ()
    jumps: tuple[tuple[float, float], ...] = ()
    skew_s: float = 0.0
    people: int = 4
    settings: dict[str, Any] = field(default_factory=dict)
    method: str = "merge"
    flake: float = 0.0
    late_rate: float = 0.0
    """How often the connection of a write is cut, and the write carried out up to 20 s later."""
    is_muted: bool = False
    """GitHub refuses everything that we say to people."""
    storm_s: float = STORM_S
    acts: dict[str, int] = field(default_factory=lambda: ACTS)
    """What people do, and how often."""
    pause_s: float = 45.0
    """The mean time between two things that people do."""
    answers_within_s: float = 0.002
    """So long the database takes at most."""
    service: dict[str, Any] = field(default_factory=dict)
    """Settings of the service."""

    @property
    def ahead_s(self) -> float:
        """How far the clock was ahead, at most; it is right in the end."""
        return max(0.0, self.skew_s, *(offset for _, offset in self.jumps))


def drawn(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance, later = random.Random(f"{seed}/plan"), random.Random(f"{seed}/later")
    kinds = {name for name in KINDS if chance.random() < 0.4}
    return Plan(
        seed,
        writes=_some_writes(chance) if "writes" in kinds else {},
        reads=chance.choice((0.01, 0.05, 0.2)) if "reads" in kinds else 0.0,
        outages=_outages(chance) if "outages" in kinds else (),
        calls=_some(chance, CALLS) if "calls" in kinds else (),
        call_rate=chance.choice((0.02, 0.1, 0.3)),
        deliveries=_some(chance, DELIVERIES) if "deliveries" in kinds else (),
        delivery_rate=chance.choice((0.05, 0.3, 1.0)),
        kills=_kills(chance) if "kills" in kinds else (),
        jumps=tuple(sorted((_jumps(chance) if "jumps" in kinds else ()) + _far_jumps(later))),
        skew_s=chance.choice((0.0, 0.0, 20.0, -20.0)),
        people=chance.randint(1, 4),
        settings=_settings(chance),
        method=chance.choice(("merge", "merge", "squash", "rebase")),
        flake=chance.choice((0.0, 0.0, 0.1)),
        late_rate=later.choice((0.0, 0.0, 0.05, 0.2)),
        is_muted=chance.random() < 0.1,
    )


def _some(chance: random.Random, kinds: tuple[Json, ...]) -> tuple[Json, ...]:
    return tuple(chance.sample(kinds, chance.randint(1, len(kinds))))


def _some_writes(chance: random.Random) -> dict[Write, float]:
    kinds = chance.sample(list(Write), chance.randint(1, len(Write)))
    return {kind: chance.choice((0.01, 0.03, 0.1)) for kind in kinds}


def _outages(chance: random.Random) -> tuple[tuple[float, float], ...]:
    begins = sorted(chance.uniform(20, STORM_S - 60) for _ in range(chance.randint(1, 3)))
    return tuple((begin, begin + chance.choice((1.0, 10.0, 60.0))) for begin in begins)


def _kills(chance: random.Random) -> tuple[int, ...]:
    return tuple(sorted(chance.randint(200, 12_000) for _ in range(chance.randint(1, 4))))


def _jumps(chance: random.Random) -> tuple[tuple[float, float], ...]:
    """When the clock is set, and how far it is off from then on."""
    moments = sorted(chance.uniform(10, STORM_S) for _ in range(chance.randint(1, 4)))
    return tuple((moment, chance.choice((-600.0, -45.0, -5.0, 5.0, 45.0, 600.0)))
                 for moment in moments)  # fmt: skip


def _far_jumps(chance: random.Random) -> tuple[tuple[float, float], ...]:
    """Set a clock by hours, in one history of four, and sometimes right again."""
    if chance.random() >= 0.25:
        return ()
    first, second = sorted(chance.uniform(10, STORM_S) for _ in range(2))
    far = (first, chance.choice((-10_800.0, -3_600.0, 3_600.0, 10_800.0)))
    return (far, (second, 0.0)) if chance.random() < 0.5 else (far,)


def _settings(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "concurrency": chance.randint(1, 5),
        "mode": chance.choice(("SINGLE", "SINGLE", "PARALLEL")),
        "batch": chance.random() < 0.4,
        "batchingMinSize": 3,
        "batchingMaxWaitTimeMinutes": 1,
        "canOptimisticallyMerge": chance.random() < 0.4,
        "directMergeMode": chance.choice(("OFF", "ALWAYS")),
        "bisectionConcurrency": chance.randint(1, 3),
        "autoRetryLimit": chance.randint(0, 2),
        "testingTimeoutMinutes": 300,
    }
    if chance.random() < 0.2:
        found["batchSizing"] = "ADAPTIVE"
    return found

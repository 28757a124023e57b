"""Memory of looks at runs under test; losing it costs calls (docs/design/early-failures.md 7)."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from service.mergequeue.early_rules import Rule

POLL_EVERY = timedelta(seconds=3)
"""The shortest time between two polls of the steps of a run."""

POLL_SPACING = timedelta(seconds=1)
"""The time between two polls of this process: at most 60 a minute, of the 750 points of reads."""

KEPT_MAX = 1000
"""Rules, digests, plans and marks of each kind that this process remembers."""

Key = TypeVar("Key")
Value = TypeVar("Value")

RunKey = tuple[int, str]
"""A run by its queue and id."""


class _Kept(OrderedDict[Key, Value]):
    """Remembers the newest of what was put."""

    def put(self, key: Key, value: Value) -> None:
        self[key] = value
        self.move_to_end(key)
        while len(self) > KEPT_MAX:
            self.popitem(last=False)


@dataclass(slots=True)
class Looks:
    """Memory of the looks of this process, and when it polls next; losing it costs calls.

    `rules` by queue, with the time of the read. `digests` of workflow files by repository and
    commit, `plans` by repository and digest. `seen` are the failed checks of an attempt that were
    looked at, `learned` the ends of required checks, `heard` the runs whose tests have reported.
    """

    rules: _Kept[int, tuple[datetime, Mapping[Rule, float]]] = field(default_factory=_Kept)
    digests: _Kept[object, object] = field(default_factory=_Kept)
    plans: _Kept[object, object] = field(default_factory=_Kept)
    seen: _Kept[object, object] = field(default_factory=_Kept)
    learned: _Kept[object, object] = field(default_factory=_Kept)
    heard: _Kept[object, object] = field(default_factory=_Kept)
    polls: dict[RunKey, datetime] = field(default_factory=dict)

    def plan_poll(self, key: RunKey, now: datetime) -> None:
        """Poll a run again after a pause, which grows with the runs that are polled."""
        pause = max(POLL_EVERY, POLL_SPACING * (len(self.polls) + 1))
        self.polls.setdefault(key, now + pause)

    def due(self, now: datetime) -> tuple[RunKey, ...]:
        """Take the runs whose poll is due."""
        ripe = tuple(key for key, at in self.polls.items() if at <= now)
        for key in ripe:
            del self.polls[key]
        return ripe

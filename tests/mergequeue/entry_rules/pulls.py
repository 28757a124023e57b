"""Pull requests and rules of the tests."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from service.mergequeue.engine.rules import EntryRule, Period, Seen

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
"""A Saturday."""

WEEKEND = Period("2026-11-27T18:00", "Europe/Berlin", 3720, "FREQ=WEEKLY;BYDAY=FR")

_PULL = Seen(7, "Fix it", "ada", "fix", "main", (), (), draft=False, fork=False, auto_merge=False)


def pull(**changes: Any) -> Seen:
    return replace(_PULL, **changes)


def rule(name: str = "rule", **fields: Any) -> EntryRule:
    return EntryRule(name, **fields)

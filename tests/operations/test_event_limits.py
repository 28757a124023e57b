"""Events that are counted when they happened, also where they are heard of late."""

from datetime import UTC, datetime, timedelta

import pytest

from service.limits import EventLimit
from service.mergequeue.operations.command_limits import CommandLimits

T0 = datetime(2026, 3, 2, 14, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_one_too_many_is_told_when_the_next_is_allowed():
    window = EventLimit(2, MINUTE)
    assert [window.count("alice", at(second)) for second in (0, 20)] == [None, None]
    assert window.count("alice", at(30)) == at(60)
    assert window.count("bob", at(30)) is None
    assert window.count("alice", at(60)) is None
    assert window.count("alice", at(61)) == at(80)


@pytest.mark.parametrize("order", [1, -1])
def test_events_heard_of_together_count_when_they_happened(order):
    window = EventLimit(2, MINUTE)
    spread = [at(40 * place) for place in range(20)][::order]
    assert [window.count("alice", one) for one in spread] == [None] * 20
    flood = [window.count("alice", at(5000 - place / 10)) for place in range(9)]
    assert flood.count(None) == 2


def test_commands_of_an_hour_without_webhooks_are_no_flood():
    commands = CommandLimits()
    found = [commands.until("alice", f"#{n}", at(60 * n)) for n in range(60)]
    assert found == [None] * 60

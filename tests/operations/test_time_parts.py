"""How the time of a merged submission divides, on values."""

from datetime import UTC, datetime, timedelta

import pytest

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.statistics import Part, parts_of
from service.mergequeue.store.figures import Moved
from service.mergequeue.store.statistics import Stay

DAY_0 = datetime(2026, 3, 2, tzinfo=UTC)
LOOKED_AT_MAX = 60


class Counted(tuple):
    """Pauses that count how many of them are looked at."""

    def __init__(self, _pauses):
        self.looked_at = 0

    def __getitem__(self, place):
        found = super().__getitem__(place)
        self.looked_at += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self):
        self.looked_at += len(self)
        return super().__iter__()


def day(number, hours=0.0):
    return DAY_0 + timedelta(days=number, hours=hours)


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        (day(3, 1), day(3, 5), 0),  # between two pauses
        (day(3, 8), day(3, 10), 0),  # they touch
        (day(3, 8), day(3, 11), 1),
        (day(3, 10.5), day(3, 11.5), 1),
        (day(3, 11), day(5, 11), 4),
    ],
)
def test_only_the_pauses_of_its_own_time_are_taken_out_and_looked_at(start, end, hours):
    pauses = Counted((day(n, 10), day(n, 12)) for n in range(400))
    stay = Stay("e7", EntryState.MERGED, Reason.LANDED, start, end)
    moves = [Moved(end, EntryState.PENDING, EntryState.TESTING)]
    parts = parts_of(stay, moves, pauses)
    assert parts[Part.PAUSED] == timedelta(hours=hours)
    assert sum(parts.values(), timedelta()) == end - start
    assert pauses.looked_at < LOOKED_AT_MAX

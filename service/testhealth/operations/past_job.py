"""The work of a process of its own that replays the past of a repository (`parser_process`)."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.testhealth.detector import past
from service.testhealth.detector.past import Past, Rules, Stored
from service.testhealth.store import bitmaps

NICENESS = 10


@dataclass(frozen=True, slots=True)
class CarriedSets:
    """The sets of passed tests that uploads name, compressed."""

    packed: Mapping[str, bytes]

    def members(self, keys: Iterable[str], nos: Sequence[int]) -> Mapping[str, Sequence[int]]:
        """Return the key of each set → those of the tests that are in it."""
        wanted = bitmaps.bits_of(nos)
        return {
            key: tuple(bitmaps.common(bitmaps.expanded(self.packed[key]), wanted))
            for key in keys
            if key in self.packed
        }

    def numbers(self, key: str) -> Iterable[int]:
        """Return all tests in a set, in order; a set that is gone is empty."""
        bits = self.packed.get(key)
        return () if bits is None else bitmaps.members(bitmaps.expanded(bits))


def replayed(stored: Stored, sets: CarriedSets, variants: Sequence[Rules]) -> Iterator[Past]:
    """Return what each of these settings would have said; requests of others go before it."""
    os.nice(NICENESS)
    yield from past.replayed(stored, sets, variants)

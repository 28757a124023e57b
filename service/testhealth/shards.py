"""Divide files of tests into shards that take about as long as one another. Pure.

The longest files are placed first. Each file prefers shards in an order of its own, which its name
alone decides, and takes the first that has room: so a plan moves few files when times change
little. See docs/design/test-costs.md 3.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

ROOM = 1.02
"""A shard is full at so many times an equal share, unless one file alone takes longer."""

STEP = 1.5
"""Times that differ by less count as equal in the order of files."""

LITTLE_KNOWN = 0.5
"""Below this share of files with a known time too little is known."""

ASSUMED_S = 1.0
"""The time of each file when no time is known: then shards get as many files as one another."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The files of one shard, sorted, and how long their tests take by what is known."""

    files: tuple[str, ...]
    expected_s: float


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """All shards; `known` of the files have a known time, the others count as `assumed_s`."""

    shards: tuple[Shard, ...]
    known: int
    unknown: int
    assumed_s: float

    @property
    def worst_s(self) -> float:
        """The time of the longest shard."""
        return max(shard.expected_s for shard in self.shards)

    @property
    def too_little_is_known(self) -> bool:
        """Return whether the expected times say little: most files have no known time."""
        return self.known < LITTLE_KNOWN * (self.known + self.unknown)


def planned(files: Sequence[str], known_s: Mapping[str, float], count: int) -> ShardPlan:
    """Divide these files into `count` shards; a file without a known time takes the median one."""
    wanted = sorted(set(files))
    known = [known_s[file] for file in wanted if file in known_s]
    assumed = median(known or known_s.values() or [ASSUMED_S])
    times = {file: known_s.get(file, assumed) for file in wanted}
    room = max(ROOM * sum(times.values()) / count, max(times.values(), default=0.0))
    loads, groups = [0.0] * count, [list[str]() for _ in range(count)]
    for file in sorted(wanted, key=lambda each: (-_step(times[each]), _digest(each), each)):
        takes = times[file]
        preferred = _preferred(file, count)
        place = next(
            (shard for shard in preferred if loads[shard] + takes <= room),
            min(preferred, key=loads.__getitem__),
        )
        loads[place] += takes
        groups[place].append(file)
    shards = tuple(
        Shard(tuple(sorted(group)), load) for group, load in zip(groups, loads, strict=True)
    )
    return ShardPlan(shards, len(known), len(wanted) - len(known), assumed)


def _step(seconds: float) -> int:
    return round(math.log(max(seconds, 0.001)) / math.log(STEP))


def _digest(*words: object) -> bytes:
    text = "\0".join(map(str, words))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _preferred(file: str, count: int) -> list[int]:
    """Return the shards in the order of a file; the order among those left stays for each count."""
    return sorted(range(count), key=lambda shard: _digest(shard, file))

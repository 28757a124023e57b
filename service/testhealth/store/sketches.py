"""Times of tests as counts in logarithmic buckets, a byte for a time. Pure.

A bucket is 10 % wide, so that a time read from it is wrong by 5 % at most. Counts of buckets add
up: the order of uploads does not matter, and what is counted anew without an upload is without it.
"""

import math
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, groupby, repeat
from operator import and_, mul, or_

from service.testhealth.store import bitmaps
from service.testhealth.times import Times

WIDTH = 1.1
"""How many times as long the end of a bucket is as its beginning."""

UNKNOWN, INSTANT = 0, 1
"""The bucket of a result without a time, and that of less than half a millisecond."""

PART = 4096
"""Tests of one part of a day, by number: each is read and written by itself."""

_LOG = math.log(WIDTH)
_LAST = 255
_MILLISECONDS = [
    0.0,
    0.0,
    *(2 * WIDTH ** (nth + 1) / (WIDTH + 1) for nth in range(-1, _LAST - 2)),
]
MEDIAN, HIGH = 0.5, 0.95

Counts = Counter[int]
"""How often each `number << 8 | bucket` was seen."""


def bucket_of(seconds: float | None) -> int:
    """Return the bucket of a time, which is at most 10^7 s; that of None is `UNKNOWN`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.0005:
        return INSTANT
    return min(2 + max(0, math.ceil(math.log(seconds * 1000) / _LOG)), _LAST)


def buckets_of(seconds: Iterable[float | None]) -> bytes:
    """Return the buckets of times, in their order."""
    times = list(seconds)
    # Reports round to milliseconds: few of the times of a suite differ.
    known = {each: bucket_of(each) for each in set(times)}
    return bytes(map(known.__getitem__, times))


def milliseconds_of(bucket: int) -> float:
    """Return the time for which a bucket stands."""
    return _MILLISECONDS[bucket]


# The times of one upload.


def packed_times(buckets: bytes) -> bytes | None:
    """Return times as an upload stores them, None if all are unknown."""
    return zlib.compress(buckets, 1) if any(buckets) else None


class UploadTimes:
    """The tests that passed at once in an upload, and the time of each, by number."""

    def __init__(self, bits: bytes, packed: bytes) -> None:
        self._nos = array(bitmaps.NUMBER, bitmaps.members(bits))
        self._buckets = zlib.decompress(packed)

    def parts(self) -> range:
        """Return the parts that its tests are in."""
        return range(self._nos[0] // PART, self._nos[-1] // PART + 1)

    def count(self, counts: Counts, part: int) -> None:
        """Add the times of the tests of a part."""
        first, end = (bisect_left(self._nos, each * PART) for each in (part, part + 1))
        keys = map(mul, self._nos[first:end], repeat(256))
        counts.update(map(or_, keys, self._buckets[first:end]))


# The times of a part of a day.


def packed(counts: Counts) -> bytes | None:
    """Return counts as a part of a day stores them, None if there are none.

    They are columns: the number of tests, their numbers, how many buckets each has, the buckets,
    and their counts.
    """
    keys = sorted(key for key in counts if key & 255)
    if not keys:
        return None
    groups = [(no, len(list(each))) for no, each in groupby(keys, lambda key: key >> 8)]
    return zlib.compress(
        b"".join(
            (
                bitmaps.packed_numbers([len(groups), *(no for no, _ in groups)]),
                bytes(many for _, many in groups),
                bytes(map(and_, keys, repeat(255))),
                bitmaps.packed_numbers(map(counts.__getitem__, keys)),
            )
        ),
        1,
    )


def unpacked(part: bytes) -> Counts:
    """Return stored counts."""
    columns = zlib.decompress(part)
    tests = bitmaps.numbers_in(columns[:4])[0]
    begin = 4 + 4 * tests
    nos, widths = bitmaps.numbers_in(columns[4:begin]), columns[begin : begin + tests]
    begin += tests
    buckets = columns[begin : begin + sum(widths)]
    counts = bitmaps.numbers_in(columns[begin + len(buckets) :])
    numbers = chain.from_iterable(map(repeat, map(mul, nos, repeat(256)), widths))
    return Counter(dict(zip(map(or_, numbers, buckets), counts, strict=True)))


def added(parts: Iterable[bytes]) -> Counts:
    """Return the sum of stored counts."""
    whole = Counter[int]()
    for each in parts:
        whole.update(unpacked(each))
    return whole


def times_of(counts: Mapping[int, int]) -> Iterator[tuple[int, Times]]:
    """Return what each test took, in the order of their numbers."""
    keys = sorted(key for key in counts if key & 255)
    for no, group in groupby(keys, key=lambda key: key >> 8):
        buckets = [(key & 255, counts[key]) for key in group]
        runs = sum(many for _, many in buckets)
        total = sum(milliseconds_of(bucket) * many for bucket, many in buckets)
        median, high = (quantile_ms(buckets, runs, share) for share in (MEDIAN, HIGH))
        yield no, Times(runs, round(total), median, high)


def quantile_ms(buckets: Sequence[tuple[int, int]], runs: int, share: float) -> int:
    """Return the time that this share of the results did not exceed; `buckets` in order."""
    wanted = max(1, math.ceil(runs * share))
    reached = accumulate(many for _, many in buckets)
    bucket = next(
        each for (each, _), so_far in zip(buckets, reached, strict=True) if so_far >= wanted
    )
    return round(milliseconds_of(bucket))

"""Sets of test numbers as bitmaps, and packed lists of test numbers. Pure."""

import hashlib
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from typing import NamedTuple

NUMBER = "I"
"""Type code of packed test numbers and counts: 32 bits, stored with the lowest byte first."""

_TRUTHS = bytes.maketrans(b"01", b"\0\1")


class PackedSet(NamedTuple):
    """A set of test numbers under its key: bit n of `bits` is set for number n."""

    key: str
    bits: bytes

    @property
    def compressed(self) -> bytes:
        """The set as it is stored."""
        # A set of a whole suite takes some 300 bytes; a higher level makes it no smaller.
        return zlib.compress(self.bits, 1)


def packed_set(nos: Iterable[int]) -> PackedSet | None:
    """Return the set of these numbers, None for the empty set."""
    members = list(nos)
    if not members:
        return None
    bits = _bits_of(members)
    return PackedSet(hashlib.sha256(bits).hexdigest(), bits)


def expanded(compressed: bytes) -> bytes:
    """Return the bits of a stored set."""
    return zlib.decompress(compressed)


def has(bits: bytes, no: int) -> bool:
    """Return whether a number is in the set."""
    place = no >> 3
    return place < len(bits) and bool(bits[place] >> (no & 7) & 1)


def members(bits: bytes) -> Iterator[int]:
    """Return all numbers in the set, in order."""
    return _members(int.from_bytes(bits, "little"))


def common(bits: bytes, others: bytes) -> Iterator[int]:
    """Return the numbers that are in both sets, in order."""
    return _members(int.from_bytes(bits, "little") & int.from_bytes(others, "little"))


def size(bits: bytes) -> int:
    """Return how many numbers are in the set."""
    return int.from_bytes(bits, "little").bit_count()


def bits_of(nos: Iterable[int]) -> bytes:
    """Return the bits of a set of these numbers."""
    numbers = list(nos)
    return _bits_of(numbers) if numbers else b""


def packed_numbers(numbers: Iterable[int]) -> bytes:
    """Return the numbers as they are stored."""
    return _lowest_first(array(NUMBER, numbers)).tobytes()


def numbers_in(packed: bytes) -> "array[int]":
    """Return stored numbers."""
    return _lowest_first(array(NUMBER, packed))


def packed_counts(counts: Mapping[int, int]) -> bytes:
    """Return counts by number as they are stored: the numbers in order, then their counts."""
    nos = sorted(counts)
    return packed_numbers(nos) + packed_numbers(counts[no] for no in nos)


def counts_in(packed: bytes) -> Iterator[tuple[int, int]]:
    """Return each number with its count."""
    numbers = numbers_in(packed)
    half = len(numbers) // 2
    return zip(numbers[:half], numbers[half:], strict=True)


def _bits_of(members: list[int]) -> bytes:
    top = max(members)
    # Digits in a row are turned into bits at once: setting bit after bit takes ten times as long.
    digits = bytearray(b"0") * (top + 1)
    for no in members:
        digits[top - no] = 49
    return int(digits, 2).to_bytes(top // 8 + 1, "little")


def _members(together: int) -> Iterator[int]:
    digits = format(together, "b")[::-1].encode().translate(_TRUTHS)
    return compress(range(len(digits)), digits)


def _lowest_first(numbers: "array[int]") -> "array[int]":
    """Turn this machine's order of bytes into the stored one, and back."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers

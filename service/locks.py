"""Locks inside this process, found by number."""

import asyncio
from collections import defaultdict


class LocksByNumber:
    """One lock for each number, for example of a queue or of a repository."""

    def __init__(self) -> None:
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    def of(self, number: int) -> asyncio.Lock:
        """Return the lock of a number; the same object every time."""
        return self._locks[number]

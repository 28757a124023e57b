"""One budget of bytes for the request bodies whose sender is not known yet.

A webhook is anonymous until its signature matches, a fork's upload until its CI run is found.
All of them together hold at most `UNPROVED_BYTES_MAX` in this process.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.errors import Overloaded

UNPROVED_BYTES_MAX = 64 * 1024 * 1024
RETRY_AFTER_S = 5


class BodyBudget:
    """Shares out the bytes. When they are used up, the largest body that still arrives gives way.

    Sizes are compared by powers of two; of two alike the older gives way. A small body is
    therefore never refused because of large ones, and a quick one not because of slow ones.
    """

    def __init__(self, bytes_max: int = UNPROVED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._shares: dict[int, Share] = {}
        self._opened = 0
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes that all shares hold now."""
        return self._held

    @contextmanager
    def share(self, on_evicted: Callable[[], None]) -> Iterator["Share"]:
        """Open a share for one body and release its bytes at the end.

        `on_evicted` is called at most once, when this body has to give way to a smaller one.
        """
        self._opened += 1
        number, share = self._opened, Share(self, on_evicted)
        self._shares[number] = share
        try:
            yield share
        finally:
            del self._shares[number]
            self.change(-share.held)

    def change(self, size: int) -> None:
        """Count bytes that a share took or released."""
        self._held += size

    def make_room(self) -> None:
        """Evict the largest bodies until the rest fits; those that have arrived stay."""
        while self._held > self._bytes_max:
            arriving = [each for each in self._shares.values() if each.is_arriving and each.held]
            if not arriving:
                return
            # Shares are kept in the order in which they were opened: max() takes the oldest.
            max(arriving, key=lambda share: share.held.bit_length()).evict()


class Share:
    """The bytes that one body holds."""

    def __init__(self, budget: BodyBudget, on_evicted: Callable[[], None]) -> None:
        self.held = 0
        self.is_arriving = True
        self.is_evicted = False
        self._budget = budget
        self._on_evicted = on_evicted

    def take(self, size: int) -> None:
        """Hold more bytes. Raises Overloaded when this body has to give way."""
        if self.is_evicted:
            raise overloaded()
        self.held += size
        self._budget.change(size)
        self._budget.make_room()
        if self.is_evicted:
            raise overloaded()

    def finish(self) -> None:
        """The body has arrived: it keeps its bytes until the share is closed."""
        if self.is_evicted:
            raise overloaded()
        self.is_arriving = False

    def evict(self) -> None:
        """Give the bytes back at once; the reader drops what it has."""
        self._budget.change(-self.held)
        self.held = 0
        self.is_arriving = False
        self.is_evicted = True
        self._on_evicted()


def overloaded() -> Overloaded:
    """The refusal of a body that does not fit."""
    return Overloaded(
        "Too many request bodies arrive at the same time.", retry_after_s=RETRY_AFTER_S
    )

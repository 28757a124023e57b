"""How long to leave GitHub alone while it cannot be used (GITHUB.md 2.5)."""

from bot.github import limits
from service.clock import Clock


class Outage:
    """One wait for everybody: 60 s, doubled up to 15 min when it is over and nothing has changed.

    What fails while a wait lasts waits as long and lengthens nothing: with a doubling for each
    call, the many calls of one short outage would send the last of them away for 15 minutes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits = 0
        self._over_at_s = 0.0

    def failed(self) -> float:
        """A call failed; the seconds until the next one makes sense."""
        now_s = self._clock.monotonic_s()
        if not self._waits or now_s >= self._over_at_s:
            self._waits += 1
            self._over_at_s = now_s + self._wait_s()
        return self._wait_s()

    def answered(self) -> None:
        """GitHub has answered; the next wait begins at its shortest."""
        self._waits = 0

    def _wait_s(self) -> float:
        return limits.doubled_s(limits.UNAVAILABLE_S, self._waits - 1, limits.UNAVAILABLE_MAX_S)

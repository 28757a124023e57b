"""Notice that this machine's clock was set back, and let nothing wait for its former time.

A process may begin with a clock that is hours ahead, until the machine hears the right time. What
was stored as due by then would wait for hours (docs/design/transactions.md 8).
"""

from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from service.database import outbox
from service.process.store import set_back
from service.runtime import Runtime

NOTED = timedelta(seconds=2)
"""Less than that is how clocks are kept right."""

FARTHEST = timedelta(hours=2)
"""No webhook and no effect waits longer: GitHub's limits end within an hour."""

log = structlog.get_logger()


@dataclass(slots=True)
class ClockWatch:
    """Compares the clock with one that never runs back, as of its last look."""

    _before_s: float | None = field(default=None)

    async def look(self, runtime: Runtime) -> None:
        """Make what waits for a time that is not to be expected due now.

        The first look of a process knows no earlier one: then it is what waits for too long.
        """
        now = runtime.clock.now()
        ahead_s = now.timestamp() - runtime.clock.monotonic_s()
        before_s = self._before_s
        is_set_back = before_s is not None and before_s - ahead_s > NOTED.total_seconds()
        if before_s is None or is_set_back:
            beyond = now if is_set_back else now + FARTHEST
            rows = await runtime.store.run(set_back.pull, now, beyond)
            if is_set_back:
                # Times that this process remembers are wrong too.
                runtime.memory.clear()
            if is_set_back or rows:
                # The clock was set back; what waited for its former time goes on now.
                log.warning("clock_set_back", rows=rows)
            outbox.wake(runtime.wakeups, tuple(outbox.TOPICS))
            runtime.wakeups.wake("inbox")
            runtime.wakeups.wake("notifications")
        self._before_s = ahead_s

"""The figures of one process while it works: counts, times, levels.

Whoever works tells a meter; a process that shows nobody has a silent one. Names and labels are
those of docs/reference/metrics.md. Nothing of a tenant may be told: no repository, branch, number.
"""

from typing import Protocol


class Meter(Protocol):
    """A receiver of the process's own figures; called from the event loop alone."""

    def count(self, name: str, *labels: str) -> None:
        """It happened once more."""
        ...

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """It took so long."""
        ...

    def level(self, name: str, value: float, *labels: str) -> None:
        """It stands at this now."""
        ...

    def text(self) -> bytes:
        """Everything told so far, as Prometheus reads it."""
        ...


class Silent:
    """Hears nothing."""

    def count(self, name: str, *labels: str) -> None: ...

    def observe(self, name: str, seconds: float, *labels: str) -> None: ...

    def level(self, name: str, value: float, *labels: str) -> None: ...

    def text(self) -> bytes:
        """Nothing."""
        return b""


SILENT: Meter = Silent()
"""The meter of tests, tools and short transactions."""

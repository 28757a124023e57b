"""Tickets at a provider: issues of our own, found again by a hidden marker in their text.

The verbs are in `provider/port.py`; what is written and when is not decided here.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Ticket:
    """An issue of ours as it stands; `closed_at` is None while it is open."""

    number: int
    url: str
    title: str
    body: str
    closed_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Return whether nobody has closed it."""
        return self.closed_at is None


@dataclass(frozen=True, slots=True)
class TicketRequest:
    """The content that the one issue of ours with this marker is to have.

    `found` is that issue as `Provider.ticket` told it, None: there is none, so one is made.
    `is_open` None leaves it open or closed as it is. The marker is the first line of `body`.
    """

    marker: str
    title: str
    body: str
    found: Ticket | None
    is_open: bool | None = None

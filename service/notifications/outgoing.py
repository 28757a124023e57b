"""One attempt as it leaves and as it ends, and who carries it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is posted: signed bytes to an address of a user."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: `error` None is a success.

    `status` is the answer's, None when none came; `retry_after` the header as it was sent.
    """

    status: int | None
    error: str | None
    retry_after: str | None = None


class Sender(Protocol):
    """The way out to addresses that users give."""

    async def refusal(self, url: str) -> str | None:
        """Why this address may not be called now, in a sentence; None: it may."""
        ...

    async def post(self, outgoing: Outgoing) -> Outcome:
        """One attempt; never raises what the receiver or the network did."""
        ...

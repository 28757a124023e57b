"""Landings as stored: the permit for each, what was seen of it, and its signed evidence."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.vocabulary import Sha


class LandingState(StrEnum):
    """The states of one landing of one position (docs/design/landing.md 3)."""

    INTENDED = "intended"
    PERMITTED = "permitted"
    LANDED = "landed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    VOID = "void"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True)
class LandingRecord:
    """One landing: what was permitted, and what was seen of it.

    `tested_tree` is the tree that CI ran on; None if it was not noted, which is `expected_tree`.
    """

    id: int
    queue_id: int
    run: str
    number: int
    position: int
    pr: int
    entry: str
    head: Sha
    mode: str
    expected_parent: Sha
    expected_tree: Sha
    tested_tree: Sha | None
    state: LandingState
    permit_until: datetime | None
    landed_sha: Sha | None
    landed_tree: Sha | None
    evidence: str | None

    @property
    def is_tested(self) -> bool:
        """Return whether CI ran on the tree that landed."""
        return self.landed_tree == (self.tested_tree or self.expected_tree)


@dataclass(frozen=True, slots=True)
class StoredLanding:
    """Signed evidence of a landed pull request; its number grows with time."""

    no: int
    sha: Sha
    pr: int
    envelope: str
    at: datetime

"""Rows as frozen values, where no domain value of another floor says the same.

Entries, runs and queues have their own (`service/mergequeue/engine/model.py`).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from service.provider.signals import Delivery
from service.vocabulary import MergeMethod, RepoRef, Role, Sha


@dataclass(frozen=True, slots=True)
class Organization:
    """A tenant: an account at a host, bound by the provider's numeric id once installed."""

    id: int
    host: str
    provider_id: str | None
    slug: str


@dataclass(frozen=True, slots=True)
class RepositoryRecord:
    """A repository as last read; `available` is false when gone, archived or not ours."""

    id: int
    org_id: int
    ref: RepoRef
    provider_id: str
    default_branch: str
    merge_methods: frozenset[MergeMethod]
    archived: bool
    available: bool
    url: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """An API token; `digest` is its keyed hash, `repositories` None means all.

    A rotation makes it expire earlier than it was granted.
    """

    id: str
    org_id: int
    org_slug: str
    host: str
    name: str
    role: Role
    digest: bytes
    repositories: frozenset[int] | None
    created_at: datetime
    granted_until: datetime | None
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A delivery to work on; `lane` keeps the order within one repository.

    `attempts` counts this one.
    """

    id: int
    lane: str
    attempts: int
    delivery: Delivery


Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Claim(Generic[Row]):
    """Rows that a process has claimed; `next_due` is when the next one may be, None if none waits.

    `given_back` counts the rows that the same transaction freed before. `is_behind`: others may
    wait for the end of a claimed one.
    """

    rows: tuple[Row, ...]
    next_due: datetime | None
    given_back: int = 0
    is_behind: bool = True


class OutboxState(StrEnum):
    """The states of an effect (docs/design/transactions.md 5)."""

    READY = "ready"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SUPERSEDED = "superseded"


class Lane(StrEnum):
    """Lanes of effects, each with places of its own (docs/design/transactions.md 5).

    Landings and other control effects of a run are performed in order, notices are best effort.
    Evidence is questions about failed runs. Reports are those of CI for which a queue waits:
    reading an archive may take long, and must not delay a question. Collect is all others of CI.
    """

    LANDING = "landing"
    CONTROL = "control"
    EVIDENCE = "evidence"
    REPORTS = "reports"
    NOTICE = "notice"
    COLLECT = "collect"


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


class Surface(StrEnum):
    """The places of our notices.

    COMMAND is the comment that submitted an entry, FAREWELL the one that says why it left.
    QUEUE_LABEL is the newest change of the queue's label that was read, with the label as digest,
    empty once it was removed.
    """

    COMMENT = "comment"
    CHECK = "check"
    LABEL = "label"
    QUEUE_LABEL = "queue_label"
    COMMAND = "command"
    FAREWELL = "farewell"


@dataclass(frozen=True, slots=True)
class Placed:
    """A notice that stands at the provider: its id there and the digest of its text."""

    provider_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a notice; `entry` only counts for checks, one for each submission."""

    queue_id: int
    pr: int
    surface: Surface
    entry: str = ""

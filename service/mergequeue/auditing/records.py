"""Records to audit: rows as they are stored, commits as git has them, evidence as signed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.landing_records import LandingRecord
from service.vocabulary import MergeMethod, QueueRef, Sha


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """A submission as its row has it."""

    id: str
    pr: int
    head: Sha
    live: bool
    state: EntryState
    reason: str
    rank: int | None
    run: str | None
    verified_by: str | None
    landed_sha: Sha | None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Commit and tree of a test branch after one head; `contained` heads add no commit."""

    pr: int
    commit: Sha
    tree: Sha
    contained: bool


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A test run as its row has it. `is_parallel`: it might land beside other lanes."""

    id: str
    live: bool
    status: RunStatus
    method: MergeMethod
    is_parallel: bool
    base_tree: Sha
    steps: tuple[StepRecord, ...]

    def tree_before(self, position: int) -> Sha:
        """Return the tree of the test branch before a step."""
        return self.base_tree if position == 1 else self.steps[position - 2].tree


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """An entry as a run holds it."""

    run: str
    entry: str
    pr: int


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """An effect that is open, or that seems to be."""

    id: int
    kind: str
    key: str
    state: str
    is_open: bool
    claimed_by: str | None


@dataclass(frozen=True, slots=True)
class QueueRows:
    """All rows of one queue that an audit reads, each list in the order of its creation.

    `tip` is the newest commit of the target that was read, `landing` the landing in flight, as run
    and number. `members` are those of live runs.
    `instances` are the processes whose rows are there, whether they live or not. `returned` are
    commits that a restored service has found as its own, with their pull requests. `others` are
    commits that other queues of the repository have landed: of a queue of this branch that was
    deleted, or of a branch whose commits somebody has pushed onto this one.
    """

    queue: QueueRef
    provider_id: str
    deleted: bool
    tip: Sha | None
    landing: tuple[str, int] | None
    entries: tuple[EntryRecord, ...]
    runs: Mapping[str, RunRecord]
    members: tuple[MemberRecord, ...]
    landings: tuple[LandingRecord, ...]
    effects: tuple[EffectRecord, ...]
    instances: frozenset[str]
    returned: Mapping[Sha, int | None] = field(default_factory=dict)
    others: frozenset[Sha] = frozenset()


@dataclass(frozen=True, slots=True)
class BranchCommit:
    """A commit of the first-parent history. `claims`: its message has a trailer of Headgate."""

    sha: Sha
    tree: Sha
    parents: tuple[Sha, ...]
    author: str
    email: str
    subject: str
    at: datetime
    claims: bool


@dataclass(frozen=True, slots=True)
class History:
    """The first-parent history of a target, the oldest commit first, and where it was read.

    It begins above `start`; None: with the first commit. `elsewhere` are landed commits that the
    repository has, but not in this history. `same_changes` says of landings beside others, by id,
    whether exactly the tested change landed; one that is not there cannot be told.
    """

    place: str
    start: Sha | None
    commits: tuple[BranchCommit, ...]
    elsewhere: frozenset[Sha] = frozenset()
    same_changes: Mapping[int, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of signed evidence about one landing; `fault` says why it cannot be believed.

    `waits`: it is not signed yet.
    """

    sha: Sha
    pr: int
    commit: str = ""
    tree: str = ""
    base: str = ""
    head: str = ""
    expected_tree: str = ""
    number: int = 0
    position: int = 0
    fault: str = ""
    waits: bool = False

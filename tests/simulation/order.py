"""What the checker knows of a submission, and the order in which submissions must go (S4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.targets import Targets
from service.vocabulary import Sha

ENDS = frozenset({EntryState.MERGED, EntryState.FAILED, EntryState.CANCELLED})

URGENT = 0


class Violation(AssertionError):
    """A property does not hold."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


@dataclass
class Submission:
    """What the checker knows of one entry from events and commands alone.

    `ready_at` and `placed_at` are places in the sequence of all events; `excused_at` is the last
    recorded reason to go elsewhere than in order, -1 for none.
    """

    pr: int
    head: Sha
    priority: int
    no_batch: bool = False
    ready_at: int | None = None
    placed_at: int | None = None
    excused_at: int = -1
    state: EntryState = EntryState.NOT_READY


Claims = Mapping[int, Targets | None]
"""What each pull request says it touches, newest word."""


@dataclass(frozen=True)
class Lanes:
    """Who meets whom by what was said, in the mode that the queue is in."""

    mode: Mode
    claims: Claims

    def meet(self, one: int, other: int) -> bool:
        """Whether two pull requests may influence each other."""
        if self.mode is Mode.SINGLE:
            return True
        return _meet(self.claims.get(one), self.claims.get(other))

    def meets_any(self, what: Targets | None, others: Iterable[int]) -> bool:
        """Whether something with these targets may influence any of the pull requests."""
        return any(_meet(what, self.claims.get(other)) for other in others)


def _meet(one: Targets | None, other: Targets | None) -> bool:
    # Said here once more on purpose: the checker shares no rule with the engine.
    if one is None or other is None or one.everything or other.everything:
        return True
    return bool(one.names & other.names)


def judge_start(entry: Submission, others: Iterable[Submission], lanes: Lanes) -> None:
    """S4: among those that wait and meet, priority and then age decide who starts."""
    if entry.excused_at >= 0 or entry.ready_at is None:
        return
    for other in others:
        if (
            other.state is EntryState.PENDING
            and other.placed_at is None
            and other.ready_at is not None
            and other.excused_at < 0
            and (other.priority, other.ready_at) < (entry.priority, entry.ready_at)
            and lanes.meet(entry.pr, other.pr)
        ):
            raise Violation("S4", f"{entry.pr} was started before {other.pr}")


def judge_landing(entry: Submission, others: Iterable[Submission], lanes: Lanes) -> None:
    """S4: in a lane landings follow the line, but for what was recorded."""
    if entry.placed_at is None or entry.excused_at >= 0:
        return
    for other in others:
        if (
            other.state not in ENDS
            and other.placed_at is not None
            and other.placed_at < entry.placed_at
            and other.excused_at < 0
            and lanes.meet(entry.pr, other.pr)
        ):
            raise Violation("S4", f"{entry.pr} landed before {other.pr}")


def judge_stack(members: list[Submission]) -> None:
    """E4 for the members of a stack, which have no limit of size."""
    if len(members) > 1 and any(entry.no_batch for entry in members):
        raise Violation("E4", "a member of a stack in a batch must travel alone")


def judge_batch(members: list[Submission], claims: Claims, config: QueueConfig) -> None:
    """E4: a batch has room for all its members, and nobody who must travel alone."""
    if len(members) == 1:
        return
    if not config.batch or len(members) > config.batching_min_size:
        raise Violation("E4", f"{len(members)} pull requests in one run")
    for entry in members:
        if entry.no_batch or entry.priority == URGENT or _is_isolated(claims.get(entry.pr), config):
            raise Violation("E4", f"{entry.pr} is in a batch and must travel alone")


def _is_isolated(what: Targets | None, config: QueueConfig) -> bool:
    patterns = [rule.target_pattern for rule in config.batching_rules]
    if what is None:
        return False
    if what.everything:
        return bool(patterns)
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for name in what.names
        for pattern in patterns
    )

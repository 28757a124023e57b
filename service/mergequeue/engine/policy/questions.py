"""The questions that the core asks, with the answers of `batchSizing: FIXED`.

A `Policy` is a table of six questions. Three of them are answered by an object for the draft, so
that one look at the queue serves a whole pass. All answers read the draft and change nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry, Failure, Run
from service.mergequeue.engine.outputs import PlacedWhy
from service.mergequeue.engine.policy import constants, hedging, outages, suspecting
from service.mergequeue.engine.policy.hedging import Hedge
from service.mergequeue.engine.state import shares
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.suspicion import Suspicion


class Joins:
    """The entries that may join a growing group: everybody, in the order of the line."""

    def in_order(self, group: Sequence[Entry], spare: Iterable[Entry]) -> list[Entry]:
        """Of the entries that overlap none of the group, those that may join, the best first."""
        return list(spare)

    def admits(self, entry: Entry) -> bool:
        """Return whether the entry may join the group; if so it counts as a member."""
        return True


class Starts:
    """The entries that may start in one pass over the placed or the waiting: all, in order."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def in_order(self) -> Sequence[int]:
        """The waiting entries in the order in which they start."""
        return shares.waiting(self._draft)

    def is_apart(self, entry: Entry) -> bool:
        """Return whether the entry has to be tested apart before it enters the line."""
        return False

    def is_suspect(self, entry: Entry) -> bool:
        """Return whether a member of a stack is tested by itself, on top of those below it."""
        return False

    def waits(self, entry: Entry) -> bool:
        """Return whether the entry waits at its place, and what it meets behind it."""
        return False

    def holds_back(self, entry: Entry) -> bool:
        """Return whether the entry waits, and everything behind it."""
        return False

    def note_start(self, group: Sequence[Entry]) -> None:
        """Take into account that this group has started."""

    def size(self, waiting: int, free: int) -> int:
        """The most entries of a group, while so many wait for so many free slots."""
        config = self._draft.queue.config
        return config.batching_min_size if config.batch else 1

    def joins(self, first: Entry) -> Joins:
        """Return who may join a group that begins with this entry."""
        return Joins()

    def why_placed(self, entry: Entry) -> PlacedWhy | None:
        """Why an entry has its place although another one that it meets was ready before it."""
        return None


class Suspects:
    """Whom a failure makes suspect: nobody. Searches find culprits (docs/design/testing.md 8)."""

    are_searched = True
    joint_chance_max = constants.JOINT_CHANCE_MAX

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def leaves(self, run: Run) -> bool:
        """Return whether the group of a failed run leaves the line now, to be retested."""
        return False

    def is_to_blame(self, run: Run) -> bool:
        """Return whether only the group of a failed run can have caused one of its failed tests."""
        return False

    def is_suspect(self, entry: Entry) -> bool:
        """Return whether a run that tested this entry failed, and it is not cleared of that."""
        return suspecting.belief_of(self._draft).is_suspect(entry.id)

    def has_failed_alone(self, entry: Entry) -> bool:
        """Return whether a run failed that no other entry can have caused."""
        return bool(suspecting.belief_of(self._draft).failures_alone(entry.id))

    def failing(self, entry: Entry) -> float:
        """The chance that the entry fails by itself, after everything seen of it."""
        return suspecting.failing(self._draft, entry)

    def suspicion(self, entry: Entry) -> Suspicion | None:
        """Return what is believed of a convicted entry, with its evidence."""
        return suspecting.suspicion_of(self._draft, entry, is_convicted=True)

    def is_rejected(self, entry: Entry, *, at_once: bool = False) -> bool:
        """Return whether its failures reject the entry."""
        return suspecting.is_rejected(self._draft, entry, at_once=at_once)

    def chance_of_failure(self, run: Run) -> float:
        """Return how probable it was that the run fails because of its changes, or by a flake."""
        return suspecting.chance_of_failure(self._draft, run)

    def are_improbable(self, newest: Failure, rivals: Sequence[Failure]) -> bool:
        """Return whether so many failures together are no coincidence."""
        return outages.are_improbable(self._draft, newest, rivals, self.joint_chance_max)


class Confirms:
    """The runs that confirm what is suspected in slots that nothing else uses: hedges alone."""

    has_witnesses = False

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def hedges(self, slots: int) -> list[Hedge]:
        """The hedges worth most, best first, for at most so many free slots."""
        return hedging.hedges_to_start(self._draft, slots)

    def least_worth(self, running: Sequence[Run]) -> Run:
        """The run in a spare slot that gives way first."""
        return hedging.least_worth(self._draft, running)

    def second_looks(self) -> list[Entry]:
        """The entries to test a second time while they are tested apart."""
        return []

    def is_look_wanted(self, entry: Entry) -> bool:
        """Return whether a second look at the entry may still count."""
        return False

    def early_looks(self) -> list[Entry]:
        """The entries to test alone while they are tested in the line, or wait for it."""
        return []

    def is_early_look_wanted(self, entry: Entry) -> bool:
        """Return whether the result of an early look at the entry may still count."""
        return False

    def witnesses(self, restarting: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
        """The restarting runs that go on, each with the failed run that it confirms."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to schedule a queue: an answer to each question."""

    starts: Callable[[Draft], Starts]
    """The entries to start, in which order, and how large."""

    is_isolated: Callable[[QueueConfig, Entry], bool]
    """The entries that are always tested alone."""

    waits_until: Callable[[QueueConfig, Sequence[Entry]], datetime | None]
    """The time until which a group that is not full waits for others; None: it does not wait."""

    suspects: Callable[[Draft], Suspects]
    """Whom to suspect after a failure, and when that is enough to reject."""

    confirms: Callable[[Draft], Confirms]
    """The runs that confirm, in slots that nothing else uses."""

    retests: Callable[[Draft, float], list[tuple[Entry, ...]]]
    """Whom to test apart from the line now, in pools, in at most this share of the slots."""

"""Limit what a failure restarts where an entry impacts every target.

Only with `batchSizing: ADAPTIVE` in PARALLEL mode. Such an entry is tested on all entries ahead of
it, and all entries that start later are tested on it. So a failure ahead restarts it and everything
behind it. It therefore waits at its place until few runs of the line are under way, and nothing
behind it starts before it: most entries ahead are decided when it starts. Other waiting entries
that impact every target start right behind it, so that the entries behind wait only once. Until it
is decided, only some of the entries behind start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.policy import constants, screening
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.line import URGENT
from service.mergequeue.engine.state.places import is_expected, is_wide
from service.mergequeue.engine.state.readiness import is_startable
from service.mergequeue.engine.states import EntryState, RunKind

_MAIN = frozenset({RunKind.MAIN})


@dataclass(frozen=True, slots=True)
class Followers:
    """The number of undecided entries behind `pr`, which impacts every target."""

    pr: int
    count: int


class Limit:
    """Decides during one pass over the waiting entries which of them wait for a decision.

    It counts the line when it is first asked, and anew when one that impacts every target starts.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._is_counted = False
        self._left: int | None = None

    def holds_back(self, entry: Entry) -> bool:
        """Return whether an entry waits because too many follow one that impacts every target."""
        if not is_follower(self._draft, entry):
            return False
        if not self._is_counted:
            found = followers(self._draft)
            self._left = None if found is None else constants.FOLLOWERS_OF_ALL_MAX - found.count
            self._is_counted = True
        return self._left is not None and self._left < 1

    def note_start(self, group: Sequence[Entry]) -> None:
        """Count a group that has started at the end of the line."""
        if any(is_wide(entry) for entry in group):
            self._is_counted = False
        elif self._left is not None:
            self._left -= len(group)


def is_follower(draft: Draft, entry: Entry) -> bool:
    """Return whether an entry has to wait while too many follow one that impacts every target."""
    return _is_free(entry) and not is_wide(entry) and _matters(draft)


def followers(draft: Draft) -> Followers | None:
    """Count the undecided entries behind the last undecided one that impacts every target.

    None without such a one. Failed entries count as well: if the one ahead is broken, each run on
    it fails. They do not count once it has failed itself, for then it may wait for others to clear
    it.
    """
    if not draft.places.wide:
        return None
    open_ones = failed = 0
    for _, pr in reversed(draft.places.line):
        entry = draft.entries[pr]
        if entry.state is EntryState.TESTS_PASSED or entry.held_by:
            continue
        has_failed = entry.state is EntryState.PENDING_FAILURE
        if is_wide(entry) and is_expected(entry):
            return Followers(pr, open_ones if has_failed else open_ones + failed)
        failed += has_failed
        open_ones += not has_failed
    return None


def is_subject(draft: Draft, entry: Entry) -> bool:
    """Return whether an entry has to wait while too many runs are under way."""
    return is_wide(entry) and _is_free(entry) and _matters(draft)


def waits(draft: Draft, entry: Entry) -> bool:
    """Return whether an entry waits until fewer runs are under way."""
    if not is_subject(draft, entry) or _is_last_wide(draft):
        return False
    return runs(draft) > constants.RUNS_BEFORE_ALL_MAX


def runs(draft: Draft) -> int:
    """Return how many runs of the line are under way or about to start."""
    return draft.runs.in_progress(_MAIN) + len(draft.places.idle)


def in_order(draft: Draft, waiting: Sequence[int]) -> Sequence[int]:
    """The order of starts: all that impact every target follow the first one of their priority."""
    if not _matters(draft):
        return waiting
    wide = [pr for pr in waiting if _may_start(draft, draft.entries[pr])]
    if len(wide) < 2:
        return waiting
    first = draft.entries[wide[0]]
    followers = [pr for pr in wide[1:] if draft.entries[pr].priority == first.priority]
    others = [pr for pr in waiting if pr not in followers]
    place = others.index(first.pr) + 1
    return [*others[:place], *followers, *others[place:]]


def is_ahead_of_order(draft: Draft, entry: Entry) -> bool:
    """Return whether a placed entry has gone ahead of one that waits and was ready before it."""
    if not is_wide(entry) or not _matters(draft):
        return False
    waiting = draft.places.waiting
    return bool(waiting) and waiting[0] < entry.waiting_key


def _may_start(draft: Draft, entry: Entry) -> bool:
    if not is_subject(draft, entry) or screening.is_due(draft, entry):
        return False
    return is_startable(draft, entry)


def _matters(draft: Draft) -> bool:
    return draft.is_parallel and draft.queue.config.batch_sizing is BatchSizing.ADAPTIVE


def _is_last_wide(draft: Draft) -> bool:
    """Return whether it would be right behind another one that impacts every target."""
    line = draft.places.line
    return bool(line) and is_wide(draft.entries[line[-1][1]])


def _is_free(entry: Entry) -> bool:
    """Return whether it has no place in the line yet, and is not urgent."""
    return entry.rank is None and entry.priority != URGENT

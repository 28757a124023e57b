"""Let an entry that impacts every target wait until few runs of the line are under way.

Only with `batchSizing: ADAPTIVE` in PARALLEL mode. Such an entry is tested on all entries ahead of
it, and all entries that start later are tested on it. So a failure ahead restarts it and everything
behind it. It therefore waits at its place, and nothing behind it starts before it: most entries
ahead are decided when it starts. Other waiting entries that impact every target start right behind
it, so that the entries behind wait only once.
"""

from collections.abc import Sequence

from service.mergequeue.engine.config import BatchSizing
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.planning import grouping, screening
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.state.line import URGENT
from service.mergequeue.engine.states import RunKind

RUNS_MAX = 12
"""The most runs of the line under way on which an entry that impacts every target is built.

S 300 x 300 with 1 % of them, 1,000 pull requests: 1.03 / 1.52 at 1.84 runs per merge with seed 901,
1.98 / 6.26 at 7.22 with 902. Without the limit the same cell took 16 to 42 runs per merge.
"""

_MAIN = frozenset({RunKind.MAIN})


def is_subject(draft: Draft, entry: Entry) -> bool:
    """Whether an entry has to wait while too many runs are under way."""
    is_free = entry.rank is None and entry.priority != URGENT
    return is_free and _is_wide(entry) and _matters(draft)


def waits(draft: Draft, entry: Entry) -> bool:
    """Whether an entry waits until fewer runs are under way."""
    return is_subject(draft, entry) and runs(draft) > RUNS_MAX and not _is_last_wide(draft)


def runs(draft: Draft) -> int:
    """How many runs of the line are under way or about to start."""
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
    """Whether a placed entry has gone ahead of one that waits and was ready before it."""
    if not _is_wide(entry) or not _matters(draft):
        return False
    waiting = draft.places.waiting
    return bool(waiting) and waiting[0] < entry.waiting_key


def _may_start(draft: Draft, entry: Entry) -> bool:
    if not is_subject(draft, entry) or screening.is_due(draft, entry):
        return False
    return grouping.is_startable(draft, entry)


def _matters(draft: Draft) -> bool:
    return draft.is_parallel and draft.queue.config.batch_sizing is BatchSizing.ADAPTIVE


def _is_last_wide(draft: Draft) -> bool:
    """Whether it would be right behind another one that impacts every target."""
    line = draft.places.line
    return bool(line) and _is_wide(draft.entries[line[-1][1]])


def _is_wide(entry: Entry) -> bool:
    return entry.touches is None or entry.touches.everything

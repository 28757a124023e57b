"""The lanes of a queue in PARALLEL mode: entries connected by the targets that they share."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.dashboard import line
from service.dashboard.axis import Axis
from service.dashboard.line import LineRow
from service.mergequeue.engine import targets
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations.views import PullRequestView

NAMES_MAX = 4
"""Targets that the head of a lane names."""

IN_FULL_MAX = 3
"""Entries of a lane without a run that are drawn as cards."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Entries that share targets; `more` targets are not named."""

    names: tuple[str, ...]
    more: int
    rows: tuple[LineRow, ...]

    @property
    def in_full(self) -> tuple[LineRow, ...]:
        """Rows that are drawn as cards."""
        return tuple(row for row in self.rows if row.is_full)

    @property
    def in_brief(self) -> tuple[LineRow, ...]:
        """Rows of one line of text each."""
        return tuple(row for row in self.rows if not row.is_full)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lanes beside each other; `joint` are entries behind all of them that touch everything."""

    lanes: tuple[Lane, ...]
    joint: tuple[LineRow, ...]


def stretches_of(value: MergeQueue, rows: Sequence[LineRow], scale: Axis) -> tuple[Stretch, ...]:
    """Return the lanes in order: whatever touches everything ends those before it."""
    found: list[Stretch] = []
    beside: list[PullRequestView] = []
    joint: list[PullRequestView] = []
    for view in (view for row in rows for view in row.entries):
        touches = view.entry.touches
        if touches is None or touches.everything:
            joint.append(view)
            continue
        if joint:
            found.append(_stretch(value, beside, joint, scale))
            beside, joint = [], []
        beside.append(view)
    return (*found, _stretch(value, beside, joint, scale))


def _stretch(
    value: MergeQueue,
    beside: Sequence[PullRequestView],
    joint: Sequence[PullRequestView],
    scale: Axis,
) -> Stretch:
    groups: list[tuple[Targets, list[PullRequestView]]] = []
    for view in beside:
        reach, members = view.entry.touches or targets.ALL, [view]
        apart = []
        for other, others in groups:
            if targets.meet(other, reach):
                reach = targets.union([other, reach])
                members = [*others, *members]
            else:
                apart.append((other, others))
        groups = [*apart, (reach, members)]
    places = {view.entry.id: nth for nth, view in enumerate(beside)}
    for _, members in groups:
        members.sort(key=lambda view: places[view.entry.id])
    groups.sort(key=lambda group: places[group[1][0].entry.id])
    return Stretch(
        tuple(_lane(value, reach, members, scale) for reach, members in groups),
        line.rows_of(value, joint, scale),
    )


def _lane(
    value: MergeQueue, reach: Targets, members: Sequence[PullRequestView], scale: Axis
) -> Lane:
    names = sorted(reach.names)
    return Lane(
        tuple(names[:NAMES_MAX]),
        max(0, len(names) - NAMES_MAX),
        line.rows_of(value, members, scale, IN_FULL_MAX),
    )

"""The page of one queue, with its lanes in PARALLEL mode: entries connected by shared targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.dashboard import line, marks
from service.dashboard.line import Axis, Line, LineRow
from service.dashboard.marks import Mark
from service.errors import NotFound
from service.mergequeue.api import responses
from service.mergequeue.conflict_pairs import Foreseen
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.explaining.eta import SAMPLES_MIN
from service.mergequeue.engine.model import Entry, Hold, MergeQueue
from service.mergequeue.engine.reasons import LIFTED_BY_PERSON
from service.mergequeue.engine.states import (
    FINAL,
    MAIN_SLOTS,
    PROBE_SLOTS,
    EntryState,
    QueueState,
    RunStatus,
)
from service.mergequeue.engine.targets import Targets
from service.mergequeue.landing_records import LandingRecord
from service.mergequeue.operations.page_of_queue import LeftEntry, PageOfQueue
from service.mergequeue.operations.shadow_report import ShadowReport
from service.mergequeue.operations.target_health import TargetHealth
from service.mergequeue.operations.views import PullRequestView, QueueView
from service.mergequeue.reasons.record import WhoMustAct
from service.mergequeue.wording import (
    breaks,
    endings,
    holds,
    readiness,
    reasons,
    rule_notes,
    situation,
)
from service.mergequeue.wording.rule_notes import RuleNote
from service.text import phrases
from service.text.phrases import Phrase, phrase

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


def _stretches_of(value: MergeQueue, rows: Sequence[LineRow], scale: Axis) -> tuple[Stretch, ...]:
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


UNREADY_MAX = 30
"""Pull requests that are not in yet, on one page."""

AFTER_DIGITS_MAX = 5


@dataclass(frozen=True, slots=True)
class LeftRow:
    """A submission that has left, or is in the queue; `proof` None: Headgate merged nothing."""

    entry: Entry
    mark: Mark
    why: Phrase
    spent: timedelta
    proof: LandingRecord | None

    @property
    def is_over(self) -> bool:
        """Return whether it has left the queue."""
        return self.entry.state in FINAL


@dataclass(frozen=True, slots=True)
class UnreadyRow:
    """A pull request that is not in yet: what it waits for, and who acts."""

    view: PullRequestView
    waits: Phrase
    who: str


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Everything on the page; `standstill` is empty while the queue moves.

    `holds` are those that a person may release. `unknown_because` is why it is not known when a
    pull request would merge that is submitted now; empty: it is known.
    """

    view: QueueView
    mark: Mark
    standstill: Phrase
    line: Line
    stretches: tuple[Stretch, ...]
    left: tuple[LeftRow, ...]
    unready: tuple[UnreadyRow, ...]
    unready_more: int
    depth: int
    slots: Mapping[str, tuple[int, int]]
    source: Phrase
    rule_notes: tuple[RuleNote, ...]
    holds: tuple[tuple[Hold, Phrase], ...]
    shadow: ShadowReport | None
    target: TargetHealth | None
    conflicts: Foreseen | None
    unknown_because: str

    @property
    def value(self) -> MergeQueue:
        """The queue."""
        return self.view.value

    @property
    def red_checks(self) -> tuple[tuple[str, str, str], ...]:
        """Names, reports and situations of the checks that are red on the target."""
        broken = () if self.target is None else self.target.open_breaks
        return tuple(
            (each.value.check.name, each.value.url, breaks.situation(each.value)) for each in broken
        )

    @property
    def tip_left(self) -> LeftRow | None:
        """Return what merged last, if it is known."""
        return next((row for row in self.left if row.entry.state is EntryState.MERGED), None)

    @property
    def next_landing(self) -> LineRow | None:
        """The first row whose time is known; a queue in shadow lands none."""
        if self.value.config.shadow:
            return None
        return next((row for row in self.line.rows if row.lands is not None), None)

    @property
    def tab(self) -> Mark:
        """The state as the tab shows it: what stops the queue, else how many are tested or wait."""
        if self.mark is not marks.RUNNING:
            return self.mark
        tested = sum(each.entry.state is EntryState.TESTING for each in self.view.entries)
        if tested:
            return marks.ENTRIES[EntryState.TESTING]._replace(word=f"{tested} testing")
        if self.depth:
            return marks.ENTRIES[EntryState.PENDING]._replace(word=f"{self.depth} waiting")
        return marks.RUNNING._replace(word="empty")

    @property
    def heading(self) -> str:
        """`Running: 16 pull requests in the queue`."""
        count = f"{self.depth} pull request{'' if self.depth == 1 else 's'} in the queue"
        several = sum(len(each.lanes) for each in self.stretches)
        in_lanes = f" in {several} lanes" if several > 1 else ""
        return f"{self.mark.word}{in_lanes}: {count if self.depth else 'the queue is empty'}"


def after_of(query: Mapping[str, str]) -> int:
    """Return how many entries come before the page. Raises NotFound for what is no number."""
    text = query.get("after", "0")
    if not text.isdecimal() or len(text) > AFTER_DIGITS_MAX:
        raise NotFound("There is no such page.")
    return int(text)


def made_of(page: PageOfQueue, after: int, now: datetime) -> QueuePage:
    """Return the page of this queue, behind its first `after` entries."""
    view, value = page.view, page.view.value
    drawn = line.drawn(page, after, now)
    is_parallel = value.config.mode is Mode.PARALLEL
    unready = [each for each in view.entries if each.position is None]
    return QueuePage(
        view=view,
        mark=marks.of_queue(value),
        standstill=holds.standstill(value, now),
        line=drawn,
        stretches=_stretches_of(value, drawn.rows, drawn.axis) if is_parallel else (),
        left=tuple(left_row(each, value) for each in page.left),
        unready=tuple(_unready(each, value) for each in unready[:UNREADY_MAX]),
        unready_more=max(0, len(unready) - UNREADY_MAX),
        depth=len(view.entries) - len(unready),
        slots=_slots(value),
        source=phrases.source(view.required.source),
        rule_notes=tuple(rule_notes.rule_notes(view.required.notes)),
        holds=tuple(
            (hold, holds.text(hold, value.branch, now))
            for hold in value.holds
            if hold.reason in LIFTED_BY_PERSON
        ),
        shadow=page.shadow,
        target=page.target,
        conflicts=page.conflicts,
        unknown_because="" if view.if_submitted else _unknown_because(value),
    )


def left_row(left: LeftEntry, value: MergeQueue) -> LeftRow:
    """Return the row of a submission that has ended."""
    entry = left.entry
    state = situation.situation_of(entry, value)
    is_ours = left.landing is not None
    why = endings.why(state) if entry.state is not EntryState.CANCELLED else endings.removed(state)
    return LeftRow(
        entry=entry,
        mark=marks.ENTRIES[entry.state],
        why=Phrase() if is_ours else phrases.capitalized(why),
        spent=entry.state_since - entry.submitted_at,
        proof=left.landing,
    )


def _unready(view: PullRequestView, value: MergeQueue) -> UnreadyRow:
    state = situation.situation_of(view.entry, value)
    waits = readiness.goals(state.unmet) if state.unmet else reasons.explanation(state)
    who = responses.acting_of(view).who
    return UnreadyRow(view, phrase("Waits until {}", waits), who_acts(who, view.entry))


def who_acts(who: WhoMustAct, entry: Entry) -> str:
    """Return who has to act; the author by name."""
    return entry.facts.author if who is WhoMustAct.AUTHOR else marks.WHO[who]


def _unknown_because(value: MergeQueue) -> str:
    if value.required is not None and value.required.source is None:
        return "no required check is known"
    if value.state is QueueState.PAUSED or value.holds:
        return "the queue stands still"
    if value.state is not QueueState.RUNNING:
        return "nothing new starts now"
    return f"fewer than {SAMPLES_MIN} test runs have passed"


def _slots(value: MergeQueue) -> Mapping[str, tuple[int, int]]:
    running = [run for run in value.runs.values() if run.status is RunStatus.IN_PROGRESS]
    config = value.config
    main = sum(run.kind in MAIN_SLOTS for run in running)
    probes = sum(run.kind in PROBE_SLOTS for run in running)
    if config.bisection_concurrency == 0:
        return {"tests": (main + probes, config.concurrency)}
    return {
        "tests": (main, config.concurrency),
        "search for causes": (probes, config.bisection_concurrency),
    }

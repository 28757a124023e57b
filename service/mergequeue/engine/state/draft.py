"""The next value of a queue, while it is being written.

The only place where an entry, a run or the queue changes state: each step is looked up in
states.py, carries a reason and leaves an event. Nothing here decides anything.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID, uuid5

from service.errors import InvariantBroken
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import (
    NOTHING,
    Bisection,
    Detail,
    Entry,
    Member,
    MergeQueue,
    Named,
    Run,
)
from service.mergequeue.engine.outputs import (
    Action,
    EntryMoved,
    Event,
    HeadToMerge,
    QueueStateChanged,
    Recorded,
    RetireRun,
    RunFinished,
    RunRetired,
    Tell,
)
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state.graph import NOWHERE, Graph
from service.mergequeue.engine.state.places import effect_on_followers, indexed
from service.mergequeue.engine.state.run_index import IndexedRuns
from service.mergequeue.engine.states import (
    ENTRY_TRANSITIONS,
    FINAL,
    QUEUE_TRANSITIONS,
    RUN_TRANSITIONS,
    EntryState,
    QueueState,
    RunKind,
    RunPhase,
    RunStatus,
)
from service.vocabulary import Actor, CheckOutcome, Sha


@dataclass(frozen=True, slots=True)
class Finding:
    """The end of a run: its cause, if one is known yet, and the checks that did not pass."""

    cause: Cause | None = None
    failed: tuple[Named, ...] = ()


@lru_cache(maxsize=1000)
def _namespace(uid: str) -> UUID:
    return UUID(uid)


class Draft:
    """A queue's value with changes on top, and what the changes say to the outside.

    `revision` grows with every change, `touched` are pull requests and `judging` runs to look
    at again. From the rank `changed_from` on, any base may no longer hold; `doubted` names
    runs whose own base may have. `changed` and `changed_runs` are everything written in this step.
    `unwitnessed` names failed runs whose one entry has just left the line, and which may still get
    a witness. `taken_back` are pull requests whose early verdict this step has taken back.
    `spare_used_at` is the revision at which all spare slots were used that can be.
    `is_stirred` says that something may start which could not before: anything but a report about a
    run has changed, or a clock of the line has run out; `is_clock_due` is the latter alone.
    `progress` (by run) and the graph of the line are computed by `bases.py` and dropped by the
    changes that concern them.
    """

    def __init__(self, queue: MergeQueue, now: datetime, actor: Actor) -> None:
        self.before = queue
        self.queue = queue
        self.now = now
        self.actor = actor
        self.entries = indexed(queue.entries)
        self.runs = IndexedRuns(queue.runs)
        self.places = self.entries.places
        self.carried_graph = self.entries.graph
        self.progress = self.entries.progress
        rests_until = self.entries.rests_until
        self.is_stirred = rests_until is None or rests_until <= now
        self.is_clock_due = self.is_stirred
        self.events: list[Recorded] = []
        self.actions: list[Action] = []
        self.finished_entries: dict[str, Entry] = {}
        self.finished_runs: dict[str, Run] = {}
        self.revision = 0
        self.spare_used_at: int | None = None
        self.touched: set[int] = set()
        self.judging: set[str] = set()
        self.changed: set[int] = set()
        self.changed_runs: set[str] = set()
        self.changed_from: float | None = None
        self.doubted: set[str] = set()
        self.unwitnessed: set[str] = set()
        self.taken_back: set[int] = set()
        self.known_trees: tuple[Sha, ...] | None = None
        self.members: dict[str, Member] = {}
        self.heads: dict[str, HeadToMerge] = {}

    def record(self, event: Event) -> None:
        """Record an event for the journal."""
        self.events.append(Recorded(self.now, self.actor, event))

    def request(self, action: Action) -> None:
        """Request an action from the shell."""
        self.actions.append(action)

    def put_queue(self, queue: MergeQueue) -> None:
        """Replace what belongs to the queue as a whole; its entries and runs are ignored."""
        known = self.queue
        if queue.landed is not known.landed:
            # `bases.progress` goes on from the moves that it knows.
            self.doubt_bases()
        elif queue.tip != known.tip or queue.kept_move != known.kept_move:
            self.progress.clear()
            self.doubt_bases()
        if queue.config.mode is not self.queue.config.mode:
            self.progress.clear()
            self._change_line()
        if queue.greens is not known.greens or queue.required is not known.required:
            self.known_trees = None
        self.queue = queue
        self._stir()

    def forget_moves(self, count: int) -> None:
        """Forget the oldest moves of the target, which no run's base depends on."""
        self.queue = replace(self.queue, landed=self.queue.landed[count:])
        self.revision += 1

    @property
    def is_parallel(self) -> bool:
        """Return whether lanes run beside each other by what they touch."""
        return self.queue.config.mode is Mode.PARALLEL

    def put_bisection(self, bisection: Bisection) -> None:
        """Take in a bisection, or what is known newly of it."""
        known = {**self.queue.bisections, bisection.id: bisection}
        self.put_queue(replace(self.queue, bisections=known))

    def drop_bisection(self, bisection: Bisection) -> None:
        """Forget a bisection; the caller releases its runs."""
        left = {key: one for key, one in self.queue.bisections.items() if key != bisection.id}
        self.put_queue(replace(self.queue, bisections=left))

    def set_state(self, state: QueueState, reason: str | None) -> None:
        """Change the queue's own state."""
        origin = self.queue.state
        if state not in QUEUE_TRANSITIONS[origin]:
            raise InvariantBroken("E5", f"queue {origin.value} to {state.value}")
        self.put_queue(
            replace(
                self.queue,
                state=state,
                state_reason=reason,
                state_since=self.now,
                state_by=self.actor,
            )
        )
        self.record(QueueStateChanged(origin, state, reason))

    def enter(self, entry: Entry) -> None:
        """Take in a new submission."""
        if entry.pr in self.entries:
            raise InvariantBroken("E1", f"pull request {entry.pr} is queued twice")
        self.entries[entry.pr] = entry
        self.places.add(entry)
        self.touched.add(entry.pr)
        self.changed.add(entry.pr)
        self._stir()
        self.request(Tell(entry.pr, entry.id, entry.state, entry.reason))

    def put(self, entry: Entry) -> None:
        """Replace an entry within its state; reports a bisection that starts after its failure."""
        old = self.entries[entry.pr]
        if old.id != entry.id or old.state is not entry.state:
            raise InvariantBroken("E5", f"pull request {entry.pr} changed its state unseen")
        self._swap(old, entry)
        if entry.bisection not in (None, old.bisection) and entry.state_since != self.now:
            self.request(Tell(entry.pr, entry.id, entry.state, entry.reason))

    def move(
        self, entry: Entry, state: EntryState, reason: Reason, detail: Detail = NOTHING
    ) -> Entry:
        """Change an entry's state, or its reason inside PENDING; `entry` may carry changes.

        A final entry leaves the value. Raises InvariantBroken for a step that does not exist.
        """
        old = self.entries[entry.pr]
        if state not in ENTRY_TRANSITIONS[old.state]:
            raise InvariantBroken(
                "E5", f"pull request {entry.pr} from {old.state.value} to {state.value}"
            )
        since = entry.state_since if state is old.state else self.now
        moved = replace(entry, state=state, state_since=since, reason=reason, detail=detail)
        if state in FINAL:
            self._end(old, moved)
            self._update_above(moved)
            self._update_dependent(moved)
        else:
            self._swap(old, moved)
        run = detail.run or entry.run
        self.record(EntryMoved(entry.pr, entry.id, old.state, state, reason, run, detail))
        self.request(Tell(entry.pr, entry.id, state, reason))
        return moved

    def _update_dependent(self, final: Entry) -> None:
        """Let those that depend on an entry which has merged wait for it no more."""
        for number in sorted(self.places.dependent):
            other = self.entries[number]
            if final.state is EntryState.MERGED and final.pr in other.facts.depends_on:
                self.put(replace(other, facts=other.facts.without_dependency(final.pr)))

    def _update_above(self, final: Entry) -> None:
        """Update the members above in its stack, which wait for this one, when it has left.

        They wait no more for one that has merged; the last one below leaves with fresh facts.
        """
        for number in self.above(final):
            other = self.entries[number]
            if final.state is EntryState.MERGED:
                facts = other.facts.after_merge_of(final.pr)
                if facts is None:
                    continue
                other = replace(other, facts=facts)
                self.put(other)
            if Reason.STACKED in other.unmet:
                self.request(Tell(other.pr, other.id, other.state, other.reason))

    def above(self, lower: Entry) -> list[int]:
        """Return the members above in its stack, which go after this one."""
        stacked = self.places.stacked
        return [pr for pr in sorted(stacked) if lower.pr in self.entries[pr].facts.below]

    def start(self, run: Run) -> None:
        """Take in a new run; no clock of it runs before its branch is built."""
        self.runs.put(run)
        self.judging.add(run.id)
        self.changed_runs.add(run.id)
        self._stir()

    def put_run(self, run: Run) -> None:
        """Replace a run by a form of the same status."""
        if self.runs[run.id].status is not run.status:
            raise InvariantBroken("E5", f"run {run.id} changed its status unseen")
        self._set_run(run)

    def wait_until(self, run: Run, until: datetime | None) -> None:
        """Set when time alone changes the verdict of a run: no pass has to look at it before."""
        self.runs.put(replace(run, deadline=until))
        self.judging.discard(run.id)
        self.changed_runs.add(run.id)

    def finish(self, run: Run, status: RunStatus, finding: Finding) -> Run:
        """Give a run its verdict, or correct it; it stays until it is retired."""
        old = self.runs[run.id]
        if status not in RUN_TRANSITIONS[old.status]:
            raise InvariantBroken("E5", f"run {run.id} from {old.status} to {status}")
        done = None if status is RunStatus.IN_PROGRESS else self.now
        finished = replace(run, status=status, cause=finding.cause, finished_at=done, deadline=None)
        self._set_run(finished)
        names = tuple(check.name for check in finding.failed)
        self.record(RunFinished(run.id, status, finding.cause, names))
        return finished

    def retire(self, run: Run, why: Reason) -> None:
        """Release a run that no entry refers to any longer; cancel it if it is still running."""
        may_run = run.phase is RunPhase.TESTING and (
            run.status is RunStatus.IN_PROGRESS
            or run.is_foreseen
            or any(check.outcome is CheckOutcome.RUNNING for check in run.checks)
        )
        if run.status is RunStatus.IN_PROGRESS:
            run = replace(run, status=RunStatus.CANCELLED, finished_at=self.now, deadline=None)
        elif run.deadline is not None:
            run = replace(run, deadline=None)
        self.runs.remove(run)
        kept = self.runs.get(run.witness_of or "")
        if kept is not None and not self.own(kept):
            self.retire(kept, why)
        self.progress.pop(run.id, None)
        self.judging.discard(run.id)
        self.finished_runs[run.id] = run
        self._stir()
        sharing = self._sharing_branch(run)
        self.record(RunRetired(run.id, why, keeps_branch=bool(sharing)))
        if run.kind is not RunKind.DIRECT:
            may_run = may_run and all(one.status is not RunStatus.IN_PROGRESS for one in sharing)
            self.request(RetireRun(run.id, stop_ci=may_run, keeps_branch=bool(sharing)))

    def _sharing_branch(self, run: Run) -> list[Run]:
        """Return the other runs on its test branch: what it repeats, and what repeats it."""
        if run.repeats is None and not run.is_repeated:
            return []
        return [one for one in self.runs.values() if one.branch == run.branch]

    def is_kept(self, run: Run) -> bool:
        """Return whether this failed run stays without an entry, as a witness may reject by it."""
        witnesses = self.runs.of_kind(RunKind.WITNESS)
        return run.id in self.unwitnessed or any(one.witness_of == run.id for one in witnesses)

    def doubt_bases(self, rank: float = NOWHERE) -> None:
        """Have the bases of all entries looked at again that are not before this rank."""
        self.changed_from = rank if self.changed_from is None else min(rank, self.changed_from)

    def to_judge(self) -> list[Run]:
        """The runs whose reports changed, or whose clock has run out, in order."""
        found = [self.runs[each] for each in self.judging | self.runs.due(self.now)]
        return sorted(found, key=lambda run: run.number)

    def entry_of(self, member: Member) -> Entry | None:
        """Return the live entry of a run's member, None if it has left."""
        entry = self.entries.get(member.pr)
        return entry if entry is not None and entry.id == member.entry else None

    def member_of(self, entry: Entry) -> Member:
        """The entry as runs hold it: one object, so that bases are compared by identity."""
        known = self.members.get(entry.id)
        if known is None:
            run = self.runs.get(entry.run or "")
            own = run.entries if run is not None else ()
            known = next((one for one in own if one.pr == entry.pr), None)
            if known is None or (known.entry, known.head) != (entry.id, entry.head):
                known = Member(entry.pr, entry.id, entry.head)
            self.members[entry.id] = known
        return known

    def own(self, run: Run) -> tuple[Entry, ...]:
        """The live entries whose run this is, in tested order: with those it cleared below it."""
        numbers = self.places.in_run.get(run.id)
        if numbers is None:
            return ()
        members = [member for member in run.entries if member.pr in numbers]
        if len(members) < len(numbers):
            members = [member for member in run.members if member.pr in numbers]
        entries = self.entries
        return tuple([entries[one.pr] for one in members if entries[one.pr].id == one.entry])

    def tested(self, run: Run) -> tuple[Entry, ...]:
        """Return the live entries that the run tests, also those that are in another run."""
        found = (self.entry_of(member) for member in run.entries)
        return tuple(entry for entry in found if entry is not None)

    def name(self, what: str) -> str:
        """An id that the same inputs always give again, such as of `run 7`."""
        return str(uuid5(_namespace(self.queue.uid), what))

    def value(self) -> MergeQueue:
        """Return the present queue; the initial value itself if it is unchanged."""
        if self.revision == 0 and not self.changed_runs:
            return self.before
        return replace(self.queue, entries=self.entries, runs=self.runs)

    def _swap(self, old: Entry, new: Entry) -> None:
        self._stand_elsewhere(old, new)
        self.places.remove(old)
        self.entries[new.pr] = new
        self.places.add(new)
        self.touched.add(new.pr)
        self.touched.update(self.above(new))
        self.changed.add(new.pr)
        self._stir()

    def _end(self, old: Entry, final: Entry) -> None:
        self.doubt_bases(self._first_rank(old))
        self.places.remove(old)
        del self.entries[old.pr]
        self.touched.discard(old.pr)
        self.touched.update(self.above(final))
        self.finished_entries[final.id] = final
        self.entries.graph = self._graph_without(old)
        self._stir()

    def _stand_elsewhere(self, old: Entry, new: Entry) -> None:
        """Record whether an entry changes the line; one appended last has no followers."""
        is_effect_same = effect_on_followers(old) == effect_on_followers(new)
        if is_effect_same and old.batch == new.batch:
            return
        if old.touches != new.touches:
            self.progress.clear()
        if old.rank is None and (new.rank is None or self._is_last(new.rank)):
            return
        if is_effect_same and self._is_node_kept(old, new):
            return
        self._change_line(self._first_rank(old, new))

    def _is_last(self, rank: int) -> bool:
        line = self.places.line
        return not line or rank > line[-1][0]

    def _is_node_kept(self, old: Entry, new: Entry) -> bool:
        """Return whether a batch begins behind all that is drawn, or one alone stays alone."""
        graph = self.entries.graph
        if graph is None or old.rank is None:
            return False
        place = graph.of.get(old.pr)
        if place is None:
            last = graph.nodes[-1:]
            begun = {self.entries[node.members[0].pr].batch for node in last} - {None}
            return old.batch is None and old.rank > graph.end and new.batch not in begun
        node = graph.nodes[place]
        if len(node.members) > 1 or node.touches != old.touches:
            return False
        neighbors = graph.nodes[max(place - 1, 0) : place + 2]
        beside = (self.entries[other.members[0].pr] for other in neighbors if other is not node)
        return new.batch is None or all(entry.batch != new.batch for entry in beside)

    def _graph_without(self, old: Entry) -> Graph | None:
        """The graph without an entry that has left; None: it has to be drawn again."""
        graph = self.entries.graph
        place = None if graph is None else graph.of.get(old.pr)
        if graph is None or place is None or (old.rank or 0) >= graph.end:
            return None
        run = self.runs.get(old.run or "")
        rest = () if run is None else self.own(run)
        mates = [entry.pr for entry in rest if entry.batch == old.batch is not None]
        if mates:
            # The rest of a batch stands where it stood, with what has landed of it.
            is_landed = bool(self.queue.landed) and self.queue.landed[-1].entry == old.id
            is_node = [member.pr for member in graph.nodes[place].members] == [old.pr, *mates]
            return graph.without(old.pr) if is_landed and is_node else None
        beside = [graph.nodes[at] for at in (place - 1, place + 1) if 0 <= at < len(graph.nodes)]
        batches = [self.entries[node.members[0].pr].batch for node in beside]
        is_joined = len(batches) == 2 and batches[0] == batches[1] is not None
        return None if is_joined else graph.without(old.pr)

    def _first_rank(self, *forms: Entry) -> float:
        """The lowest rank of an entry and of those in its runs; behind the line without any."""
        numbers = [pr for one in forms for pr in self.places.in_run.get(one.run or "", ())]
        ranks = [one.rank for one in (*forms, *map(self.entries.__getitem__, numbers))]
        return min((rank for rank in ranks if rank is not None), default=math.inf)

    def _change_line(self, rank: float = NOWHERE) -> None:
        self.doubt_bases(rank)
        self.entries.graph = None

    def _stir(self) -> None:
        self.is_stirred = True
        self.revision += 1

    def _set_run(self, run: Run) -> None:
        old = self.runs[run.id]
        # A search for a culprit also reads what failed in a run.
        if old.status is not run.status or old.kind is not run.kind or self.queue.bisections:
            self.is_stirred = True
        self.progress.pop(run.id, None)
        self.runs.put(run)
        self.judging.add(run.id)
        self.changed_runs.add(run.id)
        self.revision += 1

"""One submission with its queue: the input of all texts about it."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from service.mergequeue.engine.checked import CheckedName, checked_of
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits import failing
from service.mergequeue.engine.culprits.failing import Failing
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import NOTHING, Bisection, Detail, Entry, MergeQueue, Run
from service.mergequeue.engine.outputs import EntryMoved, Recorded
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state import undone
from service.mergequeue.engine.state.readiness import blocker_names
from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.wording import failed_tests
from service.mergequeue.wording.failed_tests import FailedTests
from service.text.markdown import Links
from service.text.times import TimeLeft
from service.vocabulary import SYSTEM, Actor, Sha

Tables = Mapping[str, tuple[CheckedName, ...]]
"""The required checks of runs with their evidence, by the id of the run."""

NO_TABLES: Tables = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UnmetCondition:
    """One thing that has to be so before a pull request may enter.

    `name` is the check, the rule, or the base branch that it has instead; `state` what a
    check says now, in a word or two. Of a stack `name` lists the numbers of the members that must
    be merged first, `state` those among them that are not in the queue. Of a review `state` is the
    base that the pull request had in a chain. Of a rule of the queue `state` is what it waits for.
    `until`: when a time ends the wait.
    """

    code: Reason
    target: str
    name: str = ""
    state: str = ""
    head: Sha | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """State and reason with everything that their sentences may name.

    `by` brought it about, SYSTEM if nobody is known to have; without `config` no limits are
    quoted, without `head` no old commit. `rested_on` is the branch of the pull request below it.
    `failing` of one in TESTING: what failed in its run. `checked`: the required checks of the run
    that it passed, empty where they are not known.
    """

    target: str
    state: EntryState
    reason: Reason
    detail: Detail = NOTHING
    by: Actor = SYSTEM
    submitted_by: Actor = SYSTEM
    head: Sha | None = None
    unmet: tuple[UnmetCondition, ...] = ()
    config: QueueConfig | None = None
    rested_on: str | None = None
    failing: Failing | None = None
    checked: tuple[CheckedName, ...] = ()


def failing_of(entry: Entry, run: Run | None) -> Failing | None:
    """Return what has failed in the run that tests an entry, and does not count yet."""
    is_tested = entry.state is EntryState.TESTING and run is not None
    return failing.failing_of(run) if is_tested and run is not None else None


def last_run_of(entry: Entry) -> str | None:
    """Return the id of its live run, else of the last one that it had."""
    return entry.run or entry.verified_by or entry.detail.run


def situation_of(entry: Entry, queue: MergeQueue, history: tuple[Recorded, ...] = ()) -> Situation:
    """Return the entry's situation; `history` names the actor if the entry does not."""
    return Situation(
        target=queue.branch,
        state=entry.state,
        reason=entry.reason,
        detail=replace(entry.detail, prs=entry.detail.prs or _undecided_ahead(entry, queue)),
        by=entry.canceller or _who_moved(entry, history),
        submitted_by=entry.submitted_by,
        head=entry.head,
        unmet=unmet_conditions_of(entry, queue.branch, queue.entries),
        config=queue.config,
        rested_on=entry.rested_on,
        failing=failing_of(entry, queue.runs.get(entry.run or "")),
        checked=_passed_checks_of(entry, queue),
    )


def _passed_checks_of(entry: Entry, queue: MergeQueue) -> tuple[CheckedName, ...]:
    """Return the required checks of the run that verified an entry which has yet to land."""
    run = queue.runs.get(entry.verified_by or "")
    if run is None or entry.state is not EntryState.TESTS_PASSED:
        return ()
    return checked_of(run, queue.runs.get(run.reused_from or ""))


def unmet_conditions_of(
    entry: Entry, target: str, queued: Container[int] | None = None
) -> tuple[UnmetCondition, ...]:
    """Return what the entry still needs to be ready, each named check and rule by itself.

    `queued` are the pull requests in the queue, None if they are not known.
    """
    found: list[UnmetCondition] = []
    for code in entry.unmet:
        if code is Reason.WAITS_FOR_RULE and entry.waits:
            found += [
                UnmetCondition(code, target, one.rule, one.text, until=one.until)
                for one in entry.waits
            ]
            continue
        seen = entry.facts.seen if code is Reason.NOT_BEFORE else None
        until = None if seen is None else seen.not_before
        names = _names(code, entry) or ("",)
        for name in names:
            state = ""
            if code is Reason.STACKED and queued is not None:
                state = " ".join(map(str, _absent_of(name, queued)))
            if code is Reason.REVIEW_REQUIRED and entry.rested_on is not None:
                state = entry.rested_on
            found.append(UnmetCondition(code, target, name, state, entry.head, until))
    return tuple(found)


def _absent_of(name: str, queued: Container[int]) -> tuple[int, ...]:
    """Return the members of a stack that a name lists and that are not in the queue."""
    listed = (int(each) for each in name.split() if each.isdecimal())
    return tuple(pr for pr in listed if pr not in queued)


def situation_after(
    moved: EntryMoved,
    by: Actor,
    target: str,
    config: QueueConfig | None = None,
    checked: Tables = NO_TABLES,
) -> Situation:
    """Return where a journal's event put an entry; `checked`: the tables of runs by their ids."""
    table = checked.get(moved.detail.run or "", ())
    return Situation(
        target, moved.state, moved.reason, moved.detail, by, config=config, checked=table
    )


def _undecided_ahead(entry: Entry, queue: MergeQueue) -> tuple[int, ...]:
    """Return the members of a failed run's base that may still be the culprit."""
    run = queue.runs.get(entry.run or "")
    if entry.state is not EntryState.PENDING_FAILURE or run is None:
        return ()
    live = {one.id: one for one in queue.entries.values()}
    return tuple(
        member.pr
        for member in run.base
        if member.entry in live and live[member.entry].state is not EntryState.TESTS_PASSED
    )


def _names(code: Reason, entry: Entry) -> tuple[str, ...]:
    if code is Reason.BASE_MISMATCH:
        return (entry.facts.base,)
    if code is Reason.CONFLICT_TARGET:
        return (entry.rested_on,) if entry.rested_on else ()
    if code is Reason.UNDOES_LANDED_WORK:
        return (undone.names_of(entry),)
    if entry.refusal is not None and entry.refusal.reason is code:
        return (entry.refusal.name,) if entry.refusal.name else ()
    return blocker_names(entry, code)


def _who_moved(entry: Entry, history: tuple[Recorded, ...]) -> Actor:
    for recorded in reversed(history):
        moved = recorded.event
        if isinstance(moved, EntryMoved) and moved.entry == entry.id:
            return recorded.actor if moved.reason is entry.reason else SYSTEM
    return SYSTEM


@dataclass(frozen=True, slots=True)
class Landed:
    """The commit that landed and its tree, the one that was planned, and the one that CI ran on.

    `tip_test` is the status of the test of this very commit, where one has begun.
    """

    sha: Sha
    tree: Sha
    planned_tree: Sha
    tested_tree: Sha
    is_update: bool = False
    tip_test: RunStatus | None = None


@dataclass(frozen=True, slots=True)
class PullRequestText:
    """One submission with its queue, as it is at `now`.

    `entry` is the live or the final one, `run` its live run, else the last one it had.
    `position` is 1-based, None where it has no place. `history` holds, oldest first, the
    events of this submission, those of its runs and of the searches among them. `version` is
    Headgate's own. `tests` are those that failed in that run. Of a merged one, `landed` is its
    proved landing, and `pauses` are the changes of the queue's state since it was submitted.
    `checked` are the required checks of the run that counts for it, and `tables` those of each run
    that it has passed.
    """

    queue: MergeQueue
    entry: Entry
    explained: Explained
    run: Run | None
    position: int | None
    length: int
    left: TimeLeft | None
    history: tuple[Recorded, ...]
    links: Links
    now: datetime
    version: str
    tests: FailedTests = failed_tests.NONE
    repository_url: str = ""
    landed: Landed | None = None
    pauses: tuple[Recorded, ...] = ()
    checked: tuple[CheckedName, ...] = ()
    tables: Tables = field(default_factory=dict)

    @property
    def situation(self) -> Situation:
        """The state of the entry with its reason."""
        found = situation_of(self.entry, self.queue, self.history)
        # The run that the rest of the text shows, which may be newer.
        failing = failing_of(self.entry, self.run)
        return replace(found, failing=failing, checked=self.checked)

    @property
    def evidence(self) -> tuple[CheckedName, ...]:
        """Its required checks; empty while the rest of the text shows how they proceed."""
        is_proceeding = self.entry.state in (EntryState.PENDING, EntryState.TESTING)
        return () if is_proceeding else self.checked

    @property
    def search(self) -> Bisection | None:
        """The search for the cause of its failure, while there is one."""
        return self.queue.bisections.get(self.entry.bisection or "")

    @property
    def unit(self) -> tuple[int, ...]:
        """The other pull requests of its merge unit: verified by the same run, in line order."""
        run = self.entry.verified_by
        mates = [one for one in self.queue.entries.values() if run and one.verified_by == run]
        mates.sort(key=lambda one: one.rank or 0)
        return tuple(one.pr for one in mates if one.pr != self.entry.pr)

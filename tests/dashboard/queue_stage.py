"""Queues as pages find them: values written by hand, stored as a turn stores them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from service.clock import SystemClock
from service.database.database import Store, Tx
from service.database.wakeups import Wakeups
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import (
    Bisection,
    Detail,
    Entry,
    LandMode,
    Member,
    MergeQueue,
    Named,
    Proof,
    RequiredSet,
    Run,
    RunStep,
    Tip,
)
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    Land,
    LandStep,
    Recorded,
    RunStarted,
    Step,
)
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus
from service.mergequeue.landing_records import LandingState
from service.mergequeue.store import journal, landings
from service.mergequeue.store import queues as stored
from service.mergequeue.store.cache import QueueCache
from service.mergequeue.store.landings import LandingOutcome
from service.runtime import DashboardAuth, Runtime
from service.vocabulary import (
    SYSTEM,
    Actor,
    ActorKind,
    Channel,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    MergeMethod,
    PullRequestState,
    QueueRef,
    RequiredName,
    RequiredSource,
    Sha,
)
from tests.dashboard import browsing
from tests.harness.databases import SetClock
from tests.operations import upload_stage

LOOPBACK, TOKEN = DashboardAuth.LOOPBACK, DashboardAuth.TOKEN
NOW = datetime(2026, 11, 24, 14, 5, tzinfo=UTC)
TIP = Tip(Sha("9f8e7d6" + "0" * 33), Sha("4be1c90" + "0" * 33))
REQUIRED = ("lint", "test (3.12)", "e2e")
PASSED, FAILED, RUNNING = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.RUNNING
BROKEN_CHECK = Named("test (3.12)", "https://github.test/octo/widgets/runs/11")
TITLES = (
    "Retry uploads after a dropped connection",
    "Bump http client to 3.2",
    "Cache product thumbnails",
    "Paginate the order history endpoint",
    "Fix rounding in invoice footers",
    "Remove the old feature flags for checkout, wish list and gift cards",
    "Split the billing module",
    "Send mail through the new relay",
)
PEOPLE = ("alice", "bob", "carol", "dave", "dependabot[bot]")


def at(minutes: float) -> datetime:
    """So many minutes before now."""
    return NOW - timedelta(minutes=minutes)


def sha_of(number: int, kind: str = "a") -> Sha:
    """A commit or tree that belongs to a number."""
    return Sha(f"{kind}{number:06x}" + "0" * 33)


def person(login: str) -> Actor:
    """Somebody who comments."""
    return Actor(ActorKind.PERSON, login, "7", Channel.COMMENT)


def an_entry(pr: int, place: int = 0, **given: Any) -> Entry:
    """A pending entry at a place of the line; 0: it has none."""
    author = given.pop("author", PEOPLE[pr % len(PEOPLE)])
    facts = Facts(
        pr=pr,
        head=sha_of(pr),
        base="main",
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title=given.pop("title", TITLES[pr % len(TITLES)]),
        author=author,
        is_fork=False,
    )
    default: dict[str, Any] = {
        "id": f"e{pr}",
        "pr": pr,
        "facts": facts,
        "head": sha_of(pr),
        "submitted_by": person("alice"),
        "submitted_at": at(40 - place),
        "priority": 100,
        "no_batch": False,
        "state": EntryState.PENDING,
        "state_since": at(20),
        "reason": Reason.NOW_READY,
        "seq": pr,
        "rank": place or None,
    }
    return Entry(**(default | given))


def a_check(name: str, outcome: CheckOutcome, **given: Any) -> Check:
    """A check run of the App 15368."""
    default: dict[str, Any] = {
        "kind": CheckKind.SUITE_RUN,
        "name": name,
        "source_id": "15368",
        "group": "71",
        "id": f"id-{name}",
        "outcome": outcome,
        "raw": {PASSED: "success", FAILED: "failure"}.get(outcome, "in_progress"),
        "url": f"https://github.test/octo/widgets/runs/{len(name)}",
        "started_at": at(8),
        "completed_at": None if outcome is RUNNING else at(6),
    }
    return Check(**(default | given))


def a_run(number: int, prs: Iterable[int], base: Iterable[int] = (), **given: Any) -> Run:
    """A run in testing; `outcomes` are of the required checks, in order."""
    tested, under = tuple(prs), tuple(base)
    outcomes = given.pop("outcomes", (PASSED, PASSED, RUNNING))
    checks = tuple(a_check(*each) for each in zip(REQUIRED, outcomes, strict=False) if each[1])
    default: dict[str, Any] = {
        "id": f"run-{number}",
        "number": number,
        "kind": RunKind.MAIN,
        "entries": _members(tested),
        "base": _members(under),
        "base_tip": TIP,
        "status": RunStatus.IN_PROGRESS,
        "phase": RunPhase.TESTING,
        "required": tuple(RequiredName(name) for name in REQUIRED),
        "required_source": RequiredSource.BRANCH_PROTECTION,
        "config": QueueConfig(),
        "created_at": at(8),
        "built_at": at(7.5),
        "start_clock": at(7.5),
        "last_report_at": at(1),
        "sha": sha_of(number, "c"),
        "branch": f"headgate/merge/main/{number}",
        "checks": checks,
        "steps": tuple(
            RunStep(pr, sha_of(pr), sha_of(pr, "c"), sha_of(pr, "d"), contained=False)
            for pr in (*under, *tested)
        ),
    }
    return Run(**(default | given))


def _members(prs: tuple[int, ...]) -> tuple[Member, ...]:
    return tuple(Member(pr, f"e{pr}", sha_of(pr)) for pr in prs)


class StillClock(SetClock):
    """A clock whose time stands; waiting takes real time."""

    async def sleep(self, seconds: float) -> None:
        await SystemClock().sleep(seconds)


@dataclass
class QueueStage:
    """A queue of `octo/widgets`, and what its pages need."""

    runtime: Runtime
    queue: QueueRef

    async def put(
        self,
        value: MergeQueue,
        events: Iterable[Recorded] = (),
        *,
        entries: tuple[Entry, ...] = (),
        runs: tuple[Run, ...] = (),
    ) -> None:
        """Store this value of the queue; these entries and runs have left it, as they are here."""
        whole = replace(
            value,
            entries={**value.entries, **{each.pr: each for each in entries}},
            runs={**value.runs, **{each.id: each for each in runs}},
        )
        await self._save(Step(whole, (), (), None, None))
        await self._save(Step(value, (), tuple(events), None, None, entries, runs))

    async def _save(self, step: Step) -> None:
        before = await self.runtime.store.read(stored.load, self.queue.id)
        after = replace(
            step.queue,
            id=before.id,
            uid=before.uid,
            branch=before.branch,
            version=before.version,
            revision=before.revision,
        )
        await self.runtime.store.run(self._write, before, replace(step, queue=after))
        self.runtime.store.caches.of(QueueCache).drop(self.queue.id)

    def _write(self, session: Tx, before: MergeQueue, step: Step) -> None:
        stored.save(session, before, step)
        journal.append(session, self.queue.id, step.events)

    async def landed(
        self, run: Run, *, is_equal: bool = True, tested_tree: Sha | None = None
    ) -> None:
        """Store the landings of a run: the trees are equal, or not; CI ran on `tested_tree`."""
        await self.runtime.store.run(self._landed, run, is_equal, tested_tree)

    def _landed(self, session: Tx, run: Run, is_equal: bool, tested_tree: Sha | None) -> None:
        steps = tuple(
            LandStep(
                *(place, step.pr, f"e{step.pr}", step.head, TIP.tree, step.tree, step.commit),
                tested_tree=tested_tree or step.tree,
            )
            for place, step in enumerate(run.steps, start=1)
        )
        action = Land(
            run.number, run.id, LandMode.CALL, MergeMethod.SQUASH, TIP, steps, Proof.EXACT_TREE
        )
        landings.intend(session, self.queue.id, action)
        for row in landings.landings_of_run(session, run.id):
            tree = row.expected_tree if is_equal else sha_of(row.pr, "b")
            state = LandingState.LANDED if is_equal else LandingState.MISMATCH
            landings.settle(session, row.id, LandingOutcome(state, sha_of(row.pr, "f"), tree, None))

    def on_a_clock_that_stands(self) -> "QueueStage":
        """The same queue, served by a process whose clock stands while it waits."""
        clock = StillClock()
        clock.present = NOW
        runtime = replace(self.runtime, clock=clock, wakeups=Wakeups(clock))
        return replace(self, runtime=runtime)

    def browsing(self, **options: Any) -> Any:
        """Pages of this queue, for whoever is on this machine."""
        default = {"dashboard_auth": LOOPBACK, "main_host": upload_stage.HOST}
        return browsing.browsing(self.runtime, **(default | options))

    async def delete(self) -> None:
        """Delete the queue."""
        await self.runtime.store.run(stored.mark_deleted, self.queue.id, NOW)
        await self.put(a_queue(deleted=True))


async def staged(store: Store, branch: str = "main", name: str = "widgets") -> QueueStage:
    """A queue without pull requests, and a clock that stands still."""
    whole = await upload_stage.staged(store, name)
    whole.clock.present = NOW
    place = (whole.repository.org_id, whole.repository.id)
    empty = MergeQueue(
        id=0, uid=str(uuid5(NAMESPACE_URL, f"{name}/{branch}")), branch=branch, config=QueueConfig()
    )
    await store.run(stored.create, *place, empty)
    ref = await store.read(stored.queue_ref, *place, branch)
    assert ref is not None
    return QueueStage(whole.runtime, ref)


def a_queue(entries: Iterable[Entry] = (), runs: Iterable[Run] = (), **given: Any) -> MergeQueue:
    """A running queue that knows its branch and its rules."""
    required = RequiredSet(
        tuple(RequiredName(name) for name in REQUIRED), RequiredSource.BRANCH_PROTECTION
    )
    default: dict[str, Any] = {
        "config": QueueConfig(concurrency=5, batch=True),
        "tip": TIP,
        "required": required,
        "entries": {each.pr: each for each in entries},
        "runs": {each.id: each for each in runs},
    }
    return MergeQueue(id=0, uid="", branch="main", **(default | given))


def in_run(run: Run, place: int, **given: Any) -> list[Entry]:
    """The entries that a run tests, from a place of the line on."""
    is_passed = run.status is RunStatus.SUCCEEDED
    state = EntryState.TESTS_PASSED if is_passed else EntryState.TESTING
    reason = Reason.RUN_PASSED if is_passed else Reason.TEST_STARTED
    default: dict[str, Any] = {"state": state, "reason": reason, "run": run.id}
    if is_passed:
        default["verified_by"] = run.id
    return [
        an_entry(pr, place + nth, **(default | {"state_since": run.created_at} | given))
        for nth, pr in enumerate(run.prs)
    ]


def ended(pr: int, run: Run, minutes: float, **given: Any) -> Entry:
    """A submission that has merged by a run, so many minutes ago."""
    default: dict[str, Any] = {
        "state": EntryState.MERGED,
        "reason": Reason.LANDED,
        "state_since": at(minutes),
        "submitted_at": at(minutes + 21),
        "verified_by": run.id,
        "landed_sha": sha_of(pr, "f"),
    }
    return an_entry(pr, **(default | given))


def passed(number: int, prs: Iterable[int], base: Iterable[int] = (), **given: Any) -> Run:
    """A run that passed."""
    default = {
        "status": RunStatus.SUCCEEDED,
        "outcomes": (PASSED, PASSED, PASSED),
        "created_at": at(20),
        "finished_at": at(3),
    }
    return a_run(number, prs, base, **(default | given))


def failed(number: int, prs: Iterable[int], base: Iterable[int] = (), **given: Any) -> Run:
    """A run that failed its second check."""
    default = {
        "status": RunStatus.FAILED,
        "outcomes": (PASSED, FAILED, PASSED),
        "created_at": at(19),
        "finished_at": at(8),
        "cause": Cause.PR_FAULT,
    }
    return a_run(number, prs, base, **(default | given))


def story(entry: Entry, run: Run) -> list[Recorded]:
    """The journal of a submission that a run tests."""
    begun = RunStarted(run.id, run.number, run.kind, run.prs, run.base_prs, TIP.sha)
    moved = EntryMoved(
        entry.pr,
        entry.id,
        EntryState.NOT_READY,
        EntryState.PENDING,
        Reason.NOW_READY,
        None,
        Detail(),
    )
    submitted = EntrySubmitted(
        entry.pr, entry.id, entry.head, Reason.USER_REQUESTED, entry.priority
    )
    return [
        Recorded(entry.submitted_at, entry.submitted_by, submitted),
        Recorded(entry.submitted_at, SYSTEM, moved),
        Recorded(run.created_at, SYSTEM, begun),
    ]


def busy() -> tuple[MergeQueue, dict[str, Any]]:
    """Runs stacked on the tip, a search, a wait and a conflict; and what has left."""
    first = a_run(3119, (478, 480))
    second = passed(3120, (487,), (478, 480))
    forgiven: dict[str, Any] = {"outcomes": (PASSED, FAILED, RUNNING), "excused": REQUIRED[1:2]}
    third = a_run(3122, (488, 489, 491), (478, 480, 487), created_at=at(7), **forgiven)
    starting = (RUNNING, RUNNING, None)
    fourth = a_run(3123, (492,), (478, 480, 487, 488, 489, 491), outcomes=starting)
    suspects, runs, search = a_search()
    entries = [
        *suspects,
        *in_run(first, 10),
        *in_run(second, 12, priority=10),
        *in_run(third, 13),
        *in_run(fourth, 16, restarts={"restarted_by_user": 1}),
        *waiting(),
    ]
    value = a_queue(entries, [first, second, third, fourth, *runs], bisections={search.id: search})
    return value, has_left()


def a_search() -> tuple[list[Entry], list[Run], Bisection]:
    """Four suspects, of whom the first two failed once more, and the first is tested alone."""
    broken = failed(3116, (482, 483, 485, 486))
    probe: dict[str, Any] = {"kind": RunKind.PROBE, "bisection": "b1"}
    half = failed(3121, (482, 483), created_at=at(8), finished_at=at(3), **probe)
    alone = a_run(3124, (482,), created_at=at(3), outcomes=(PASSED, RUNNING, None), **probe)
    reds = {4: (broken.id,), 2: (half.id,)}
    search = Bisection("b1", broken.id, broken.entries, (), TIP, 0, 2, reds, {1: alone.id})
    suspects = [
        an_entry(
            pr,
            1 + nth,
            state=EntryState.PENDING_FAILURE,
            reason=Reason.CHECK_FAILED,
            run=broken.id,
            bisection=search.id,
            state_since=at(8),
            detail=Detail(run=broken.id, checks=(BROKEN_CHECK,)),
        )
        for nth, pr in enumerate(broken.prs)
    ]
    return suspects, [broken, half, alone], search


def waiting() -> list[Entry]:
    """Two that wait for a slot, one with a conflict, and one that is not in yet."""
    conflict = Detail(prs=(478,), paths=("api/upload.py",))
    review = (Reason.REVIEW_REQUIRED,)
    return [
        an_entry(495),
        an_entry(496),
        an_entry(497, reason=Reason.CONFLICT_AHEAD, held_by=(478,), detail=conflict),
        an_entry(
            499, state=EntryState.NOT_READY, reason=review[0], seq=None, unmet=review,
            state_since=at(130),
        ),
    ]  # fmt: skip


def has_left() -> dict[str, Any]:
    """Six that merged, one that failed, one that was removed, and the runs of the six.

    The run of #441 has an excused and a skipped check.
    """
    outcomes = (PASSED, FAILED, CheckOutcome.SKIPPED)
    special: dict[str, Any] = {"outcomes": outcomes, "excused": (REQUIRED[1],)}
    runs = [
        passed(
            3100 + nth,
            (440 + nth,),
            created_at=at(60 + nth),
            finished_at=at(45 + nth),
            **(special if nth == 1 else {}),
        )
        for nth in range(6)
    ]
    left = [ended(run.prs[0], run, 8 + 5 * nth) for nth, run in enumerate(runs)]
    unmerged: dict[str, Any] = {"landed_sha": None, "verified_by": None}
    failing = {"state": EntryState.FAILED, "reason": Reason.REQUIRED_STATUS_FAILED, **unmerged}
    detail = Detail(run="run-3100", checks=(BROKEN_CHECK,))
    left.append(ended(471, runs[0], 21, detail=detail, **failing))
    removed = {"state": EntryState.CANCELLED, "reason": Reason.USER_REQUESTED, **unmerged}
    left.append(ended(470, runs[0], 29, canceller=person("bob"), **removed))
    return {"entries": tuple(left), "runs": tuple(runs)}

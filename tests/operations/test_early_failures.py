"""Which failed parts of CI doom a required check, and what is read to find them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from service.accounts.store import access
from service.evidence import early_failures as live
from service.mergequeue import early_rules
from service.mergequeue.early_rules import Ending, PartKind, Rule
from service.mergequeue.engine.inputs import Configure
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.states import QueueState, RunStatus
from service.mergequeue.operations import (
    early_failures,
    early_memory,
    pull_requests,
    queues,
    reconcile,
    turn,
)
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.store import failed_parts as store
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.mergequeue.store.failed_parts import SeenPart
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.process.workers.loops import Polls
from service.provenance import Proof
from service.provider.ci import CiJob, CiProgress, FailedPart, FailedStep
from service.provider.ci_plans import CiPlan, PlannedJob
from service.provider.errors import Unavailable
from service.provider.values import Checks
from service.runtime import Runtime
from service.testhealth.early_failures import EarlyFailure, EarlyStanding
from service.vocabulary import SYSTEM, Check, CheckKind, CheckOutcome, QueueRef, RepoRef, Sha
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock

FILE = "ci.yml"
PASSED, FAILED, RUNNING = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.RUNNING
WORDS = {PASSED: "success", FAILED: "failure", RUNNING: "in_progress"}
PLAN = CiPlan(
    (
        PlannedJob(FILE, "unit", ("unit",), frozenset({"leg"}), steps=frozenset({"T"})),
        PlannedJob(FILE, "leg", ("leg",)),
    )
)
LEG = Rule(FILE, "", "unit", "leg", PartKind.JOB)
STEP = Rule(FILE, "", "unit", "unit", PartKind.STEP, "T")
TEST = Rule(FILE, "", "unit", "unit", PartKind.TEST)


def check(name: str, outcome: CheckOutcome, number: str, group: str = "1", app: str = "7") -> Check:
    url = f"https://ci.test/{number}"
    return Check(CheckKind.SUITE_RUN, name, app, group, number, outcome, WORDS[outcome], url)


def job(name: str, outcome: CheckOutcome, number: str, *steps: str) -> CiJob:
    failures = tuple(FailedStep(step, None) for step in steps)
    return CiJob(number, name, "ci", "", outcome, len(steps), None, None, failures)


class Ci(ValuesProvider):
    """CI as a test says: reports, the jobs of its one run, and its files by commit."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: tuple[Check, ...] = (check("unit", RUNNING, "1"),)
        self.jobs: tuple[CiJob, ...] = ()
        self.file = FILE
        self.changed: set[Sha] = set()
        self.is_away = False
        self.reads: list[bool] = []

    async def checks(self, repo: RepoRef, sha: Sha, *, skipped_pass: bool) -> Checks:
        return Checks(sha, self.reports, complete=True)

    async def ci_progress(
        self, repo: RepoRef, sha: Sha, groups: Collection[str], *, is_poll: bool = False
    ) -> Sequence[CiProgress]:
        if self.is_away:
            raise Unavailable("GitHub is away.", self.now)
        self.reads.append(is_poll)
        return [CiProgress("5", self.file, "1", self.jobs)] if "1" in groups else ()

    async def ci_files(self, repo: RepoRef, commit: Sha) -> str:
        return "changed" if commit in self.changed else "same"

    async def ci_plan(self, repo: RepoRef, commit: Sha) -> CiPlan:
        return PLAN

    def fails(self, *, number: str = "2", group: str = "1", app: str = "7") -> None:
        """Let the job `leg` fail while `unit` runs."""
        leg = check("leg", FAILED, number, group, app)
        self.reports = (check("unit", RUNNING, "1"), leg)
        self.jobs = (job("unit", RUNNING, "1"), job("leg", FAILED, "2"))


@pytest.fixture
def provider() -> Ci:
    """Instead of the provider whose CI is always the same."""
    return Ci()


@pytest.fixture
async def run(runtime: Runtime, queue: QueueRef) -> Run:
    """A run under test that must pass `unit`."""
    await pull_requests.submit(runtime, queue, 1, SubmitOptions(), SYSTEM)
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await Flow(runtime, flows.CONTROL).drain()
    (only,) = (await turn.value(runtime, queue.id)).runs.values()
    return only


async def know(runtime: Runtime, queue: QueueRef, rule: Rule, *endings: Ending) -> None:
    """Let history say how the check ended after such parts; without words: twice as foreseen."""
    now = runtime.clock.now()
    part = FailedPart("1", "unit")
    seen = [
        SeenPart(rule, f"r{place}", 1, Sha("1" * 40), part, "1", now, ending=ending, early_s=90)
        for place, ending in enumerate(endings or (Ending.HELD, Ending.HELD))
    ]
    await runtime.store.run(store.note, queue, seen)


async def doomed(runtime: Runtime, queue: QueueRef, run: Run) -> list[str]:
    """Read the checks of the run, and return what the engine was told of them."""
    await reconcile.read_checks(runtime, queue, {run.id})
    value = await turn.value(runtime, queue.id)
    return [f"{one.job}:{one.step}{one.test}" for one in value.runs[run.id].doomed]


async def test_a_failed_job_dooms_by_file_and_history(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, LEG)
    assert await doomed(runtime, queue, run) == []
    assert provider.reads == []
    provider.fails()
    assert await doomed(runtime, queue, run) == ["leg:"]
    assert provider.reads == [False]


@pytest.mark.parametrize("endings", [(Ending.HELD,), (Ending.HELD,) * 2 + (Ending.REFUTED,)])
async def test_without_enough_history_nothing_is_read_or_doomed(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run, endings: tuple[Ending, ...]
) -> None:
    await know(runtime, queue, LEG, *endings)
    provider.fails()
    assert await doomed(runtime, queue, run) == []
    assert provider.reads == []


@pytest.mark.parametrize("what", ["number", "group", "suite", "app", "file", "workflow", "setting"])
async def test_what_is_not_proved_dooms_nothing(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run, what: str
) -> None:
    await know(runtime, queue, LEG)
    provider.fails()
    if what == "number":
        provider.fails(number="9")
    elif what == "group":
        provider.fails(group="2")
    elif what == "suite":
        provider.fails(group="2")
        provider.reports = (*provider.reports, check("lint", FAILED, "3"))
    elif what == "app":
        provider.fails(app="8")
    elif what == "file":
        provider.file = "other.yml"
    elif what == "workflow":
        assert run.sha is not None
        provider.changed.add(run.sha)
    else:
        await turn.ask(runtime, queue, Configure({"early_failures": False}, SYSTEM))
    assert await doomed(runtime, queue, run) == []


async def test_a_job_that_runs_again_or_a_check_that_passes_ends_the_doom(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, LEG)
    provider.fails()
    assert await doomed(runtime, queue, run) == ["leg:"]
    provider.reports = (check("unit", RUNNING, "1"), check("leg", RUNNING, "3"))
    provider.jobs = (job("unit", RUNNING, "1"), job("leg", RUNNING, "3"))
    assert await doomed(runtime, queue, run) == []
    provider.fails()
    assert await doomed(runtime, queue, run) == ["leg:"]
    provider.reports = (check("unit", PASSED, "1"), check("leg", FAILED, "2"))
    provider.jobs = (job("unit", PASSED, "1"), job("leg", FAILED, "2"))
    await reconcile.read_checks(runtime, queue, {run.id})
    seen = await runtime.store.read(store.newest, queue.id)
    assert [one.ending for one in seen if one.run == run.id] == [Ending.REFUTED]
    assert early_rules.holding(seen, runtime.clock.now()) == {}


async def test_a_provider_that_does_not_answer_changes_nothing(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, LEG)
    provider.fails()
    provider.is_away = True
    assert await doomed(runtime, queue, run) == []
    provider.is_away = False
    assert await doomed(runtime, queue, run) == ["leg:"]


async def test_the_end_of_a_check_teaches_once(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    provider.reports = (check("unit", FAILED, "1"), check("leg", FAILED, "2"))
    provider.jobs = (job("unit", FAILED, "1"), job("leg", FAILED, "2"))
    for _ in range(2):
        await reconcile.read_checks(runtime, queue, {run.id})
    seen = await runtime.store.read(store.newest, queue.id)
    assert [(one.rule, one.ending) for one in seen] == [(LEG, Ending.HELD)]
    assert provider.reads == [False]


async def test_steps_are_polled_while_a_rule_of_a_step_holds(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run, clock: WaitingClock
) -> None:
    polls = Polls(runtime)
    await know(runtime, queue, STEP)
    provider.jobs = (job("unit", RUNNING, "1"),)
    assert await doomed(runtime, queue, run) == []
    assert not await polls.drain()
    await clock.sleep(early_memory.POLL_EVERY.total_seconds())
    assert await polls.drain()
    assert provider.reads == [True]
    provider.jobs = (job("unit", RUNNING, "1", "T"),)
    assert not await polls.drain()
    await clock.sleep(early_memory.POLL_EVERY.total_seconds())
    assert await polls.drain()
    value = await turn.value(runtime, queue.id)
    assert [one.step for one in value.runs[run.id].doomed] == ["T"]
    provider.jobs = (job("unit", RUNNING, "1"),)
    assert await doomed(runtime, queue, run) == []


async def test_without_a_rule_of_a_step_nothing_is_polled(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, LEG)
    assert await doomed(runtime, queue, run) == []
    assert early_failures.next_poll_at(runtime) is None
    assert not early_failures.awaits_steps(runtime)


def test_polls_of_many_runs_are_spread() -> None:
    looks = early_memory.Looks()
    now = WaitingClock().now()
    for number in range(30):
        looks.plan_poll((1, f"r{number}"), now)
    within = now + timedelta(seconds=15)
    assert 0 < len(looks.due(within)) <= 15


def test_the_newest_looks_are_remembered() -> None:
    kept, most = early_memory.Looks().learned, early_memory.KEPT_MAX
    for number in (*range(most), 0, most):
        kept.put(number, True)
    assert list(kept) == [*range(2, most), 0, most]


def test_a_poll_is_due_at_its_time() -> None:
    looks = early_memory.Looks()
    now = WaitingClock().now()
    looks.plan_poll((1, "r1"), now)
    assert looks.due(now + early_memory.POLL_EVERY) == ((1, "r1"),)


async def test_a_test_of_a_proved_job_dooms_its_check(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, TEST)
    provider.jobs = (job("unit", RUNNING, "1"),)
    part = FailedPart("1", "unit", test="total")
    await early_failures.heard(runtime, queue, run.id, part)
    value = await turn.value(runtime, queue.id)
    assert [one.test for one in value.runs[run.id].doomed] == ["total"]
    assert await doomed(runtime, queue, run) == ["unit:total"]


async def test_a_job_that_repaired_one_test_dooms_nothing_by_the_next(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, TEST)
    provider.jobs = (job("unit", RUNNING, "1"),)
    first, second = (FailedPart("1", "unit", test=name) for name in ("total", "mail"))
    await early_failures.heard(runtime, queue, run.id, first)
    await early_failures.withdrawn(runtime, queue, run.id, first)
    await early_failures.heard(runtime, queue, run.id, second)
    assert await doomed(runtime, queue, run) == []
    seen = await runtime.store.read(store.newest, queue.id)
    assert [one.ending for one in seen if one.run == run.id] == [Ending.REFUTED]


@pytest.mark.parametrize("of", [("9", "unit"), ("1", "other")])
async def test_a_test_of_another_job_dooms_nothing(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run, of: tuple[str, str]
) -> None:
    await know(runtime, queue, TEST)
    provider.jobs = (job("unit", RUNNING, "1"),)
    await early_failures.heard(runtime, queue, run.id, FailedPart(*of, test="total"))
    assert await doomed(runtime, queue, run) == []


async def keep(runtime: Runtime, queue: QueueRef, run: Run) -> None:
    """Store a run of the queue as it is here."""
    before = await turn.value(runtime, queue.id)
    after = replace(before, runs={**before.runs, run.id: run})
    await runtime.store.run(stored_queues.save, before, Step(after, (), (), None, None))
    runtime.store.caches.of(QueueCache).drop(queue.id)


@pytest.mark.parametrize("status", RunStatus)
async def test_a_reported_test_is_noted_while_its_run_may_fail_or_be_taken_back(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run, status: RunStatus
) -> None:
    assert await doomed(runtime, queue, run) == []
    present = (await turn.value(runtime, queue.id)).runs[run.id]
    await keep(runtime, queue, replace(present, status=status))
    await know(runtime, queue, TEST)
    provider.jobs = (job("unit", RUNNING, "1"),)
    await early_failures.heard(runtime, queue, run.id, FailedPart("1", "unit", test="total"))
    seen = await runtime.store.read(store.open_of_run, queue.id, run.id, present.attempt)
    may_fail = status in (RunStatus.IN_PROGRESS, RunStatus.FAILED)
    assert [one.part.test for one in seen] == ["total"] * may_fail


PAGE = "https://ci.test/1"
STANDINGS = {
    RUNNING: {"1": "counts", "9": "counts", "": "unproved", PAGE: "counts", f"{PAGE}9": "unproved"},
    PASSED: {"1": "over", "9": "counts", PAGE: "over"},
    FAILED: {"1": "over", "9": "counts", PAGE: "over"},
}


@pytest.mark.parametrize("outcome", STANDINGS)
async def test_a_reported_test_counts_while_its_job_goes_on_or_is_not_known_yet(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run, outcome: CheckOutcome
) -> None:
    provider.reports = (check("leg", RUNNING, "2"), check("unit", outcome, "1"))
    await reconcile.read_checks(runtime, queue, {run.id})
    repository = await runtime.store.read(access.repository, queue.repository_id)
    found = {}
    for job_id in STANDINGS[outcome]:
        said = a_failure(runtime, run, job_id)
        found[job_id] = await live.standing_of(runtime, repository, said)
        elsewhere = replace(said, sha="e" * 40)
        standing = await live.standing_of(runtime, repository, elsewhere)
        assert standing is EarlyStanding.NO_TEST_RUN
    assert found == STANDINGS[outcome]


def a_failure(runtime: Runtime, run: Run, job_id: str) -> EarlyFailure:
    """What a job of a run says of the test `total`."""
    assert run.sha is not None
    return EarlyFailure(
        *("k", run.sha, "5", 1, job_id, "unit", "total", "", "", "", Proof.JOB),
        *(EarlyStanding.COUNTS, runtime.clock.now()),
    )


async def test_a_reported_test_of_a_check_that_runs_again_is_over(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await reconcile.read_checks(runtime, queue, {run.id})
    present = (await turn.value(runtime, queue.id)).runs[run.id]
    await keep(runtime, queue, replace(present, rerun_ids=("1",)))
    repository = await runtime.store.read(access.repository, queue.repository_id)
    said = a_failure(runtime, run, "1")
    assert await live.standing_of(runtime, repository, said) is EarlyStanding.OVER


async def test_only_failures_of_known_jobs_are_taken_back(
    runtime: Runtime, queue: QueueRef, provider: Ci, run: Run
) -> None:
    await know(runtime, queue, TEST)
    provider.jobs = (job("unit", RUNNING, "1"),)
    repository = await runtime.store.read(access.repository, queue.repository_id)
    known, unknown = (a_failure(runtime, run, job_id) for job_id in "19")
    await live.tell(runtime, repository, known)
    assert await doomed(runtime, queue, run) == ["unit:total"]
    elsewhere = replace(known, sha="e" * 40)
    await live.take_back(runtime, repository, [unknown, elsewhere])
    assert await doomed(runtime, queue, run) == ["unit:total"]
    await live.take_back(runtime, repository, [unknown, known])
    assert await doomed(runtime, queue, run) == []


@pytest.mark.parametrize(
    "read", [(PASSED, Ending.REFUTED), (FAILED, Ending.UNKNOWN), (RUNNING, None)]
)
async def test_the_check_of_a_run_that_has_left_is_read_later(
    runtime: Runtime,
    queue: QueueRef,
    provider: Ci,
    clock: WaitingClock,
    read: tuple[CheckOutcome, Ending | None],
) -> None:
    outcome, ending = read
    part = FailedPart("2", "leg")
    seen = SeenPart(LEG, "gone", 1, Sha("1" * 40), part, "1", clock.now(), is_foreseen=True)
    await runtime.store.run(store.note, queue, [seen])
    provider.reports = (check("unit", outcome, "1"), check("unit", PASSED, "4", group="2"))
    await early_failures.learn_from_ended(runtime)
    await clock.sleep(601.0)
    await early_failures.learn_from_ended(runtime)
    (only,) = await runtime.store.read(store.newest, queue.id)
    assert only.ending is ending

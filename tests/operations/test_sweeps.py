"""What sweeps tell a queue of its pull requests, read many at a time, and what they delete."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.accounts import repositories
from service.accounts.store import access
from service.mergequeue.engine.inputs import ChecksReported, PlaceHold, TestBranchBuilt
from service.mergequeue.engine.model import Run, RunStep
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import (
    estimates,
    facts,
    lost_branches,
    missed_comments,
    naming,
    pull_requests,
    queues,
    reconcile,
    turn,
)
from service.mergequeue.operations.estimates import Pasts
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store.cache import QueueCache
from service.provider.errors import (
    Gone,
    GoneKind,
    OutcomeUnknown,
    ProviderError,
    Refused,
    RefusedCode,
    Unavailable,
)
from service.provider.signals import Where
from service.provider.values import CommentsRead, Commit, PullRequest, VehicleRef
from service.runtime import Runtime
from service.vocabulary import (
    SYSTEM,
    Actor,
    ActorKind,
    Blocker,
    BlockerCode,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    QueueRef,
    RepoId,
    RepoRef,
    Sha,
)
from tests.harness.values import ValuesProvider, sha_of
from tests.operations.conftest import WaitingClock

ALICE = Actor(ActorKind.PERSON, "alice", "1")


class ChangingProvider(ValuesProvider):
    """Pull requests of which a test says what is different; `asked` are the numbers of each ask.

    `line`: the commits of the target, the oldest first; without any, each contains all others.
    `shown_first`: tips that it shows one after the other before the present one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changes: dict[int, dict[str, Any]] = {}
        self.gone: set[int] = set()
        self.asked: list[list[int]] = []
        self.trouble: ProviderError | None = None
        self.line: list[Sha] = []
        self.tips_asked: list[str] = []
        self.broken_branch = ""
        self.shown_first: list[Commit] = []
        self.branches: list[str] = []
        self.undeletable: dict[str, ProviderError] = {}
        self.broken_repository = ""
        self.swept: list[str] = []

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        self.asked.append([number])
        found = await self._changed(repo, number)
        if found is None:
            raise Gone(f"Pull request {number} is gone.", GoneKind.PULL_REQUEST)
        return found

    async def pull_requests(
        self, repo: RepoRef, numbers: Sequence[int]
    ) -> Mapping[int, PullRequest | None]:
        self.asked.append(list(numbers))
        if self.trouble is not None:
            raise self.trouble
        return {number: await self._changed(repo, number) for number in numbers}

    async def _changed(self, repo: RepoRef, number: int) -> PullRequest | None:
        if number in self.gone:
            return None
        plain = await super().pull_request(repo, number)
        return replace(plain, **self.changes.get(number, {}))

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        self.tips_asked.append(branch)
        if branch == self.broken_branch:
            raise KeyError(branch)
        if self.shown_first:
            return self.shown_first.pop(0)
        return self.main

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        if ancestor not in self.line or commit not in self.line:
            return not self.line
        return self.line.index(ancestor) <= self.line.index(commit)

    async def vehicles(self, repo: RepoRef) -> Sequence[VehicleRef]:
        self.swept.append(repo.name)
        if repo.name == self.broken_repository:
            raise KeyError(repo.name)
        return [VehicleRef(branch, self.main.sha) for branch in self.branches]

    async def comments_since(self, where: Where, since: datetime) -> CommentsRead:
        self.swept.append(where.ref.name)
        if where.ref.name == self.broken_repository:
            raise KeyError(where.ref.name)
        return await super().comments_since(where, since)

    async def discard(self, repo: RepoRef, branch: str) -> None:
        if branch in self.undeletable:
            raise self.undeletable[branch]
        self.branches.remove(branch)


@pytest.fixture
def provider() -> ChangingProvider:
    """Instead of the provider whose pull requests stay as they are."""
    return ChangingProvider()


async def submit(runtime: Runtime, queue: QueueRef, *numbers: int) -> None:
    for number in numbers:
        await pull_requests.submit(runtime, queue, number, SubmitOptions(), ALICE)


async def swept(runtime: Runtime, queue: QueueRef) -> int:
    """Sweep; how many versions further the queue is then."""
    before = (await turn.value(runtime, queue.id)).version
    await reconcile.read_queue(runtime, queue)
    return (await turn.value(runtime, queue.id)).version - before


async def state(runtime: Runtime, queue: QueueRef, number: int) -> tuple[EntryState, Reason | None]:
    entry = (await pull_requests.status(runtime, queue, number)).entry
    return entry.state, entry.reason


async def test_all_pull_requests_of_a_queue_are_asked_for_at_once(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    await submit(runtime, queue, 3, 1, 2)
    provider.asked.clear()
    assert await swept(runtime, queue) == 0
    assert provider.asked == [[1, 2, 3]]


async def test_what_differs_is_told_and_nothing_else(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    await submit(runtime, queue, *range(1, 71))
    provider.changes[2] = {"title": "Another title"}
    provider.changes[70] = {"head_sha": sha_of("pushed")}
    assert await swept(runtime, queue) == 1
    value = await turn.value(runtime, queue.id)
    assert value.entries[2].facts.title == "Another title"
    assert set(value.entries) == set(range(1, 70))
    assert await state(runtime, queue, 70) == (EntryState.CANCELLED, Reason.HEAD_CHANGED)


async def test_how_long_its_own_checks_took_is_told_once(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    await submit(runtime, queue, 1)
    provider.changes[1] = {"own_minutes": 12.0}
    assert await swept(runtime, queue) == 1
    value = await turn.value(runtime, queue.id)
    assert value.entries[1].facts.own_minutes == 12
    assert await facts.differing(runtime, queue, value, [1]) == []


TESTED = sha_of("tested")


async def under_test(runtime: Runtime, queue: QueueRef) -> Run:
    """Submit pull request 1 and build its test branch; the run."""
    await submit(runtime, queue, 1)
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    (run,) = (await turn.value(runtime, queue.id)).runs.values()
    step = RunStep(1, run.entries[0].head, TESTED, sha_of("tested tree"), contained=False)
    built = TestBranchBuilt(run.id, TESTED, (step,), "headgate/merge/pr-1", published=True)
    await turn.take(runtime, queue.id, [built])
    return run


async def test_a_check_that_passed_again_while_the_service_was_away_has_not_failed(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider, clock: WaitingClock
):
    run = await under_test(runtime, queue)
    (check,) = (await provider.checks(queue.repo, TESTED, skipped_pass=False)).items
    failed = replace(check, id="0", outcome=CheckOutcome.FAILED)
    await turn.take(runtime, queue.id, [ChecksReported(run.id, TESTED, (failed,), complete=True)])
    provider.green.add(TESTED)
    await clock.sleep(300)
    await reconcile.pass_time(runtime)
    assert (await state(runtime, queue, 1))[0] is EntryState.TESTS_PASSED


@pytest.mark.parametrize("is_green", [True, False])
async def test_tests_that_ended_while_the_service_was_away_do_not_count_as_too_late(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    clock: WaitingClock,
    is_green: bool,
):
    await under_test(runtime, queue)
    await clock.sleep(6 * 3600)
    if is_green:
        provider.green.add(TESTED)
    # Something else comes before the timer of the run.
    provider.changes[1] = {"title": "Another title"}
    await reconcile.read_queue(runtime, queue)
    found, reason = await state(runtime, queue, 1)
    if is_green:
        assert found is EntryState.TESTS_PASSED
    else:
        assert reason is Reason.RUN_TIMED_OUT


UNREVIEWED = {"blockers": (Blocker(BlockerCode.REVIEW_REQUIRED),)}
UNSIGNED = {"blockers": (Blocker(BlockerCode.OTHER, "signed"),)}


@pytest.mark.parametrize("is_ready", [True, False])
async def test_one_that_became_ready_while_the_service_was_away_keeps_its_place(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    clock: WaitingClock,
    is_ready: bool,
):
    await submit(runtime, queue, 1)
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    provider.changes[1] = UNSIGNED
    await reconcile.read_queue(runtime, queue)
    assert (await state(runtime, queue, 1))[0] is EntryState.TESTING
    await clock.sleep(3600)
    provider.changes[1] = {} if is_ready else UNSIGNED
    await reconcile.pass_time(runtime)
    found = EntryState.TESTING if is_ready else EntryState.NOT_READY
    assert (await state(runtime, queue, 1))[0] is found


@pytest.mark.parametrize("is_ready", [True, False])
async def test_one_that_became_ready_while_the_service_was_away_does_not_leave(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    clock: WaitingClock,
    is_ready: bool,
):
    provider.changes[1] = UNREVIEWED
    await submit(runtime, queue, 1)
    await clock.sleep(72 * 3600)
    provider.changes[1] = {} if is_ready else UNREVIEWED
    await reconcile.pass_time(runtime)
    found = EntryState.PENDING if is_ready else EntryState.CANCELLED
    assert (await state(runtime, queue, 1))[0] is found


async def test_no_pull_request_loses_its_place_while_the_provider_does_not_answer(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider, clock: WaitingClock
):
    await submit(runtime, queue, 1)
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    provider.changes[1] = UNSIGNED
    await reconcile.read_queue(runtime, queue)
    provider.trouble = Unavailable("502 Bad Gateway", clock.now())
    await clock.sleep(3600)
    await reconcile.pass_time(runtime)
    assert (await state(runtime, queue, 1))[0] is EntryState.TESTING
    await clock.sleep(3600)
    await reconcile.pass_time(runtime)
    assert (await state(runtime, queue, 1))[0] is EntryState.NOT_READY


async def test_a_pull_request_that_is_gone_leaves_and_the_others_stay(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    await submit(runtime, queue, 1, 2)
    provider.gone.add(1)
    await swept(runtime, queue)
    value = await turn.value(runtime, queue.id)
    assert set(value.entries) == {2}
    assert value.holds == ()


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        (GoneKind.PULL_REQUEST, []),
        (GoneKind.BRANCH, []),
        (GoneKind.REPOSITORY, [HoldReason.REPOSITORY_UNAVAILABLE]),
    ],
)
async def test_only_a_repository_that_is_gone_holds_a_queue_that_is_swept(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    kind: GoneKind,
    held: list[HoldReason],
):
    await submit(runtime, queue, 1)
    provider.trouble = Gone("/pulls/1: Not Found", kind)
    await reconcile.read_live_queues(runtime)
    value = await turn.value(runtime, queue.id)
    assert [hold.reason for hold in value.holds] == held


@pytest.mark.parametrize("known", [Mergeability.MERGEABLE, Mergeability.NOT_MERGEABLE])
async def test_not_yet_knowing_whether_it_merges_changes_nothing(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider, known: Mergeability
):
    provider.changes[1] = {"mergeability": known}
    await submit(runtime, queue, 1)
    before = await state(runtime, queue, 1)
    provider.changes[1] = {"mergeability": Mergeability.IN_PROGRESS}
    assert await swept(runtime, queue) == 0
    assert await state(runtime, queue, 1) == before


async def test_what_is_known_beside_it_counts_at_once(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    await submit(runtime, queue, 1)
    blocked = (Blocker(BlockerCode.CHANGES_REQUESTED),)
    provider.changes[1] = {"mergeability": Mergeability.IN_PROGRESS, "blockers": blocked}
    await swept(runtime, queue)
    assert (await state(runtime, queue, 1))[0] is EntryState.NOT_READY


async def test_those_merged_by_hand_are_looked_for_at_once_and_one_may_be_gone(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    await submit(runtime, queue, 1, 2, 3)
    merged = sha_of("merged by hand")
    provider.changes[1] = {"state": PullRequestState.MERGED, "merge_commit": merged}
    provider.gone.add(2)
    provider.main = Commit(merged, sha_of("another tree"), (provider.main.sha,))
    provider.asked.clear()
    await reconcile.read_target(runtime, queue)
    assert provider.asked == [[1, 2, 3]]
    assert (await turn.value(runtime, queue.id)).holds == ()
    assert (await state(runtime, queue, 1))[0] is EntryState.MERGED


@pytest.mark.parametrize(
    "trouble",
    [
        Refused("Cannot delete this branch.", RefusedCode.RULE_DENIED),
        OutcomeUnknown("DELETE: GitHub answered 502."),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
async def test_a_leftover_that_cannot_be_deleted_keeps_no_other_from_being_deleted(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    trouble: ProviderError,
):
    over = runtime.clock.now() - timedelta(minutes=1)
    kept, other = (naming.dry_test_branch(over, letter * 36) for letter in "ab")
    provider.branches, provider.undeletable = [kept, other], {kept: trouble}
    await lost_branches.restore_branches(runtime)
    assert provider.branches == [kept]


@pytest.mark.parametrize("sweep", [reconcile.read_live_queues, reconcile.read_all_queues])
async def test_a_mistake_in_the_sweep_of_one_queue_stops_that_of_no_other(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    sweep: Callable[[Runtime], Awaitable[None]],
):
    repository = await runtime.store.read(access.repository, queue.repository_id)
    request = QueueRequest({}, QueueState.PAUSED)
    other = (await queues.create(runtime, repository, "release", request, SYSTEM)).queue
    await submit(runtime, queue, 1)
    await submit(runtime, other, 2)
    provider.tips_asked.clear()
    provider.broken_branch = queue.branch
    with pytest.raises(KeyError):
        await sweep(runtime)
    assert "release" in provider.tips_asked


@pytest.mark.parametrize(
    "sweep", [lost_branches.restore_branches, missed_comments.read_where_queued]
)
@pytest.mark.parametrize("broken", ["widgets", "gadgets"])
async def test_a_mistake_in_the_sweep_of_one_repository_stops_that_of_no_other(
    runtime: Runtime,
    queue: QueueRef,
    provider: ChangingProvider,
    sweep: Callable[[Runtime], Awaitable[None]],
    broken: str,
):
    first = await runtime.store.read(access.repository, queue.repository_id)
    fresh = replace(
        await provider.repository(first.ref),
        ref=replace(first.ref, name="gadgets"),
        id=RepoId(first.ref.host, "2"),
    )
    second = await runtime.store.run(repositories.upsert, fresh)
    request = QueueRequest({}, QueueState.PAUSED)
    await queues.create(runtime, second, "main", request, SYSTEM)
    provider.swept.clear()
    provider.broken_repository = broken
    with pytest.raises(KeyError):
        await sweep(runtime)
    assert provider.swept == ["widgets", "gadgets"]


async def test_a_mistake_in_the_timers_of_one_queue_stops_those_of_no_other(
    runtime: Runtime, queue: QueueRef, clock: WaitingClock
):
    repository = await runtime.store.read(access.repository, queue.repository_id)
    made = [queue]
    for branch in ("release", "next"):
        request = QueueRequest({}, QueueState.PAUSED)
        made.append((await queues.create(runtime, repository, branch, request, SYSTEM)).queue)
    until = runtime.clock.now() + timedelta(minutes=1)
    for each in made:
        hold = PlaceHold(HoldReason.FREEZE, None, "wait", SYSTEM, until=until)
        await turn.ask(runtime, each, hold)
    await clock.sleep(120)
    mistake: Any = None
    broken = replace(await turn.value(runtime, queue.id), config=mistake)
    runtime.store.caches.of(QueueCache).put(broken)
    with pytest.raises(AttributeError):
        await reconcile.pass_time(runtime)
    for each in made[1:]:
        assert (await turn.value(runtime, each.id)).holds == ()


async def test_a_mistake_in_the_estimates_of_one_queue_stops_those_of_no_other(
    runtime: Runtime, queue: QueueRef
):
    repository = await runtime.store.read(access.repository, queue.repository_id)
    request = QueueRequest({}, QueueState.PAUSED)
    other = (await queues.create(runtime, repository, "release", request, SYSTEM)).queue
    mistake: Any = None
    broken = replace(await turn.value(runtime, queue.id), entries=mistake)
    runtime.store.caches.of(QueueCache).put(broken)
    with pytest.raises(AttributeError):
        await estimates.refresh(runtime)
    assert other.id in runtime.memory.of(Pasts)


async def has_moved(runtime: Runtime, queue: QueueRef, provider: ChangingProvider) -> Commit:
    """The queue knows that its target has moved; return the tip before that."""
    before = provider.main
    provider.main = Commit(sha_of("landed"), sha_of("another tree"), (before.sha,))
    provider.line = [before.sha, provider.main.sha]
    await reconcile.read_target(runtime, queue)
    return before


async def test_a_tip_that_is_shown_late_is_no_rewritten_history(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider
):
    before = await has_moved(runtime, queue, provider)
    provider.shown_first = [before, before]
    await reconcile.read_target(runtime, queue)
    value = await turn.value(runtime, queue.id)
    assert value.holds == ()
    assert value.tip is not None
    assert value.tip.sha == provider.main.sha


async def test_a_branch_that_is_moved_back_has_a_rewritten_history_after_some_looks(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider, clock: WaitingClock
):
    provider.main = await has_moved(runtime, queue, provider)
    await reconcile.read_target(runtime, queue)
    value = await turn.value(runtime, queue.id)
    assert [hold.reason for hold in value.holds] == [HoldReason.TARGET_REWRITTEN]
    assert sum(clock.waits) == 15


async def test_a_branch_with_other_commits_has_a_rewritten_history_at_once(
    runtime: Runtime, queue: QueueRef, provider: ChangingProvider, clock: WaitingClock
):
    before = await has_moved(runtime, queue, provider)
    provider.main = Commit(sha_of("amended"), sha_of("a third tree"), (before.sha,))
    await reconcile.read_target(runtime, queue)
    value = await turn.value(runtime, queue.id)
    assert [hold.reason for hold in value.holds] == [HoldReason.TARGET_REWRITTEN]
    assert clock.waits == []

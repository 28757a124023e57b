"""What the news of a repository makes the queue read and remember, and what it does not."""

from dataclasses import replace

import pytest

from service.database import outbox
from service.database.outbox import Lane
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.operations import pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import pull_requests as stored
from service.process import signals
from service.provenance import ProviderTime
from service.provider.signals import (
    BranchMoved,
    CheckReported,
    PullRequestChanged,
    ShownPullRequest,
    Signal,
    Where,
)
from service.provider.values import Commit, PullRequest
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoId, RepoRef, Sha
from tests.harness.values import ValuesProvider, sha_of

FIRST, SECOND = sha_of("first"), sha_of("second")


class Told(ValuesProvider):
    """A provider of which a test says what is different; it counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: dict[int, Sha] = {}
        self.bases: dict[int, str] = {}
        self.read: list[int] = []
        self.reads_of_tip = 0

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        self.read.append(number)
        pull = await super().pull_request(repo, number)
        head = self.heads.get(number, pull.head_sha)
        return replace(pull, head_sha=head, base_branch=self.bases.get(number, "main"))

    async def tip(self, repo: RepoRef, branch: str) -> Commit | None:
        self.reads_of_tip += 1
        return await super().tip(repo, branch)


@pytest.fixture
def provider() -> Told:
    """Instead of the provider that stays as it is."""
    return Told()


def where_of(queue: QueueRef) -> Where:
    return Where(RepoId(queue.repo.host, "1"), queue.repo)


async def hear(runtime: Runtime, signal: Signal) -> None:
    await signals.receive(runtime, signal, runtime.clock.now())


async def submit(runtime: Runtime, queue: QueueRef, *numbers: int) -> None:
    for number in numbers:
        await pull_requests.submit(runtime, queue, number, SubmitOptions(), SYSTEM)


@pytest.mark.parametrize("now", [FIRST, SECOND])
async def test_of_two_heads_of_one_second_the_present_one_is_remembered(
    runtime: Runtime, queue: QueueRef, provider: Told, now: Sha
):
    shown = ShownPullRequest("main", False, False, ProviderTime(runtime.clock.now()))
    provider.heads[1] = now
    for head in (FIRST, SECOND):
        await hear(runtime, PullRequestChanged(where_of(queue), 1, head, shown=shown))
    known = await runtime.store.read(stored.known_head, queue.repository_id, 1)
    assert known is not None
    assert known.head == now


async def test_a_head_that_is_shown_once_more_is_not_read_for_that(
    runtime: Runtime, queue: QueueRef, provider: Told
):
    shown = ShownPullRequest("main", False, False, ProviderTime(runtime.clock.now()))
    for _ in range(2):
        await hear(runtime, PullRequestChanged(where_of(queue), 1, FIRST, shown=shown))
    assert provider.read == []


@pytest.mark.parametrize(("base", "wakes"), [("main", 1), ("release", 0)])
async def test_a_push_wakes_the_check_of_files_where_its_base_has_a_queue(
    runtime: Runtime, queue: QueueRef, base: str, wakes: int
):
    topic = outbox.TOPICS[Lane.COLLECT]
    before = runtime.wakeups.version(topic)
    await hear(runtime, PullRequestChanged(where_of(queue), 1, FIRST, pushed_onto=base))
    assert runtime.wakeups.version(topic) == before + wakes


async def test_news_of_a_pull_request_lets_it_enter_by_a_rule(runtime: Runtime, queue: QueueRef):
    rule = EntryRule("all", "!draft", enter=True)
    await queues.update(runtime, queue, QueueRequest({"rules": (rule,)}), SYSTEM)
    await hear(runtime, PullRequestChanged(where_of(queue), 1, sha_of("head", 1)))
    assert set((await turn.value(runtime, queue.id)).entries) == {1}


@pytest.mark.parametrize(("number", "read"), [(1, []), (2, [2]), (3, [])])
async def test_a_check_of_a_head_is_news_for_the_pull_request_that_waits_with_it(
    runtime: Runtime, queue: QueueRef, provider: Told, number: int, read: list[int]
):
    provider.bases = {2: "release"}
    await submit(runtime, queue, 1, 2)
    provider.read.clear()
    await hear(runtime, CheckReported(where_of(queue), sha_of("head", number)))
    assert sorted(set(provider.read)) == read


async def test_a_target_is_read_again_unless_it_moved_to_where_the_queue_knows_it(
    runtime: Runtime, queue: QueueRef, provider: Told
):
    value = await turn.value(runtime, queue.id)
    assert value.tip is not None
    known = BranchMoved(where_of(queue), "main", value.tip.sha, SYSTEM, False, frozenset())
    provider.reads_of_tip = 0
    await hear(runtime, known)
    assert provider.reads_of_tip == 0
    await hear(runtime, replace(known, new=sha_of("pushed")))
    assert provider.reads_of_tip > 0

"""Pull requests from forks: which submissions a queue takes, and for which head they were meant."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.errors import Invalid
from service.mergequeue.engine.config import ForkPolicy
from service.mergequeue.engine.inputs import FactsChanged
from service.mergequeue.engine.outputs import HeadToMerge
from service.mergequeue.operations import consents, pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.provenance import ProviderTime
from service.provider.signals import AskSubmit
from service.provider.stacks import Stack, StackMember
from service.provider.values import ForcePush, PullRequest
from service.runtime import Runtime
from service.vocabulary import (
    SYSTEM,
    Actor,
    ActorKind,
    Channel,
    PullRequestState,
    QueueRef,
    RepoRef,
)
from tests.harness.values import SHOWN_AT, sha_of
from tests.operations.test_command_rights import ADMIN, Rights, said

FORK = 9
HEAD = sha_of("head", FORK)
CI = Actor(ActorKind.BOT, "CI run 42", channel=Channel.API)
LATER = ProviderTime(SHOWN_AT.at + timedelta(minutes=1))


class Forks(Rights):
    """Everybody is an administrator; 9 comes from a fork, and may be the second of a chain."""

    def __init__(self) -> None:
        super().__init__()
        self.level = ADMIN
        self.is_chain = False

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        found = await super().pull_request(repo, number)
        if not self.is_chain or number != FORK:
            return found
        members = tuple(
            StackMember(each, sha_of("head", each), PullRequestState.OPEN) for each in (8, FORK)
        )
        stack = Stack("main", members, is_native=True)
        return replace(found, stack=stack, force_push=ForcePush(LATER, HEAD))


@pytest.fixture
def provider() -> Forks:
    return Forks()


async def numbers(runtime: Runtime, queue: QueueRef) -> list[int]:
    """The pull requests in the queue."""
    return sorted((await turn.value(runtime, queue.id)).entries)


async def deny(runtime: Runtime, queue: QueueRef) -> None:
    await queues.update(runtime, queue, QueueRequest({"fork_policy": ForkPolicy.DENY}), SYSTEM)


async def test_a_queue_that_takes_no_forks_takes_the_others(runtime: Runtime, queue: QueueRef):
    await deny(runtime, queue)
    assert await said(runtime, queue, AskSubmit(sha=HEAD), number=FORK) == ("-1", True)
    assert await said(runtime, queue, AskSubmit(), number=7) == ("+1", False)
    assert await numbers(runtime, queue) == [7]


@pytest.mark.parametrize("sha", [None, HEAD[:12]])
async def test_a_commit_that_is_named_whole_is_the_one_that_was_meant(
    runtime: Runtime, queue: QueueRef, sha: str | None
):
    """Nothing else shows at first for which head the command was written."""
    assert await said(runtime, queue, AskSubmit(sha=sha), number=FORK) == ("confused", True)
    assert await numbers(runtime, queue) == []
    assert await said(runtime, queue, AskSubmit(sha=HEAD), number=FORK) == ("+1", False)
    assert await numbers(runtime, queue) == [FORK]


async def test_a_force_push_of_the_upper_one_says_nothing_of_the_head_below_it(
    runtime: Runtime, queue: QueueRef, provider: Forks
):
    await said(runtime, queue, AskSubmit(), number=8)
    await said(runtime, queue, AskSubmit(), number=FORK)
    provider.is_chain = True
    assert (await said(runtime, queue, AskSubmit(), number=FORK))[0] == "+1"
    assert await numbers(runtime, queue) == [8, FORK]


async def test_no_token_submits_what_was_let_in_to_a_queue_that_takes_no_forks_by_now(
    runtime: Runtime, queue: QueueRef
):
    await said(runtime, queue, AskSubmit(sha=HEAD), number=FORK)
    await pull_requests.submit(runtime, queue, FORK, SubmitOptions(), CI)
    await deny(runtime, queue)
    with pytest.raises(Invalid, match="takes none from forks"):
        await pull_requests.submit(runtime, queue, FORK, SubmitOptions(), CI)
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), CI)


@pytest.mark.parametrize("is_denied", [False, True])
async def test_a_fork_is_not_tested_once_the_queue_takes_none(
    runtime: Runtime, queue: QueueRef, is_denied: bool
):
    await said(runtime, queue, AskSubmit(sha=HEAD), number=FORK)
    if is_denied:
        await deny(runtime, queue)
    value = await turn.value(runtime, queue.id)
    lost = await consents.lost(runtime, queue, value, [HeadToMerge(FORK, HEAD, tested=True)])
    facts = replace(value.entries[FORK].facts, authorized_head=None)
    assert lost == ([FactsChanged(facts)] if is_denied else [])

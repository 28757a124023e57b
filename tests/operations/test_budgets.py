"""Submissions at the same time do not exceed a budget together, on both databases."""

import asyncio
from collections.abc import Sequence

import pytest

from service.accounts import access, tokens
from service.accounts.store import access as stored_access
from service.accounts.tokens import TokenRequest
from service.errors import OverBudget
from service.http.callers import Caller
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queues
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, QueueRef, Role

pytestmark = pytest.mark.each_database


async def a_caller(runtime: Runtime, queue: QueueRef, open_entries: int = 0) -> Caller:
    """The holder of a token with this limit."""
    repo = queue.repo
    wish = TokenRequest(repo.host, repo.owner, "agent", Role.QUEUE, open_entries=open_entries)
    made = await tokens.create_token(runtime, wish, SYSTEM)
    return await access.look_up(runtime, made.secret)


async def another_queue(runtime: Runtime, queue: QueueRef, **settings: int) -> QueueRef:
    """A paused queue of another branch."""
    record = await runtime.store.read(stored_access.repository, queue.repository_id)
    wish = QueueRequest(settings, QueueState.PAUSED)
    await queues.create(runtime, record, "release", wish, SYSTEM)
    known = await runtime.store.read(stored_queues.all_queues)
    return next(one for one in known if one.branch == "release")


async def submitted_at_once(
    runtime: Runtime, places: Sequence[QueueRef], actor: Actor, first: int = 1
) -> list[OverBudget]:
    """Submit a pull request to each of these queues at the same time; the refusals."""
    asked = [
        pull_requests.submit(runtime, queue, number, SubmitOptions(), actor)
        for number, queue in enumerate(places, first)
    ]
    found = await asyncio.gather(*asked, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, OverBudget):
            raise each
    return [each for each in found if isinstance(each, OverBudget)]


async def test_a_token_keeps_its_limit_over_several_queues(runtime: Runtime, queue: QueueRef):
    release = await another_queue(runtime, queue)
    agent = await a_caller(runtime, queue, open_entries=2)
    refused = await submitted_at_once(runtime, [queue, release] * 3, agent.actor)
    assert len(refused) == 4
    said = refused[0]
    assert (said.members["used"], said.members["limit"], said.members["of"]) == (2, 2, "token")
    assert said.until is None
    free = await a_caller(runtime, queue)
    assert await submitted_at_once(runtime, [queue, release], free.actor, first=11) == []


async def test_a_submitter_keeps_the_limit_of_the_queue(runtime: Runtime, queue: QueueRef):
    release = await another_queue(runtime, queue, open_entries_per_submitter=2)
    agent = await a_caller(runtime, queue)
    refused = await submitted_at_once(runtime, [release] * 6, agent.actor)
    assert [each.members["of"] for each in refused] == ["queue"] * 4
    assert await submitted_at_once(runtime, [queue] * 3, agent.actor, first=11) == []

"""A command is done once, although the process ends between doing and answering it."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from sqlalchemy import select

from service.accounts.store import access
from service.database.database import Tx
from service.database.tables_deliveries import OutboxRow
from service.errors import DatabaseUnavailable
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import comments, pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.provenance import ProviderTime
from service.provider.signals import (
    Ask,
    AskCancel,
    Asked,
    AskPause,
    AskRetry,
    AskSource,
    AskSubmit,
    Where,
)
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, ActorKind, QueueRef, RepoId, RepoRef
from tests.harness.database_faults import Fault, put_between
from tests.harness.values import ValuesProvider

pytestmark = pytest.mark.each_database

PERSON = Actor(ActorKind.PERSON, "zoe", "77")
NUMBER = 7
WRITES_MAX = 20
"""More than any of these commands has; a write that is never reached fails nothing."""


class Slow(ValuesProvider):
    """While somebody's rights are read, something else happens, once."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            await act()
        return await super().access(repo, actor)


@pytest.fixture
def provider() -> Slow:
    """Instead of the provider that answers at once."""
    return Slow()


def commented(runtime: Runtime, queue: QueueRef, ask: Ask) -> Asked:
    """A comment on the pull request, as a delivery or the sweep tells of it."""
    where = Where(RepoId(queue.repo.host, "1"), queue.repo)
    source = runtime.ids.uuid()
    at = ProviderTime(runtime.clock.now())
    return Asked(where, NUMBER, PERSON, ask, AskSource.COMMENT, source, at)


async def taken_up(runtime: Runtime, queue: QueueRef, asked: Asked) -> bool:
    """Work on a command; False when the database went away meanwhile."""
    record = await runtime.store.read(access.repository, queue.repository_id)
    try:
        await comments.answer_comment(runtime, record, asked)
    except DatabaseUnavailable:
        return False
    return True


def reactions(session: Tx) -> list[str]:
    """Keys of all reactions."""
    table = OutboxRow.__table__
    return list(
        session.execute(select(table.c.idem_key).where(table.c.kind == "reaction")).scalars()
    )


async def broken(runtime: Runtime, queue: QueueRef, ask: Ask) -> AsyncIterator[Asked]:
    """Such commands, each with another write that fails, until one needs no more writes."""
    faulty = put_between(runtime.store)
    for number in range(1, WRITES_MAX + 1):
        asked = commented(runtime, queue, ask)
        faulty.plan = {faulty.writes + number: Fault.FAILS}
        has_ended = await taken_up(runtime, queue, asked)
        faulty.plan = {}
        yield asked
        if has_ended:
            return


async def answers(runtime: Runtime, asked: Asked) -> int:
    """How many reactions a comment got."""
    keys = await runtime.store.read(reactions)
    return sum(f"/{asked.source_id}/" in key for key in keys)


async def is_queued(runtime: Runtime, queue: QueueRef) -> bool:
    """Whether the pull request is in the queue."""
    return NUMBER in (await turn.value(runtime, queue.id)).entries


async def test_a_submission_is_not_repeated_after_a_cancellation(runtime: Runtime, queue: QueueRef):
    was_done: list[bool] = []
    async for asked in broken(runtime, queue, AskSubmit()):
        was_done.append(await is_queued(runtime, queue))
        if was_done[-1]:
            await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
        await taken_up(runtime, queue, asked)
        assert await is_queued(runtime, queue) is not was_done[-1]
        assert await answers(runtime, asked) == 1
        if await is_queued(runtime, queue):
            await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
    assert was_done.count(True) > 1, "no write failed between doing and answering"


async def test_a_cancellation_is_not_repeated_after_a_new_submission(
    runtime: Runtime, queue: QueueRef
):
    was_done: list[bool] = []
    await pull_requests.submit(runtime, queue, NUMBER, SubmitOptions(), SYSTEM)
    async for asked in broken(runtime, queue, AskCancel()):
        was_done.append(not await is_queued(runtime, queue))
        if was_done[-1]:
            await pull_requests.submit(runtime, queue, NUMBER, SubmitOptions(), SYSTEM)
        await taken_up(runtime, queue, asked)
        assert await is_queued(runtime, queue) is was_done[-1]
        assert await answers(runtime, asked) == 1
        if not await is_queued(runtime, queue):
            await pull_requests.submit(runtime, queue, NUMBER, SubmitOptions(), SYSTEM)
    assert was_done.count(True) > 1, "no write failed between doing and answering"


async def test_a_pause_is_not_repeated_after_the_queue_was_resumed(
    runtime: Runtime, queue: QueueRef
):
    was_done: list[bool] = []
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    async for asked in broken(runtime, queue, AskPause("a release")):
        was_done.append(await state_of(runtime, queue) is QueueState.PAUSED)
        await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
        await taken_up(runtime, queue, asked)
        is_paused = await state_of(runtime, queue) is QueueState.PAUSED
        assert is_paused is not was_done[-1]
        assert await answers(runtime, asked) == 1
        await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    assert was_done.count(True) > 1, "no write failed between doing and answering"


async def test_a_command_that_two_workers_have_at_once_is_done_once(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    asked = commented(runtime, queue, AskSubmit())

    async def by_another_worker() -> None:
        assert await taken_up(runtime, queue, asked)
        assert await is_queued(runtime, queue)
        assert await taken_up(runtime, queue, commented(runtime, queue, AskCancel()))
        assert not await is_queued(runtime, queue)

    provider.meanwhile = by_another_worker
    assert await taken_up(runtime, queue, asked)
    assert not await is_queued(runtime, queue)
    assert await answers(runtime, asked) == 1


async def state_of(runtime: Runtime, queue: QueueRef) -> QueueState:
    """The state of the queue."""
    return (await turn.value(runtime, queue.id)).state


async def test_a_refused_command_is_answered_by_its_refusal_after_a_crash(
    runtime: Runtime, queue: QueueRef
):
    async for asked in broken(runtime, queue, AskRetry()):
        await taken_up(runtime, queue, asked)
        (key,) = [
            key for key in await runtime.store.read(reactions) if f"/{asked.source_id}/" in key
        ]
        assert key.endswith("/confused")

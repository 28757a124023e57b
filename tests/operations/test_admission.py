"""What the store knows of a submission is read for each that may cost test runs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from service.mergequeue.engine.inputs import Configure, Restart, Submit
from service.mergequeue.engine.past import NO_PAST, Limits, Past, Spent
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import admission, pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, QueueRef, Sha
from tests.operations.conftest import WaitingClock
from tests.operations.test_budgets import a_caller


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing of this depends on the kind of database."""
    return sqlite_url


async def submitted(runtime: Runtime, queue: QueueRef, actor: Actor) -> Submit:
    """Submit pull request 1; return the same wish again."""
    await pull_requests.submit(runtime, queue, 1, SubmitOptions(), actor)
    return Submit((await turn.value(runtime, queue.id)).entries[1].facts, actor)


async def pasts(runtime: Runtime, queue: QueueRef, *inputs: Submit | Restart) -> Sequence[Past]:
    """What is read for each of these."""
    value, now = await turn.value(runtime, queue.id), runtime.clock.now()
    found = await runtime.store.run(admission.with_past, runtime, value, inputs, now)
    return [one.past for one in found if isinstance(one, Submit | Restart)]


async def test_each_new_head_and_each_restart_is_judged_by_the_limits_of_its_token(
    runtime: Runtime, queue: QueueRef
) -> None:
    agent = await a_caller(runtime, queue, open_entries=2)
    same = await submitted(runtime, queue, agent.actor)
    pushed = replace(same, facts=replace(same.facts, head=Sha("e" * 40)))
    other = replace(same, facts=replace(same.facts, pr=2))
    of_agent = Past(token=Limits(open_entries=2))
    assert await pasts(runtime, queue, same, pushed, other) == [NO_PAST, of_agent, of_agent]
    assert await pasts(runtime, queue, replace(other, below=(pushed,))) == [of_agent]
    restarts = (Restart(1, SYSTEM), Restart(2, SYSTEM))
    assert await pasts(runtime, queue, *restarts) == [of_agent, NO_PAST]


@pytest.mark.parametrize(("limit", "spent"), [(0, Spent()), (5, Spent(0, 2.0, 2.0))])
async def test_minutes_are_counted_where_the_queue_limits_them(
    runtime: Runtime, queue: QueueRef, clock: WaitingClock, limit: int, spent: Spent
) -> None:
    agent = await a_caller(runtime, queue)
    await turn.ask(runtime, queue, Configure({"ci_minutes_per_submitter": limit}, SYSTEM))
    same = await submitted(runtime, queue, agent.actor)
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await Flow(runtime, flows.CONTROL).drain()
    await clock.sleep(120.0)
    other = replace(same, facts=replace(same.facts, pr=2))
    assert await pasts(runtime, queue, other) == [Past(spent=spent)]

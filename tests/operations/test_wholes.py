"""The view of a whole queue says the same whether it was taken over or made from nothing."""

from collections.abc import Awaitable, Callable

from service.mergequeue.engine.states import QueueState
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import impacted_targets, pull_requests, queue_views, queues
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.operations.views import QueueView
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef

NOTHING = SubmitOptions()
ALONE = SubmitOptions(no_batch=True)


async def from_nothing(runtime: Runtime, queue: QueueRef) -> QueueView:
    """As a process that remembers nothing shows it."""
    runtime.memory.wholes.clear()
    runtime.memory.forget()
    return await queue_views.queue_view(runtime, queue)


async def submitted(
    runtime: Runtime, queue: QueueRef, number: int, options: SubmitOptions = NOTHING
) -> None:
    await pull_requests.submit(runtime, queue, number, options, SYSTEM)


async def test_after_every_kind_of_change_the_whole_is_what_it_would_be_from_nothing(
    runtime: Runtime, queue: QueueRef
):
    for number in (1, 2, 3, 4):
        await submitted(runtime, queue, number)
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: submitted(runtime, queue, 2, ALONE),
        lambda: submitted(runtime, queue, 3, SubmitOptions(priority=0)),
        lambda: pull_requests.cancel(runtime, queue, 1, SYSTEM),
        lambda: submitted(runtime, queue, 5),
        lambda: impacted_targets.set_targets(
            runtime, queue, Upload(4, None, Targets(frozenset({"//a"}))), SYSTEM
        ),
        lambda: queues.update(runtime, queue, QueueRequest({"concurrency": 2}), SYSTEM),
        lambda: queues.set_state(runtime, queue, QueueState.RUNNING, "go", Requester(SYSTEM)),
        lambda: submitted(runtime, queue, 4, ALONE),
        lambda: pull_requests.restart(runtime, queue, 4, SYSTEM),
    ]
    for change in changes:
        await queue_views.queue_view(runtime, queue)
        await change()
        taken_over = await queue_views.queue_view(runtime, queue)
        assert taken_over == await from_nothing(runtime, queue)


async def test_views_of_what_has_not_changed_are_taken_over(runtime: Runtime, queue: QueueRef):
    for number in (1, 2, 3):
        await submitted(runtime, queue, number)
    before = await queue_views.queue_view(runtime, queue)
    await submitted(runtime, queue, 2, ALONE)
    after = await queue_views.queue_view(runtime, queue)
    kept = [one is old for one, old in zip(after.entries, before.entries, strict=True)]
    assert kept == [True, False, True]
    assert after.entries[1].entry.no_batch


async def test_times_left_are_told_anew_every_few_seconds(runtime: Runtime, queue: QueueRef):
    await submitted(runtime, queue, 1)
    before = await queue_views.queue_view(runtime, queue)
    await runtime.clock.sleep(5)
    after = await queue_views.queue_view(runtime, queue)
    assert after is not before
    assert after.entries[0] is not before.entries[0]

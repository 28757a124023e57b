"""Views of a queue and its pull requests are made once while nothing changes."""

from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queue_views, queues
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef


async def test_who_asks_again_is_answered_with_the_same_view_until_something_changes(
    runtime: Runtime, queue: QueueRef
):
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    first = await queue_views.pull_request_view(runtime, queue, 7, None)
    assert await queue_views.pull_request_view(runtime, queue, 7, None) is first
    await queues.set_state(runtime, queue, QueueState.RUNNING, "go", Requester(SYSTEM))
    assert await queue_views.pull_request_view(runtime, queue, 7, None) is not first


async def test_the_view_of_the_whole_queue_answers_for_each_of_its_pull_requests(
    runtime: Runtime, queue: QueueRef
):
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    whole = await queue_views.queue_view(runtime, queue)
    (view,) = whole.entries
    assert await queue_views.pull_request_view(runtime, queue, 7, None) is view
    assert await queue_views.queue_view(runtime, queue) is whole

"""What a command would do to the stored queue; nothing is written (API.md 4.3)."""

from service.mergequeue.engine import previews
from service.mergequeue.engine.inputs import Cancel
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.previews import CancelPreview
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations import pull_requests, shown
from service.runtime import Runtime
from service.vocabulary import Actor, QueueRef


async def cancel(runtime: Runtime, queue: QueueRef, number: int, actor: Actor) -> CancelPreview:
    """What `/cancelPullRequest` would do now. Raises NotFound(not_in_queue)."""
    value = await shown.value(runtime, queue)
    command = Cancel(number, Reason.API_REQUESTED, actor)
    found = previews.of_cancel(value, command, runtime.clock.now())
    if isinstance(found, Refused):
        raise pull_requests.refusal_error(found, queue.branch)
    return found

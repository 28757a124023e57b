"""Handlers of the queue endpoints (API.md 5): one operation each."""

from service.accounts import access
from service.errors import FieldError, Invalid, NotFound
from service.http.call import Call
from service.http.models import common
from service.http.rendering import Json
from service.mergequeue.api import responses
from service.mergequeue.api.models import queues as models
from service.mergequeue.engine.reasons import HoldScope
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.vocabulary import QueueRef


async def create(call: Call, asked: models.CreateQueue) -> Json:
    """`/createQueue`."""
    repository = await access.find_repository(call.runtime, call.caller, asked.repo.ref)
    if common.git_would_refuse(asked.target_branch):
        raise NotFound(
            f'{repository.ref.slug} has no branch "{asked.target_branch}".',
            code="branch_not_found",
        )
    wish = QueueRequest(asked.settings(), state=asked.state, reason=asked.state_reason)
    view = await queues.create(call.runtime, repository, asked.target_branch, wish, call.actor)
    shown = responses.queue(view, call.runtime.clock.now())
    return {**shown, "ignoredFields": asked.ignored()}


async def get(call: Call, asked: models.GetQueue) -> bytes:
    """`/getQueue`."""
    view = await queues.read(call.runtime, await _queue_of(call, asked))
    return call.fragments.queue(view, call.runtime.clock.now())


async def update(call: Call, asked: models.UpdateQueue) -> Json:
    """`/updateQueue`."""
    queue = await _queue_of(call, asked)
    if asked.contradicts_itself():
        raise Invalid(
            "`requiredStatuses` sets the override that `deleteRequiredStatuses` drops; "
            "send one of them.",
            code="conflicting_fields",
        )
    wish = QueueRequest(
        asked.settings(),
        state=await _state_asked_for(call, queue, asked),
        reason=asked.state_reason,
        expected_version=asked.expected_version,
    )
    view = await queues.update(call.runtime, queue, wish, call.actor)
    return responses.queue(view, call.runtime.clock.now())


async def _state_asked_for(
    call: Call, queue: QueueRef, asked: models.UpdateQueue
) -> QueueState | None:
    """The state to set: a reason that comes alone belongs to the present one."""
    if asked.state is not None or not asked.says_reason():
        return asked.state
    present = (await queues.read(call.runtime, queue)).value.state
    return present if present in (QueueState.PAUSED, QueueState.DRAINING) else None


async def delete(call: Call, asked: models.DeleteQueue) -> Json:
    """`/deleteQueue`."""
    queue = await _queue_of(call, asked)
    await queues.delete(call.runtime, queue, call.actor)
    return {"deleted": True, "branch": queue.branch}


async def add_hold(call: Call, asked: models.AddQueueHold) -> Json:
    """`/addQueueHold`."""
    now = call.runtime.clock.now()
    if asked.until is not None and asked.until <= now:
        past = FieldError("/until", "range", "must lie in the future")
        raise common.refused((past,))
    queue = await _queue_of(call, asked)
    wish = HoldRequest(asked.text, asked.scope or HoldScope.BOTH, asked.until)
    held = await queues.add_hold(call.runtime, queue, wish, call.actor)
    return {"hold": responses.hold(held, queue.branch, now)}


async def release_hold(call: Call, asked: models.ReleaseQueueHold) -> Json:
    """`/releaseQueueHold`."""
    queue = await _queue_of(call, asked)
    hold_id = asked.hold_id.lower()
    await queues.release_hold(call.runtime, queue, hold_id, asked.text, call.actor)
    return {"released": True, "holdId": hold_id}


async def _queue_of(call: Call, asked: common.Named) -> QueueRef:
    return await access.find_queue(call.runtime, call.caller, asked.repo.ref, asked.target_branch)

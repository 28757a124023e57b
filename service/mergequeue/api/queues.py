"""Handlers of the queue endpoints (API.md 5): one operation each."""

from service.accounts import access
from service.errors import FieldError, Invalid, NotFound
from service.http.callers import Call
from service.http.models import common
from service.http.route import Route, read, write
from service.mergequeue.api import responses
from service.mergequeue.api.encoded import EncodedAnswers
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import queues as models
from service.mergequeue.api.models.answers import queues as answers
from service.mergequeue.engine.reasons import HoldScope
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import lists, queue_access, queues
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.vocabulary import QueueRef, Role


@write(
    "createQueue",
    Role.ADMIN,
    models.CreateQueue,
    answers.QueueCreated,
    "branch_not_found",
    "queue_exists",
    "merge_method_not_allowed",
    "limit_reached",
    "not_available_yet",
)
async def create(call: Call, asked: models.CreateQueue) -> answers.QueueCreated:
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
    return answers.QueueCreated.of(shown, ignored_fields=asked.ignored())


@read("getQueue", models.GetQueue, answers.QueueWithEntries, "queue_not_found")
async def get(call: Call, asked: models.GetQueue) -> bytes:
    """`/getQueue`."""
    view = await queues.read(call.runtime, await _queue_of(call, asked))
    return call.cache(EncodedAnswers).queue(view, call.runtime.clock.now())


@write(
    "updateQueue",
    Role.ADMIN,
    models.UpdateQueue,
    answers.Queue,
    "unknown_field",
    "queue_not_found",
    "version_conflict",
    "mode_switch_in_progress",
    "merge_method_not_allowed",
    "conflicting_fields",
    "set_in_repository_file",
    "not_available_yet",
)
async def update(call: Call, asked: models.UpdateQueue) -> answers.Queue:
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


@write(
    "deleteQueue",
    Role.ADMIN,
    models.DeleteQueue,
    answers.QueueDeleted,
    "queue_not_found",
    "queue_not_empty",
)
async def delete(call: Call, asked: models.DeleteQueue) -> answers.QueueDeleted:
    """`/deleteQueue`."""
    queue = await _queue_of(call, asked)
    await queues.delete(call.runtime, queue, call.actor)
    return answers.QueueDeleted(deleted=True, branch=queue.branch)


@write(
    "addQueueHold",
    Role.ADMIN,
    models.AddQueueHold,
    answers.HoldAdded,
    "queue_not_found",
    "limit_reached",
)
async def add_hold(call: Call, asked: models.AddQueueHold) -> answers.HoldAdded:
    """`/addQueueHold`."""
    now = call.runtime.clock.now()
    if asked.until is not None and asked.until <= now:
        past = FieldError("/until", "range", "must lie in the future")
        raise common.refused((past,))
    queue = await _queue_of(call, asked)
    wish = HoldRequest(asked.text, asked.scope or HoldScope.BOTH, asked.until)
    held = await queues.add_hold(call.runtime, queue, wish, call.actor)
    return answers.HoldAdded(hold=responses.hold(held, queue.branch, now))


@write(
    "releaseQueueHold",
    Role.ADMIN,
    models.ReleaseQueueHold,
    answers.HoldReleased,
    "queue_not_found",
    "hold_not_found",
    "hold_not_liftable",
)
async def release_hold(call: Call, asked: models.ReleaseQueueHold) -> answers.HoldReleased:
    """`/releaseQueueHold`."""
    queue = await _queue_of(call, asked)
    hold_id = asked.hold_id.lower()
    await queues.release_hold(call.runtime, queue, hold_id, asked.text, call.actor)
    return answers.HoldReleased(released=True, hold_id=hold_id)


@read(
    "listQueues",
    listed.ListQueues,
    answers.QueuesListed,
    "invalid_page_token",
    "page_token_expired",
)
async def list_queues(call: Call, asked: listed.ListQueues) -> answers.QueuesListed:
    """`/listQueues`."""
    ref = None if asked.repo is None else asked.repo.ref
    part = await lists.list_queues(call.runtime, call.caller, ref, asked.count(), asked.cursor)
    rows = [answers.ListedQueue.of(each, version=each.revision) for each in part.rows]
    return answers.QueuesListed(queues=rows, next_cursor=part.next_cursor)


async def _queue_of(call: Call, asked: common.Named) -> QueueRef:
    return await queue_access.find_queue(
        call.runtime, call.caller, asked.repo.ref, asked.target_branch
    )


QUEUE_ROUTES: tuple[Route, ...] = (
    create,
    get,
    update,
    delete,
    add_hold,
    release_hold,
    list_queues,
)
"""The queue endpoints, in the order of the document."""

"""Handlers of the queue endpoints: one operation each."""

from service.accounts import access
from service.errors import Conflict, FieldError, Invalid, Malformed, NotFound
from service.http.callers import Call
from service.http.models import common
from service.http.route import Route, read, write
from service.http.waiting import Versioned
from service.mergequeue.api import changes, pull_requests, responses
from service.mergequeue.api.encoded import QueueAnswers
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import queues as models
from service.mergequeue.api.models.answers import queues as answers
from service.mergequeue.operations import lists, queue_views, queues
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.mergequeue.reasons.record import HoldScope
from service.runtime import Compatibility
from service.vocabulary import Role


@write(
    "createQueue",
    Role.ADMIN,
    models.CreateQueue,
    answers.QueueCreated,
    "branch_not_found",
    "queue_exists",
    "merge_method_not_allowed",
    "limit_reached",
)
async def create(call: Call, request: models.CreateQueue) -> answers.QueueCreated:
    """Create a queue for a branch."""
    repository = await access.find_repository(call.runtime, call.caller, request.repo.ref)
    if common.git_would_refuse(request.target_branch):
        raise NotFound(
            f'{repository.ref.slug} has no branch "{request.target_branch}".',
            code="branch_not_found",
        )
    change = QueueRequest(request.settings(), state=request.state, reason=request.state_reason)
    view = await queues.create(call.runtime, repository, request.target_branch, change, call.actor)
    shown = responses.queue(view, call.runtime.options, call.runtime.clock.now())
    ignored = [*queues.set_by_file(view.value, change.settings)]
    return answers.QueueCreated.of(shown, ignored_fields=ignored)


@read("getQueue", models.GetQueue, answers.QueueWithEntries, "queue_not_found")
async def get(call: Call, request: models.GetQueue) -> bytes:
    """Return a queue with its settings and pull requests, or wait until it changes."""
    queue = await pull_requests.queue_of(call, request)

    async def found() -> Versioned:
        view = await queue_views.queue_view(call.runtime, queue)
        known = call.runtime.troubles.of(queue.repo.host, queue.repo.owner)
        return call.cache(QueueAnswers).answer(view, call.runtime.clock.now(), known)

    return await changes.newest(call, f"queue/{queue.id}", request.awaited(), found)


@write(
    "updateQueue",
    Role.ADMIN,
    models.UpdateQueue,
    answers.Queue,
    "queue_not_found",
    "version_conflict",
    "mode_switch_in_progress",
    "merge_method_not_allowed",
    "conflicting_fields",
    "set_in_repository_file",
)
async def update(call: Call, request: models.UpdateQueue) -> answers.Queue:
    """Change settings of a queue; what is not sent stays."""
    queue = await pull_requests.queue_of(call, request)
    if request.contradicts_itself():
        raise Invalid(
            "`requiredStatuses` sets the override that `deleteRequiredStatuses` drops; "
            "send one of them.",
            code="conflicting_fields",
        )
    change = QueueRequest(
        request.settings(),
        state=request.state,
        reason=request.state_reason,
        expected_version=request.expected_version,
    )
    view = await queues.update(call.runtime, queue, change, call.actor)
    return responses.queue(view, call.runtime.options, call.runtime.clock.now())


@write(
    "deleteQueue",
    Role.ADMIN,
    models.DeleteQueue,
    answers.QueueDeleted,
    "queue_not_found",
    "queue_not_empty",
)
async def delete(call: Call, request: models.DeleteQueue) -> answers.QueueDeleted:
    """Delete a queue that is empty; its history stays."""
    is_trunk = call.runtime.options.compatibility is Compatibility.TRUNK
    try:
        queue = await pull_requests.queue_of(call, request)
        await queues.delete(call.runtime, queue, call.actor)
    except NotFound as missing:
        if not is_trunk or missing.code != "queue_not_found":
            raise
    except Conflict as refused:
        if not is_trunk or refused.code != "queue_not_empty":
            raise
        raise Malformed(refused.detail, code=refused.code) from refused
    return answers.QueueDeleted(deleted=True, branch=request.target_branch)


@write(
    "addQueueHold",
    Role.ADMIN,
    models.AddQueueHold,
    answers.HoldAdded,
    "queue_not_found",
    "limit_reached",
)
async def add_hold(call: Call, request: models.AddQueueHold) -> answers.HoldAdded:
    """Hold a queue: nothing starts, nothing lands, or both, until the hold is lifted."""
    now = call.runtime.clock.now()
    if request.until is not None and request.until <= now:
        past = FieldError("/until", "range", "must lie in the future")
        raise common.refused((past,))
    queue = await pull_requests.queue_of(call, request)
    change = HoldRequest(request.text, request.scope or HoldScope.BOTH, request.until)
    held = await queues.add_hold(call.runtime, queue, change, call.actor)
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
async def release_hold(call: Call, request: models.ReleaseQueueHold) -> answers.HoldReleased:
    """Lift a hold of a queue."""
    queue = await pull_requests.queue_of(call, request)
    hold_id = request.hold_id.lower()
    await queues.release_hold(call.runtime, queue, hold_id, request.text, call.actor)
    return answers.HoldReleased(released=True, hold_id=hold_id)


@read(
    "listQueues",
    listed.ListQueues,
    answers.QueuesListed,
    "invalid_page_token",
    "page_token_expired",
)
async def list_queues(call: Call, request: listed.ListQueues) -> answers.QueuesListed:
    """List the queues that the token may see; without a repository of all repositories."""
    ref = None if request.repo is None else request.repo.ref
    page = await lists.list_queues(call.runtime, call.caller, ref, request.page())
    rows = [answers.ListedQueue.of(each, version=each.revision) for each in page.rows]
    return answers.QueuesListed(queues=rows, next_cursor=page.next_cursor)


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

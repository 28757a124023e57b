"""Actions of the pages of a queue and of a pull request: one operation each."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from service.accounts import page_addresses
from service.dashboard.requests import Action, PageRequest
from service.errors import Malformed
from service.http.models import common
from service.http.models.common import Request
from service.mergequeue.engine.model import PRIORITY_NAMES
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queue_access, queues
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import QueueRef


class Reasoned(Request):
    """The fields of a form that asks why; the reason may be left out."""

    reason: common.Reason = ""


class Release(Request):
    """The fields of the form that releases a hold."""

    hold: Annotated[str, Field(pattern=common.UUID)]
    reason: Annotated[common.Reason, Field(min_length=1)]


async def pause(runtime: Runtime, request: PageRequest) -> None:
    """Pause the queue."""
    await _set_state(runtime, request, QueueState.PAUSED)


async def drain(runtime: Runtime, request: PageRequest) -> None:
    """Start no more test runs; what is tested still lands."""
    await _set_state(runtime, request, QueueState.DRAINING)


async def resume(runtime: Runtime, request: PageRequest) -> None:
    """Let the queue run again."""
    await _set_state(runtime, request, QueueState.RUNNING)


async def _set_state(runtime: Runtime, request: PageRequest, state: QueueState) -> None:
    given = request.read(Reasoned)
    queue = await _queue(runtime, request)
    by = Requester(request.visitor.actor)
    await queues.set_state(runtime, queue, state, given.reason or None, by)


async def release(runtime: Runtime, request: PageRequest) -> None:
    """Release a hold."""
    given = request.read(Release)
    queue = await _queue(runtime, request)
    await queues.release_hold(runtime, queue, given.hold, given.reason, request.visitor.actor)


async def remove(runtime: Runtime, request: PageRequest) -> None:
    """Take the pull request out of the queue."""
    queue = await _queue(runtime, request)
    await pull_requests.cancel(runtime, queue, request.number, request.visitor.actor)


async def restart(runtime: Runtime, request: PageRequest) -> None:
    """Run the tests of the pull request once more."""
    queue = await _queue(runtime, request)
    await pull_requests.restart(runtime, queue, request.number, request.visitor.actor)


async def submit(runtime: Runtime, request: PageRequest) -> None:
    """Put the pull request back in the queue."""
    queue = await _queue(runtime, request)
    actor = request.visitor.actor
    await pull_requests.submit(runtime, queue, request.number, SubmitOptions(), actor)


async def prioritize(runtime: Runtime, request: PageRequest) -> None:
    """Change the priority; a head that was pushed in the meantime is not let in by this."""
    priority = PRIORITY_NAMES.get(request.text("priority"))
    if priority is None:
        raise Malformed(f"priority must be one of {', '.join(PRIORITY_NAMES)}.")
    queue = await _queue(runtime, request)
    view = await pull_requests.status(runtime, queue, request.number)
    options = SubmitOptions(priority=priority, sha=view.entry.head)
    await pull_requests.submit(runtime, queue, view.entry.pr, options, request.visitor.actor)


async def _queue(runtime: Runtime, request: PageRequest) -> QueueRef:
    branch = page_addresses.branch_of(request.names["branch"])
    return await queue_access.queue_in(runtime, request.where.repository, branch)


OF_QUEUE: Mapping[str, Action[PageRequest]] = {
    "pause": Action(AccessLevel.MAINTAIN, pause),
    "drain": Action(AccessLevel.MAINTAIN, drain),
    "resume": Action(AccessLevel.MAINTAIN, resume),
    "release": Action(AccessLevel.ADMIN, release),
}
OF_PULL_REQUEST: Mapping[str, Action[PageRequest]] = {
    "remove": Action(
        AccessLevel.WRITE,
        remove,
        "Pull request #{number} leaves the queue. Test runs that contain it are stopped, and pull "
        "requests that are tested on top of it are tested again.",
        "Remove from the queue",
    ),
    "restart": Action(AccessLevel.WRITE, restart),
    "submit": Action(AccessLevel.WRITE, submit),
    "priority": Action(AccessLevel.MAINTAIN, prioritize),
}

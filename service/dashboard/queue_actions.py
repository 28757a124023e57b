"""Actions of the pages of a queue, of a pull request and of a test: one operation each."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from service.accounts import access, audit_log, page_addresses
from service.dashboard.requests import Action, PageRequest
from service.dashboard.visitors import Rights
from service.errors import Malformed, NotAllowed, ServiceError
from service.http.models import common
from service.http.models.common import Request
from service.mergequeue.engine.model import PRIORITY_NAMES
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import overview, pull_requests, queue_access, queues
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.testhealth.operations import overrides
from service.testhealth.operations.overrides import OverrideRequest
from service.vocabulary import Actor, Override, QueueRef

PAUSES = AccessLevel.MAINTAIN
"""The access that pausing takes."""

PAUSED_MAX = 1000
"""Queues that are paused together."""

PAUSE_ALL_BUTTON = "Pause all queues"
PAUSE_ALL = (
    "Every queue that you may pause stops: no test starts and nothing lands until a maintainer "
    "resumes it. Tests in progress go on, and pull requests keep their order."
)
"""The question before all queues are paused."""


class _Quarantine(Request):
    """The fields of the form: what people decide, why, and for how long."""

    override: Annotated[Override, BeforeValidator(common.one_of(Override, Override.UNSPECIFIED))]
    reason: Annotated[common.Reason, Field(min_length=1)]
    days: Literal["14", "30", "90", "366"] = "30"


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


async def _drain(runtime: Runtime, request: PageRequest) -> None:
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


@dataclass(frozen=True, slots=True)
class PausedQueues:
    """The result of pausing every queue; `refused` has the names of queues, each with the reason.

    `denied`: how many queues the person may see and not pause. `is_partial`: more of their queues
    are not paused yet.
    """

    paused: int
    denied: int
    refused: tuple[tuple[str, str], ...]
    is_partial: bool = False


async def pause_all(
    runtime: Runtime, rights: Rights, actor: Actor, form: Mapping[str, str]
) -> PausedQueues:
    """Pause every queue that is not paused and that the person may pause.

    All are paused before any landing is waited for. Raises Malformed, and NotAllowed if they may
    pause none; that is stored as a denial.
    """
    reason = common.read(Reasoned, {"reason": form.get("reason", "").strip()}).reason
    found = [each.ref for each in await overview.running(runtime, rights.scope)]
    allowed = [ref for ref in found if rights.may(ref.repository_id, PAUSES)]
    denied = [ref for ref in found if not rights.may(ref.repository_id, PAUSES)]
    if denied and not allowed:
        await _store_denial(runtime, denied[0], actor)
        raise NotAllowed("This needs maintain access to a repository with a queue.")
    paused: list[QueueRef] = []
    refused: list[tuple[str, str]] = []
    for ref in allowed[:PAUSED_MAX]:
        try:
            by = Requester(actor)
            await queues.ask_for_state(runtime, ref, QueueState.PAUSED, reason or None, by)
            paused.append(ref)
        except ServiceError as error:
            refused.append((f"{ref.repo.slug} {ref.branch}", error.detail))
    await asyncio.gather(*(queues.wait_for_landing(runtime, ref) for ref in paused))
    is_partial = len(allowed) > PAUSED_MAX or rights.is_partial
    return PausedQueues(len(paused), len(denied), tuple(refused), is_partial)


async def _store_denial(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    place = f"{queue.repo.host}/{queue.repo.slug}"
    now = runtime.clock.now()
    entry = audit_log.allowed(actor, queue.org_id, "page.pause-all", place, now)
    await access.store_denial(runtime, entry, "less than maintain access to every queue")


async def _remove(runtime: Runtime, request: PageRequest) -> None:
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


async def _prioritize(runtime: Runtime, request: PageRequest) -> None:
    """Change the priority of the submission that is queued.

    Neither a head that was pushed in the meantime nor a pull request that has left enters by this.
    """
    priority = PRIORITY_NAMES.get(request.text("priority"))
    if priority is None:
        raise Malformed(f"priority must be one of {', '.join(PRIORITY_NAMES)}.")
    queue = await _queue(runtime, request)
    view = await pull_requests.status(runtime, queue, request.number)
    options = SubmitOptions(priority=priority, sha=view.entry.head, entry=view.entry.id)
    await pull_requests.submit(runtime, queue, view.entry.pr, options, request.visitor.actor)


async def _queue(runtime: Runtime, request: PageRequest) -> QueueRef:
    branch = page_addresses.branch_of(request.names["branch"])
    return await queue_access.queue_in(runtime, request.where.repository, branch)


OF_QUEUE: Mapping[str, Action[PageRequest]] = {
    "pause": Action(PAUSES, pause),
    "drain": Action(AccessLevel.MAINTAIN, _drain),
    "resume": Action(AccessLevel.MAINTAIN, resume),
    "release": Action(AccessLevel.ADMIN, release),
}
OF_PULL_REQUEST: Mapping[str, Action[PageRequest]] = {
    "remove": Action(
        AccessLevel.WRITE,
        _remove,
        "Pull request #{number} leaves the queue. Test runs that contain it are stopped, and pull "
        "requests that are tested on top of it are tested again.",
        "Remove from the queue",
    ),
    "restart": Action(AccessLevel.WRITE, restart),
    "submit": Action(AccessLevel.WRITE, submit),
    "priority": Action(AccessLevel.MAINTAIN, _prioritize),
}


async def _set_override(runtime: Runtime, request: PageRequest) -> None:
    """Set a quarantine override."""
    given = request.read(_Quarantine)
    until = request.now + timedelta(days=int(given.days))
    asked = OverrideRequest(request.id, given.override, given.reason, until)
    await overrides.put(runtime, request.where.repository, asked, request.visitor.actor)


async def _end_override(runtime: Runtime, request: PageRequest) -> None:
    """Remove the quarantine override."""
    asked = OverrideRequest(request.id, Override.UNSPECIFIED)
    await overrides.put(runtime, request.where.repository, asked, request.visitor.actor)


OF_TEST: Mapping[str, Action[PageRequest]] = {
    "quarantine": Action(AccessLevel.WRITE, _set_override),
    "end": Action(AccessLevel.WRITE, _end_override),
}

"""Do at the provider what open breaks need (docs/design/red-target.md 3, 4).

Each step compares what is there with what is wanted, so that it may be repeated after any stop.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import structlog

from service.accounts.store import access
from service.database.database import Tx
from service.errors import NotFound, ServiceError
from service.mergequeue.breaks import search
from service.mergequeue.breaks.search import Break, Probe, Result, Revert, RevertState
from service.mergequeue.engine.config import RedTarget
from service.mergequeue.engine.state import line
from service.mergequeue.engine.states import FINAL
from service.mergequeue.operations import breaks, building, naming, pull_requests, turn
from service.mergequeue.operations.breaks import FollowGreen, MindBreak
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.store import breaks as stored
from service.mergequeue.store import queues
from service.mergequeue.wording import breaks as wording
from service.provider.audits import DryTestRequest
from service.provider.errors import Refused, Unavailable
from service.provider.reverts import RevertRequest
from service.provider.values import NotPossible, Vehicle
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef

AGAIN_GREEN = "The check passes again."
LANDING_WAIT = timedelta(seconds=10)

log = structlog.get_logger()


async def mind(runtime: Runtime, wanted: MindBreak) -> None:
    """Build and delete the test branches of a search, open or close the revert.

    Raises the provider's errors, after which it is tried again.
    """
    found = await runtime.store.read(_find, wanted.id)
    if found is None:
        return
    one, queue = found
    runtime.provider_of(queue.repo.host)
    value = await turn.last_value(runtime, queue.id)
    if one.is_open and not breaks.is_break_watched(value, one):
        await breaks.end_unwatched(runtime, queue, one)
        return
    for probe in one.probes:
        if search.is_spent(one, probe):
            await _retire(runtime, queue, one, probe)
        elif probe.sha is None:
            await _build(runtime, queue, one, probe)
    if one.revert is None:
        return
    if one.revert.state is RevertState.WANTED:
        if value.config.red_target is RedTarget.REVERT:
            await _revert(runtime, queue, one)
        else:
            await breaks.change(runtime, queue, one.id, lambda known: replace(known, revert=None))
    elif one.revert.state is RevertState.UNWANTED:
        await _close(runtime, queue, one, one.revert)


async def give_up(runtime: Runtime, wanted: MindBreak, why: str) -> None:
    """Go on without what could not be done after every try."""
    found = await runtime.store.read(_find, wanted.id)
    if found is None:
        return

    def without(one: Break) -> Break:
        for probe in one.probes:
            if search.is_spent(one, probe):
                one = search.with_probe(one, replace(probe, is_retired=True))
            elif probe.sha is None:
                one = search.with_probe(one, replace(probe, result=Result.SILENT, is_retired=True))
        if breaks.is_revert_wanted(one):
            one = replace(one, revert=Revert(RevertState.REFUSED, why=why))
        return one

    await breaks.change(runtime, found[1], wanted.id, without)


def _find(session: Tx, break_id: str) -> tuple[Break, QueueRef] | None:
    found = stored.find(session, break_id)
    queue = None if found is None else queues.ref_by_id(session, found.queue_id)
    return None if found is None or queue is None else (found.value, queue)


async def follow_green(runtime: Runtime, wanted: FollowGreen) -> None:
    """Point our branch for the target's newest verified commit to it."""
    queue = await runtime.store.read(queues.ref_by_id, wanted.queue_id)
    known = await runtime.store.read(stored.verified, wanted.queue_id)
    if queue is None or known is None:
        return
    branch = naming.green_branch(queue.branch)
    try:
        await runtime.provider_of(queue.repo.host).follow(queue.repo, branch, known.sha)
    except Refused as refused:
        # Rules of the repository forbid the branch; the page of the queue has the commit.
        log.warning("green_branch_refused", queue=queue.id, branch=branch, why=refused.message)


async def _build(runtime: Runtime, queue: QueueRef, one: Break, probe: Probe) -> None:
    """Push the commit to a branch. CI of a draft pull request would test its merge into the tip."""
    commit = one.commits[probe.place]
    request = DryTestRequest(
        repo=queue.repo,
        target=queue.branch,
        tip=commit.sha,
        branch=probe.branch,
        vehicle=Vehicle.PUSH,
        message=naming.PROBE_MESSAGE.format(
            commit=commit.sha[:12], target=queue.branch, branch=probe.branch
        ),
        title="",
        body="",
    )
    runtime.crash_points.reach("act.build.before_send")
    try:
        made = await building.started_anew(runtime.providers[queue.repo.host], request)
    except Refused as refused:
        log.warning("probe_refused", queue=queue.id, why=refused.message)
        changed = replace(probe, result=Result.SILENT, is_retired=True)
    else:
        changed = replace(probe, sha=made.sha, built_at=runtime.clock.now())
    runtime.crash_points.reach("act.build.before_settle")
    await breaks.change(runtime, queue, one.id, lambda known: search.with_probe(known, changed))


async def _retire(runtime: Runtime, queue: QueueRef, one: Break, probe: Probe) -> None:
    if probe.is_retired:
        return
    provider = runtime.providers[queue.repo.host]
    if probe.sha is not None and probe.result is None:
        await provider.stop_ci(queue.repo, probe.sha)
    await provider.discard(queue.repo, probe.branch)
    changed = replace(probe, is_retired=True)
    await breaks.change(runtime, queue, one.id, lambda known: search.with_probe(known, changed))


async def _revert(runtime: Runtime, queue: QueueRef, one: Break) -> None:
    """Open the revert of the culprit and submit it as urgent; it lands by the queue's own rules."""
    if one.culprit is None:
        return
    web_url = (await runtime.store.read(access.repository, queue.repository_id)).url
    branch = _branch_of(one)
    request = RevertRequest(
        repo=queue.repo,
        target=queue.branch,
        commit=one.commits[one.culprit].sha,
        parent=one.commits[one.culprit - 1].sha,
        branch=branch,
        scratch=branch.replace("/revert/", "/temp/revert-"),
        message=wording.revert_message(one),
        title=wording.revert_title(one),
        body=wording.revert_body(one, queue.branch, web_url),
    )
    runtime.crash_points.reach("act.build.before_send")
    try:
        made = await runtime.providers[queue.repo.host].open_revert(request)
    except Refused as refused:
        made = NotPossible(refused.message)
    runtime.crash_points.reach("act.build.after_send")
    if isinstance(made, NotPossible):
        await _note_revert(runtime, queue, one, Revert(RevertState.REFUSED, why=made.reason))
        return
    why = ""
    try:
        options = SubmitOptions(priority=line.URGENT, sha=made.head)
        await pull_requests.submit(runtime, queue, made.number, options, SYSTEM)
    except ServiceError as refused:
        why = str(refused)
        # People can submit it; the comment on the culprit names it.
        log.warning("revert_not_submitted", queue=queue.id, pr=made.number, why=why)
    await _note_revert(runtime, queue, one, Revert(RevertState.OPEN, made.number, why))


async def _close(runtime: Runtime, queue: QueueRef, one: Break, revert: Revert) -> None:
    """Take the revert out of the queue, then delete its branch, which closes it.

    One that is landing now is left until that has ended, and one that another check still needs
    until that passes.
    """
    others = await runtime.store.read(stored.open_breaks, queue.id)
    if any(_needs_revert(each.value, one) for each in others):
        await _note_revert(runtime, queue, one, replace(revert, state=RevertState.CLOSED))
        return
    if revert.number is not None:
        with suppress(NotFound):
            step = await pull_requests.request_cancel(
                runtime, queue, revert.number, Requester(SYSTEM), AGAIN_GREEN
            )
            if step.refusal is None:
                view = await pull_requests.wait_until_settled(runtime, queue, revert.number, step)
                if view.entry.state not in FINAL:
                    raise Unavailable("The revert is landing.", runtime.clock.now() + LANDING_WAIT)
    await runtime.providers[queue.repo.host].discard(queue.repo, _branch_of(one))
    await _note_revert(runtime, queue, one, replace(revert, state=RevertState.CLOSED))


def _needs_revert(other: Break, one: Break) -> bool:
    """Return whether the revert of one break is also that of another."""
    is_needed = other.revert is not None and other.revert.state in (
        RevertState.WANTED,
        RevertState.OPEN,
    )
    return is_needed and other.culprit_commit == one.culprit_commit


async def _note_revert(runtime: Runtime, queue: QueueRef, one: Break, revert: Revert) -> None:
    """Note the state of the revert, unless it is not wanted any more since it was read."""

    def note(known: Break) -> Break:
        is_unwanted = known.revert is not None and known.revert.state is RevertState.UNWANTED
        if is_unwanted and revert.state is RevertState.OPEN:
            return replace(known, revert=replace(revert, state=RevertState.UNWANTED))
        return replace(known, revert=revert)

    await breaks.change(runtime, queue, one.id, note)


def _branch_of(one: Break) -> str:
    """One branch for a culprit, however many checks it broke."""
    commit = one.commits[one.culprit or 0]
    return naming.revert_branch(commit.pr or 0, commit.sha)

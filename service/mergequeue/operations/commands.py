"""Commands from comments, carried out; each gives the answer to its author (UX.md 2)."""

from typing import assert_never

from service.database.database import Tx
from service.mergequeue.engine.config import ForkPolicy
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.operations import first_queue, notices, pull_requests, shown, turn
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.pull_requests import By, SubmitOptions
from service.mergequeue.operations.wishes import Asking
from service.mergequeue.store import heard
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.wording import queue_replies, replies, unclear
from service.mergequeue.wording.answers import Answer
from service.mergequeue.wording.replies import Reprioritized
from service.provider.signals import (
    AskCancel,
    AskDrain,
    AskHelp,
    AskPause,
    AskResume,
    AskRetry,
    AskSource,
    AskStatus,
    AskSubmit,
    AskUnclear,
)
from service.runtime import Runtime
from service.vocabulary import ActorKind, PullRequestState, QueueRef


async def carry_out(runtime: Runtime, asking: Asking) -> Answer:
    """Do what is asked by somebody who may; repeating it leaves the same final state."""
    ask = asking.asked.ask
    match ask:
        case AskUnclear():
            return unclear.unclear(ask)
        case AskHelp():
            return queue_replies.commands(asking.pull.base_branch, asking.value)
        case AskStatus():
            return await _status(runtime, asking)
        case AskSubmit():
            return await _submit(runtime, asking, ask)
        case AskCancel():
            return await _cancel(runtime, asking, ask)
        case AskRetry():
            return await _retry(runtime, asking, ask)
        case AskPause() | AskDrain() | AskResume():
            return await _set_state(runtime, asking, ask)
        case _:
            assert_never(ask)


def _by(runtime: Runtime, asking: Asking) -> By:
    """Who asks. What is done counts as heard from the same commit on, and is never done again."""
    now = runtime.clock.now()

    def note(session: Tx) -> None:
        heard.note(session, asking.command, now)

    return By(asking.actor, note)


async def _submit(runtime: Runtime, asking: Asking, ask: AskSubmit) -> Answer:
    against = await _against_submission(runtime, asking, ask)
    if against is not None:
        return against
    queue, greeting = asking.queue, None
    if queue is None:
        made = await first_queue.make(
            runtime, asking.repository, asking.pull.base_branch, asking.actor
        )
        if made.queue is None:
            return made.answer
        queue, greeting = made.queue, made.answer
    if asking.pull.is_fork and asking.asked.actor.kind is ActorKind.PERSON:
        await runtime.store.run(
            known_pulls.authorize_fork, asking.head, asking.asked.actor, asking.asked.at
        )
    options = SubmitOptions(ask.priority, ask.no_batch)
    before = await turn.value(runtime, queue.id)
    by = _by(runtime, asking)
    step = await pull_requests.enter(runtime, queue, asking.pull, options, by)
    if step.refusal is not None:
        return replies.refused(step.refusal, queue.branch)
    await _remember_comment(runtime, queue, asking, step)
    old = before.entries.get(asking.pull.number)
    new = step.queue.entries.get(asking.pull.number)
    if old is None or new is None or old.priority == new.priority or old.id != new.id:
        return greeting or replies.accepted()
    place = shown.position_of(step.queue, new)
    change = Reprioritized(old.priority, new.priority, place, shown.length(step.queue))
    return replies.reprioritized(change)


async def _against_submission(runtime: Runtime, asking: Asking, ask: AskSubmit) -> Answer | None:
    pull = asking.pull
    if pull.state is not PullRequestState.OPEN:
        return replies.not_open(pull.state)
    if ask.sha is not None and not pull.head_sha.startswith(ask.sha.lower()):
        return replies.sha_differs(pull.head_sha, ask.sha)
    if not await _is_bound(runtime, asking):
        return replies.head_moved(pull.head_sha)
    closed_to_forks = asking.config.fork_policy is ForkPolicy.DENY
    if pull.is_fork and (closed_to_forks or asking.asked.source is AskSource.LABEL):
        return replies.forks_denied(pull.base_branch)
    return None


async def _is_bound(runtime: Runtime, asking: Asking) -> bool:
    """Whether the head read now is the one that the person meant (GITHUB.md 4.5).

    In the same repository: the head known when the comment came, or one never seen. From a
    fork it must have been seen before the comment was written: a late comment must not let in
    what was pushed after it.
    """
    known = await runtime.store.read(
        known_pulls.known_head, asking.repository.id, asking.pull.number
    )
    if known is None:
        is_bound = not asking.pull.is_fork
    else:
        is_in_time = not asking.pull.is_fork or known.seen_at <= asking.asked.at
        is_bound = known.head == asking.pull.head_sha and is_in_time
    if not is_bound:
        await runtime.store.run(known_pulls.remember_head, asking.head, runtime.clock.now())
    return is_bound


async def _remember_comment(runtime: Runtime, queue: QueueRef, asking: Asking, step: Step) -> None:
    entry = step.queue.entries.get(asking.pull.number)
    is_new = pull_requests.result_of(step) == "created"
    if is_new and entry is not None and asking.asked.source is AskSource.COMMENT:
        await runtime.store.run(
            notices.remember_command, queue.id, entry.pr, entry.id, asking.asked.source_id
        )


async def _status(runtime: Runtime, asking: Asking) -> Answer:
    text = None
    if asking.queue is not None:
        text = await notices.text_of(runtime, asking.queue, asking.pull.number, None)
    if text is None:
        return replies.never_submitted(asking.pull.base_branch)
    return replies.status(text)


async def _cancel(runtime: Runtime, asking: Asking, ask: AskCancel) -> Answer:
    if asking.queue is None:
        return replies.not_in_queue(ask)
    by = _by(runtime, asking)
    step = await pull_requests.ask_cancel(runtime, asking.queue, asking.pull.number, by, "")
    if step.refusal is not None:
        return _refused(step, ask, asking.queue)
    entry = await pull_requests.settled_entry(runtime, asking.queue, asking.pull.number)
    is_late = entry.state is EntryState.MERGED or entry.state not in FINAL
    return replies.being_merged(ask) if is_late else replies.accepted()


async def _retry(runtime: Runtime, asking: Asking, ask: AskRetry) -> Answer:
    if asking.queue is None:
        return replies.not_in_queue(ask)
    number = asking.pull.number
    by = _by(runtime, asking)
    step = await pull_requests.ask_restart(runtime, asking.queue, number, by)
    if step.refusal is not None:
        return _refused(step, ask, asking.queue)
    if pull_requests.has_restarted(step, number):
        return replies.accepted()
    place = shown.position_of(step.queue, step.queue.entries[number])
    return replies.nothing_runs(place, shown.length(step.queue))


def _refused(step: Step, ask: AskCancel | AskRetry, queue: QueueRef) -> Answer:
    refusal = step.refusal
    if refusal is None or refusal.reason is Reason.NOT_IN_QUEUE:
        return replies.not_in_queue(ask)
    if refusal.reason is Reason.ALREADY_LANDED:
        return replies.being_merged(ask)
    return replies.refused(refusal, queue.branch)


async def _set_state(
    runtime: Runtime, asking: Asking, ask: AskPause | AskDrain | AskResume
) -> Answer:
    queue, value = asking.queue, asking.value
    if queue is None or value is None:
        there = await first_queue.branches(runtime, asking.repository)
        return queue_replies.no_queue(asking.pull.base_branch, there)
    match ask:
        case AskPause(reason=reason):
            state, why = QueueState.PAUSED, reason
        case AskDrain(reason=reason):
            state, why = QueueState.DRAINING, reason
        case AskResume():
            state, why = QueueState.RUNNING, ""
    if value.state is state:
        return queue_replies.already(value, runtime.clock.now())
    await queue_operations.ask_state(runtime, queue, state, why or None, _by(runtime, asking))
    fresh = await turn.value(runtime, queue.id)
    match ask:
        case AskPause():
            return queue_replies.paused(fresh)
        case AskDrain():
            return queue_replies.drained(fresh)
        case AskResume():
            return queue_replies.resumed(fresh, runtime.clock.now())

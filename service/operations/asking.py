"""What a comment asks, answered: who may, what happens, and what is replied (UX.md 2).

Permission is asked afresh for the numeric user id; error or doubt is no. Every answer is a
reaction, a reply, or both, kept in the outbox before it is sent.
"""

from dataclasses import dataclass, replace
from typing import assert_never

from service.mergequeue.config import CLI_DEFAULTS, ForkPolicy, QueueConfig
from service.mergequeue.model import MergeQueue
from service.mergequeue.reasons import Reason
from service.mergequeue.states import FINAL, EntryState, QueueState
from service.operations import first_queue, notices, pull_requests, shown, turn
from service.operations import queues as queue_operations
from service.operations.pull_requests import SubmitOptions
from service.provider.errors import Gone
from service.provider.port import AccessLevel, PullRequest, Reaction, Reply
from service.provider.signals import (
    Ask,
    AskCancel,
    AskDrain,
    Asked,
    AskHelp,
    AskPause,
    AskResume,
    AskRetry,
    AskSource,
    AskStatus,
    AskSubmit,
    AskUnclear,
    LabelChanged,
)
from service.runtime import Runtime
from service.store import outbox, queues
from service.store import pull_requests as known_pulls
from service.store.outbox import OutboxItem
from service.store.pull_requests import PullRequestHead
from service.store.records import Lane, RepositoryRecord
from service.vocabulary import Actor, ActorKind, Channel, PullRequestState, QueueRef
from service.wording import replies
from service.wording.replies import Action, Answer, Denial

HIGH = 10
"""Priorities below this one need maintain access (UX.md 2.3)."""
SENSITIVE = (".github/", "action.yml", "action.yaml", "headgate.yml", "CODEOWNERS")
"""Paths of a fork that need maintain access: a folder, and file names anywhere
(RELIABILITY.md 8.3)."""


@dataclass(frozen=True, slots=True)
class Asking:
    """One wish with what was read for it; `queue` None: its base branch has none."""

    repository: RepositoryRecord
    asked: Asked
    pull: PullRequest
    queue: QueueRef | None
    value: MergeQueue | None
    level: AccessLevel

    @property
    def config(self) -> QueueConfig:
        """Settings in force; the defaults where there is no queue yet."""
        return self.value.config if self.value is not None else QueueConfig()


async def answer(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> None:
    """Do what a comment asks and reply. Our own and unlisted bots' comments count for nothing."""
    if asked.actor.kind is ActorKind.SELF:
        return
    provider = runtime.providers[repository.ref.host]
    try:
        pull = await provider.pull_request(repository.ref, asked.number)
    except Gone:
        return
    queue = await runtime.store.read(
        queues.queue_ref, repository.org_id, repository.id, pull.base_branch
    )
    value = await turn.value(runtime, queue.id) if queue is not None else None
    asking = Asking(repository, asked, pull, queue, value, AccessLevel.NONE)
    if not _is_heard(asking):
        return
    level = await provider.access(repository.ref, asked.actor)
    asking = replace(asking, level=level)
    denial = await _denied(runtime, asking)
    reply = denial if denial is not None else await _do(runtime, asking)
    await _reply(runtime, asking, reply)


def _is_heard(asking: Asking) -> bool:
    if not asking.config.commands_enabled:
        return False
    if asking.asked.actor.kind is not ActorKind.BOT:
        return True
    listed = {login.removesuffix("[bot]") for login in asking.config.allowed_bot_submitters}
    named = asking.asked.actor.login.removesuffix("[bot]") in listed
    return named and isinstance(asking.asked.ask, AskSubmit | AskCancel)


async def answer_label(
    runtime: Runtime, repository: RepositoryRecord, changed: LabelChanged
) -> None:
    """Adding the queue's label submits, removing it cancels; any other label is ignored."""
    provider = runtime.providers[repository.ref.host]
    pull = await provider.pull_request(repository.ref, changed.number)
    queue = await runtime.store.read(
        queues.queue_ref, repository.org_id, repository.id, pull.base_branch
    )
    if queue is None or changed.actor.kind is ActorKind.SELF:
        return
    value = await turn.value(runtime, queue.id)
    config = value.config
    if not config.label_commands_enabled or changed.label != config.enqueueing_label:
        return
    asked = Asked(
        where=changed.where,
        number=changed.number,
        actor=replace(changed.actor, channel=Channel.LABEL),
        ask=AskSubmit() if changed.added else AskCancel(),
        source=AskSource.LABEL,
        source_id=f"label-{changed.at.isoformat()}",
        at=changed.at,
    )
    if not changed.added and changed.number not in value.entries:
        return
    level = await provider.access(repository.ref, asked.actor)
    asking = Asking(repository, asked, pull, queue, value, level)
    denial = await _denied(runtime, asking)
    if denial is None and changed.added and pull.is_fork:
        denial = replies.fork_denied()
    reply = denial if denial is not None else await _do(runtime, asking)
    await _reply(runtime, asking, reply)


NEEDS: dict[type[Ask], tuple[AccessLevel, Action]] = {
    AskHelp: (AccessLevel.READ, Action.STATUS),
    AskStatus: (AccessLevel.READ, Action.STATUS),
    AskUnclear: (AccessLevel.READ, Action.STATUS),
    AskCancel: (AccessLevel.TRIAGE, Action.CANCEL),
    AskSubmit: (AccessLevel.WRITE, Action.SUBMIT),
    AskRetry: (AccessLevel.WRITE, Action.RETRY),
    AskPause: (AccessLevel.MAINTAIN, Action.PAUSE),
    AskResume: (AccessLevel.MAINTAIN, Action.RESUME),
    AskDrain: (AccessLevel.MAINTAIN, Action.DRAIN),
}
"""Rights by wish (UX.md 2.3); a pull request's author may always cancel it."""


async def _denied(runtime: Runtime, asking: Asking) -> Answer | None:
    """Why this person may not ask this; None: may."""
    needed, action = NEEDS[type(asking.asked.ask)]
    ask = asking.asked.ask
    if isinstance(ask, AskCancel) and asking.asked.actor.login == asking.pull.author:
        return None
    if isinstance(ask, AskSubmit):
        needed, action = await _submit_needs(runtime, asking, ask)
    if asking.level >= needed:
        return None
    denial = Denial(
        login=asking.asked.actor.login,
        slug=asking.repository.ref.slug,
        action=action,
        needs=needed,
        has=asking.level,
    )
    refusal = replies.denied(denial)
    is_known = asking.level >= AccessLevel.TRIAGE
    is_author = asking.asked.actor.login == asking.pull.author
    return refusal if is_known or is_author else replace(refusal, text=None)


async def _submit_needs(
    runtime: Runtime, asking: Asking, ask: AskSubmit
) -> tuple[AccessLevel, Action]:
    if ask.priority is not None and ask.priority < HIGH:
        return AccessLevel.MAINTAIN, Action.URGENT
    if not asking.pull.is_fork:
        return NEEDS[AskSubmit]
    provider = runtime.providers[asking.repository.ref.host]
    changed = await provider.changed_files(asking.repository.ref, asking.pull.number)
    if not changed.complete or any(is_sensitive(path) for path in changed.paths):
        return AccessLevel.MAINTAIN, Action.SENSITIVE_FORK
    return AccessLevel.WRITE, Action.FORK


def is_sensitive(path: str) -> bool:
    """Whether a fork's change to this path can touch CI itself."""
    return path.startswith(SENSITIVE[0]) or path.rsplit("/", 1)[-1] in SENSITIVE[1:]


async def _do(runtime: Runtime, asking: Asking) -> Answer:
    ask = asking.asked.ask
    match ask:
        case AskUnclear():
            return replies.unclear(ask)
        case AskHelp():
            return replies.help_table(asking.value, asking.pull.base_branch)
        case AskSubmit():
            return await _submit(runtime, asking, ask)
        case AskStatus():
            return await _status(runtime, asking)
        case AskCancel():
            return await _cancel(runtime, asking, ask)
        case AskRetry():
            return await _retry(runtime, asking, ask)
        case AskPause() | AskDrain() | AskResume():
            return await _set_state(runtime, asking, ask)
        case _:
            assert_never(ask)


async def _submit(runtime: Runtime, asking: Asking, ask: AskSubmit) -> Answer:
    pull, repository = asking.pull, asking.repository
    if pull.state is not PullRequestState.OPEN:
        return replies.closed(pull.state)
    if ask.sha is not None and not pull.head_sha.startswith(ask.sha.lower()):
        return replies.sha_differs(pull.head_sha, ask.sha)
    if not await _is_bound(runtime, asking):
        return replies.head_moved(pull.head_sha)
    if pull.is_fork and asking.config.fork_policy is ForkPolicy.DENY:
        return replies.fork_denied()
    queue, made = asking.queue, None
    if queue is None:
        made = await first_queue.make(runtime, repository, pull.base_branch, _actor(asking))
        if made.queue is None:
            return made.answer
        queue = made.queue
    if pull.is_fork and asking.asked.actor.kind is ActorKind.PERSON:
        await runtime.store.run(
            known_pulls.authorize_fork, _head(asking), asking.asked.actor, asking.asked.at
        )
    options = SubmitOptions(ask.priority, ask.no_batch)
    before = await turn.value(runtime, queue.id)
    step = await pull_requests.enter(runtime, queue, pull, options, _actor(asking))
    if step.refusal is not None:
        return replies.refused(step.refusal, queue.branch)
    result = pull_requests.result_of(step)
    if result == "created" and asking.asked.source is AskSource.COMMENT:
        entry = step.queue.entries.get(pull.number)
        if entry is not None:
            await runtime.store.run(
                notices.remember_command, queue.id, pull.number, entry.id, asking.asked.source_id
            )
    if made is not None:
        return made.answer
    old = before.entries.get(pull.number)
    new = step.queue.entries.get(pull.number)
    if result == "updated" and old is not None and new is not None:
        if old.priority != new.priority:
            position = shown.position_of(step.queue, new)
            moved = replies.Moved(old.priority, new.priority, position, shown.length(step.queue))
            return replies.priority_changed(moved)
    return replies.accepted()


async def _is_bound(runtime: Runtime, asking: Asking) -> bool:
    """Whether the head read now is the one known when the comment came (GITHUB.md 4.5).

    A head never seen is taken from the same repository and refused from a fork.
    """
    pull, repository = asking.pull, asking.repository
    known = await runtime.store.read(known_pulls.known_head, repository.id, pull.number)
    if known == pull.head_sha or (known is None and not pull.is_fork):
        return True
    await runtime.store.run(known_pulls.remember_head, _head(asking), runtime.clock.now())
    return False


def _head(asking: Asking) -> PullRequestHead:
    return PullRequestHead(asking.repository.id, asking.pull.number, asking.pull.head_sha)


def _actor(asking: Asking) -> Actor:
    actor = asking.asked.actor
    if asking.asked.source is AskSource.LABEL:
        return actor
    return replace(actor, channel=Channel.COMMENT)


async def _status(runtime: Runtime, asking: Asking) -> Answer:
    if asking.queue is None:
        return replies.status_outside(asking.pull.base_branch)
    text = await notices.text_of(runtime, asking.queue, asking.pull.number, None)
    if text is None:
        return replies.status_outside(asking.pull.base_branch)
    return replies.status(text)


async def _cancel(runtime: Runtime, asking: Asking, ask: AskCancel) -> Answer:
    queue = asking.queue
    if queue is None:
        return replies.not_in_queue(ask)
    step = await pull_requests.ask_cancel(
        runtime, queue, asking.pull.number, _actor(asking), ""
    )
    if step.refusal is not None:
        return _refused(step.refusal.reason, ask) or replies.refused(step.refusal, queue.branch)
    entry = await pull_requests.settled_entry(runtime, queue, asking.pull.number)
    if entry.state is EntryState.MERGED or entry.state not in FINAL:
        return replies.being_merged(ask)
    return replies.accepted()


def _refused(reason: Reason, ask: AskCancel | AskRetry) -> Answer | None:
    if reason is Reason.NOT_IN_QUEUE:
        return replies.not_in_queue(ask)
    return replies.being_merged(ask) if reason is Reason.ALREADY_LANDED else None


async def _retry(runtime: Runtime, asking: Asking, ask: AskRetry) -> Answer:
    queue = asking.queue
    if queue is None:
        return replies.not_in_queue(ask)
    number = asking.pull.number
    step = await pull_requests.ask_restart(runtime, queue, number, _actor(asking))
    if step.refusal is not None:
        return _refused(step.refusal.reason, ask) or replies.refused(step.refusal, queue.branch)
    if pull_requests.has_restarted(step, number):
        return replies.accepted()
    entry = step.queue.entries[number]
    return replies.nothing_runs(
        shown.position_of(step.queue, entry), shown.length(step.queue)
    )


async def _set_state(
    runtime: Runtime, asking: Asking, ask: AskPause | AskDrain | AskResume
) -> Answer:
    queue, value = asking.queue, asking.value
    now = runtime.clock.now()
    if queue is None or value is None:
        return replies.no_queue(
            asking.pull.base_branch, await first_queue.branches(runtime, asking.repository)
        )
    match ask:
        case AskPause(reason=reason):
            state, why = QueueState.PAUSED, reason
        case AskDrain(reason=reason):
            state, why = QueueState.DRAINING, reason
        case AskResume():
            state, why = QueueState.RUNNING, None
    if value.state is state:
        return replies.already(value, now)
    await queue_operations.set_state(runtime, queue, state, why, _actor(asking))
    fresh = await turn.value(runtime, queue.id)
    match ask:
        case AskPause():
            return replies.paused(fresh)
        case AskDrain():
            return replies.drained(fresh)
        case AskResume():
            return replies.resumed(fresh, now)


async def _reply(runtime: Runtime, asking: Asking, reply: Answer) -> None:
    """Put reaction and reply out; reviews and labels take no reactions."""
    asked = asking.asked
    now = runtime.clock.now()
    items = []
    slug = f"{asking.repository.id}/{asked.number}/{asked.source_id}"
    if asked.source is AskSource.COMMENT:
        reaction = Reaction(asked.number, asked.source_id, reply.emoji)
        key = f"reaction/{slug}/{reply.emoji.value}"
        items.append(OutboxItem(Lane.NOTICE, key, "reaction", reaction, next_at=now))
    if reply.text is not None:
        comment = Reply(asked.number, f"answer-{asked.source_id}", reply.text)
        items.append(OutboxItem(Lane.NOTICE, f"reply/{slug}", "reply", comment, next_at=now))
    if items:
        queue_id = asking.queue.id if asking.queue is not None else None
        await runtime.store.run(outbox.append, asking.repository.id, queue_id, 0, items)
        runtime.wakeups.wake("outbox")

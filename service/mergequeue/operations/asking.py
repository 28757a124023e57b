"""What a comment, a review or a label asks: heard, allowed or denied, done, answered.

Every answer is a reaction, a reply, or both, kept in the outbox before it is sent.
"""

from dataclasses import replace
from datetime import datetime

import structlog

from service.accounts import deeds
from service.accounts.store import audit
from service.accounts.store.audit import AuditRow
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import OutboxItem
from service.database.records import Lane, RepositoryRecord
from service.errors import Conflict, Invalid, NotFound
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.operations import commands, flood, permissions, turn
from service.mergequeue.operations.wishes import Asking
from service.mergequeue.store import heard, queues
from service.mergequeue.wording import replies
from service.mergequeue.wording.answers import Answer
from service.provider.errors import Gone
from service.provider.signals import (
    AskCancel,
    Asked,
    AskSource,
    AskSubmit,
    LabelChanged,
)
from service.provider.values import (
    AccessLevel,
    Emoji,
    Reaction,
    Reply,
)
from service.runtime import Runtime
from service.vocabulary import ActorKind

log = structlog.get_logger()


async def answer(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> None:
    """Do what somebody asks and reply.

    Comments of our own App, of bots that are not listed, and all of them where commands are
    switched off count for nothing (UX.md 2.1).
    """
    if await _is_known(runtime, repository, asked):
        return
    asking = await _read(runtime, repository, asked)
    if asking is not None and not await _is_overtaken(runtime, asking):
        await _answer(runtime, asking)


async def _is_known(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> bool:
    """Whether the command was done or refused before; its reaction follows if it was lost."""
    ids = [asked.source_id]
    known = await runtime.store.read(heard.among, repository.id, asked.source.value, ids)
    if not known:
        return False
    log.info("command_known", repo=repository.ref.slug, comment=asked.source_id)
    if asked.source is AskSource.COMMENT:
        await _react_once(runtime, repository, asked)
    return True


async def _react_once(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> None:
    """React to a command that was done and not answered, because the process ended between."""
    keys = [_reaction_key(repository, asked, emoji) for emoji in Emoji]
    if await runtime.store.read(outbox.known, keys):
        return
    item = _reaction(repository, asked, Emoji.ACCEPTED, runtime.clock.now())
    await runtime.store.run(outbox.append, repository.id, None, 0, [item])
    runtime.wakeups.wake("outbox")


def _reaction(
    repository: RepositoryRecord, asked: Asked, emoji: Emoji, now: datetime
) -> OutboxItem:
    reaction = Reaction(asked.number, asked.source_id, emoji)
    key = _reaction_key(repository, asked, emoji)
    return OutboxItem(Lane.NOTICE, key, "reaction", reaction, next_at=now)


def _reaction_key(repository: RepositoryRecord, asked: Asked, emoji: Emoji) -> str:
    return f"reaction/{_slug(repository, asked)}/{emoji.value}"


def _slug(repository: RepositoryRecord, asked: Asked) -> str:
    return f"{repository.id}/{asked.number}/{asked.source_id}"


async def _is_overtaken(runtime: Runtime, asking: Asking) -> bool:
    """Whether what the command changes was changed by a later command already."""
    is_late = await runtime.store.read(heard.is_overtaken, asking.command)
    if is_late:
        log.info("command_overtaken", repo=asking.repository.ref.slug, pr=asking.asked.number)
    return is_late


async def _answer(runtime: Runtime, asking: Asking) -> None:
    if not _is_heard(asking):
        return
    repo = asking.repository.ref
    level = await runtime.providers[repo.host].access(repo, asking.asked.actor)
    asking = replace(asking, level=level)
    reply = flood.answer(runtime, asking)
    is_done = False
    if reply is None:
        reply = await permissions.denial(runtime, asking)
        if reply is not None:
            await runtime.store.run(audit.append, _denied(runtime, asking))
    if reply is None:
        reply = await _done(runtime, asking)
        is_done = True
    await _reply(runtime, asking, reply, is_done=is_done)


async def _done(runtime: Runtime, asking: Asking) -> Answer:
    """Carry the command out; what a rule refuses is said in words."""
    try:
        return await commands.carry_out(runtime, asking)
    except (Conflict, Invalid, NotFound) as refused:
        return replies.said(refused.detail)


def _denied(runtime: Runtime, asking: Asking) -> AuditRow:
    repo, asked = asking.repository, asking.asked
    action = f"command.{type(asked.ask).__name__.removeprefix('Ask').lower()}"
    subject = f"{repo.ref.host}/{repo.ref.slug}#{asked.number}"
    row = deeds.deed(asking.actor, repo.org_id, action, subject, runtime.clock.now())
    return replace(row, decision="denied", reason=f"has {asking.level.name.lower()}")


async def answer_label(
    runtime: Runtime, repository: RepositoryRecord, changed: LabelChanged
) -> None:
    """Adding the queue's label submits, removing it cancels.

    Any other label is ignored before anything is read of the provider.
    """
    if not await _is_label_known(runtime, repository, changed.label):
        return
    asked = Asked(
        where=changed.where,
        number=changed.number,
        actor=changed.actor,
        ask=AskSubmit() if changed.added else AskCancel(),
        source=AskSource.LABEL,
        source_id=_id_of(changed),
        at=changed.at,
    )
    if await _is_known(runtime, repository, asked):
        return
    asking = await _read(runtime, repository, asked)
    if asking is None or asking.value is None or await _is_overtaken(runtime, asking):
        return
    is_meant = changed.added or changed.number in asking.value.entries
    if is_meant and _is_ours(asking.config, changed.label):
        await _answer(runtime, asking)


def _id_of(changed: LabelChanged) -> str:
    """The provider gives a change of a label no id, and times in seconds."""
    change = "added" if changed.added else "removed"
    return f"label-{changed.number}-{change}-{changed.at.isoformat()}"


async def _is_label_known(runtime: Runtime, repository: RepositoryRecord, label: str) -> bool:
    """Whether any queue of the repository goes by this label."""
    there = await runtime.store.read(queues.queues_of, repository.id)
    values = [await turn.value(runtime, queue.id) for queue in there]
    return any(_is_ours(value.config, label) for value in values)


def _is_ours(config: QueueConfig, label: str) -> bool:
    return config.label_commands_enabled and label == config.enqueueing_label


async def _read(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> Asking | None:
    """The pull request and its queue, read for one wish; None when it is gone."""
    repo = repository.ref
    try:
        pull = await runtime.providers[repo.host].pull_request(repo, asked.number)
    except Gone:
        return None
    queue = await runtime.store.read(
        queues.queue_ref, repository.org_id, repository.id, pull.base_branch
    )
    value = await turn.value(runtime, queue.id) if queue is not None else None
    return Asking(repository, asked, pull, queue, value, AccessLevel.NONE)


def _is_heard(asking: Asking) -> bool:
    actor, is_label = asking.asked.actor, asking.asked.source is AskSource.LABEL
    if actor.kind is ActorKind.SELF or not (is_label or asking.config.commands_enabled):
        return False
    if actor.kind is not ActorKind.BOT:
        return True
    listed = {login.removesuffix("[bot]") for login in asking.config.allowed_bot_submitters}
    is_listed = actor.login.removesuffix("[bot]") in listed
    return is_listed and isinstance(asking.asked.ask, AskSubmit | AskCancel)


async def _reply(runtime: Runtime, asking: Asking, reply: Answer, *, is_done: bool) -> None:
    """Put reaction and reply out; reviews and labels take no reactions.

    The command counts as heard from then on, if not since it was done. One that was refused
    changed nothing.
    """
    asked = asking.asked
    now = runtime.clock.now()
    items = []
    if asked.source is AskSource.COMMENT:
        items.append(_reaction(asking.repository, asked, reply.emoji, now))
    if reply.text is not None:
        comment = Reply(asked.number, f"answer-{asked.source_id}", reply.text)
        key = f"reply/{_slug(asking.repository, asked)}"
        items.append(OutboxItem(Lane.NOTICE, key, "reply", comment, next_at=now))
    command = asking.command
    command = command if is_done else replace(command, topic="")
    queue_id = asking.queue.id if asking.queue is not None else None

    def keep(session: Tx) -> None:
        heard.note(session, command, now)
        if items:
            outbox.append(session, asking.repository.id, queue_id, 0, items)

    await runtime.store.run(keep)
    if items:
        runtime.wakeups.wake("outbox")

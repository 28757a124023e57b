"""Commands in comments, reviews and labels: filter, authorize, run and answer them.

An answer is a reaction, a reply, or both. It is stored in the outbox and sent from there.
"""

from dataclasses import replace
from datetime import datetime

import structlog

from service.accounts import audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.errors import Conflict, Invalid, NotFound
from service.mergequeue.operations import chains, comment_commands, consents, turn
from service.mergequeue.operations.command_limits import CommandLimits
from service.mergequeue.operations.comment_commands import AlreadyAnswered, CommentCommand, Place
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import answered_commands, queues
from service.mergequeue.store import notices as stored_notices
from service.mergequeue.store.consents import right_for
from service.mergequeue.store.notices import NoticeKey, PostedNotice, Surface
from service.mergequeue.wording import replies
from service.mergequeue.wording.replies import Answer, Denial, Right
from service.provider import labels as names
from service.provider.errors import Gone
from service.provider.labels import LabelRemoval
from service.provider.signals import (
    Ask,
    AskCancel,
    AskDrain,
    Asked,
    AskForeign,
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
from service.provider.values import (
    AccessLevel,
    Emoji,
    PullRequest,
    Reaction,
    Reply,
)
from service.runtime import Runtime
from service.vocabulary import ActorKind, QueueRef

log = structlog.get_logger()

HIGH = 10
"""Priorities below this one need maintain access."""
URGENT = (AskPause, AskResume, AskDrain, AskCancel)
"""Commands of maintainers that no flood of commands may delay (docs/design/limits.md 7)."""

NEEDS: dict[type[Ask], tuple[AccessLevel, Right]] = {
    AskHelp: (AccessLevel.READ, Right.STATUS),
    AskStatus: (AccessLevel.READ, Right.STATUS),
    AskUnclear: (AccessLevel.READ, Right.STATUS),
    AskCancel: (AccessLevel.TRIAGE, Right.CANCEL),
    AskSubmit: (AccessLevel.WRITE, Right.SUBMIT),
    AskRetry: (AccessLevel.WRITE, Right.RETRY),
    AskPause: (AccessLevel.MAINTAIN, Right.PAUSE),
    AskResume: (AccessLevel.MAINTAIN, Right.RESUME),
    AskDrain: (AccessLevel.MAINTAIN, Right.DRAIN),
}
"""The access level that each command needs; the author may always cancel a pull request."""


async def answer_comment(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> None:
    """Run the command of a comment or review and answer it.

    Ignores comments of our own App, of bots that are not listed, and all comments if the queue
    has commands disabled.
    """
    if await _was_answered(runtime, repository, asked):
        return
    place = await _find_place(runtime, repository, asked.number)
    if place is None:
        return
    command = CommentCommand.at(place, asked)
    if isinstance(asked.ask, AskForeign):
        meant = asked.ask.meant
        if meant is None or not _counts(command):
            await _answer_foreign(runtime, command)
            return
        command = CommentCommand.at(place, replace(asked, ask=meant))
    if not await _is_overtaken(runtime, command):
        await _answer(runtime, command)


def _counts(command: CommentCommand) -> bool:
    """Return whether a command of another queue counts: beside that queue, or in its place."""
    is_of_provider = command.asked.source is AskSource.PROVIDER_QUEUE
    return command.config.shadow or (command.config.foreign_commands_enabled and not is_of_provider)


async def _answer_foreign(runtime: Runtime, command: CommentCommand) -> None:
    """Say once on a pull request that another queue's commands do nothing here.

    Where the branch has no queue of ours, or one in shadow, the other queue is at work, and nothing
    is said.
    """
    is_said = command.queue is not None and not command.config.shadow
    if not is_said or command.asked.source is AskSource.PROVIDER_QUEUE:
        return
    if command.queue is None or not _is_allowed_source(command):
        return
    once = NoticeKey(command.queue.id, command.pull.number, Surface.FOREIGN)
    known = await runtime.store.read(stored_notices.find, once)
    if known is not None or _flood_refusal(runtime, command) is not None:
        return
    answer = await comment_commands.carry_out(runtime, command)
    reply = Reply(command.pull.number, "foreign", answer.text or "")
    key = f"reply/{command.repository.id}/{command.pull.number}/foreign"
    now, queue_id = runtime.clock.now(), command.queue.id
    item = OutboxItem(Lane.NOTICE, key, "reply", reply, next_at=now)

    def store_answer(session: Tx) -> None:
        stored_notices.record(session, once, PostedNotice(command.asked.source_id, ""))
        outbox.append(session, command.repository.id, queue_id, 0, [item])

    await runtime.store.run(store_answer)
    outbox.wake(runtime.wakeups, (Lane.NOTICE,))


async def _was_answered(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> bool:
    """Return whether the command was already run or refused. Sends a lost reaction again."""
    ids = [asked.source_id]
    known = await runtime.store.read(
        answered_commands.answered_among, repository.id, asked.source.value, ids
    )
    if not known:
        return False
    log.info("command_known", repo=repository.ref.slug, comment=asked.source_id)
    if asked.source is AskSource.COMMENT:
        await _react_once(runtime, repository, asked)
    return True


async def _react_once(runtime: Runtime, repository: RepositoryRecord, asked: Asked) -> None:
    """React to a command that ran but got no answer, because the process ended in between."""
    keys = [_reaction_key(repository, asked, emoji) for emoji in Emoji]
    if await runtime.store.read(outbox.stored_keys, keys):
        return
    place = await _find_place(runtime, repository, asked.number)
    if place is None or await _is_in_shadow(runtime, CommentCommand.at(place, asked)):
        return
    item = _reaction(repository, asked, Emoji.ACCEPTED, runtime.clock.now())
    await runtime.store.run(outbox.append, repository.id, None, 0, [item])
    outbox.wake(runtime.wakeups, (Lane.NOTICE,))


async def _is_in_shadow(runtime: Runtime, command: CommentCommand) -> bool:
    """Return whether the queue of the pull request says nothing; the command may have made it."""
    queue = command.queue or await _queue_for(runtime, command.repository, command.pull)
    return queue is not None and (await turn.last_value(runtime, queue.id)).config.shadow


def _reaction(
    repository: RepositoryRecord, asked: Asked, emoji: Emoji, now: datetime
) -> OutboxItem:
    reaction = Reaction(asked.number, asked.source_id, emoji)
    key = _reaction_key(repository, asked, emoji)
    return OutboxItem(Lane.NOTICE, key, "reaction", reaction, next_at=now)


def _reaction_key(repository: RepositoryRecord, asked: Asked, emoji: Emoji) -> str:
    return f"reaction/{_key_of(repository, asked)}/{emoji.value}"


def _key_of(repository: RepositoryRecord, asked: Asked) -> str:
    return f"{repository.id}/{asked.number}/{asked.source_id}"


async def _is_overtaken(runtime: Runtime, command: CommentCommand) -> bool:
    """Return whether a later command already changed the same pull request or queue.

    When a button was pressed is not known: it is for the submission whose check run it belongs to.
    """
    if command.asked.source is AskSource.BUTTON:
        return False
    meant = replace(command.record, topic=command.topic)
    is_late = await runtime.store.read(answered_commands.is_overtaken, meant)
    if is_late:
        log.info("command_overtaken", repo=command.repository.ref.slug, pr=command.asked.number)
    return is_late


async def _answer(runtime: Runtime, command: CommentCommand) -> None:
    if not _is_allowed_source(command):
        return
    repo = command.repository.ref
    level = await runtime.providers[repo.host].access(repo, command.asked.actor)
    command = replace(command, level=level)
    if isinstance(command.asked.ask, AskSubmit) and command.pull.is_fork:
        patterns = command.config.sensitive_paths
        files = await consents.sensitive_files(runtime, repo, command.pull, patterns)
        command = replace(command, sensitive=files)
    reply = _flood_refusal(runtime, command)
    is_done = False
    if reply is None:
        reply = _denial_of(runtime, command)
        if reply is not None:
            await runtime.store.run(audit.append, _denial_audit_row(runtime, command))
    if reply is None:
        try:
            reply = await _carry_out(runtime, command)
        except AlreadyAnswered:
            await _was_answered(runtime, command.repository, command.asked)
            return
        is_done = True
    await _send_answer(runtime, command, reply, is_done=is_done)


async def _carry_out(runtime: Runtime, command: CommentCommand) -> Answer:
    """Run the command; a rule that refuses it becomes the answer.

    Raises QueueGone: the command is then run again, for what is there by then.
    """
    try:
        return await comment_commands.carry_out(runtime, command)
    except QueueGone:
        raise
    except (Conflict, Invalid, NotFound) as refused:
        return replies.said(refused.detail)


def _denial_audit_row(runtime: Runtime, command: CommentCommand) -> AuditEntry:
    repo, asked = command.repository, command.asked
    action = f"command.{type(asked.ask).__name__.removeprefix('Ask').lower()}"
    subject = f"{repo.ref.host}/{repo.ref.slug}#{asked.number}"
    row = audit_log.allowed(command.actor, repo.org_id, action, subject, runtime.clock.now())
    return replace(row, decision="denied", reason=f"has {command.level.name.lower()}")


async def answer_label(
    runtime: Runtime, repository: RepositoryRecord, changed: LabelChanged
) -> None:
    """Submit if the queue's label is on the pull request, cancel if it is not.

    The newest change of the label at the provider is the command, and its author is the person
    who asks (docs/design/comments.md 9). A change that was answered changes nothing, however often
    and in whatever order changes are reported. Any other label costs no request to the provider.
    """
    if not names.contains(await queue_labels(runtime, repository), changed.label):
        return
    place = await _find_place(runtime, repository, changed.number)
    command = None if place is None else await _label_command(runtime, place, changed)
    if command is None or await _was_answered(runtime, repository, command.asked):
        return
    if await _is_overtaken(runtime, command):
        return
    if isinstance(command.asked.ask, AskSubmit) or command.is_queued:
        await _answer(runtime, command)
    else:
        await _record_answered(runtime, command)


async def queue_labels(runtime: Runtime, repository: RepositoryRecord) -> tuple[str, ...]:
    """Return the labels by which the queues of a repository take pull requests."""
    refs = await runtime.store.read(queues.queues_of, repository.id)
    configs = [(await turn.last_value(runtime, queue.id)).config for queue in refs]
    return tuple(each.enqueueing_label for each in configs if each.label_commands_enabled)


async def _label_command(
    runtime: Runtime, place: Place, changed: LabelChanged
) -> CommentCommand | None:
    """Read the newest change of the queue's label as a command; None if there is none.

    A change that does not agree with the pull request is ignored: the provider shows one of them
    late, or an even newer change will be reported or found by a sweep.
    """
    if place.value is None:
        return None
    config, repo, pull = place.value.config, place.repository.ref, place.pull
    label = config.enqueueing_label
    if not (config.label_commands_enabled and names.is_same(label, changed.label)):
        return None
    change = await runtime.providers[repo.host].label_change(repo, pull.number, label)
    if change is None or change.added is not names.contains(pull.labels, label):
        return None
    asked = Asked(
        where=changed.where,
        number=pull.number,
        actor=change.actor,
        ask=AskSubmit() if change.added else AskCancel(),
        source=AskSource.LABEL,
        source_id=change.id,
        at=change.at,
    )
    return CommentCommand.at(place, asked)


async def _record_answered(runtime: Runtime, command: CommentCommand) -> None:
    """Record a removal that cancels nothing: older commands must not come after it."""
    now = runtime.clock.now()

    def record(session: Tx) -> None:
        answered_commands.record(session, command.record, now)
        comment_commands.note_label(session, command)

    await runtime.store.run(record)


async def _find_place(runtime: Runtime, repository: RepositoryRecord, number: int) -> Place | None:
    """Read a pull request and find its queue; None if the pull request is gone."""
    repo = repository.ref
    try:
        pull = await runtime.providers[repo.host].pull_request(repo, number)
    except Gone:
        return None
    queue = await _queue_for(runtime, repository, pull)
    if queue is None:
        pull = await chains.with_chain(runtime, repo, pull)
        queue = await _queue_for(runtime, repository, pull)
    if queue is None:
        # The chain of a member is broken while the one below has not got the base of what landed.
        queue = next(iter(await turn.queues_with(runtime, repository.id, number)), None)
    value = await turn.value(runtime, queue.id) if queue is not None else None
    return Place(repository, pull, queue, value)


async def _queue_for(
    runtime: Runtime, repository: RepositoryRecord, pull: PullRequest
) -> QueueRef | None:
    return await runtime.store.read(
        queues.queue_ref, repository.org_id, repository.id, pull.target_branch
    )


def _is_allowed_source(command: CommentCommand) -> bool:
    actor, source = command.asked.actor, command.asked.source
    is_written = source not in (AskSource.LABEL, AskSource.PROVIDER_QUEUE)
    if actor.kind is ActorKind.SELF or (is_written and not command.config.commands_enabled):
        return False
    if actor.kind is not ActorKind.BOT:
        return True
    listed = {login.removesuffix("[bot]") for login in command.config.allowed_bot_submitters}
    is_listed = actor.login.removesuffix("[bot]") in listed
    return is_listed and isinstance(command.asked.ask, AskSubmit | AskCancel)


async def _send_answer(
    runtime: Runtime, command: CommentCommand, reply: Answer, *, is_done: bool
) -> None:
    """Store the reaction and the reply in the outbox; reviews and labels get no reaction.

    A label that submitted nothing is removed, so that adding it again is an event. A queue in
    shadow says nothing.
    Also records the command as answered. A refused command has an empty topic, so that it
    overtakes no other command.
    """
    asked = command.asked
    now = runtime.clock.now()
    items = []
    if asked.source is AskSource.COMMENT:
        items.append(_reaction(command.repository, asked, reply.emoji, now))
    if reply.text is not None:
        comment = Reply(asked.number, f"answer-{asked.source_id}", reply.text)
        key = f"reply/{_key_of(command.repository, asked)}"
        items.append(OutboxItem(Lane.NOTICE, key, "reply", comment, next_at=now))
    is_refused = reply.emoji is not Emoji.ACCEPTED
    if asked.source is AskSource.LABEL and isinstance(asked.ask, AskSubmit) and is_refused:
        label = command.config.enqueueing_label
        removal = LabelRemoval(asked.number, label, asked.source_id)
        key = f"label/{_key_of(command.repository, asked)}"
        items.append(OutboxItem(Lane.NOTICE, key, "label", removal, next_at=now))
    if items and await _is_in_shadow(runtime, command):
        items = []
    record = command.record
    if not is_done:
        # A press is recognized by its content, which is the same when it is pressed again.
        press_id = f"{asked.source_id}/{runtime.ids.uuid()}"
        id_ = press_id if asked.source is AskSource.BUTTON else asked.source_id
        record = replace(record, topic="", source_id=id_)
    queue_id = command.queue.id if command.queue is not None else None

    def store_answer(session: Tx) -> None:
        answered_commands.record(session, record, now)
        if items:
            outbox.append(session, command.repository.id, queue_id, 0, items)

    await runtime.store.run(store_answer)
    if items:
        outbox.wake(runtime.wakeups, (Lane.NOTICE,))


def _denial_of(runtime: Runtime, command: CommentCommand) -> Answer | None:
    """Return the refusal if the person lacks access for the command; None if it is allowed.

    The role comes from the provider, read for each command; an unknown role is no access.
    The author and people with triage access get a reply each time. Anybody else gets one
    reply per pull request and then only a reaction, so that strangers cannot cause spam.
    """
    needed, right = _needed_level(command)
    if command.level >= needed:
        return None
    if isinstance(command.asked.ask, AskCancel) and command.is_by_author:
        return None
    refusal = replies.denied(
        Denial(
            login=command.asked.actor.login,
            slug=command.repository.ref.slug,
            right=right,
            needs=needed,
            has=command.level,
        )
    )
    belongs = command.level >= AccessLevel.TRIAGE or command.is_by_author
    gets_reply = belongs or runtime.memory.of(CommandLimits).is_first_denial(_person_key(command))
    return refusal if gets_reply else replace(refusal, text=None)


def _person_key(command: CommentCommand) -> str:
    """Return a key for one person on one pull request."""
    actor = command.asked.actor
    return f"{command.repository.id}#{command.pull.number}/{actor.id or actor.login}"


def _needed_level(command: CommentCommand) -> tuple[AccessLevel, Right]:
    ask = command.asked.ask
    if not isinstance(ask, AskSubmit):
        return NEEDS[type(ask)]
    if ask.priority is not None and ask.priority < HIGH:
        return AccessLevel.MAINTAIN, Right.URGENT
    if command.sensitive:
        return right_for(command.sensitive), Right.SENSITIVE_FORK
    return NEEDS[AskSubmit]


def _flood_refusal(runtime: Runtime, command: CommentCommand) -> Answer | None:
    """Return the refusal after too many commands; None if the command may run.

    Replies once to each person in a flood on a pull request, after that only reacts. What a
    maintainer stops or resumes is not counted. A command counts when it was written, by the
    provider's clock: those of an hour without webhooks are found at once. Presses, whose time the
    provider does not say, count by themselves, when they are processed. Counts are in memory: a
    restart forgets them, which errs on the side of running commands.
    """
    if isinstance(command.asked.ask, URGENT) and command.level >= AccessLevel.MAINTAIN:
        return None
    now = runtime.clock.now()
    person = f"{command.repository.id}/{command.asked.actor.id or command.asked.actor.login}"
    pull = f"{command.repository.id}#{command.pull.number}"
    at, is_press = command.asked.at, command.asked.source is AskSource.BUTTON
    if at is None or is_press:
        person, pull = f"press {person}", f"press {pull}"
    clock = now if at is None or is_press else at.at
    until = runtime.memory.of(CommandLimits).until(person, pull, clock)
    if until is None:
        return None
    refusal = replies.flood(until, clock)
    is_first = runtime.memory.of(CommandLimits).is_first_refusal(person, pull, clock, until)
    return refusal if is_first else replace(refusal, text=None)

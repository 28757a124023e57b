"""Run commands from comments, reviews and labels; each returns the answer for its author."""

from dataclasses import dataclass, replace
from typing import assert_never

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Conflict, ServiceError
from service.mergequeue.engine.config import ForkPolicy, QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Refused, Step
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.operations import (
    notices,
    pull_requests,
    queue_access,
    queue_views,
    repository_files,
    requirements,
    turn,
)
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.requirements import Resolved
from service.mergequeue.store import answered_commands, consents, queues
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store.answered_commands import AnsweredCommand
from service.mergequeue.store.consents import Consent
from service.mergequeue.store.pull_requests import KnownHead, PullRequestHead
from service.mergequeue.wording import replies
from service.mergequeue.wording.replies import Answer, Reprioritized
from service.provenance import ProviderTime
from service.provider.signals import (
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
)
from service.provider.stacks import MergedFrom
from service.provider.values import (
    AccessLevel,
    PullRequest,
)
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, Channel, PullRequestState, QueueRef

_CHANNELS = {
    AskSource.LABEL: Channel.LABEL,
    AskSource.CHECKBOX: Channel.CHECKBOX,
    AskSource.BUTTON: Channel.BUTTON,
    AskSource.PROVIDER_QUEUE: Channel.SYSTEM,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A pull request as just read, and its queue.

    `queue` and `value` are None if neither the base branch nor the pull request has one.
    """

    repository: RepositoryRecord
    pull: PullRequest
    queue: QueueRef | None
    value: MergeQueue | None


@dataclass(frozen=True, slots=True)
class CommentCommand(Place):
    """A command about a pull request, and the access level of its author.

    `sensitive` are the sensitive paths that a fork's pull request changes, sorted.
    """

    asked: Asked
    level: AccessLevel = AccessLevel.NONE
    sensitive: tuple[str, ...] = ()

    @classmethod
    def at(cls, place: Place, asked: Asked) -> "CommentCommand":
        """Return a command whose author's rights were not read yet."""
        return cls(place.repository, place.pull, place.queue, place.value, asked)

    @property
    def config(self) -> QueueConfig:
        """The settings of the queue; the defaults if there is no queue yet."""
        return self.value.config if self.value is not None else QueueConfig()

    @property
    def is_queued(self) -> bool:
        """Return whether its pull request is in the queue."""
        return self.value is not None and self.pull.number in self.value.entries

    @property
    def actor(self) -> Actor:
        """The author of the command, with the channel that was used."""
        channel = _CHANNELS.get(self.asked.source, Channel.COMMENT)
        return replace(self.asked.actor, channel=channel)

    @property
    def head(self) -> PullRequestHead:
        """The pull request at the head read for this command."""
        return PullRequestHead(self.repository.id, self.pull.number, self.pull.head_sha)

    @property
    def topic(self) -> str:
        """The name of what the command changes, so that a later command overtakes it."""
        if isinstance(self.asked.ask, AskSubmit | AskCancel | AskRetry):
            return f"#{self.asked.number}"
        if isinstance(self.asked.ask, AskPause | AskDrain | AskResume):
            return f"queue {self.pull.target_branch}"
        return ""

    @property
    def record(self) -> AnsweredCommand:
        """The record that prevents the same command from running twice.

        A retry overtakes nothing: a submission that arrives after it is still wanted.
        """
        topic = "" if isinstance(self.asked.ask, AskRetry) else self.topic
        return AnsweredCommand(
            repository_id=self.repository.id,
            org_id=self.repository.org_id,
            source=self.asked.source.value,
            source_id=self.asked.source_id,
            topic=topic,
            said_at=self.asked.at,
        )

    @property
    def is_by_author(self) -> bool:
        """Return whether the command's author is the author of the pull request, by the account."""
        author = self.pull.author_id
        return author is not None and self.asked.actor.id == author


async def carry_out(runtime: Runtime, command: CommentCommand) -> Answer:
    """Run an authorized command and return the answer. Idempotent."""
    ask = command.asked.ask
    match ask:
        case AskUnclear():
            return replies.unclear(ask)
        case AskForeign():
            return replies.foreign(ask)
        case AskHelp():
            return replies.command_list(command.pull.target_branch, command.value)
        case AskStatus():
            return await _status(runtime, command)
        case AskSubmit():
            return await _submit(runtime, command, ask)
        case AskCancel():
            return await _cancel(runtime, command, ask)
        case AskRetry():
            return await _retry(runtime, command, ask)
        case AskPause() | AskDrain() | AskResume():
            return await _set_state(runtime, command, ask)
        case _:
            assert_never(ask)


class AlreadyAnswered(ServiceError):
    """Another worker has run the same command since this one began with it."""


def _by(runtime: Runtime, command: CommentCommand) -> Requester:
    """Return the requester, whose turn also records the command so that it never runs again.

    The turn counts only if its record is the first: AlreadyAnswered undoes it.
    """
    now = runtime.clock.now()

    def record_command(session: Tx) -> None:
        if not answered_commands.record(session, command.record, now):
            raise AlreadyAnswered(f"The command {command.asked.source_id} has been run.")
        note_label(session, command)

    return Requester(command.actor, record_command)


def note_label(session: Tx, command: CommentCommand) -> None:
    """Store whether the queue's label is there, in the transaction that accepts its change."""
    asked, queue = command.asked, command.queue
    if asked.source is AskSource.LABEL and queue is not None:
        label = command.config.enqueueing_label if isinstance(asked.ask, AskSubmit) else ""
        notices.note_queue_label(session, queue.id, asked.number, asked.source_id, label)


async def _submit(runtime: Runtime, command: CommentCommand, ask: AskSubmit) -> Answer:
    refusal = await _submission_refusal(runtime, command, ask)
    if refusal is not None:
        return refusal
    queue, greeting = command.queue, None
    if queue is None:
        left_over = await _left_over(runtime, command)
        if left_over is not None:
            return replies.base_was_merged(command.pull.target_branch, left_over)
        created = await _create_first_queue(
            runtime, command.repository, command.pull.target_branch, command.actor
        )
        if created.queue is None:
            return created.answer
        queue, greeting = created.queue, created.answer
    consent = _consent_of(command)
    if consent is not None:
        await runtime.store.run(consents.give, consent)
    options = SubmitOptions(ask.priority, ask.no_batch, undoes=ask.undoes, again=ask.again)
    before = await turn.value(runtime, queue.id)
    by = _by(runtime, command)
    step = await pull_requests.submit_stack(runtime, queue, command.pull, options, by)
    if step.refusal is not None:
        return replies.refused(step.refusal, queue.branch)
    await _remember_comment(runtime, queue, command, step)
    old = before.entries.get(command.pull.number)
    new = step.queue.entries.get(command.pull.number)
    if old is None or new is None or old.priority == new.priority or old.id != new.id:
        return greeting or _submitted(command.pull)
    place = queue_views.position_of(step.queue, new)
    change = Reprioritized(old.priority, new.priority, place, queue_views.queue_length(step.queue))
    return replies.reprioritized(change)


def _consent_of(command: CommentCommand) -> Consent | None:
    """Return what a person's submission of a fork's pull request agrees to."""
    pull, asked = command.pull, command.asked
    if not pull.is_fork or asked.actor.kind is not ActorKind.PERSON or asked.at is None:
        return None
    return Consent(
        head=command.head,
        base=pull.base_branch,
        actor=asked.actor,
        right=command.level,
        sensitive=command.sensitive,
        at=asked.at,
        source=f"{asked.source.value} {asked.source_id}",
    )


async def _left_over(runtime: Runtime, command: CommentCommand) -> MergedFrom | None:
    """Return the merged pull request whose branch the target is; the default branch is none."""
    branch = command.pull.target_branch
    if branch == command.repository.default_branch:
        return None
    ref = command.repository.ref
    return await runtime.providers[ref.host].merged_from(ref, branch)


def _submitted(pull: PullRequest) -> Answer:
    below = pull_requests.below(pull)
    if not below:
        return replies.accepted()
    return replies.stack_submitted([*(one.number for one in below), pull.number])


async def _submission_refusal(
    runtime: Runtime, command: CommentCommand, ask: AskSubmit
) -> Answer | None:
    pull = command.pull
    if pull.state is not PullRequestState.OPEN:
        return replies.not_open(pull.state)
    if ask.sha is not None and not pull.head_sha.startswith(ask.sha.lower()):
        return replies.sha_differs(pull.head_sha, ask.sha)
    is_named = pull.is_fork and ask.sha == pull.head_sha
    is_seen = is_named or await _is_bound(runtime, command, command.head)
    if not (is_seen and _is_base_seen(command)):
        return replies.head_moved(pull.head_sha, is_fork=pull.is_fork)
    for member in pull_requests.below(pull):
        head = PullRequestHead(command.repository.id, member.number, member.head_sha)
        if not await _is_bound(runtime, command, head):
            return replies.head_moved(member.head_sha, member.number)
    if ask.again and command.asked.actor.kind is not ActorKind.PERSON:
        return replies.again_by_program()
    if pull.is_fork and command.config.fork_policy is ForkPolicy.DENY:
        return replies.forks_denied(pull.target_branch)
    if pull.is_fork and command.asked.source in _CHANNELS:
        return replies.refused(Refused(Reason.FORK_NEEDS_PERSON, ""), pull.target_branch)
    return None


async def _is_bound(runtime: Runtime, command: CommentCommand, head: PullRequestHead) -> bool:
    """Return whether the present head is the one that the author of the command saw.

    In the same repository: the head known when the comment arrived, or one never seen. From
    a fork, the provider must have shown the head with a time of its own before that of the comment,
    so that a late delivery cannot admit commits pushed after it. The same second is not before.
    What was shown before a force push proves nothing: the head may have been away and come back.
    """
    known = await runtime.store.read(known_pulls.known_head, head.repository_id, head.number)
    if known is None:
        is_bound = not command.pull.is_fork
    else:
        is_bound = known.head == head.head
        if command.pull.is_fork:
            since = _head_since(command, head, known)
            is_bound = is_bound and _is_before(since, command.asked.at)
    if not is_bound:
        pull, now = command.pull, runtime.clock.now()
        shown = (pull.shown_at, now, pull.returned_after) if head == command.head else (None, now)
        await runtime.store.run(known_pulls.remember_head, head, *shown)
    return is_bound


def _head_since(
    command: CommentCommand, head: PullRequestHead, known: KnownHead
) -> ProviderTime | None:
    """Return a time since which a fork's pull request has had its head, None if none is known.

    A head that was left comes back by a force push, or by a plain push after a force push.
    """
    push = command.pull.force_push
    if push is None or head != command.head:
        return known.shown_at
    if push.to == head.head:
        return push.at
    return known.shown_at if _is_before(push.at, known.shown_at) else None


def _is_base_seen(command: CommentCommand) -> bool:
    """Return whether a fork's base was the present one when the command was written.

    Its author may change the base, and nobody can name one in a command.
    """
    pull = command.pull
    if not pull.is_fork or pull.base_changed_at is None:
        return True
    return _is_before(pull.base_changed_at, command.asked.at)


def _is_before(one: ProviderTime | None, other: ProviderTime | None) -> bool:
    return one is not None and other is not None and one < other


async def _remember_comment(
    runtime: Runtime, queue: QueueRef, command: CommentCommand, step: Step
) -> None:
    entry = step.queue.entries.get(command.pull.number)
    is_new = pull_requests.result_of(step) == "created"
    if is_new and entry is not None and command.asked.source is AskSource.COMMENT:
        await runtime.store.run(
            notices.remember_command, queue.id, entry.pr, entry.id, command.asked.source_id
        )


async def _status(runtime: Runtime, command: CommentCommand) -> Answer:
    text = None
    if command.queue is not None:
        text = await notices.text_of(runtime, command.queue, command.pull.number, None)
    if text is None:
        return replies.never_submitted(command.pull.target_branch, command.pull.state)
    return replies.status(text)


async def _cancel(runtime: Runtime, command: CommentCommand, ask: AskCancel) -> Answer:
    if command.queue is None:
        return replies.not_in_queue(ask, command.pull.state)
    by = _by(runtime, command)
    step = await pull_requests.request_cancel(runtime, command.queue, command.pull.number, by, "")
    if step.refusal is not None:
        return _refused(step, ask, command.queue, command.pull)
    number = command.pull.number
    view = await pull_requests.wait_until_settled(runtime, command.queue, number, step)
    is_late = view.entry.state is EntryState.MERGED or view.entry.state not in FINAL
    return replies.being_merged(ask) if is_late else replies.accepted()


async def _retry(runtime: Runtime, command: CommentCommand, ask: AskRetry) -> Answer:
    if command.queue is None:
        return replies.not_in_queue(ask, command.pull.state)
    number = command.pull.number
    by = _by(runtime, command)
    step = await pull_requests.request_restart(runtime, command.queue, number, by)
    if step.refusal is not None:
        return _refused(step, ask, command.queue, command.pull)
    entry = step.queue.entries[number]
    # A run whose test branch is still built is the new run that is asked for.
    if pull_requests.has_restarted(step, number) or entry.run is not None:
        return replies.accepted()
    place = queue_views.position_of(step.queue, entry)
    return replies.nothing_runs(place, queue_views.queue_length(step.queue))


def _refused(step: Step, ask: AskCancel | AskRetry, queue: QueueRef, pull: PullRequest) -> Answer:
    refusal = step.refusal
    if refusal is None or refusal.reason is Reason.NOT_IN_QUEUE:
        return replies.not_in_queue(ask, pull.state)
    if refusal.reason is Reason.ALREADY_LANDED:
        return replies.being_merged(ask)
    return replies.refused(refusal, queue.branch)


async def _set_state(
    runtime: Runtime, command: CommentCommand, ask: AskPause | AskDrain | AskResume
) -> Answer:
    queue, value = command.queue, command.value
    if queue is None or value is None:
        branches = await queue_access.branches_with_queue(runtime, command.repository)
        return replies.no_queue(command.pull.target_branch, branches)
    match ask:
        case AskPause(reason=reason):
            state, why = QueueState.PAUSED, reason
        case AskDrain(reason=reason):
            state, why = QueueState.DRAINING, reason
        case AskResume():
            state, why = QueueState.RUNNING, ""
    if value.state is state:
        return replies.already(value, runtime.clock.now())
    await queue_operations.set_state(runtime, queue, state, why or None, _by(runtime, command))
    fresh = await turn.last_value(runtime, queue.id)
    match ask:
        case AskPause():
            return replies.paused(fresh)
        case AskDrain():
            return replies.drained(fresh)
        case AskResume():
            return replies.resumed(fresh, runtime.clock.now())


@dataclass(frozen=True, slots=True)
class FirstQueue:
    """The queue that the first `/merge` created; if None, the answer explains why not."""

    queue: QueueRef | None
    answer: Answer


async def _create_first_queue(
    runtime: Runtime, repository: RepositoryRecord, branch: str, actor: Actor
) -> FirstQueue:
    """Create the queue of a branch whose required statuses are known.

    If another person created the queue in the meantime, returns that queue.
    """
    if not runtime.options.auto_create_queues:
        branches = await queue_access.branches_with_queue(runtime, repository)
        return FirstQueue(None, replies.no_queue(branch, branches))
    reading = await repository_files.future_reading(runtime, repository, branch)
    override = None if reading is None else repository_files.required_by(reading)
    resolved = await requirements.resolve(runtime, repository.ref, branch, override)
    if resolved.owned and reading is not None and reading.settings.get("shadow") is True:
        resolved = await requirements.resolve_beside(runtime, repository.ref, branch, override)
    refusal = _creation_refusal(resolved, branch)
    if refusal is not None:
        return FirstQueue(None, refusal)
    request = queue_operations.first_request(repository, resolved)
    try:
        view = await queue_operations.create(runtime, repository, branch, request, actor)
    except Conflict:
        queue = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, branch)
        return FirstQueue(queue, replies.accepted())
    return FirstQueue(view.queue, replies.queue_made(view.value, resolved.required))


def _creation_refusal(resolved: Resolved, branch: str) -> Answer | None:
    if resolved.owned:
        return replies.provider_queue(branch)
    if resolved.error is not None:
        return replies.rules_unreadable(branch)
    if not resolved.required.names:
        return replies.no_required_checks(branch)
    return None

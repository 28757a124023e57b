"""Edits of our status comment, and buttons of our check run, which are commands too."""

from dataclasses import dataclass

from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.operations import comments, turn
from service.mergequeue.store import notices as stored
from service.mergequeue.store import queues, runs
from service.mergequeue.store.notices import PostedNotice
from service.provider.signals import Asked, AskSource, AskSubmit, ButtonPressed, NoticeEdited
from service.runtime import Runtime


async def press_button(
    runtime: Runtime, repository: RepositoryRecord, pressed: ButtonPressed
) -> None:
    """Run the command of a button on the check run of a submission.

    A button that submits is for the newest submission of its pull request: a late or repeated press
    on an older one was made for what is past.
    """
    place = await runtime.store.read(_place_of, repository.id, pressed.submission)
    if place is None or (isinstance(pressed.ask, AskSubmit) and not place.is_newest):
        return
    asked = Asked(
        where=pressed.where,
        number=place.number,
        actor=pressed.actor,
        ask=pressed.ask,
        source=AskSource.BUTTON,
        source_id=pressed.id,
        at=pressed.at,
    )
    await comments.answer_comment(runtime, repository, asked)


@dataclass(frozen=True, slots=True)
class _Place:
    """The pull request of a submission, and whether no other submission came after it."""

    number: int
    is_newest: bool


def _place_of(session: Tx, repository_id: int, submission: str) -> _Place | None:
    for queue in queues.queues_of(session, repository_id):
        entry = runs.entry(session, queue.id, submission)
        if entry is not None:
            newest = runs.newest_entry(session, queue.id, entry.pr)
            return _Place(entry.pr, newest is not None and newest.id == submission)
    return None


async def restore_comment(
    runtime: Runtime, repository: RepositoryRecord, edited: NoticeEdited
) -> None:
    """Write our status comment anew after a person changed it, so that its boxes are empty."""
    is_ours = await runtime.store.run(_doubt, runtime, repository.id, edited)
    if is_ours:
        outbox.wake(runtime.wakeups, (Lane.NOTICE,))


def _doubt(session: Tx, runtime: Runtime, repository_id: int, edited: NoticeEdited) -> bool:
    for queue in queues.queues_of(session, repository_id):
        key = stored.status_comment_key(session, queue.id, edited.comment_id)
        entry = None if key is None else runs.newest_entry(session, queue.id, key.pr)
        if key is None or entry is None:
            continue
        stored.record(session, key, PostedNotice(edited.comment_id, stored.EDITED))
        action = Tell(entry.pr, entry.id, entry.state, entry.reason)
        item = turn.item(runtime, queue, action, runtime.clock.now())
        outbox.append(session, repository_id, queue.id, 0, [item])
        return True
    return False

"""What differs by where a command is written: in a comment, in a review, or at another queue."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from service.accounts.store import access
from service.database.database import Tx
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.operations import comments, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import notices
from service.mergequeue.store.notices import NoticeKey, Surface
from service.provenance import ProviderTime
from service.provider.signals import Ask, Asked, AskForeign, AskSource, AskSubmit, Where
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, ActorKind, QueueRef, RepoId

NUMBER = 7
PERSON = Actor(ActorKind.PERSON, "zoe", "77")
ADDED = AskForeign("the merge queue of GitHub", "added to the merge queue", AskSubmit())


async def asked(runtime: Runtime, queue: QueueRef, ask: Ask, source: AskSource) -> str:
    """Answer a command; return its id."""
    record = await runtime.store.read(access.repository, queue.repository_id)
    where = Where(RepoId(queue.repo.host, "1"), queue.repo)
    at = ProviderTime(runtime.clock.now())
    made = Asked(where, NUMBER, PERSON, ask, source, runtime.ids.uuid(), at)
    await comments.answer_comment(runtime, record, made)
    return made.source_id


def replies(session: Tx) -> Sequence[str]:
    """Keys of all replies."""
    table = OutboxRow.__table__
    keys = select(table.c.idem_key).where(table.c.kind == "reply")
    return session.execute(keys).scalars().all()


@pytest.mark.parametrize("source", [AskSource.COMMENT, AskSource.REVIEW])
async def test_only_the_comment_that_submitted_gets_a_reaction_at_the_end(
    runtime: Runtime, queue: QueueRef, source: AskSource
):
    command = await asked(runtime, queue, AskSubmit(), source)
    await asked(runtime, queue, AskSubmit(), AskSource.COMMENT)
    entry = (await turn.value(runtime, queue.id)).entries[NUMBER]
    key = NoticeKey(queue.id, NUMBER, Surface.COMMAND, entry.id)
    known = await runtime.store.read(notices.find, key)
    assert (None if known is None else known.provider_id) == (
        command if source is AskSource.COMMENT else None
    )


@pytest.mark.parametrize(
    ("source", "setting", "ends"),
    [
        (AskSource.COMMENT, "", (1, False)),
        (AskSource.COMMENT, "shadow", (0, True)),
        (AskSource.COMMENT, "foreign_commands_enabled", (0, True)),
        (AskSource.PROVIDER_QUEUE, "", (0, False)),
        (AskSource.PROVIDER_QUEUE, "shadow", (0, True)),
        (AskSource.PROVIDER_QUEUE, "foreign_commands_enabled", (0, False)),
    ],
)
async def test_a_command_of_another_queue_counts_where_a_setting_says_so(
    runtime: Runtime, queue: QueueRef, source: AskSource, setting: str, ends: tuple[int, bool]
):
    """The provider's own queue is used by a button, and nobody waits for a word of ours."""
    if setting:
        await queues.update(runtime, queue, QueueRequest({setting: True}), SYSTEM)
    await asked(runtime, queue, ADDED, source)
    replied = len(await runtime.store.read(replies))
    assert (replied, NUMBER in (await turn.value(runtime, queue.id)).entries) == ends

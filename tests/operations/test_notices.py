"""Notices and labels of one submission leave those of others alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import select

from service.accounts import repositories
from service.database.database import Tx
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import notices, pull_requests, queues
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored
from service.provenance import ProviderTime
from service.provider.errors import OutcomeUnknown
from service.provider.labels import LabelChange, LabelRemoval
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, ActorKind, QueueRef, RepoId, RepoRef
from tests.harness.values import ValuesProvider

BOB = Actor(ActorKind.PERSON, "bob", "8")
REMOVAL = LabelRemoval(7, "ship", "c1")


class Labels(ValuesProvider):
    """Shows these newest changes of the label, one after the other."""

    changes: Sequence[LabelChange | None] = ()

    async def label_change(self, repo: RepoRef, number: int, label: str) -> LabelChange | None:
        change, *self.changes = self.changes
        return change


@pytest.fixture
def provider() -> Labels:
    return Labels()


def open_notices(session: Tx) -> set[int]:
    """The queues of which a notice waits."""
    table = OutboxRow.__table__
    waiting = select(table.c.queue_id).where(table.c.kind == "tell", table.c.is_open.is_(True))
    return set(session.execute(waiting).scalars())


async def test_a_notice_replaces_none_of_the_same_number_in_another_repository(
    runtime: Runtime, queue: QueueRef, provider: Labels
) -> None:
    fresh = await provider.repository(provider.ref)
    ref = replace(fresh.ref, name="gadgets")
    other = replace(fresh, ref=ref, id=RepoId(ref.host, "other"))
    record = await runtime.store.run(repositories.upsert, other)
    await queues.create(runtime, record, "main", QueueRequest({}, QueueState.PAUSED), SYSTEM)
    found = await runtime.store.read(stored.all_queues)
    for each in found:
        await pull_requests.submit(runtime, each, 7, SubmitOptions(), SYSTEM)
    assert await runtime.store.read(open_notices) == {each.id for each in found}


async def test_a_removal_that_is_not_shown_yet_is_read_again(
    runtime: Runtime, queue: QueueRef, provider: Labels
) -> None:
    added = LabelChange("c1", True, BOB, ProviderTime(runtime.clock.now()))
    provider.changes = [added, added]
    with pytest.raises(OutcomeUnknown):
        await notices.say_plain(runtime, queue.repository_id, REMOVAL, first=True)
    provider.changes = [replace(added, undone=True)]
    await notices.say_plain(runtime, queue.repository_id, REMOVAL, first=False)
    assert provider.said == [REMOVAL]


@pytest.mark.parametrize("removal", [REMOVAL, LabelRemoval(7, "ship")])
async def test_a_label_of_another_change_is_not_removed(
    runtime: Runtime, queue: QueueRef, provider: Labels, removal: LabelRemoval
) -> None:
    """Also that of an effect which an older version has stored: nothing says whose label it is."""
    provider.changes = [LabelChange("c2", True, BOB, ProviderTime(runtime.clock.now()))]
    await notices.say_plain(runtime, queue.repository_id, removal, first=True)
    assert provider.said == []

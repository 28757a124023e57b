"""Notices and labels of one submission leave those of others alone."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest
from sqlalchemy import select

from service.accounts import repositories
from service.database.database import Tx
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.engine.inputs import Cancel
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import notices, pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import notices as stored_notices
from service.mergequeue.store import queues as stored
from service.mergequeue.store.notices import PostedNotice
from service.mergequeue.wording.notices import ABOVE
from service.provenance import ProviderTime
from service.provider.errors import OutcomeUnknown, Refused, RefusedCode
from service.provider.labels import LabelChange, LabelRemoval, StateLabel
from service.provider.values import CheckReport, Notice, Reply, StatusComment
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, ActorKind, QueueRef, RepoId, RepoRef
from tests.harness.values import ValuesProvider

BOB = Actor(ActorKind.PERSON, "bob", "8")
REMOVAL = LabelRemoval(7, "ship", "c1")
WITH_LABELS = {"state_labels_enabled": True}


class Labels(ValuesProvider):
    """Shows these newest changes of the label, one after the other."""

    changes: Sequence[LabelChange | None] = ()
    refuses_status = False

    async def label_change(self, repo: RepoRef, number: int, label: str) -> LabelChange | None:
        change, *self.changes = self.changes
        return change

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        if self.refuses_status and isinstance(notice, StatusComment):
            raise Refused("This conversation is locked.", RefusedCode.RULE_DENIED)
        return await super().say(repo, notice)


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


async def made_again(runtime: Runtime, queue: QueueRef, provider: ValuesProvider) -> QueueRef:
    """Delete the queue and make one of the same branch; return that."""
    await queues.delete(runtime, queue, SYSTEM)
    fresh = await provider.repository(provider.ref)
    record = await runtime.store.run(repositories.upsert, fresh)
    await queues.create(
        runtime, record, "main", QueueRequest(WITH_LABELS, QueueState.PAUSED), SYSTEM
    )
    (found,) = await runtime.store.read(stored.all_queues)
    return found


async def submitted(runtime: Runtime, queue: QueueRef) -> Tell:
    """Submit a pull request, and return what its notices begin with."""
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    entry = (await turn.value(runtime, queue.id)).entries[7]
    return Tell(entry.pr, entry.id, entry.state, entry.reason)


async def told(runtime: Runtime, queue: QueueRef, action: Tell) -> None:
    """Write the notices of a submission, and record them as the effect does when it settles."""
    posted = await notices.tell(runtime, queue, action, first=True)
    await runtime.store.run(stored_notices.record_all, posted)


async def test_a_queue_that_is_made_again_goes_on_with_the_texts_of_the_one_before(
    runtime: Runtime, queue: QueueRef, provider: Labels
) -> None:
    """They are found by the branch, so that no text is there twice and no label stays."""
    queue = await made_again(runtime, queue, provider)
    await told(runtime, queue, await submitted(runtime, queue))
    ids = {type(said): str(place) for place, said in enumerate(provider.said, start=1)}
    await turn.ask(runtime, queue, Cancel(7, Reason.USER_REQUESTED, SYSTEM))
    for _ in range(2):
        queue = await made_again(runtime, queue, provider)
    action = await submitted(runtime, queue)
    provider.said.clear()
    for _ in range(2):
        await told(runtime, queue, action)
    again = {type(said): getattr(said, "known_id", None) for said in provider.said}
    assert again == {
        CheckReport: None,
        StatusComment: ids[StatusComment],
        StateLabel: ids[StateLabel],
    }
    assert len(provider.said) == len(again)


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_text_that_is_changed_while_others_are_written_is_written_again(
    runtime: Runtime, queue: QueueRef, is_there: bool
) -> None:
    """A landing completes a check run, or a person edits a comment, before the effect settles."""
    action = await submitted(runtime, queue)
    if is_there:
        await told(runtime, queue, action)
        await turn.ask(runtime, queue, Cancel(7, Reason.USER_REQUESTED, SYSTEM))
    posted = await notices.tell(runtime, queue, action, first=True)
    assert posted
    for key, written in posted.items():
        changed = PostedNotice(written.now.provider_id, stored_notices.EDITED)
        await runtime.store.run(stored_notices.record, key, changed)
    await runtime.store.run(stored_notices.record_all, posted)
    assert posted.keys() == (await notices.tell(runtime, queue, action, first=True)).keys()


async def test_texts_of_a_deleted_queue_and_of_the_next_one_have_one_order(
    runtime: Runtime, queue: QueueRef, provider: Labels
) -> None:
    """They are one comment: the later one replaces what waits, and waits for what was sent."""
    await submitted(runtime, queue)
    await turn.ask(runtime, queue, Cancel(7, Reason.USER_REQUESTED, SYSTEM))
    queue = await made_again(runtime, queue, provider)
    await submitted(runtime, queue)
    assert await runtime.store.read(open_notices) == {queue.id}


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


@pytest.mark.parametrize("refuses", [False, True])
async def test_an_end_is_announced_whether_or_not_a_comment_shows_the_state(
    runtime: Runtime, queue: QueueRef, provider: Labels, refuses: bool
) -> None:
    provider.refuses_status = refuses
    action = await submitted(runtime, queue)
    await turn.ask(runtime, queue, Cancel(7, Reason.AUTHORIZATION_LOST, SYSTEM))
    with pytest.raises(Refused) if refuses else nullcontext():
        await notices.tell(runtime, queue, action, first=True)
    (reply,) = [said for said in provider.said if isinstance(said, Reply)]
    assert reply.action_id == f"left-{action.entry}"
    assert (ABOVE in reply.body) is not refuses

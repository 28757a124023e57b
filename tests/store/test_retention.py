"""What is old and settled goes, in batches; what is live, open or landed stays."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.accounts.store import access
from service.database import inbox, outbox
from service.database.outbox import OutboxState
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import QueueDrained, Recorded, Step
from service.mergequeue.engine.states import EntryState
from service.mergequeue.landing_records import LandingState
from service.mergequeue.store import journal, landings, notices, pull_requests, queues, runs
from service.mergequeue.store.landings import LandingOutcome
from service.mergequeue.store.notices import NoticeKey, PostedNotice, Surface
from service.mergequeue.store.pull_requests import PullRequestHead
from service.process.store import retention
from service.process.store.retention import BATCH, RetentionLimits
from service.provenance import ProviderTime
from service.vocabulary import SYSTEM
from tests.store.builders import a_run, an_entry
from tests.store.conftest import ME, NOW, a_stored_queue
from tests.store.test_access import a_token
from tests.store.test_inbox import a_delivery
from tests.store.test_landings import a_land
from tests.store.test_outbox import build

DAY = timedelta(days=1)
LIMITS = RetentionLimits()


@pytest.fixture
def queue(session: Connection) -> MergeQueue:
    return a_stored_queue(session)


def prune_all(session: Connection, days: float) -> int:
    """Rows removed when it is so long after now; as many calls as it takes."""
    removed = 0
    while count := retention.prune(session, NOW + days * DAY, LIMITS):
        assert count <= BATCH
        removed += count
    return removed


def count(session: Connection, table: str) -> int:
    return session.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


@pytest.mark.fault(
    "webhooks without end",
    holds="a processed delivery keeps no body, and its id for days",
    within="-",
)
def test_a_processed_delivery_has_no_body_and_is_known_for_days(session: Connection):
    inbox.accept(session, a_delivery(0))
    (lane,) = inbox.claim(session, ME, NOW, 1)
    inbox.settle(session, [lane.deliveries[0].id], "done")
    assert (count(session, "inbox"), count(session, "inbox_body")) == (1, 0)
    assert not inbox.accept(session, a_delivery(0))
    assert prune_all(session, 30) == 0
    assert prune_all(session, 30.1) == 1
    assert count(session, "inbox") == 0


def test_a_parked_delivery_loses_its_body_first(session: Connection):
    inbox.accept(session, a_delivery(0))
    (lane,) = inbox.claim(session, ME, NOW, 1)
    (row,) = lane.deliveries
    inbox.poison(session, row.id, "KeyError")
    inbox.settle(session, [row.id], "late")
    assert prune_all(session, 7) == 0
    assert prune_all(session, 7.1) == 1
    assert (count(session, "inbox"), count(session, "inbox_body")) == (1, 0)
    assert not inbox.accept(session, a_delivery(0))
    assert prune_all(session, 30) == 0
    assert prune_all(session, 30.1) == 1
    assert count(session, "inbox") == 0


def test_an_open_delivery_stays_whole(session: Connection):
    inbox.accept(session, a_delivery(0))
    assert prune_all(session, 4000) == 0


def test_done_effects_go_and_open_ones_stay(session: Connection, queue: MergeQueue):
    outbox.append(session, 1, queue.id, 1, [build("r1"), build("r2")])
    first = outbox.claim(session, NOW, 1)[0]
    outbox.settle(session, [first.id], OutboxState.DONE)
    assert prune_all(session, 30) == 0
    assert prune_all(session, 4000) == 1
    assert [row.key for row in outbox.claim(session, NOW, 9)] == ["r2/build"]


def test_tokens_go_long_after_their_end(session: Connection):
    octo = access.ensure_organization(session, "github.com", "1", "octo")
    for token in (
        a_token(octo, "revoked", expires_at=None),
        a_token(octo, "expired", expires_at=NOW + DAY),
        a_token(octo, "endless", expires_at=None),
    ):
        access.create_token(session, octo.id, token)
    access.revoke_token(session, octo.id, "revoked", NOW)
    assert prune_all(session, 400) == 0
    assert prune_all(session, 400.5) == 1
    assert prune_all(session, 4000) == 1
    assert [each.id for each in access.tokens_of(session, octo.id)] == ["endless"]


def test_the_journal_goes_in_batches(session: Connection, queue: MergeQueue):
    journal.append(session, queue.id, [Recorded(NOW, SYSTEM, QueueDrained())] * (BATCH + 1))
    assert retention.prune(session, NOW + 399 * DAY, LIMITS) == 0
    assert retention.prune(session, NOW + 401 * DAY, LIMITS) == BATCH
    assert retention.prune(session, NOW + 401 * DAY, LIMITS) == 1


def an_ended(session: Connection, queue: MergeQueue, pr: int, state: EntryState) -> None:
    """Store a submission that has ended so, with its texts, and the head of its pull request."""
    entry = an_entry(pr, id=f"e{pr}-{queue.id}")
    ref = queues.ref_by_id(session, queue.id)
    assert ref is not None
    before = queues.save(
        session, queue, Step(replace(queue, entries={pr: entry}), (), (), None, None)
    )
    left = Step(replace(before, entries={}), (), (), None, None, (replace(entry, state=state),))
    queues.save(session, before, left)
    for surface in Surface:
        about = "#9" if surface is Surface.UNDONE else entry.id
        notices.record(session, NoticeKey(queue.id, pr, surface, about), PostedNotice("1", "x"))
    shown_at = ProviderTime(NOW + pr * timedelta(minutes=1))
    head = PullRequestHead(ref.repository_id, pr, entry.head)
    pull_requests.remember_head(session, head, shown_at, NOW)


def what_is_left(session: Connection) -> dict[int, set[str]]:
    """The surfaces of which a notice is left, and "head", by pull request."""
    found: dict[int, set[str]] = {}
    texts = session.exec_driver_sql("SELECT pr, surface FROM notice")
    heads = session.exec_driver_sql("SELECT number, 'head' FROM pull_request")
    for pr, kind in (*texts, *heads):
        found.setdefault(pr, set()).add(kind)
    return found


UNDONE = {Surface.UNDONE.value}
OF_PULL_REQUEST = {one.value for one in notices.OF_PULL_REQUEST} | {"head"} | UNDONE


def test_of_a_merged_pull_request_its_texts_and_its_head_go(session: Connection):
    """Of another one stays what its next submission needs: its comment, its label, its head.

    That work was undone stays as well, because the pull request that undid it may be young.
    """
    queue = a_stored_queue(session)
    for pr, state in ((3, EntryState.MERGED), (4, EntryState.CANCELLED), (5, EntryState.FAILED)):
        an_ended(session, queues.load(session, queue.id), pr, state)
    everything = {one.value for one in Surface} | {"head"}
    assert prune_all(session, 400) == 0
    assert what_is_left(session) == dict.fromkeys((3, 4, 5), everything)
    assert prune_all(session, 401) == 3
    assert what_is_left(session) == {3: UNDONE, **dict.fromkeys((4, 5), OF_PULL_REQUEST)}


def test_texts_of_the_queues_before_go_with_a_merged_pull_request(session: Connection):
    first = a_stored_queue(session)
    an_ended(session, first, 3, EntryState.CANCELLED)
    queues.mark_deleted(session, first.id, NOW)
    session.exec_driver_sql(f"UPDATE merge_queue SET deleted = true WHERE id = {first.id}")
    other = a_stored_queue(session, "release")
    an_ended(session, other, 3, EntryState.MERGED)
    an_ended(session, queues.load(session, other.id), 4, EntryState.CANCELLED)
    prune_all(session, 401)
    assert what_is_left(session) == {3: UNDONE, 4: OF_PULL_REQUEST}


def test_the_newest_head_of_a_repository_stays(session: Connection):
    """By it a restored backup is known, also in a repository where nobody has worked for long."""
    queue = a_stored_queue(session)
    an_ended(session, queue, 3, EntryState.MERGED)
    prune_all(session, 401)
    assert what_is_left(session) == {3: UNDONE | {"head"}}


def test_ended_entries_and_runs_go_and_live_ones_and_landings_stay(
    session: Connection, queue: MergeQueue
):
    before = replace(
        queue,
        entries={3: an_entry(3), 4: an_entry(4)},
        runs={each: a_run(each) for each in ("r1", "r2")},
    )
    before = queues.save(session, queue, Step(before, (), (), None, None))
    after = replace(before, entries={4: before.entries[4]}, runs={"r2": before.runs["r2"]})
    ended = replace(before.entries[3], state=EntryState.MERGED)
    step = Step(after, (), (), None, None, (ended,), (before.runs["r1"],))
    after = queues.save(session, before, step)
    landings.intend(session, queue.id, a_land(run="r1"))
    (landing,) = landings.landings_of_run(session, "r1")
    landings.settle(session, landing.id, LandingOutcome(LandingState.LANDED))
    assert prune_all(session, 400) == 0
    assert prune_all(session, 401) == 2
    assert queues.load(session, queue.id) == after
    assert runs.entry(session, queue.id, "e3") is None
    assert runs.run(session, queue.id, "r1") is None
    assert len(landings.landings_of_run(session, "r1")) == 1

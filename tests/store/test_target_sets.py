"""A set of targets is written once, read once, shared, and removed with its last reference."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.mergequeue.engine import targets
from service.mergequeue.engine.model import KeptMove, LandedStep, MergeQueue, Tip
from service.mergequeue.engine.outputs import EntryUpdated, Recorded, Step
from service.mergequeue.engine.states import EntryState
from service.mergequeue.store import journal, pull_requests, queues, target_sets
from service.mergequeue.store.pull_requests import PullRequestHead
from service.process.store import retention
from service.process.store.retention import RetentionLimits
from service.vocabulary import SYSTEM, Sha
from tests.store.builders import a_sha, an_entry
from tests.store.conftest import NOW, a_stored_queue

TIP = Tip(Sha("a" * 40), Sha("b" * 40))
MOVE = LandedStep(2, TIP.sha, Sha("c" * 40), TIP.tree)


@pytest.fixture
def queue(session: Connection) -> MergeQueue:
    return a_stored_queue(session)


def saved(session: Connection, before: MergeQueue, after: MergeQueue) -> MergeQueue:
    """The next stored value."""
    return queues.save(session, before, Step(after, (), (), None, None))


def words(session: Connection) -> list[str]:
    """The sets that are stored."""
    return list(session.exec_driver_sql("SELECT word FROM target_set").scalars())


def prune_all(session: Connection, days: int = 0) -> None:
    """Everything that may go, so long after now."""
    while retention.prune(session, NOW + timedelta(days=days), RetentionLimits()):
        pass


def test_a_set_is_written_once_and_comes_back_as_one_object(session: Connection, queue: MergeQueue):
    both = targets.of(["//a", "//b"])
    entries = {3: an_entry(3, targets=both, wide=both), 4: an_entry(4, targets=replace(both))}
    moves = (replace(MOVE, targets=targets.of(["//b", "//a"])),)
    saved(session, queue, replace(queue, entries=entries, landed=moves))
    assert len(words(session)) == 1
    del both, entries, moves
    loaded = queues.load(session, queue.id)
    groups = [
        loaded.entries[3].targets,
        loaded.entries[3].wide,
        loaded.entries[4].targets,
        loaded.landed[0].targets,
    ]
    assert {group.names for group in groups if group is not None} == {frozenset(["//a", "//b"])}
    assert len({id(group.names) for group in groups if group is not None}) == 1


def test_a_turn_that_changes_no_targets_does_not_touch_them(session: Connection, queue: MergeQueue):
    first = saved(
        session, queue, replace(queue, entries={3: an_entry(3, targets=targets.of(["//a"]))})
    )
    session.exec_driver_sql("DELETE FROM target_set")
    moved = replace(first.entries[3], state=EntryState.TESTING)
    saved(session, first, replace(first, entries={3: moved}))
    assert words(session) == []


def test_everything_and_nothing_are_told_apart(session: Connection, queue: MergeQueue):
    entries = {
        3: an_entry(3, targets=targets.ALL),
        4: an_entry(4, targets=targets.of([])),
        5: an_entry(5),
    }
    value = saved(session, queue, replace(queue, entries=entries))
    assert queues.load(session, queue.id) == value
    assert len(words(session)) == 1


def test_a_set_goes_with_the_last_that_refers_to_it(session: Connection, queue: MergeQueue):
    one, two, three = (targets.of([name]) for name in ("//1", "//2", "//3"))
    entry = an_entry(3, targets=one, wide=two)
    kept = KeptMove(TIP, (), False, three)
    moves = (replace(MOVE, targets=two),)
    value = saved(session, queue, replace(queue, entries={3: entry}, landed=moves, kept_move=kept))
    prune_all(session)
    assert len(words(session)) == 3
    value = saved(session, value, replace(value, entries={3: replace(entry, wide=None)}))
    prune_all(session)
    assert len(words(session)) == 3
    value = saved(session, value, replace(value, landed=(), kept_move=None))
    prune_all(session)
    assert words(session) == [target_sets.word_of(one)]


def test_an_upload_keeps_its_set_until_it_is_forgotten(session: Connection, queue: MergeQueue):
    place = PullRequestHead(1, 3, a_sha(3))
    pull_requests.put_targets(session, place, targets.of(["//a"]), NOW)
    pull_requests.put_targets(session, place, targets.of(["//b"]), NOW)
    prune_all(session, days=399)
    assert words(session) == [target_sets.word_of(targets.of(["//b"]))]
    prune_all(session, days=401)
    assert words(session) == []
    assert pull_requests.targets_of(session, 1, [(3, a_sha(3))]) == {}


def test_the_journal_names_a_set_and_does_not_keep_it(session: Connection, queue: MergeQueue):
    event = EntryUpdated(3, "e3", 100, False, targets.of(["//only here"]))
    journal.append(session, queue.id, [Recorded(NOW, SYSTEM, event)])
    assert "only here" not in session.exec_driver_sql("SELECT data FROM journal").scalar_one()
    del event
    (told,) = journal.timeline(session, queue.id, 3, "e3")
    assert told.event == EntryUpdated(3, "e3", 100, False, None)

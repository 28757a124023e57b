"""Queues are saved by their difference and come back equal."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event

from service.errors import Conflict, InvariantBroken, NotFound, Stale
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import FileFault, MergeQueue, RepositoryFile
from service.mergequeue.engine.outputs import (
    Event,
    HoldPlaced,
    HoldReleased,
    ModeChanged,
    QueueConfigured,
    QueueDeleted,
    QueueStateChanged,
    Recorded,
    RunBuilt,
    Step,
)
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.store import queues, runs
from service.vocabulary import SYSTEM, QueueRef, RepoRef, Sha
from tests.harness import effort
from tests.store import builders, values
from tests.store.conftest import NOW, a_queue, a_stored_queue


def step_to(queue: MergeQueue, **finished) -> Step:
    """A step that ends in this value."""
    return Step(queue, actions=(), events=(), refusal=None, wake_at=None, **finished)


def test_the_repositorys_file_and_what_lies_below_it_come_back_equal(session: Connection):
    fault = FileFault(".github/headgate.yml", 4, "queues.main.batch", "It is wrong.")
    file = RepositoryFile(Sha("c" * 40), "d", ("concurrency",), None, (fault,), Sha("b" * 40))
    own = QueueConfig(concurrency=5, mode=Mode.PARALLEL)
    made = a_stored_queue(session)
    wanted = replace(made, own_config=own, chosen=("batch", "mode"), file=file)
    saved = queues.save(session, made, step_to(wanted))
    assert queues.load(session, made.id) == saved
    assert (saved.own_config, saved.chosen, saved.file) == (own, ("batch", "mode"), file)


@given(data=st.data())
@settings(max_examples=effort.examples(28), suppress_health_check=list(HealthCheck))
def test_any_value_comes_back_equal(session: Connection, data: st.DataObject):
    with undone(session):
        comes_back_equal(session, data)


@contextmanager
def undone(session: Connection) -> Iterator[None]:
    """What is written inside is gone afterwards."""
    savepoint = session.begin_nested()
    try:
        yield
    finally:
        savepoint.rollback()


def comes_back_equal(session: Connection, data: st.DataObject) -> None:
    """Two turns in a row, each loaded again."""
    stored = a_stored_queue(session)
    first = replace(
        data.draw(values.queues()),
        id=stored.id,
        version=1,
        entries=data.draw(values.entries("a")),
        runs=data.draw(values.runs("a")),
        greens=data.draw(values.greens()),
    )
    saved = queues.save(session, stored, step_to(first))
    assert queues.load(session, stored.id) == saved

    second = replace(
        data.draw(values.queues()),
        id=stored.id,
        version=2,
        entries=data.draw(values.entries("b")),
        runs={**saved.runs, **data.draw(values.runs("b"))},
        greens=data.draw(values.greens()),
    )
    saved = queues.save(
        session, saved, step_to(second, finished_entries=tuple(saved.entries.values()))
    )
    assert queues.load(session, stored.id) == saved
    for entry in first.entries.values():
        assert runs.entry(session, stored.id, entry.id) == entry


@pytest.fixture
def stored(session: Connection) -> MergeQueue:
    """A stored queue with one entry under test, and one waiting."""
    empty = a_stored_queue(session)
    run = builders.a_run("r1", prs=(3,))
    entries = {
        3: builders.an_entry(3, state=EntryState.TESTING, run="r1"),
        4: builders.an_entry(4),
    }
    return queues.save(
        session, empty, step_to(replace(empty, entries=entries, runs={"r1": run}, next_run=2))
    )


def statements_of(session: Connection) -> list[str]:
    """What is sent to the database from now on, by its first words."""
    sent: list[str] = []
    event.listen(
        session,
        "before_cursor_execute",
        lambda *call: sent.append(" ".join(call[2].split()[:3])),
    )
    return sent


def test_only_what_differs_is_written(session: Connection, stored: MergeQueue):
    changed = replace(stored.entries[4], priority=0)
    sent = statements_of(session)
    queues.save(session, stored, step_to(replace(stored, entries={**stored.entries, 4: changed})))
    assert sent == ["UPDATE merge_queue SET", "UPDATE entry SET"]


def test_an_equal_value_keeps_its_version_and_moves_only_the_alarm(
    session: Connection, stored: MergeQueue
):
    copy = replace(stored, entries={pr: replace(each) for pr, each in stored.entries.items()})
    sent = statements_of(session)
    saved = queues.save(session, stored, replace(step_to(copy), wake_at=NOW))
    assert sent == ["UPDATE merge_queue SET"]
    assert saved.version == stored.version
    assert queues.head_of(session, stored.id) == queues.Head(stored.version, 1)
    assert queues.due(session, NOW) == (stored.id,)


def test_every_change_counts_the_version_up(session: Connection, stored: MergeQueue):
    assert stored.version == 2
    saved = queues.save(session, stored, step_to(replace(stored, next_seq=9)))
    assert saved.version == 3
    assert queues.load(session, stored.id) == saved


OF_THE_QUEUE = [
    QueueConfigured(("concurrency",)),
    QueueStateChanged(QueueState.RUNNING, QueueState.PAUSED, None),
    ModeChanged(Mode.PARALLEL),
    HoldPlaced("h", HoldReason.FREEZE, "release"),
    HoldReleased("h", HoldReason.FREEZE, "released"),
    QueueDeleted(),
]


@pytest.mark.parametrize("happened", OF_THE_QUEUE, ids=lambda event: type(event).__name__)
def test_a_turn_that_changes_the_queue_itself_counts_its_revision_up_once(
    session: Connection, stored: MergeQueue, happened: Event
):
    told = (Recorded(NOW, SYSTEM, happened),) * 2
    step = replace(step_to(replace(stored, next_hold=9)), events=told)
    saved = queues.save(session, stored, step)
    assert (saved.version, saved.revision) == (stored.version + 1, stored.revision + 1)
    assert queues.load(session, stored.id) == saved


def test_what_happens_to_entries_and_runs_leaves_the_revision(
    session: Connection, stored: MergeQueue
):
    moved = Recorded(NOW, SYSTEM, RunBuilt("r1", builders.a_sha(1)))
    step = replace(step_to(replace(stored, next_seq=9)), events=(moved,))
    saved = queues.save(session, stored, step)
    assert (saved.version, saved.revision) == (stored.version + 1, stored.revision)


@pytest.mark.parametrize(("version", "epoch"), [(1, 1), (3, 1), (2, 2)])
def test_another_version_or_epoch_is_stale(
    session: Connection, stored: MergeQueue, version: int, epoch: int
):
    wrong = replace(stored, version=version)
    with pytest.raises(Stale):
        queues.save(session, wrong, step_to(replace(wrong, next_seq=9)), epoch)
    assert queues.load(session, stored.id) == stored


def test_what_is_finished_leaves_the_value_and_stays_as_a_row(
    session: Connection, stored: MergeQueue
):
    merged = replace(stored.entries[3], state=EntryState.MERGED, run=None, landed_sha=Sha("f" * 40))
    ended = replace(stored.runs["r1"], finished_at=NOW, checks=())
    after = replace(stored, entries={4: stored.entries[4]}, runs={})
    saved = queues.save(
        session, stored, step_to(after, finished_entries=(merged,), finished_runs=(ended,))
    )
    assert queues.load(session, stored.id) == saved
    assert runs.entry(session, stored.id, merged.id) == merged
    assert runs.run(session, stored.id, "r1") == ended


def test_a_pull_request_may_leave_and_enter_again_in_one_turn(
    session: Connection, stored: MergeQueue
):
    out = replace(stored.entries[4], state=EntryState.CANCELLED)
    again = builders.an_entry(4, id="again")
    passing = replace(builders.an_entry(5), state=EntryState.CANCELLED)
    after = replace(stored, entries={**stored.entries, 4: again})
    saved = queues.save(session, stored, step_to(after, finished_entries=(out, passing)))
    assert queues.load(session, stored.id) == saved
    assert runs.newest_entry(session, stored.id, 4) == again
    assert runs.newest_entry(session, stored.id, 5) == passing


def test_what_just_vanishes_is_our_own_mistake(session: Connection, stored: MergeQueue):
    with pytest.raises(InvariantBroken, match="e4"):
        queues.save(session, stored, step_to(replace(stored, entries={3: stored.entries[3]})))


def test_entries_and_runs_come_back_in_the_order_they_were_made(session: Connection):
    empty = a_stored_queue(session)
    entries = {pr: builders.an_entry(pr) for pr in (9, 2, 5)}
    greens = {key: builders.a_green(key, minutes) for minutes, key in enumerate("zax")}
    queues.save(session, empty, step_to(replace(empty, entries=entries, greens=greens)))
    loaded = queues.load(session, empty.id)
    assert list(loaded.entries) == [9, 2, 5]
    assert list(loaded.greens) == ["z", "a", "x"]


def test_passed_trees_are_added_changed_and_forgotten(session: Connection):
    empty = a_stored_queue(session)
    greens = {key: builders.a_green(key, 0) for key in ("a", "b", "c")}
    first = queues.save(session, empty, step_to(replace(empty, greens=greens)))
    fewer = {"b": replace(greens["b"], run="other"), "c": greens["c"], "d": greens["a"]}
    second = queues.save(session, first, step_to(replace(first, greens=fewer)))
    assert queues.load(session, empty.id) == second


def test_a_branch_has_one_queue(session: Connection, stored: MergeQueue):
    with pytest.raises(Conflict) as refused, session.begin_nested():
        queues.create(session, 1, 1, a_queue())
    assert refused.value.code == "queue_exists"


def test_a_deleted_queue_frees_its_branch(session: Connection, stored: MergeQueue):
    queues.save(session, stored, replace(step_to(stored), wake_at=NOW))
    queues.mark_deleted(session, stored.id, NOW)
    assert queues.queue_ref(session, 1, 1, "main") is None
    assert queues.all_queues(session) == ()
    assert queues.due(session, NOW) == ()
    again = queues.create(session, 1, 1, a_queue())
    assert again.id != stored.id
    assert queues.ref_by_id(session, stored.id) is not None


def test_a_queue_is_found_by_branch_within_its_organization(
    session: Connection, stored: MergeQueue
):
    ref = QueueRef(stored.id, 1, 1, RepoRef("github.test", "octo", "widgets"), "main")
    assert queues.queue_ref(session, 1, 1, "main") == ref
    assert queues.queue_ref(session, 2, 1, "main") is None
    assert queues.queue_ref(session, 1, 1, "Main") is None
    assert queues.ref_by_id(session, stored.id) == ref
    assert queues.ref_by_id(session, 99) is None
    other = queues.create(session, 1, 1, a_queue("release/2"))
    assert [each.id for each in queues.queues_of(session, 1)] == [stored.id, other.id]
    assert queues.queues_of(session, 1) == queues.all_queues(session)


def test_a_renamed_branch_is_a_new_version(session: Connection, stored: MergeQueue):
    queues.rename_branch(session, stored.id, "trunk")
    loaded = queues.load(session, stored.id)
    assert (loaded.branch, loaded.version) == ("trunk", stored.version + 1)


def test_due_queues_come_longest_waiting_first(session: Connection, stored: MergeQueue):
    other = queues.create(session, 1, 1, a_queue("next"))
    queues.save(session, stored, replace(step_to(stored), wake_at=NOW))
    earlier = NOW - timedelta(microseconds=1)
    queues.save(session, other, replace(step_to(other), wake_at=earlier))
    assert queues.due(session, NOW) == (other.id, stored.id)
    assert queues.due(session, earlier) == (other.id,)


def test_queues_with_live_entries_are_known(session: Connection, stored: MergeQueue):
    queues.create(session, 1, 1, a_queue("next"))
    assert queues.live_queues(session) == (stored.id,)


def test_live_runs_are_found_by_their_commit(session: Connection, stored: MergeQueue):
    sha = Sha("d" * 40)
    built = replace(stored.runs["r1"], sha=sha)
    saved = queues.save(session, stored, step_to(replace(stored, runs={"r1": built})))
    assert queues.run_of_sha(session, 1, sha) == ((stored.id, "r1"),)
    assert queues.run_of_sha(session, 2, sha) == ()
    queues.save(session, saved, step_to(replace(saved, runs={}), finished_runs=(built,)))
    assert queues.run_of_sha(session, 1, sha) == ()


def test_an_unknown_queue_has_no_value_and_no_head(session: Connection):
    assert queues.head_of(session, 99) is None
    with pytest.raises(NotFound):
        queues.load(session, 99)


def test_settings_survive_whatever_is_added_later(session: Connection, stored: MergeQueue):
    config = replace(QueueConfig(), concurrency=7, required_statuses=("unit", "lint"))
    saved = queues.save(session, stored, step_to(replace(stored, config=config)))
    old = '{"concurrency": 7, "required_statuses": ["unit", "lint"], "long_gone": 1}'
    session.exec_driver_sql(f"UPDATE merge_queue SET config = '{old}'")
    assert queues.load(session, stored.id) == saved


def test_an_entry_that_was_stored_before_its_minutes_were_read_has_none(
    session: Connection, stored: MergeQueue
):
    entry = stored.entries[4]
    timed = replace(entry, facts=replace(entry.facts, own_minutes=12.0))
    queues.save(session, stored, step_to(replace(stored, entries={**stored.entries, 4: timed})))
    (text,) = session.exec_driver_sql("SELECT facts FROM entry WHERE pr = 4").scalars()
    old = json.loads(text)
    assert old.pop("own_minutes") == 12
    session.exec_driver_sql(f"UPDATE entry SET facts = '{json.dumps(old)}' WHERE pr = 4")
    assert queues.load(session, stored.id).entries[4] == entry

"""What is appended, and what is remembered beside the queue's value."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError

from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.mergequeue.engine import targets
from service.mergequeue.engine.model import Detail, MergeQueue, Run
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    Event,
    HoldPlaced,
    Recorded,
    RunFinished,
    RunStarted,
    Step,
)
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.store import journal, notices, pull_requests, queues, runs
from service.mergequeue.store.notices import NoticeKey, PostedNotice, Surface
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provenance import ProviderTime
from service.vocabulary import Sha
from tests.store import values
from tests.store.builders import ANN, a_run, a_sha, an_entry
from tests.store.conftest import NOW, a_stored_queue

MINUTE = timedelta(minutes=1)


@pytest.fixture
def queue(session: Connection) -> MergeQueue:
    return a_stored_queue(session)


def with_runs(session: Connection, queue: MergeQueue, *found: Run) -> MergeQueue:
    """The queue with these runs and no others."""
    after = replace(queue, runs={run.id: run for run in found})
    gone = tuple(run for run in queue.runs.values() if run.id not in after.runs)
    step = Step(after, (), (), None, None, finished_runs=gone)
    return queues.save(session, queue, step)


def find(event: Event, minutes: int = 0) -> Recorded:
    return Recorded(NOW + minutes * MINUTE, ANN, event)


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_every_event_comes_back_as_it_was(data: st.DataObject):
    event = data.draw(values.any_of(Event))
    name, text = journal.EVENT.encode(event)
    assert journal.EVENT.decode(name, text) == event


def test_a_timeline_tells_one_submission_and_its_runs(session: Connection, queue: MergeQueue):
    with_runs(session, queue, a_run("r1", (3, 4)), a_run("r2", (4,)))
    first = EntrySubmitted(3, "e3", a_sha(3), Reason.USER_REQUESTED, 100)
    submitted = find(first)
    started = find(RunStarted("r1", 3, RunKind.MAIN, (3, 4), (), Sha("a" * 40)), 1)
    moved = find(
        EntryMoved(
            3,
            "e3",
            EntryState.PENDING,
            EntryState.TESTING,
            Reason.TEST_STARTED,
            "r1",
            Detail(text="slot 1", prs=(4,)),
        ),
        1,
    )
    last = RunFinished("r1", RunStatus.FAILED, None, ("unit",))
    finished = find(last, 2)
    others = (
        find(replace(first, pr=4, entry="e4")),
        find(replace(first, entry="older")),
        find(replace(last, run="r2"), 2),
        find(HoldPlaced("h1", HoldReason.FREEZE, "release")),
    )
    journal.append(session, queue.id, [submitted, *others[:2], started, moved])
    journal.append(session, queue.id, [*others[2:], finished])
    assert journal.timeline(session, queue.id, 3, "e3") == (submitted, started, moved, finished)
    assert journal.timeline(session, queue.id, 3, "older") == (others[1],)
    assert journal.timeline(session, queue.id + 1, 3, "e3") == ()


def test_nothing_is_nothing(session: Connection, queue: MergeQueue):
    journal.append(session, queue.id, [])
    assert journal.timeline(session, queue.id, 3, "e3") == ()
    assert runs.runs_of(session, queue.id, ()) == ()
    assert pull_requests.targets_of(session, 1, []) == {}
    assert pull_requests.targets_known(session, 1, []) == frozenset()


def test_runs_are_found_by_id_within_their_queue(session: Connection, queue: MergeQueue):
    first, second = a_run("r1", (3,)), a_run("r0", (4,), base=a_run("x", (3,)).entries)
    with_runs(session, queue, first, second)
    assert runs.runs_of(session, queue.id, ["r0", "r1", "r9"]) == (first, second)
    assert runs.run(session, queue.id, "r1") == first
    assert runs.run(session, queue.id + 1, "r1") is None


def test_the_newest_submission_of_a_pull_request_is_known(session: Connection, queue: MergeQueue):
    old = an_entry(3, state=EntryState.FAILED)
    new = an_entry(3, id="again")
    step = Step(replace(queue, entries={3: new}), (), (), None, None, finished_entries=(old,))
    queues.save(session, queue, step)
    assert runs.newest_entry(session, queue.id, 3) == new
    assert runs.newest_ended(session, queue.id, 3) == old
    assert runs.entry(session, queue.id, "e3") == old
    assert runs.newest_entry(session, queue.id, 4) is None
    assert runs.entry(session, queue.id + 1, "e3") is None


def test_only_successes_tell_how_long_a_run_takes(session: Connection, queue: MergeQueue):
    def ended(run_id: str, minutes: int, status: RunStatus = RunStatus.SUCCEEDED) -> Run:
        return a_run(run_id, status=status, finished_at=NOW + minutes * MINUTE)

    found = (
        ended("r1", 10),
        ended("r2", 1, RunStatus.FAILED),
        a_run("r3", status=RunStatus.SUCCEEDED),
        ended("r4", 12),
    )
    with_runs(session, with_runs(session, queue, *found))
    assert runs.succeeded_durations_s(session, queue.id) == (720.0, 600.0)
    assert runs.succeeded_durations_s(session, queue.id, 1) == (720.0,)
    assert runs.succeeded_durations_s(session, queue.id + 1) == ()


def test_a_run_keeps_its_vehicle_when_it_changes(session: Connection, queue: MergeQueue):
    stored = with_runs(session, queue, a_run("r1"))
    assert runs.draft_pull_request_of(session, "r1") is None
    runs.set_draft_pull_request(session, queue.id, "r1", 12, "https://github.test/pull/12")
    stored = with_runs(session, stored, a_run("r1", attempt=2))
    assert runs.draft_pull_request_of(session, "r1") == (12, "https://github.test/pull/12")
    assert queues.load(session, queue.id) == stored
    runs.set_draft_pull_request(session, queue.id, "r1", None, None)
    assert runs.draft_pull_request_of(session, "r1") is None
    assert runs.draft_pull_request_of(session, "r9") is None


def test_a_lost_branch_is_put_back_once(session: Connection, queue: MergeQueue):
    with_runs(session, queue, a_run("r1"))
    assert runs.note_restored(session, queue.id, "r1")
    assert not runs.note_restored(session, queue.id, "r1")
    assert not runs.note_restored(session, queue.id, "r9")


def test_our_branches_are_known_after_their_runs_ended(session: Connection, queue: MergeQueue):
    first = with_runs(session, queue, a_run("r1", branch="hg/1"), a_run("r0"))
    with_runs(session, first, a_run("r2", branch="hg/2"), a_run("r3", branch="hg/1"))
    assert runs.recorded_branches(session, 1) == {
        "hg/1": runs.RecordedBranch(queue.id, "r3", live=True),
        "hg/2": runs.RecordedBranch(queue.id, "r2", live=True),
    }
    assert runs.recorded_branches(session, 2) == {}


def test_a_branch_is_left_over_if_its_run_has_ended_and_did_not_report_it(
    session: Connection, queue: MergeQueue
):
    """A run that repeats an ended one goes on with the branch which that one has reported."""
    first = with_runs(session, queue, a_run("r1", branch="hg/1"), a_run("r2"), a_run("r3"))
    with_runs(session, first, a_run("r3"), a_run("r4", branch="hg/1", repeats="r1"))
    made_for = {"hg/1": "r1", "temp/1": "r1", "hg/2": "r2", "temp/3": "r3", "hg/9": "r9"}
    assert runs.left_by_ended(session, 1, made_for) == {"temp/1", "hg/2"}
    assert runs.left_by_ended(session, 2, made_for) == frozenset()


def head(number: int, of: int, repository_id: int = 1) -> PullRequestHead:
    return PullRequestHead(repository_id, number, a_sha(of))


def shown(at: datetime) -> ProviderTime:
    return ProviderTime(at)


def test_the_newest_head_is_remembered_with_the_first_time_of_the_provider(
    session: Connection, queue: MergeQueue
):
    assert pull_requests.known_head(session, 1, 3) is None
    pull_requests.remember_head(session, head(3, 31), shown(NOW), NOW)
    pull_requests.remember_head(session, head(3, 32), shown(NOW + 2 * MINUTE), NOW)
    pull_requests.remember_head(session, head(3, 30), shown(NOW), NOW + 9 * MINUTE)
    pull_requests.remember_head(session, head(3, 32), shown(NOW + 3 * MINUTE), NOW)
    pull_requests.remember_head(session, head(3, 32), shown(NOW + MINUTE), NOW + 9 * MINUTE)
    known = pull_requests.known_head(session, 1, 3)
    assert known == pull_requests.KnownHead(a_sha(32), shown(NOW + MINUTE))
    assert pull_requests.known_head(session, 1, 4) is None


def test_a_time_before_the_head_may_have_been_away_is_replaced(
    session: Connection, queue: MergeQueue
):
    pull_requests.remember_head(session, head(3, 31), shown(NOW), NOW)
    later, away = shown(NOW + 3 * MINUTE), shown(NOW + MINUTE)
    pull_requests.remember_head(session, head(3, 31), later, NOW, away)
    assert pull_requests.known_head(session, 1, 3) == pull_requests.KnownHead(a_sha(31), later)
    pull_requests.remember_head(session, head(3, 31), shown(NOW + 4 * MINUTE), NOW, away)
    assert pull_requests.known_head(session, 1, 3) == pull_requests.KnownHead(a_sha(31), later)


def test_a_head_without_a_time_of_the_provider_replaces_none_that_has_one(
    session: Connection, queue: MergeQueue
):
    pull_requests.remember_head(session, head(3, 31), None, NOW)
    pull_requests.remember_head(session, head(3, 32), None, NOW)
    assert pull_requests.known_head(session, 1, 3) == pull_requests.KnownHead(a_sha(32), None)
    pull_requests.remember_head(session, head(3, 32), shown(NOW), NOW)
    pull_requests.remember_head(session, head(3, 33), None, NOW + MINUTE)
    known = pull_requests.known_head(session, 1, 3)
    assert known == pull_requests.KnownHead(a_sha(32), shown(NOW))


def test_the_newest_upload_of_targets_counts_for_its_head(session: Connection, queue: MergeQueue):
    pull_requests.put_targets(session, head(3, 31), targets.of(["//a", "//ü"]), NOW)
    pull_requests.put_targets(session, head(3, 32), targets.ALL, NOW)
    pull_requests.put_targets(session, head(4, 41), targets.of(["//old"]), NOW)
    pull_requests.put_targets(session, head(4, 41), targets.of([]), NOW)
    pairs = [(3, a_sha(31)), (3, a_sha(32)), (4, a_sha(41)), (4, a_sha(42))]
    assert pull_requests.targets_of(session, 1, pairs) == {
        (3, a_sha(31)): targets.of(["//a", "//ü"]),
        (3, a_sha(32)): targets.ALL,
        (4, a_sha(41)): targets.of([]),
    }
    assert pull_requests.targets_known(session, 1, pairs[1:]) == {pairs[1], pairs[2]}
    assert pull_requests.targets_of(session, 2, pairs) == {}


def test_a_notice_is_found_where_it_was_placed(session: Connection, queue: MergeQueue):
    comment = NoticeKey(queue.id, 3, Surface.COMMENT, "e3")
    check = NoticeKey(queue.id, 3, Surface.CHECK, "e3")
    assert notices.find(session, comment) is None
    notices.record(session, comment, PostedNotice("c1", "old"))
    notices.record(session, check, PostedNotice("k1", "x"))
    notices.record(session, comment, PostedNotice("c1", "new"))
    assert notices.find(session, replace(comment, entry="e9")) == PostedNotice("c1", "new")
    assert notices.find(session, check) == PostedNotice("k1", "x")
    assert notices.find(session, replace(check, entry="e9")) is None


def deed(action: str, at: datetime = NOW, org_id: int | None = 1) -> AuditEntry:
    return AuditEntry(
        at=at,
        org_id=org_id,
        actor=ANN,
        action=action,
        subject="queue/1",
        decision="allowed",
        reason="release",
        request_id="req-1",
        data={"before": {"concurrency": 1}, "names": ["unit"]},
    )


def test_deeds_come_back_newest_first(session: Connection, queue: MergeQueue):
    for each in (deed("first"), deed("other", org_id=2), deed("nobody", org_id=None)):
        audit.append(session, each)
    audit.append(session, deed("second"))
    assert audit.newest(session, 1, 9) == (deed("second"), deed("first"))
    assert audit.newest(session, 1, 1) == (deed("second"),)


@pytest.mark.parametrize("statement", ["UPDATE audit SET action = 'nothing'", "DELETE FROM audit"])
def test_a_deed_is_never_changed(session: Connection, queue: MergeQueue, statement: str):
    audit.append(session, deed("first"))
    with pytest.raises(DatabaseError, match="append-only"), session.begin_nested():
        session.exec_driver_sql(statement)
    assert audit.newest(session, 1, 9) == (deed("first"),)

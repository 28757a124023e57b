"""What heads and submitters have used, by the rows of a queue."""

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.mergequeue.engine.model import Detail, Entry, MergeQueue, Named, Run, RunStep, Tip
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.past import Spent
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.states import EntryState, RunKind
from service.mergequeue.store import queues, submissions
from service.vocabulary import RequiredName, Sha
from tests.store import builders
from tests.store.conftest import NOW, a_stored_queue

TODAY = NOW.replace(hour=0)


def saved(
    session: Connection, queue: MergeQueue, entries: list[Entry], runs: list[Run]
) -> MergeQueue:
    """Store a queue in which these are all live."""
    after = replace(
        queue,
        entries={entry.pr: entry for entry in entries},
        runs={run.id: run for run in runs},
    )
    return queues.save(session, queue, Step(after, (), (), None, None))


def ended(session: Connection, queue: MergeQueue) -> MergeQueue:
    """End everything that is live in a stored queue."""
    after = replace(queue, entries={}, runs={})
    gone, over = tuple(queue.entries.values()), tuple(queue.runs.values())
    step = Step(after, (), (), None, None, finished_entries=gone, finished_runs=over)
    return queues.save(session, queue, step)


def a_timed_run(run_id: str, prs: tuple[int, ...], minutes: float, **more: object) -> Run:
    """A run that took so long."""
    end = NOW + timedelta(minutes=minutes)
    return builders.a_run(run_id, prs, **{"built_at": NOW, "finished_at": end, **more})


def used(session: Connection, queue: MergeQueue, submitter: str) -> Spent:
    return submissions.spent(session, queue.id, submitter, TODAY, NOW + timedelta(minutes=30))


@pytest.fixture
def empty(session: Connection) -> MergeQueue:
    """A stored queue without entries."""
    return a_stored_queue(session)


def test_the_minutes_of_a_run_are_shared_evenly(session: Connection, empty: MergeQueue):
    other = replace(builders.ANN, login="bob")
    entries = [
        builders.an_entry(1),
        builders.an_entry(2),
        builders.an_entry(3, submitted_by=other),
    ]
    queue = saved(session, empty, entries, [a_timed_run("r1", (1, 2, 3), 9)])
    assert used(session, queue, "ann").minutes == 6.0
    assert used(session, queue, "bob").minutes == 3.0
    assert used(session, ended(session, queue), "ann").minutes == 6.0
    assert used(session, queue, "carol") == Spent()


def test_a_confirmation_counts_for_its_suspect_alone(session: Connection, empty: MergeQueue):
    other = replace(builders.ANN, login="bob")
    entries = [builders.an_entry(1), builders.an_entry(2, submitted_by=other)]
    runs = [a_timed_run("r1", (1, 2), 10, kind=RunKind.CONFIRMATION)]
    queue = saved(session, empty, entries, runs)
    assert used(session, queue, "ann").minutes == 0.0
    assert used(session, queue, "bob").minutes == 10.0


def test_what_is_under_way_counts_until_now_and_what_ran_nothing_costs_nothing(
    session: Connection, empty: MergeQueue
):
    runs = [
        a_timed_run("live", (1,), 0, finished_at=None),
        a_timed_run("taken over", (2,), 10, reused_from="r0"),
        a_timed_run("not built", (3,), 10, built_at=None),
        a_timed_run("yesterday", (4,), 10, built_at=TODAY - timedelta(seconds=1)),
    ]
    entries = [builders.an_entry(pr) for pr in (1, 2, 3, 4)]
    queue = saved(session, empty, entries, runs)
    assert used(session, queue, "ann").minutes == 30.0


def test_other_queues_count_only_in_all(session: Connection, empty: MergeQueue):
    saved(session, empty, [builders.an_entry(1)], [a_timed_run("r1", (1,), 5)])
    second = a_stored_queue(session, "release")
    mine = builders.an_entry(2)
    second = saved(session, second, [mine], [a_timed_run("r2", (2,), 7)])
    assert used(session, second, "ann") == Spent(1, 7.0, 12.0)


def failed(number: int, run: str, check: str = "unit", **more: object) -> Entry:
    """A submission of one head that failed in a run, with confirmation unless said otherwise."""
    confirmed = bool(more.get("confirmed", True))
    detail = Detail(run=run, checks=(Named(check, "u"),), is_confirmed=confirmed)
    return builders.an_entry(
        number,
        id=f"{run} {number}",
        head=Sha(str(more.get("head", "f" * 40))),
        state=EntryState.FAILED,
        reason=Reason.REQUIRED_STATUS_FAILED,
        detail=detail,
    )


def failing(session: Connection, queue: MergeQueue, *entries: Entry, **more: object) -> MergeQueue:
    """Store submissions that failed, each in its run."""
    for entry in entries:
        assert entry.detail.run is not None
        run = builders.a_run(entry.detail.run, (entry.pr,), **more)
        queue = saved(session, queue, [entry], [run])
        queue = ended(session, queue)
    return queue


def test_the_newest_confirmed_failure_of_a_head_is_found_whatever_its_number(
    session: Connection, empty: MergeQueue
):
    base = RunStep(9, Sha("9" * 40), Sha("7" * 40), Sha("8" * 40), contained=False)
    own = RunStep(4, Sha("f" * 40), Sha("5" * 40), Sha("6" * 40), contained=False)
    queue = failing(session, empty, failed(3, "r1"), failed(4, "r2"), steps=(base, own))
    queue = failing(session, queue, failed(4, "r3", "lint", confirmed=False))
    queue = failing(session, queue, failed(5, "r4", head="e" * 40))
    found = submissions.blamed_run(session, queue.id, Sha("f" * 40))
    assert found is not None
    blamed, run = found
    assert (blamed.run, run.id, blamed.times) == ("r2", "r2", 2)
    assert blamed.base == Tip(Sha("7" * 40), Sha("8" * 40))
    assert submissions.blamed_run(session, queue.id, Sha("d" * 40)) is None


def test_two_failures_that_one_run_showed_confirm_each_other_by_a_common_check(
    session: Connection, empty: MergeQueue
):
    queue = failing(session, empty, failed(3, "r1", confirmed=False))
    queue = failing(session, queue, failed(3, "r2", "lint", confirmed=False))
    assert submissions.blamed_run(session, queue.id, Sha("f" * 40)) is None
    queue = failing(session, queue, failed(3, "r3", confirmed=False))
    found = submissions.blamed_run(session, queue.id, Sha("f" * 40))
    assert found is not None
    assert (found[0].run, found[0].times) == ("r3", 2)


def test_failures_of_another_required_set_are_not_counted(session: Connection, empty: MergeQueue):
    queue = failing(session, empty, failed(3, "r1"), required=(RequiredName("lint"),))
    queue = failing(session, queue, failed(3, "r2"))
    found = submissions.blamed_run(session, queue.id, Sha("f" * 40))
    assert found is not None
    assert found[0].times == 1


def test_another_queue_knows_nothing_of_it(session: Connection, empty: MergeQueue):
    failing(session, empty, failed(3, "r1"))
    second = a_stored_queue(session, "release")
    assert submissions.blamed_run(session, second.id, Sha("f" * 40)) is None

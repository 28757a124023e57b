"""A queue's own rows as a history, and what becomes of it under the queue's own settings."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.database.database import Store
from service.errors import NotFound
from service.mergequeue.engine.config import ConfirmFailures, Mode
from service.mergequeue.operations import simulate
from service.mergequeue.simulation import stream
from service.mergequeue.simulation.history import Arrival, Fate, History, history_of
from service.mergequeue.simulation.replay import replay
from service.mergequeue.simulation.world import sha_of
from service.vocabulary import RepoRef
from tests.harness import recorded
from tests.harness.databases import SetClock
from tests.harness.recorded import HOST, Recording

REPO = RepoRef(HOST, "octo", "widgets")
BEGIN = recorded.days_ago(2)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(BEGIN - timedelta(minutes=1))


@pytest.fixture
def lived(store: Store, clock: SetClock):
    """Lets a queue live through a history; who merged, and what its rows tell afterwards."""

    async def live(history: History, **settings):
        clock.present = history.arrivals[0].at - timedelta(minutes=1)
        runtime = recorded.runtime_of(store, clock)
        queue = await recorded.made(runtime, **settings)
        merged = await Recording(runtime, clock, queue, history).play()
        found = await simulate.recorded(runtime, REPO, "main", timedelta(days=400))
        return merged, found

    return live


def arrives(pr: int, minute: float, **differences) -> Arrival:
    at = BEGIN + timedelta(minutes=minute)
    return replace(Arrival(at, pr, sha_of("head", str(pr)), ci_s=600.0), **differences)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mode": Mode.PARALLEL},
        {"batch": True, "batching_min_size": 3},
        {"can_optimistically_merge": True, "pending_failure_depth": 2},
    ],
    ids=["single", "parallel", "batches", "optimistic"],
)
async def test_replaying_a_queues_past_under_its_own_settings_merges_the_same_set(lived, settings):
    made_up = stream.made_up(5)
    flawless = history_of(made_up.arrivals[:40], (), 0.0)
    merged, found = await lived(flawless, concurrency=4, **settings)
    replayed = replay(found.history, found.config, 1)
    assert len(found.history.arrivals) == 40
    assert found.config.concurrency == 4
    assert set(replayed.merged) == set(merged)
    truth = replay(flawless, found.config, 1)
    assert set(truth.merged) == set(merged)
    if "batch" not in settings:
        # How long one of a batch would have taken alone, its rows cannot tell.
        assert replayed.merged == truth.merged
        assert (replayed.restarts, replayed.ci_runs) == (truth.restarts, truth.ci_runs)


async def test_fates_and_times_are_read_from_verdicts_and_runs(lived):
    arrivals = (
        arrives(1, 0, author="ann", priority=10),
        arrives(2, 1, fate=Fate(breaks=True), ci_s=480.0),
        arrives(3, 2, fate=Fate(conflicts=True)),
        arrives(4, 3, cancelled_at=BEGIN + timedelta(minutes=8)),
    )
    merged, found = await lived(history_of(arrivals, (), 0.0), concurrency=4)
    assert merged == [1]
    by_pr = {one.pr: one for one in found.history.arrivals}
    assert (by_pr[1].author, by_pr[1].priority, by_pr[1].at) == ("ann", 10, BEGIN)
    assert (by_pr[1].ci_s, by_pr[2].ci_s, by_pr[3].ci_s) == (600.0, 480.0, None)
    assert by_pr[2].fate == Fate(breaks=True)
    assert by_pr[3].fate == Fate(conflicts=True)
    assert by_pr[4].fate.is_good
    assert by_pr[4].cancelled_at == BEGIN + timedelta(minutes=8)
    # The failure of 2 was confirmed by a second run.
    assert found.history.durations_s == (480.0, 480.0, 600.0)
    assert found.history.flake_rate == 0


async def test_a_failed_run_whose_heads_merged_unchanged_is_a_flake(lived):
    arrivals = tuple(arrives(pr, 30 * pr) for pr in range(1, 13))
    again = tuple(arrives(pr, 1000 + 30 * pr) for pr in range(1, 13))
    third = tuple(arrives(pr, 2000 + 30 * pr) for pr in range(1, 13))
    flaky = History((*arrivals, *again, *third), (), flake_rate=0.25)
    merged, found = await lived(flaky, confirm_failures=ConfirmFailures.OFF)
    assert sorted(merged) == list(range(1, 13))
    assert all(one.fate.is_good for one in found.history.arrivals)
    failures = len(found.history.arrivals) - 12
    assert failures > 0
    assert found.history.flake_rate == pytest.approx(failures / (failures + 12))


async def test_what_is_older_is_left_out(lived, store, clock):
    await lived(history_of([arrives(1, 0), arrives(2, 600)], (), 0.0))
    runtime = recorded.runtime_of(store, clock)
    found = await simulate.recorded(runtime, REPO, "main", timedelta(hours=2))
    assert [one.pr for one in found.history.arrivals] == [2]
    clock.present += timedelta(days=1)
    with pytest.raises(NotFound) as refused:
        await simulate.recorded(runtime, REPO, "main", timedelta(hours=2))
    assert refused.value.code == "history_not_found"


async def test_of_submissions_from_before_rules_it_is_known_what_is_missing(lived):
    _, found = await lived(history_of([arrives(1, 0, author="ada")], [], 0.0))
    (one,) = found.history.arrivals
    missing = {"branch", "labels", "approvals", "auto_merge", "depends_on", "touches", "only"}
    assert one.unknown == missing
    assert (one.seen and one.seen.author, one.priority) == ("ada", None)

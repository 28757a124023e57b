"""Shards that take about as long as one another."""

from random import Random

import pytest

from service.testhealth import shards

NAMES = [f"tests/part_{nth % 17}/test_{nth}.py" for nth in range(600)]


def some_times(seed):
    chance = Random(seed)
    return {name: chance.lognormvariate(1, 1.2) for name in NAMES}


def places(plan):
    return {file: nth for nth, shard in enumerate(plan.shards) for file in shard.files}


@pytest.mark.parametrize("count", [1, 2, 4, 9, 30])
def test_every_file_is_in_one_shard_and_the_longest_is_close_to_the_best(count):
    times = some_times(count)
    plan = shards.planned(NAMES, times, count)
    assert sorted(file for shard in plan.shards for file in shard.files) == sorted(NAMES)
    best = max(sum(times.values()) / count, *times.values())
    assert best <= plan.worst_s + 1e-6
    assert plan.worst_s <= 1.05 * best
    for shard in plan.shards:
        assert shard.expected_s == pytest.approx(sum(times[file] for file in shard.files))


def test_a_plan_moves_few_files_when_times_change_little_or_a_file_is_new():
    times, chance = some_times(1), Random(2)
    before = places(shards.planned(NAMES, times, 8))
    assert places(shards.planned(NAMES[::-1], times, 8)) == before
    later = {name: seconds * chance.uniform(0.95, 1.05) for name, seconds in times.items()}
    after = places(shards.planned([*NAMES, "tests/test_new.py"], later, 8))
    assert sum(after[name] != before[name] for name in NAMES) <= 0.15 * len(NAMES)


def test_a_file_without_a_time_takes_the_median_and_is_counted():
    plan = shards.planned(["a", "b", "c", "new"], {"a": 1.0, "b": 5.0, "c": 30.0, "d": 99.0}, 2)
    assert (plan.known, plan.unknown, plan.assumed_s) == (3, 1, 5.0)
    assert sum(shard.expected_s for shard in plan.shards) == 41.0
    assert not plan.too_little_is_known
    assert shards.planned(["a", "x", "y"], {"a": 1.0}, 2).too_little_is_known


def test_without_any_time_shards_get_as_many_files_as_one_another():
    plan = shards.planned(NAMES[:40], {}, 4)
    assert plan.too_little_is_known
    assert [len(shard.files) for shard in plan.shards] == [10] * 4

"""Pairs of open heads that are merged in a mirror: docs/design/conflicts.md 2."""

import itertools
from dataclasses import replace

import pytest

from bot.sandbox.git import TreeItem
from service.provider.overlaps import OverlapRequest
from service.provider.values import ListedPullRequest, Vehicle
from service.vocabulary import ConflictRule, Resolution, Sha
from tests.provider.contract_lines import committed, opened
from tests.provider.stage import mirrors_in, on_sandbox
from tests.provider.test_hostile_repositories import Planted


@pytest.fixture
async def stage(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as made:
        await made.push_files({"t": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "list": "old\n"})
        first = await made.open({"z": "z\n"})
        await made.provider.build(made.request(first, vehicle=Vehicle.PUSH))
        yield made


def asked(stage, *pulls, **changed):
    """The newest pull request first."""
    heads = tuple(ListedPullRequest(number, head) for number, head in reversed(pulls))
    return replace(
        OverlapRequest(stage.repo, "main", stage.tip(), heads, frozenset(), (), 100, 60.0),
        **changed,
    )


def clashing(found):
    """Pairs that conflict, by number, with the files."""
    return {(one.low.number, one.high.number): one.paths for one in found.pairs if one.paths}


async def test_heads_with_common_files_are_merged_and_conflicts_found(stage):
    text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    one = await stage.open({"t": text.replace("1", "one")})
    two = await stage.open({"t": text.replace("1", "uno"), "u": "u\n"})
    far = await stage.open({"t": text.replace("9", "nine")})
    other = await stage.open({"v": "v\n"})
    writes = len(stage.pushes())
    found = await stage.provider.overlaps(asked(stage, one, two, far, other))
    assert clashing(found) == {(one[0], two[0]): ("t",)}
    assert (len(found.pairs), found.left) == (3, 0)
    assert found.cpu_s > 0
    assert len(stage.pushes()) == writes


async def test_what_was_compared_is_not_merged_again_and_the_newest_go_first(stage):
    pulls = [await stage.open({"t": f"{n}\n"}) for n in range(4)]
    found = await stage.provider.overlaps(asked(stage, *pulls, pairs_max=2))
    newest = [pulls[3][0], pulls[2][0]]
    assert {found.pairs[0].low.number, found.pairs[0].high.number} == set(newest)
    assert (len(found.pairs), found.left) == (2, 4)
    compared = frozenset((one.low.head, one.high.head) for one in found.pairs)
    rest = await stage.provider.overlaps(asked(stage, *pulls, compared=compared))
    assert (len(rest.pairs), rest.left) == (4, 0)


async def test_without_time_nothing_is_merged_and_all_is_left(stage):
    pulls = [await stage.open({"t": f"{n}\n"}) for n in range(3)]
    found = await stage.provider.overlaps(asked(stage, *pulls, cpu_s_max=0.0))
    assert (found.pairs, found.left) == ((), 3)


async def test_a_conflict_with_the_target_is_none_of_a_pair(stage):
    old = await stage.open({"t": "old\n"})
    new = await stage.open({"t": "new\n"})
    await stage.push_files({"t": "moved\n"})
    found = await stage.provider.overlaps(asked(stage, old, new))
    assert clashing(found) == {}


async def test_a_head_on_another_one_does_not_conflict_with_it(stage):
    one = committed(stage, [stage.tip()], {"t": "one\n"})
    two = committed(stage, [one], {"t": "two\n"})
    pulls = [await opened(stage, one), await opened(stage, two)]
    assert clashing(await stage.provider.overlaps(asked(stage, *pulls))) == {}


async def test_what_rules_resolve_is_no_conflict(stage):
    pulls = [await stage.open({"list": f"{n}\nold\n"}) for n in "ab"]
    rules = (ConflictRule(("list",), Resolution.UNION),)
    assert clashing(await stage.provider.overlaps(asked(stage, *pulls, rules=rules))) == {}
    found = await stage.provider.overlaps(asked(stage, *pulls))
    assert clashing(found) == {(pulls[0][0], pulls[1][0]): ("list",)}


async def test_heads_that_cannot_be_fetched_hide_no_others(stage):
    pulls = [await stage.open({"t": f"{n}\n"}) for n in range(3)]
    planted = Planted(stage)
    below = planted.objects.write_tree([TreeItem("100644", "blob", planted.blob(b"x"), "config")])
    hostile = pulls[0][0], planted.commit(("040000", "tree", below, ".git"))
    gone = 99, Sha("f" * 40)
    request = asked(stage, hostile, pulls[1], gone, pulls[2])
    found = await stage.provider.overlaps(request)
    assert clashing(found) == {(pulls[1][0], pulls[2][0]): ("t",)}
    assert clashing(await stage.provider.overlaps(request)) == clashing(found)


async def test_a_merge_of_two_histories_that_crossed_is_left_to_people(stage):
    start = stage.tip()
    one = committed(stage, [start], {"list": "one\nold\n"})
    two = committed(stage, [start], {"list": "old\ntwo\n"})
    both = {"list": "one\nold\ntwo\n"}
    crossed = [committed(stage, sides, both) for sides in ([one, two], [two, one])]
    pulls = [
        await opened(stage, committed(stage, [head], {"list": f"one\n{name}\nold\ntwo\n"}))
        for head, name in zip(crossed, "ab", strict=True)
    ]
    rules = (ConflictRule(("list",), Resolution.UNION),)
    found = await stage.provider.overlaps(asked(stage, *pulls, rules=rules))
    assert clashing(found) == {(pulls[0][0], pulls[1][0]): ("list",)}


async def test_the_time_of_rules_counts(stage, monkeypatch):
    pulls = [await stage.open({"list": f"{n}\nold\n"}) for n in range(4)]
    monkeypatch.setattr("time.thread_time", itertools.count(0, 1_000).__next__)
    rules = (ConflictRule(("list",), Resolution.UNION),)
    found = await stage.provider.overlaps(asked(stage, *pulls, rules=rules))
    assert (len(found.pairs), found.left) == (1, 5)
    assert found.cpu_s > 1_000


async def test_without_a_mirror_nothing_is_known():
    async with on_sandbox() as stage:
        assert await stage.provider.overlaps(asked(stage)) is None

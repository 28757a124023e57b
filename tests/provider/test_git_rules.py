"""Builds that resolve conflicts by the rules of a queue: docs/design/conflicts.md 5."""

from dataclasses import replace

import pytest

from service.provider.errors import Unavailable
from service.provider.values import Built, Conflicted, Rehearsed, Vehicle
from service.vocabulary import ConflictRule, MergeMethod, Resolution, Resolved
from tests.provider.stage import mirrors_in, on_sandbox

RULES = (ConflictRule(("CHANGES",), Resolution.UNION),)
EACH_METHOD = pytest.mark.parametrize("method", [MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH])
UNITED = (Resolved(Resolution.UNION, ("CHANGES",)),)


@pytest.fixture
async def stage(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as made:
        await made.push_files({"CHANGES": "old\n", "t": "t\n"})
        yield made


def asked(stage, *pulls, **changed):
    """A test branch whose commits are to land."""
    fields = {"vehicle": Vehicle.PUSH, "lands": True, "rules": RULES, **changed}
    return stage.request(*pulls, **fields)


async def build(stage, *pulls, **changed):
    return await stage.provider.build(asked(stage, *pulls, **changed))


async def three(stage):
    """Pull requests that each add a line at the same place."""
    return [await stage.open({"CHANGES": f"{n}\nold\n", f"{n}.txt": "x\n"}) for n in "abc"]


@EACH_METHOD
async def test_a_batch_has_the_lines_of_all(stage, method):
    pulls = await three(stage)
    built = await build(stage, *pulls, method=method)
    assert isinstance(built, Built)
    assert stage.git("show", f"{built.tip}:CHANGES") == "a\nb\nc\nold\n"
    assert [each.resolved for each in built.prefixes] == [(), UNITED, UNITED]
    assert stage.called("POST", "/merges") == 0


@EACH_METHOD
async def test_building_again_gives_the_same_commits(stage, method):
    request = asked(stage, *await three(stage), method=method)
    built = await stage.provider.build(request)
    assert await stage.provider.build(request) == built


async def test_a_run_behind_keeps_what_the_run_ahead_resolved(stage):
    pulls = await three(stage)
    ahead = await build(stage, *pulls[:2])
    request = asked(stage, *pulls)
    steps = [
        replace(step, commit=prefix.commit, resolved=prefix.resolved)
        for step, prefix in zip(request.steps, ahead.prefixes, strict=False)
    ]
    built = await stage.provider.build(replace(request, steps=(*steps, *request.steps[2:])))
    assert [each.resolved for each in built.prefixes] == [(), UNITED, UNITED]


@pytest.mark.parametrize(
    "changed",
    [
        {"t": "B\n", "CHANGES": "b\nold\n"},
        {"CHANGES": "b\n"},
        {"CHANGES": None},
        {"CHANGES": "b\0\nold\n"},
    ],
    ids=["another file", "a changed line", "a deletion", "a binary file"],
)
async def test_any_other_conflict_stays_one_and_is_not_asked_of_the_rest_api(stage, changed):
    await build(stage, await stage.open({"z": "z\n"}))
    one = await stage.open({"t": "A\n", "CHANGES": "a\nold\n"})
    two = await stage.open(changed)
    found = await build(stage, one, two)
    assert isinstance(found, Conflicted)
    assert (found.number, found.culprit) == (two[0], one[0])
    assert stage.called("POST", "/merges") == 0


async def test_attributes_of_the_repository_resolve_nothing(stage):
    await stage.push_files({".gitattributes": "* merge=union\n"})
    one, two, _ = await three(stage)
    found = await build(stage, one, two, rules=())
    assert isinstance(found, Conflicted)
    elsewhere = (ConflictRule(("other",), Resolution.UNION),)
    assert isinstance(await build(stage, one, two, rules=elsewhere), Conflicted)


async def test_files_with_other_modes_or_of_one_side_stay_conflicts(stage):
    new = (ConflictRule(("new",), Resolution.UNION),)
    one, two = [await stage.open({"new": words}) for words in ("a\n", "b\n")]
    assert isinstance(await build(stage, one, two, rules=new), Conflicted)


async def test_a_rehearsal_knows_the_rules(stage):
    one, two, three_ = await three(stage)
    await build(stage, three_)
    assert await stage.provider.rehearse(asked(stage, one, two)) == Rehearsed(None)
    found = await stage.provider.rehearse(asked(stage, one, two, rules=()))
    assert found.conflict.paths == ("CHANGES",)


async def test_other_rules_do_not_meet_the_commits_of_these(stage):
    one, two, _ = await three(stage)
    await build(stage, one, two)
    assert isinstance(await build(stage, one, two, rules=()), Conflicted)


async def test_no_pull_request_is_blamed_while_git_cannot_build(stage):
    one, two, _ = await three(stage)
    await build(stage, one)
    await stage.fault("fail_before", path="*/info/refs", nth=None, status=500)
    with pytest.raises(Unavailable, match="which only git can resolve by the rules of the queue"):
        await build(stage, one, two)
    stage.clear_faults()
    assert isinstance(await build(stage, one, two), Built)


async def test_where_git_never_builds_a_conflict_is_one(tmp_path):
    async with on_sandbox() as stage:
        await stage.push_files({"CHANGES": "old\n"})
        one, two, _ = await three(stage)
        assert isinstance(await build(stage, one, two), Conflicted)

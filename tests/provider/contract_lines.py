"""What every provider does with test branches of squash and rebase merges, and their landing."""

from dataclasses import replace

import pytest

from bot.sandbox.git import NewCommit
from bot.sandbox.refusal import Refusal
from service.provider.errors import Refused, RefusedCode
from service.provider.values import Built, Conflicted, NothingToMerge, Vehicle
from service.vocabulary import MergeMethod, Sha
from tests.provider.contract_branches import BOTH, ahead, reused
from tests.provider.contract_faults import EACH_KIND_OF_LOSS

LINE = [MergeMethod.SQUASH, MergeMethod.REBASE]
EACH_LINE = pytest.mark.parametrize("method", LINE)
CALLS = {
    MergeMethod.MERGE_COMMIT: "merge",
    MergeMethod.SQUASH: "squash",
    MergeMethod.REBASE: "rebase",
}
ROWS = [f"row {number}\n" for number in range(12)]
TEXT = "".join(ROWS)


def edited(*places, word="changed"):
    """The text with other lines at these places."""
    rows = [f"{word} {at}\n" if at in places else row for at, row in enumerate(ROWS)]
    return "".join(rows)


def committed(stage, parents, files, message="m"):
    """A commit on no branch: the tree of the first parent with these files changed."""
    objects = stage.world.git.objects
    first = objects.a_commit(parents[0])
    tree = stage.tree_with(first.tree, files)
    new = NewCommit(tree, tuple(parents), first.author, first.committer, message)
    return Sha(objects.write_commit(new).sha)


async def opened(stage, head):
    """A pull request with this head."""
    branch = f"topic/{head[:12]}"
    await stage.act("push", branch=branch, files={})
    await stage.act("force_push", branch=branch, to=head)
    found = await stage.act("open", head=branch)
    await stage.settle()
    return found["number"], head


async def land(stage, pulls, method):
    """Merge one after the other by the merge button; the trees of main until one is refused."""
    trees = []
    for number, _ in pulls:
        await stage.settle()
        try:
            await stage.act("merge", number=number, method=CALLS[method])
        except Refusal:
            break
        trees.append(stage.tree(stage.tip()))
    return trees


def trees_of(built):
    """The tree after each step."""
    return [prefix.tree for prefix in built.prefixes]


async def lands_as_built(stage, pulls, method):
    """Build, then land: each tree is that of the test branch."""
    await stage.settle()
    built = await stage.provider.build(stage.request(*pulls, method=method))
    assert isinstance(built, Built), built
    assert trees_of(built) == await land(stage, pulls, method)
    return built


class Lines:
    """Test branches that are made as a squash or a rebase lands; `line_writes` make one."""

    line_writes: tuple[tuple[str, str, int], ...]

    @EACH_LINE
    async def test_a_batch_lands_as_it_was_tested(self, stage, method):
        await stage.push_files({"t": TEXT})
        pulls = [
            await stage.open({"t": edited(0)}),
            await stage.open({"t": edited(5), "b": "b\n"}),
            await stage.open({"t": edited(11), "README.md": None}),
        ]
        built = await lands_as_built(stage, pulls, method)
        parents = [stage.parents(prefix.commit) for prefix in built.prefixes]
        assert [each[0] for each in parents[1:]] == [each.commit for each in built.prefixes[:-1]]
        assert [len(each) for each in parents[:-1]] == [1, 1]

    @EACH_LINE
    async def test_a_chain_that_merges_after_its_parent_lands_as_it_was_tested(self, stage, method):
        await stage.push_files({"t": TEXT})
        one = await stage.open({"t": edited(0)})
        two = await stage.open({"a": "a\n"}, **{"from": one[1]})
        three = await stage.open({"t": edited(0, 11)}, **{"from": two[1]})
        await lands_as_built(stage, [one, two, three], method)

    async def test_a_child_that_conflicts_only_after_the_squash_is_refused_before(self, stage):
        one = await stage.open({"t": "A\n"})
        two = await stage.open({"t": "B\n"}, **{"from": one[1]})
        merged = await stage.provider.build(
            stage.request(one, two, method=MergeMethod.MERGE_COMMIT, vehicle=Vehicle.PUSH)
        )
        assert isinstance(merged, Built)
        conflict = await stage.provider.build(stage.request(one, two, method=MergeMethod.SQUASH))
        paths = stage.conflicting("t") or conflict.paths
        assert conflict == Conflicted(two[0], with_base=False, culprit=one[0], paths=paths)
        assert len(await land(stage, [one, two], MergeMethod.SQUASH)) == 1

    @EACH_LINE
    async def test_a_deletion_by_a_child_that_merged_main_is_built_as_it_lands(self, stage, method):
        # The merge of main into the child makes what the child deletes new to its parent's squash.
        one = await stage.open({"a.txt": "a\n"})
        await stage.push_files({"b.txt": "b\n"})
        main, own = stage.tip(), committed(stage, [one[1]], {"c.txt": "c\n"})
        merge = committed(stage, [own, main], {"b.txt": "b\n"})
        two = await opened(stage, committed(stage, [merge], {"b.txt": None}))
        await lands_as_built(stage, [one, two], method)

    @EACH_LINE
    async def test_the_same_head_twice_lands_nothing_the_second_time(self, stage, method):
        pull = await stage.open({"a": "a\n"})
        again = await opened(stage, pull[1])
        built = await lands_as_built(stage, [pull, again], method)
        assert [each.contained for each in built.prefixes] == [False, False]
        assert built.prefixes[0].tree == built.prefixes[1].tree
        assert built.prefixes[0].commit != built.tip

    async def test_a_child_that_takes_back_its_parent_changes_nothing_after_a_squash(self, stage):
        one = await stage.open({"t": TEXT})
        two = await opened(stage, committed(stage, [one[1]], {"t": None}))
        built = await lands_as_built(stage, [one, two], MergeMethod.SQUASH)
        assert built.prefixes[0].tree == built.prefixes[1].tree

    @EACH_LINE
    async def test_a_head_in_the_target_adds_no_commit(self, stage, method):
        one = await stage.open({"a": "a\n"})
        await stage.act("merge", number=one[0], method="merge")
        two = await stage.open({"b": "b\n"})
        built = await stage.provider.build(stage.request(one, two, method=method))
        assert [each.contained for each in built.prefixes] == [True, False]
        assert built.prefixes[0].commit == stage.tip()
        assert await stage.provider.build(stage.request(one, method=method)) == NothingToMerge()

    @BOTH
    @EACH_LINE
    async def test_building_again_finds_what_stands(self, stage, method, construction):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "ab"]
        request = stage.request(*pulls, method=method, construction=construction)
        built = await stage.provider.build(request)
        stage.clock.advance(60)
        assert await stage.provider.build(request) == built
        assert stage.branches() == {request.branch: built.tip}
        assert stage.drafts() == [built.vehicle_number]

    @EACH_LINE
    async def test_a_branch_with_other_content_is_not_adopted(self, stage, method):
        one, two = await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})
        request = stage.request(one, two, method=method)
        built = await stage.provider.build(request)
        evil = committed(stage, [built.prefixes[0].commit], {"evil.txt": "x\n"})
        for tip in (evil, committed(stage, [built.tip], {"evil.txt": "x\n"}), built.prefixes[0]):
            to = getattr(tip, "commit", tip)
            await stage.act("force_push", branch=request.branch, to=to)
            with pytest.raises(Refused) as refused:
                await stage.provider.build(request)
            assert refused.value.code is RefusedCode.NAME_TAKEN
            assert stage.tip(request.branch) == to

    @EACH_LINE
    async def test_commits_of_a_run_ahead_are_a_base_without_the_history_of_heads(
        self, stage, method
    ):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "ab"]
        pulls.append(await stage.open({"b.txt": "y\n"}, **{"from": pulls[1][1]}))
        first = await stage.provider.build(stage.request(*pulls[:2], method=method))
        behind = ahead(stage.request(*pulls, method=method), 2)
        made = replace(first, prefixes=(*first.prefixes, first.prefixes[-1]))
        found = await stage.provider.build(reused(behind, made, 2))
        # The child rests on the squash of its parent, not on a merge of it.
        assert isinstance(found, Conflicted)
        assert found.number == pulls[2][0]
        assert len(await land(stage, pulls, method)) == 2

    @EACH_LINE
    async def test_a_run_behind_goes_on_from_a_run_ahead(self, stage, method):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        first = await stage.provider.build(stage.request(*pulls[:2], method=method))
        behind = ahead(stage.request(*pulls, method=method), 2)
        made = replace(first, prefixes=(*first.prefixes, first.prefixes[-1]))
        built = await stage.provider.build(reused(behind, made, 2))
        assert built.prefixes[0] == first.prefixes[0]
        assert built.prefixes[1].tree == first.prefixes[1].tree
        assert len(stage.parents(built.prefixes[1].commit)) == 1
        assert trees_of(built) == await land(stage, pulls, method)

    async def test_a_line_that_lands_has_no_merge_commit(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "ab"]
        request = stage.request(*pulls, method=MergeMethod.SQUASH, lands=True)
        built = await stage.provider.build(request)
        assert stage.parents(built.tip) == (built.prefixes[0].commit,)
        assert stage.parents(built.prefixes[0].commit) == (request.base_sha,)
        assert [stage.message(each.commit).strip() for each in built.prefixes] == [
            step.message for step in request.steps
        ]

    @EACH_KIND_OF_LOSS
    async def test_a_line_is_whole_and_single_whatever_is_lost(self, stage, kind, how):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        for method, path, nth in self.line_writes:
            request = stage.request(*pulls, method=MergeMethod.SQUASH)
            stage.clear_faults()
            await stage.fault(kind, method=method, path=path, nth=nth, **how)
            built = await stage.provider.build(request)
            assert stage.branches() == {request.branch: built.tip}
            assert stage.drafts() == [built.vehicle_number]
            first, second, _ = (each.commit for each in built.prefixes)
            assert stage.parents(first) == (request.base_sha,)
            assert stage.parents(second) == (first,)
            assert stage.parents(built.tip)[0] == second
            assert await stage.provider.build(request) == built
            await stage.provider.discard(stage.repo, request.branch)
            await stage.settle()


class ScratchLines:
    """Lines that are made on a scratch branch, call by call."""

    async def test_a_half_built_line_is_built_anew(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        request = stage.request(*pulls, method=MergeMethod.SQUASH)
        await stage.fault("fail_before", path="*/merges", nth=2, times=1, status=422)
        with pytest.raises(Refused):
            await stage.provider.build(request)
        await stage.act("force_push", branch=request.scratch, to=pulls[2][1])
        built = await stage.provider.build(request)
        assert trees_of(built) == await land(stage, pulls, MergeMethod.SQUASH)
        assert stage.branches() == {request.branch: built.tip}

    @pytest.mark.parametrize("chained", [True, False])
    async def test_what_only_git_can_build_is_refused(self, stage, chained):
        one = await stage.open({"t": "A\n"})
        two = await stage.open({"t": "B\n"}, **{"from": one[1]})
        method = MergeMethod.SQUASH if chained else MergeMethod.REBASE
        request = stage.request(one, two, method=method, lands=True)
        if chained:
            steps = request.steps[0], replace(request.steps[1], fork=one[1])
            request = replace(request, steps=steps)
        with pytest.raises(Refused, match="Only git can build this test branch"):
            await stage.provider.build(request)
        assert stage.branches() == {}

    async def test_without_git_nothing_is_rehearsed(self, stage):
        one = await stage.open({"t": "A\n"})
        two = await stage.open({"t": "B\n"})
        before = len(stage.calls())
        assert await stage.provider.rehearse(stage.request(one, two)) is None
        assert stage.calls(before) == []

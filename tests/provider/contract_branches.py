"""What every provider does with test branches: whole, exact, and safe to repeat."""

from dataclasses import replace

import pytest

from service.errors import InvariantBroken
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode
from service.provider.values import (
    BuildStep,
    Built,
    Conflicted,
    Construction,
    NothingToMerge,
    Vehicle,
)
from service.vocabulary import Sha

NOWHERE = Sha("0" * 39 + "1")
BOTH = pytest.mark.parametrize("construction", list(Construction))


def reused(request, built, count):
    """The same request where the first steps name the commits another run made."""
    steps = tuple(
        replace(step, commit=prefix.commit if place < count else None)
        for place, (step, prefix) in enumerate(
            zip(request.steps, built.prefixes[: len(request.steps)], strict=True)
        )
    )
    return replace(request, steps=steps)


def ahead(request, count):
    """The same request where the first steps are there already and not tested by it."""
    steps = tuple(replace(step, tested=place >= count) for place, step in enumerate(request.steps))
    return replace(request, steps=steps)


class Branches:
    """Test branches."""

    @BOTH
    async def test_every_step_is_the_merge_that_git_makes(self, stage, construction):
        pulls = [
            await stage.open({"a.txt": "a\n"}),
            await stage.open({"app.py": "0\n1\n2\n3\n"}),
            await stage.open({"app.py": "1\n2\n3\n4\n", "a/b.txt": "x\n"}),
        ]
        request = stage.request(*pulls, construction=construction)
        built = await stage.provider.build(request)
        before = request.base_sha
        for prefix, (number, head) in zip(built.prefixes, pulls, strict=True):
            assert (prefix.number, prefix.contained) == (number, False)
            assert stage.parents(prefix.commit) == (before, head)
            assert prefix.tree == stage.tree(prefix.commit) == stage.git_merge(before, head)
            before = prefix.commit
        assert (built.tip, built.published) == (before, True)
        assert stage.branches() == {request.branch: built.tip}

    async def test_each_commit_carries_its_message(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        built = await stage.provider.build(request)
        assert stage.message(built.tip).strip() == request.steps[0].message

    async def test_the_draft_shows_the_branch_to_ci(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}), title="t" * 300)
        built = await stage.provider.build(request)
        await stage.settle()
        draft = stage.issue(built.vehicle_number)
        assert (draft.pull.draft, draft.pull.base_ref) == (True, "main")
        assert draft.pull.head_ref == request.branch
        assert len(draft.title) == 250
        assert built.vehicle_url.endswith(f"/{built.vehicle_number}")
        found = await stage.provider.checks(stage.repo, built.tip, skipped_pass=True)
        assert {each.name for each in found.items} == {"unit"}

    async def test_a_pushed_vehicle_is_the_branch_alone(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        before = stage.issues()
        built = await stage.provider.build(stage.request(pull, vehicle=Vehicle.PUSH))
        assert (built.vehicle_number, built.vehicle_url) == (None, None)
        assert stage.issues() == before

    @BOTH
    async def test_building_again_finds_what_stands(self, stage, construction):
        request = stage.request(
            await stage.open({"a.txt": "a\n"}),
            await stage.open({"b.txt": "b\n"}),
            construction=construction,
        )
        built = await stage.provider.build(request)
        assert await stage.provider.build(request) == built
        assert stage.branches() == {request.branch: built.tip}
        assert stage.drafts() == [built.vehicle_number]

    @BOTH
    async def test_commits_of_runs_ahead_are_used_again(self, stage, construction):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        first = await stage.provider.build(stage.request(*pulls[:2]))
        behind = ahead(stage.request(*pulls, construction=construction), 2)
        steps = tuple(
            replace(step, commit=prefix.commit)
            for step, prefix in zip(behind.steps, first.prefixes, strict=False)
        )
        merges = stage.merges()
        built = await stage.provider.build(replace(behind, steps=(*steps, behind.steps[2])))
        assert stage.merges() == merges + 1
        assert built.prefixes[:2] == first.prefixes
        assert built.tip not in (first.tip, built.prefixes[1].commit)
        assert built.prefixes[2].tree == stage.git_merge(first.tip, pulls[2][1])

    async def test_the_last_commit_is_always_a_new_one(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "ab"]
        first = await stage.provider.build(stage.request(*pulls))
        again = reused(stage.request(*pulls), first, 2)
        built = await stage.provider.build(again)
        assert built.tip != first.tip
        assert built.prefixes[0].commit == first.prefixes[0].commit
        assert built.prefixes[1].tree == first.prefixes[1].tree

    async def test_a_contained_last_step_makes_the_one_before_new(self, stage):
        one = await stage.open({"a.txt": "a\n"})
        two = await stage.open({"b.txt": "b\n"}, **{"from": one[1]})
        pulls = [one, two, (one[0], one[1])]
        first = await stage.provider.build(stage.request(*pulls))
        assert [each.contained for each in first.prefixes] == [False, False, True]
        built = await stage.provider.build(reused(stage.request(*pulls), first, 3))
        assert built.prefixes[0].commit == first.prefixes[0].commit
        assert built.prefixes[1].commit != first.prefixes[1].commit
        assert built.prefixes[2].contained
        assert built.prefixes[2].tree == first.prefixes[2].tree

    async def test_a_contained_head_adds_no_commit(self, stage):
        landed = await stage.open({"a.txt": "a\n"})
        await stage.act("merge", number=landed[0], method="merge")
        other = await stage.open({"b.txt": "b\n"})
        built = await stage.provider.build(stage.request(landed, other))
        assert [each.contained for each in built.prefixes] == [True, False]
        assert built.prefixes[0].commit == stage.tip()
        assert built.prefixes[0].tree == stage.tree(stage.tip())

    async def test_nothing_but_contained_heads_is_nothing_to_merge(self, stage):
        landed = await stage.open({"a.txt": "a\n"})
        await stage.act("merge", number=landed[0], method="merge")
        assert await stage.provider.build(stage.request(landed)) == NothingToMerge()
        assert stage.branches() == {}

    async def test_tested_heads_contained_in_those_ahead_are_nothing_to_merge(self, stage):
        one = await stage.open({"a.txt": "a\n"})
        two = await stage.open({"b.txt": "b\n"}, **{"from": one[1]})
        request = ahead(stage.request(two, one), 1)
        assert await stage.provider.build(request) == NothingToMerge()
        assert stage.branches() == {}

    async def test_a_known_tree_is_not_published(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        tree = stage.git_merge(stage.tip(), pull[1])
        request = stage.request(pull, known_trees=frozenset({tree}))
        built = await stage.provider.build(request)
        assert (built.published, built.branch) == (False, request.scratch)
        assert (built.vehicle_number, built.prefixes[-1].tree) == (None, tree)
        assert stage.branches() == {request.scratch: built.tip}
        assert await stage.provider.build(request) == built

    @pytest.mark.parametrize("times", [1, 2])
    async def test_a_draft_without_commits_is_asked_for_twice(self, stage, times):
        words = "No commits between main and headgate/merge"
        refusal = {"status": 422, "message": words}
        await stage.fault("refuse", method="POST", path="*/pulls", times=times, **refusal)
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        built = await stage.provider.build(request)
        if times == 1:
            assert stage.drafts() == [built.vehicle_number]
        else:
            assert (built, stage.branches()) == (NothingToMerge(), {})

    async def test_a_fork_is_merged_by_its_sha(self, stage):
        pull = await stage.open({"a.txt": "a\n"}, by="dave", fork=True)
        built = await stage.provider.build(stage.request(pull))
        assert stage.parents(built.tip)[1] == pull[1]

    async def test_a_conflict_with_the_target_names_it(self, stage):
        pull = await stage.open({"app.py": "x\n"})
        await stage.act("push", branch="main", files={"app.py": "y\n"})
        conflict = await stage.provider.build(stage.request(pull))
        paths = stage.conflicting("app.py")
        assert conflict == Conflicted(pull[0], with_base=True, culprit=None, paths=paths)
        assert stage.branches() == {}

    async def test_a_conflict_with_the_only_one_ahead_names_it_and_the_files(self, stage):
        one = await stage.open({"app.py": "x\n", "a.txt": "a\n"})
        two = await stage.open({"app.py": "y\n", "b.txt": "b\n"})
        conflict = await stage.provider.build(stage.request(one, two))
        assert conflict == Conflicted(two[0], with_base=False, culprit=one[0], paths=("app.py",))

    async def test_a_conflict_with_one_of_several_ahead_is_unknown(self, stage):
        one = await stage.open({"app.py": "x\n"})
        two = await stage.open({"b.txt": "b\n"})
        three = await stage.open({"app.py": "y\n"})
        conflict = await stage.provider.build(stage.request(one, two, three))
        paths = stage.conflicting("app.py")
        assert conflict == Conflicted(three[0], with_base=False, culprit=None, paths=paths)

    async def test_a_conflict_behind_a_conflict_with_the_target_is_the_targets(self, stage):
        one = await stage.open({"a.txt": "a\n"})
        two = await stage.open({"app.py": "x\n"})
        await stage.act("push", branch="main", files={"app.py": "y\n"})
        conflict = await stage.provider.build(stage.request(one, two))
        assert (conflict.number, conflict.with_base) == (two[0], True)

    async def test_a_passing_fault_that_looks_like_a_conflict_is_none(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        await stage.fault("permission_409", path="*/merges", nth=1, times=3)
        assert isinstance(await stage.provider.build(request), Built)

    async def test_one_answer_alone_proves_no_conflict(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        message = "Merge conflict"
        await stage.fault("permission_409", path="*/merges", nth=1, times=1, message=message)
        assert isinstance(await stage.provider.build(request), Built)

    async def test_a_head_that_never_shows_is_gone(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        with pytest.raises(Gone) as gone:
            await stage.provider.build(stage.request((number, NOWHERE)))
        assert gone.value.kind is GoneKind.PULL_REQUEST

    @BOTH
    async def test_a_branch_with_other_content_is_not_adopted(self, stage, construction):
        request = stage.request(await stage.open({"a.txt": "a\n"}), construction=construction)
        await stage.act("push", branch=request.branch, files={"evil.txt": "x\n"})
        foreign = stage.tip(request.branch)
        with pytest.raises(Refused) as refused:
            await stage.provider.build(request)
        assert refused.value.code is RefusedCode.NAME_TAKEN
        assert stage.tip(request.branch) == foreign

    async def test_a_merge_of_other_heads_is_not_adopted(self, stage):
        one, two = await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})
        request = stage.request(one)
        await stage.provider.build(request)
        other = replace(stage.request(two), branch=request.branch, scratch=request.scratch)
        with pytest.raises(Refused) as refused:
            await stage.provider.build(other)
        assert refused.value.code is RefusedCode.NAME_TAKEN

    async def test_a_rename_that_never_comes_is_replaced_by_a_push(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        await stage.knobs(rename_delay_s=10_000)
        built = await stage.provider.build(request)
        assert stage.tip(request.branch) == built.tip

    async def test_a_rule_against_our_branches_is_a_refusal(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        ruleset = {**stage.ruleset("creation"), "include": ["refs/heads/headgate/**"]}
        await stage.rules(rulesets=[ruleset])
        with pytest.raises(Refused) as refused:
            await stage.provider.build(request)
        assert refused.value.code is RefusedCode.RULE_DENIED

    async def test_workflow_files_are_refused_by_that_name(self, stage):
        plain = await stage.open({"a.txt": "a\n"})
        number, head = await stage.open({".github/workflows/ci.yml": "on: push\n"})
        request = stage.request(plain, (number, head))
        with pytest.raises(Refused) as refused:
            await stage.provider.build(request)
        assert (refused.value.code, refused.value.number) == (RefusedCode.WORKFLOWS, number)

    async def test_more_heads_than_two_hundred_are_too_many(self, stage):
        step = BuildStep(1, NOWHERE, "m", stage.clock.now(), tested=True, commit=None)
        request = replace(stage.request(), steps=(step,) * 201)
        with pytest.raises(Refused) as refused:
            await stage.provider.build(request)
        assert refused.value.code is RefusedCode.TOO_MANY

    async def test_discarding_deletes_the_branch_and_closes_its_draft(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        built = await stage.provider.build(request)
        for _ in range(2):
            await stage.provider.discard(stage.repo, built.branch)
            await stage.settle()
            assert stage.branches() == {}
            assert stage.drafts() == []

    async def test_discarding_what_never_was_is_done(self, stage):
        await stage.provider.discard(stage.repo, "headgate/merge/pr-9/never")

    @pytest.mark.parametrize("branch", ["main", "refs/heads/main", "head", "headgate"])
    async def test_branches_that_are_not_ours_are_never_touched(self, stage, branch):
        before = stage.tip()
        with pytest.raises(InvariantBroken):
            await stage.provider.discard(stage.repo, branch)
        with pytest.raises(InvariantBroken):
            await stage.provider.restore(stage.repo, branch, before)
        assert stage.tip() == before

    async def test_a_lost_branch_is_put_back_with_its_draft(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        built = await stage.provider.build(request)
        await stage.act("delete_branch", branch=built.branch)
        await stage.settle()
        for _ in range(2):
            await stage.provider.restore(stage.repo, built.branch, built.tip)
            assert stage.branches() == {built.branch: built.tip}
            assert stage.drafts() == [built.vehicle_number]

    async def test_a_branch_that_points_elsewhere_is_not_put_back(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        built = await stage.provider.build(request)
        await stage.act("push", branch=built.branch, files={"x.txt": "x\n"})
        with pytest.raises(Refused) as refused:
            await stage.provider.restore(stage.repo, built.branch, built.tip)
        assert refused.value.code is RefusedCode.NAME_TAKEN

    async def test_vehicles_are_all_branches_of_ours(self, stage):
        assert list(await stage.provider.vehicles(stage.repo)) == []
        await stage.act("push", branch="headgate-not-ours", files={"x.txt": "x\n"})
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        found = await stage.provider.vehicles(stage.repo)
        assert [(each.branch, each.sha) for each in found] == [(built.branch, built.tip)]

    async def test_a_renamed_branch_has_a_new_name_and_a_deleted_one_none(self, stage):
        for branch in ("release/1.0", "gone"):
            await stage.act("push", branch=branch, files={"a.txt": "a\n"})
        new_name = stage.provider.new_name
        assert await new_name(stage.repo, "release/1.0") is None
        await stage.act("rename", branch="release/1.0", to="release/ü#1")
        await stage.act("delete_branch", branch="gone")
        await stage.settle()
        assert await new_name(stage.repo, "release/1.0") == "release/ü#1"
        assert await new_name(stage.repo, "gone") is None


class ScratchBranches:
    """Test branches that are made on a scratch branch, call by call."""

    async def test_a_half_built_branch_is_gone_on_from(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        request = stage.request(*pulls)
        await stage.fault("fail_before", path="*/merges", nth=2, times=1, status=422)
        with pytest.raises(Refused):
            await stage.provider.build(request)
        assert list(stage.branches()) == [request.scratch]
        first = stage.tip(request.scratch)
        built = await stage.provider.build(request)
        assert built.prefixes[0].commit == first
        assert stage.branches() == {request.branch: built.tip}

    async def test_a_scratch_branch_with_other_content_is_not_adopted(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        await stage.act("push", branch=request.scratch, files={"evil.txt": "x\n"})
        with pytest.raises(Refused) as refused:
            await stage.provider.build(request)
        assert refused.value.code is RefusedCode.NAME_TAKEN

"""What every provider does with landings: one call, an exact answer, a read-back."""

import pytest

from service.provider.errors import Gone, GoneKind
from service.provider.values import (
    LandedPull,
    LandStop,
    LandStopCode,
    Merged,
    Vehicle,
)
from service.vocabulary import MergeMethod, Sha

NOWHERE = Sha("0" * 39 + "1")


class Landing:
    """Merge calls and advances."""

    @pytest.mark.parametrize("method", list(MergeMethod))
    async def test_a_merge_lands_the_tree_that_was_tested(self, stage, method):
        number, head = await stage.open({"a.txt": "a\n"})
        built = await stage.provider.build(stage.request((number, head)))
        request = stage.merging(number, head, method)
        landed = await stage.provider.merge(request)
        assert landed.commit == stage.tip()
        assert [each.sha for each in landed.chain] == [stage.tip()]
        assert landed.chain[0].tree == built.prefixes[-1].tree == stage.tree(stage.tip())
        assert landed.chain[0].parents == stage.parents(stage.tip())
        assert landed.chain[-1].parents[0] == request.expect_parent
        assert await stage.provider.merged(request) == landed

    async def test_a_rebase_lands_each_commit_and_tells_them_newest_first(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        head = Sha((await stage.act("push", number=number, files={"a.txt": "b\n"}))["sha"])
        await stage.settle()
        landed = await stage.provider.merge(stage.merging(number, head, MergeMethod.REBASE))
        assert len(landed.chain) == 2
        assert landed.chain[0].sha == landed.commit == stage.tip()
        assert landed.chain[0].parents == (landed.chain[1].sha,)

    async def test_title_and_message_are_taken_when_given(self, stage):
        number, head = await stage.open({"a.txt": "a\n"}, title="own title")
        await stage.provider.merge(stage.merging(number, head, title="T", message="M\n\nmore"))
        assert stage.message(stage.tip()).strip() == "T\n\nM\n\nmore"
        number, head = await stage.open({"b.txt": "b\n"}, title="own title")
        await stage.provider.merge(stage.merging(number, head))
        assert "own title" in stage.message(stage.tip())

    async def test_what_is_above_our_merge_is_told_too(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        landed = await stage.provider.merge(request)
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        again = await stage.provider.merged(request)
        assert again.commit == landed.commit
        assert [each.sha for each in again.chain] == [stage.tip(), landed.commit]

    async def test_a_foreign_push_before_our_merge_is_in_the_chain(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        push = {"act": "push", "branch": "main", "files": {"m.txt": "m\n"}}
        act = {"as": "alice", "repo": stage.repo.slug, **push}
        await stage.fault("before", method="PUT", path="*/merge", act=act)
        landed = await stage.provider.merge(request)
        assert isinstance(landed, Merged)
        assert landed.chain
        assert (landed.chain[0].sha, len(landed.chain)) == (stage.tip(), 2)

    async def test_a_merge_by_another_is_no_landing_of_ours(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        await stage.act("merge", number=number, method="squash", bypass=True)
        assert await stage.provider.merged(request) is None

    async def test_a_landing_of_ours_stays_ours_when_our_app_is_renamed(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        assert await stage.provider.landed_by_us(stage.repo, number) is None
        landed = await stage.provider.merge(request)
        app = stage.sandbox.app
        app.slug, app.bot.login = "renamed", "renamed[bot]"
        assert await stage.provider.merged(request) == landed

    async def test_a_target_that_was_reset_has_no_chain(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        request = stage.merging(number, head)
        await stage.act("force_push", branch="main", to=stage.parents(stage.tip())[0], bypass=True)
        await stage.settle()
        landed = await stage.provider.merge(request)
        assert landed.chain is None

    async def test_another_tree_is_told_as_it_is(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.fault("other_tree", method="PUT", path="*/merge")
        landed = await stage.provider.merge(stage.merging(number, head))
        assert landed.chain[0].tree == stage.tree(stage.tip())
        assert landed.chain[0].tree != stage.git_merge(landed.chain[0].parents[0], head)

    async def test_what_is_not_merged_reads_back_as_nothing(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        assert await stage.provider.merged(stage.merging(number, head)) is None
        await stage.act("close", number=number)
        assert await stage.provider.merged(stage.merging(number, head)) is None

    async def test_a_pull_request_that_is_not_there_is_gone(self, stage):
        with pytest.raises(Gone) as gone:
            await stage.provider.merge(stage.merging(999, NOWHERE))
        assert gone.value.kind is GoneKind.PULL_REQUEST

    async def test_a_push_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.act("push", number=number, files={"a.txt": "b\n"})
        stop = await stage.stops(stage.merging(number, head), LandStopCode.HEAD_CHANGED)
        assert stop.message
        assert stop.request_id

    async def test_closing_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.act("close", number=number)
        await stage.stops(stage.merging(number, head), LandStopCode.CLOSED)

    async def test_a_draft_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.act("draft", number=number)
        await stage.stops(stage.merging(number, head), LandStopCode.DRAFT)

    async def test_a_conflict_stops_it(self, stage):
        number, head = await stage.open({"app.py": "x\n"})
        await stage.act("push", branch="main", files={"app.py": "y\n"})
        await stage.settle()
        await stage.stops(stage.merging(number, head), LandStopCode.CONFLICT)

    async def test_a_rebase_that_cannot_be_replayed_stops_it(self, stage):
        number, _ = await stage.open({"app.py": "x\n2\n3\n"})
        head = Sha((await stage.act("push", number=number, files={"app.py": "1\n2\n3\n"}))["sha"])
        await stage.act("push", branch="main", files={"app.py": "y\n2\n3\n"})
        await stage.settle()
        request = stage.merging(number, head, MergeMethod.REBASE)
        await stage.stops(request, LandStopCode.REBASE_DIFFERS)

    async def test_a_missing_check_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.rules(required_checks=["never"])
        await stage.stops(stage.merging(number, head), LandStopCode.CHECKS_MISSING)

    async def test_a_lost_review_stops_that_pull_request_alone(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.rules(protection={"main": {"approvals": 1}})
        await stage.stops(stage.merging(number, head), LandStopCode.PR_REFUSED)

    async def test_a_rule_about_everybody_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.rules(rulesets=[stage.ruleset("update")])
        await stage.stops(stage.merging(number, head), LandStopCode.RULE_DENIED)

    async def test_a_method_switched_off_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.rules(settings={"squash": False})
        await stage.stops(stage.merging(number, head), LandStopCode.METHOD_DENIED)

    async def test_a_method_that_rules_exclude_is_not_even_asked_for(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        allowed = {**stage.conversations(), "allowed_merge_methods": ["merge"]}
        await stage.rules(rulesets=[stage.ruleset("pull_request", **allowed)])
        await stage.provider.required(stage.repo, "main")
        calls = len(stage.calls())
        await stage.stops(stage.merging(number, head), LandStopCode.METHOD_DENIED)
        assert len(stage.calls()) == calls

    async def test_a_lost_permission_stops_it(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.permit(contents="read")
        await stage.stops(stage.merging(number, head), LandStopCode.NOT_PERMITTED)

    async def test_workflow_files_stop_it(self, stage):
        number, head = await stage.open({".github/workflows/ci.yml": "on: push\n"})
        await stage.stops(stage.merging(number, head), LandStopCode.WORKFLOWS)

    async def test_a_target_being_recomputed_asks_to_try_again(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.knobs(base_window_s=60)
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        await stage.stops(stage.merging(number, head), LandStopCode.RETRY)

    async def test_a_target_that_moved_meanwhile_is_base_moved(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        await stage.knobs(base_window_s=60)
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        await stage.stops(request, LandStopCode.BASE_MOVED)

    async def test_anything_else_is_quoted(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.fault("fail_before", method="PUT", path="*/merge", status=422)
        await stage.stops(stage.merging(number, head), LandStopCode.OTHER)

    @pytest.mark.parametrize("vehicle", list(Vehicle))
    async def test_an_advance_moves_the_target_and_takes_the_test_branch(self, stage, vehicle):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "ab"]
        built = await stage.provider.build(stage.request(*pulls, vehicle=vehicle))
        request = stage.advancing(built.tip, built.branch)
        landed = await stage.provider.advance(request)
        assert (landed.commit, stage.tip()) == (built.tip, built.tip)
        assert [each.sha for each in landed.chain[::-1]] == [each.commit for each in built.prefixes]
        assert stage.branches() == {}
        assert await stage.provider.advanced(request) == landed

    async def test_a_target_that_moved_is_not_advanced(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch)
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        moved = stage.tip()
        await stage.stops(request, LandStopCode.BASE_MOVED)
        assert (stage.tip(), stage.tip(built.branch)) == (moved, built.tip)
        assert await stage.provider.advanced(request) is None

    async def test_a_target_that_was_reset_is_not_resurrected(self, stage):
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch)
        back = stage.parents(stage.tip())[0]
        await stage.act("force_push", branch="main", to=back, bypass=True)
        await stage.stops(request, LandStopCode.BASE_MOVED)
        assert stage.tip() == back

    async def test_a_lost_test_branch_revokes_the_advance(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch)
        await stage.provider.discard(stage.repo, built.branch)
        before = stage.tip()
        assert isinstance(await stage.provider.advance(request), LandStop)
        assert stage.tip() == before

    async def test_what_does_not_descend_is_not_even_asked_for(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        built = await stage.provider.build(stage.request(pull))
        await stage.act("push", branch="main", files={"m.txt": "m\n"})
        await stage.stops(stage.advancing(built.tip, built.branch), LandStopCode.STALE)

    async def test_a_rule_against_pushes_denies_the_advance(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        await stage.rules(rulesets=[stage.ruleset("pull_request", **stage.conversations())])
        await stage.stops(stage.advancing(built.tip, built.branch), LandStopCode.RULE_DENIED)

    async def test_a_lost_permission_denies_the_advance(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        await stage.permit(contents="read")
        await stage.stops(stage.advancing(built.tip, built.branch), LandStopCode.NOT_PERMITTED)

    async def test_an_advance_onto_the_default_branch_shows_as_merged(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        built = await stage.provider.build(stage.request((number, head)))
        await stage.provider.advance(stage.advancing(built.tip, built.branch))
        landed = LandedPull(number, head, built.tip, "main", "main")
        assert await stage.provider.settle_merged(stage.repo, landed)

    async def test_an_advance_onto_another_branch_is_explained_and_closed_once(self, stage):
        await stage.act("push", branch="release", files={"r.txt": "r\n"})
        number, head = await stage.open({"a.txt": "a\n"}, base="release")
        pull = (number, head)
        request = stage.request(pull, target="release", base_sha=stage.tip("release"))
        built = await stage.provider.build(request)
        landing = stage.advancing(
            built.tip, built.branch, target="release", expect=stage.tip("release")
        )
        assert isinstance(await stage.provider.advance(landing), Merged)
        for _ in range(2):
            landed = LandedPull(number, head, built.tip, "release", "release")
            assert not await stage.provider.settle_merged(stage.repo, landed)
        assert not stage.issue(number).open
        assert len(stage.comments(number)) == 1

"""What every provider does when calls go wrong, and how many calls a story takes."""

import asyncio

import pytest

from service.provider.errors import (
    Gone,
    NotPermitted,
    OutcomeUnknown,
    Suspended,
    Throttled,
    Unavailable,
)
from service.provider.values import (
    CheckReportStatus,
    Emoji,
    Known,
    Merged,
    Reaction,
    Reply,
    StatusComment,
)
from service.vocabulary import PullRequestState

TURNS_MAX = 10_000
"""Of the event loop, until what is served late has been served."""
MARKER = "<!-- headgate:status v=1 queue=main -->"

# Every way in which the answer of a write is lost or is none.
LOST = [
    ("fail_before", {"status": 502}),
    ("fail_after", {"status": 502}),
    ("reset_before", {}),
    ("reset_after", {}),
    ("truncate", {}),
    ("html", {"status": 200}),
    ("html", {"status": 502}),
]
DONE = ("fail_after", "reset_after", "truncate")
EACH_LOSS = pytest.mark.parametrize(("kind", "how"), LOST, ids=str)
EACH_KIND_OF_LOSS = pytest.mark.parametrize(
    ("kind", "how"),
    [
        LOST[0],
        pytest.param(*LOST[1], marks=pytest.mark.soak),
        pytest.param(*LOST[2], marks=pytest.mark.soak),
        *LOST[3:6],
        pytest.param(*LOST[6], marks=pytest.mark.soak),
    ],
    ids=str,
)
"""For long stories: `make test` plays a write that was done or not, lost by status or connection.

Shorter tests play each loss of each write."""

BUILD_WRITES: tuple[tuple[str, str, int], ...] = (
    ("POST", "*/git/refs", 1),
    ("POST", "*/merges", 1),
    ("POST", "*/merges", 2),
    ("POST", "*/rename", 1),
    ("POST", "*/pulls", 1),
)


class BranchFaults:
    """Lost answers while a test branch is built by these writes."""

    build_writes = BUILD_WRITES

    @EACH_KIND_OF_LOSS
    async def test_a_build_is_whole_and_single_whatever_is_lost(self, stage, kind, how):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "ab"]
        for method, path, nth in self.build_writes:
            request = stage.request(*pulls)
            stage.clear_faults()
            await stage.fault(kind, method=method, path=path, nth=nth, **how)
            built = await stage.provider.build(request)
            assert stage.branches() == {request.branch: built.tip}
            assert stage.drafts() == [built.vehicle_number]
            assert stage.parents(built.tip) == (built.prefixes[0].commit, pulls[1][1])
            assert stage.parents(built.prefixes[0].commit) == (request.base_sha, pulls[0][1])
            assert await stage.provider.build(request) == built
            await stage.provider.discard(stage.repo, request.branch)
            await stage.settle()


class Faults(BranchFaults):
    """Lost answers, limits, lost rights."""

    @EACH_LOSS
    async def test_a_discard_is_done_whatever_is_lost(self, stage, kind, how):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        await stage.fault(kind, method="DELETE", path="*/git/refs/*", **how)
        await stage.provider.discard(stage.repo, built.branch)
        await stage.settle()
        assert (stage.branches(), stage.drafts()) == ({}, [])

    @EACH_LOSS
    async def test_a_lost_branch_is_put_back_whatever_is_lost(self, stage, kind, how):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        await stage.act("delete_branch", branch=built.branch)
        await stage.fault(kind, method="POST", path="*/git/refs", **how)
        await stage.provider.restore(stage.repo, built.branch, built.tip)
        assert stage.branches() == {built.branch: built.tip}

    @EACH_LOSS
    async def test_everything_is_said_once_whatever_is_lost(self, stage, kind, how):
        number, head = await stage.open({"a.txt": "a\n"})
        comment = str((await stage.act("comment", number=number, body="/merge"))["comment"])
        for notice in (
            StatusComment(number, MARKER, "one", first=True),
            StatusComment(number, MARKER, "two"),
            Reply(number, "a-1", "hello", first=True),
            Reaction(number, comment, Emoji.EYES),
            stage.check(head, CheckReportStatus.QUEUED, first=True),
            stage.check(head, CheckReportStatus.SUCCESS),
        ):
            stage.clear_faults()
            await stage.fault(kind, method="POST", path="*/comments", **how)
            await stage.fault(kind, method="PATCH", path="*/comments/*", **how)
            await stage.fault(kind, method="POST", path="*/reactions", **how)
            await stage.fault(kind, method="*", path="*/check-runs*", nth=1, **how)
            assert await stage.say(notice) is not None
        assert len(stage.comments(number)) == 3
        assert stage.comments(number)[1] == f"{MARKER}\ntwo"
        assert len(stage.reactions(number)) == 1
        assert stage.own_checks(head) == [("completed", "success")]

    async def test_what_is_served_after_its_connection_was_cut_is_said_once(self, stage):
        """An absent text may still be under way, so it is looked for before it is sent again."""
        number, head = await stage.open({"a.txt": "a\n"})
        for notice in (
            StatusComment(number, MARKER, "one", first=True),
            Reply(number, "a-1", "hello", first=True),
            stage.check(head, CheckReportStatus.QUEUED, first=True),
        ):
            await stage.fault("late", method="POST", path="*/comments", s=20)
            await stage.fault("late", method="POST", path="*/check-runs", s=20)
            assert await stage.say(notice)
            stage.clear_faults()
        await stage.clock.sleep(30)
        for _ in range(TURNS_MAX):
            if sum("late" in one["faults"] for one in stage.sandbox.world.calls) == 3:
                break
            await asyncio.sleep(0)
        assert len(stage.comments(number)) == 2
        assert len(stage.own_checks(head)) == 1

    async def test_a_text_that_cannot_be_read_back_stays_unknown(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.fault("fail_after", method="POST", path="*/comments", status=502)
        await stage.fault("fail_before", method="GET", path="*/comments", nth=None, status=502)
        with pytest.raises(OutcomeUnknown):
            await stage.say(Reply(number, "a-1", "hello", first=True))
        assert len(stage.comments(number)) == 1

    @EACH_LOSS
    async def test_a_lost_merge_is_unknown_and_read_back(self, stage, kind, how):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        await stage.fault(kind, method="PUT", path="*/merge", **how)
        with pytest.raises(OutcomeUnknown):
            await stage.provider.merge(request)
        assert stage.called("PUT", "/merge") == 1
        found = await stage.provider.merged(request)
        assert (found is not None) is (kind in DONE)
        if found is not None:
            assert (found.commit, found.chain[0].sha) == (stage.tip(), stage.tip())

    @EACH_LOSS
    async def test_a_lost_advance_is_unknown_and_read_back(self, stage, kind, how):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch)
        await stage.fault(kind, graphql="updateRefs", **how)
        with pytest.raises(OutcomeUnknown):
            await stage.provider.advance(request)
        found = await stage.provider.advanced(request)
        assert (found is not None) is (kind in DONE)
        assert (stage.tip() == built.tip) is (kind in DONE)

    async def test_an_advance_that_github_ended_midway_is_unknown_and_read_back(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch)
        await stage.fault("graphql_partial", graphql="updateRefs")
        with pytest.raises(OutcomeUnknown):
            await stage.provider.advance(request)
        assert isinstance(await stage.provider.advanced(request), Merged)

    @pytest.mark.parametrize("kind", ["reset_after", "graphql_partial"])
    async def test_an_advance_that_a_person_has_undone_is_not_taken_for_one_never_done(
        self, stage, kind
    ):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch, sent_until=stage.clock.now())
        await stage.fault(kind, graphql="updateRefs")
        with pytest.raises(OutcomeUnknown):
            await stage.provider.advance(request)
        await stage.act("force_push", branch="main", to=request.expect, bypass=True)
        with pytest.raises(OutcomeUnknown):
            await stage.provider.advanced(request)
        stage.clock.advance(600)
        assert await stage.provider.advanced(request) == Merged(built.tip, ())
        # Sent again it is refused, which does not say that the first one was not done.
        with pytest.raises(OutcomeUnknown):
            await stage.provider.advance(request)
        assert stage.tip() == request.expect

    async def test_a_landing_whose_proof_cannot_be_read_is_unknown(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        await stage.fault("fail_before", path="*/commits/heads/*", nth=None, status=502)
        with pytest.raises(OutcomeUnknown):
            await stage.provider.merge(request)
        stage.clear_faults()
        assert isinstance(await stage.provider.merged(request), Merged)

    async def test_a_tip_that_is_read_too_early_is_read_again(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        request = stage.advancing(built.tip, built.branch)
        await stage.tip_shown(1, request.expect)
        await stage.tip_shown(3, request.to)
        landed = await stage.provider.advance(request)
        assert [each.sha for each in landed.chain] == [built.tip]

    @EACH_LOSS
    async def test_a_read_is_repeated(self, stage, kind, how):
        number, head = await stage.open({"a.txt": "a\n"})
        before = stage.clock.monotonic_s()
        await stage.fault(kind, nth=1, times=2, **how)
        found = await stage.provider.pull_request(stage.repo, number)
        assert found.head_sha == head
        assert 2 <= stage.clock.monotonic_s() - before <= 4

    async def test_a_read_that_never_succeeds_is_unavailable_for_longer_each_time(self, stage):
        await stage.provider.tip(stage.repo, "main")
        await stage.fault("fail_before", nth=None, status=503)
        waits = []
        for _ in range(6):
            waits.append(await seconds_away(stage))
            stage.clock.advance(waits[-1])
        assert waits == [60, 120, 240, 480, 900, 900]
        stage.clear_faults()
        assert await stage.provider.tip(stage.repo, "main") is not None
        await stage.fault("fail_before", nth=None, status=503)
        assert await seconds_away(stage) == 60

    async def test_reads_that_fail_side_by_side_wait_no_longer_than_one(self, stage):
        await stage.provider.tip(stage.repo, "main")
        await stage.fault("fail_before", nth=None, status=503)
        waits = await asyncio.gather(*(seconds_away(stage) for _ in range(3)))
        assert waits == [60, 60, 60]

    async def test_partial_facts_are_no_facts(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.fault("graphql_partial", nth=None)
        with pytest.raises(Unavailable):
            await stage.provider.pull_request(stage.repo, number)
        with pytest.raises(Unavailable):
            await stage.provider.pull_requests(stage.repo, [number])

    async def test_a_limit_is_waited_for(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        for how, least_s, most_s in (({"retry_after": 7}, 7, 8), ({}, 60, 61)):
            before = stage.clock.monotonic_s()
            await stage.fault("secondary_limit", method="POST", path="*/comments", **how)
            assert await stage.say(Reply(number, f"a-{least_s}", "hello", first=True))
            assert least_s <= stage.clock.monotonic_s() - before <= most_s
        assert len(stage.comments(number)) == 2

    async def test_a_draft_that_is_refused_as_too_quick_is_waited_for(self, stage):
        request = stage.request(await stage.open({"a.txt": "a\n"}))
        before = stage.clock.monotonic_s()
        words = "Validation Failed; was submitted too quickly"
        await stage.fault("refuse", method="POST", path="*/pulls", status=422, message=words)
        built = await stage.provider.build(request)
        assert built.vehicle_number is not None
        assert stage.clock.monotonic_s() - before >= 60

    async def test_a_long_limit_is_told_to_whoever_asks(self, stage):
        await stage.provider.tip(stage.repo, "main")
        await stage.fault("secondary_limit", retry_after=600)
        for _ in range(2):
            with pytest.raises(Throttled) as throttled:
                await stage.provider.tip(stage.repo, "main")
            assert (throttled.value.retry_at - stage.clock.now()).total_seconds() == 600
        await stage.clock.sleep(600)
        assert await stage.provider.tip(stage.repo, "main")

    async def test_a_used_up_allowance_is_waited_for(self, stage):
        await stage.provider.tip(stage.repo, "main")
        await stage.fault("primary_limit", s=1800)
        with pytest.raises(Throttled) as throttled:
            await stage.provider.tip(stage.repo, "main")
        assert 1795 <= (throttled.value.retry_at - stage.clock.now()).total_seconds() <= 1805

    async def test_a_landing_never_waits_for_a_limit(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        before = stage.tip()
        await stage.fault("secondary_limit", method="PUT", path="*/merge", retry_after=20)
        with pytest.raises(Throttled):
            await stage.provider.merge(stage.merging(number, head))
        assert stage.tip() == before
        assert stage.called("PUT", "/merge") == 1

    async def test_an_expired_token_is_renewed_once(self, stage):
        await stage.provider.tip(stage.repo, "main")
        await stage.fault("token_expired", path="*/commits/*")
        assert await stage.provider.tip(stage.repo, "main") is not None
        await stage.clock.sleep(3 * 3600)
        assert await stage.provider.tip(stage.repo, "main") is not None

    async def test_a_token_that_never_works_is_not_permitted(self, stage):
        await stage.fault("token_expired", path="*/commits/*", nth=None)
        with pytest.raises(NotPermitted):
            await stage.provider.tip(stage.repo, "main")

    async def test_a_lost_permission_is_named(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await stage.permit(contents="read")
        with pytest.raises(NotPermitted) as denied:
            await stage.provider.build(stage.request(pull))
        assert denied.value.permission == "contents: write"

    async def test_a_suspended_app_says_so_and_works_again(self, stage):
        await stage.provider.tip(stage.repo, "main")
        await stage.act("suspend")
        for _ in range(2):
            with pytest.raises(Suspended):
                await stage.provider.tip(stage.repo, "main")
        assert await stage.provider.repositories() == ()
        await stage.act("suspend", suspended=False)
        assert await stage.provider.tip(stage.repo, "main") is not None

    async def test_a_renamed_repository_is_written_to_under_its_old_name(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        request = stage.request(pull)
        await stage.provider.repository(stage.repo)
        await stage.act("rename", to="gadgets")
        stage.full_name = "octo/gadgets"
        built = await stage.provider.build(request)
        assert stage.branches() == {request.branch: built.tip}
        assert stage.drafts() == [built.vehicle_number]

    async def test_a_landing_under_an_old_name_is_not_sent(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        request = stage.merging(number, head)
        await stage.provider.repository(stage.repo)
        await stage.act("rename", to="gadgets")
        stage.full_name = "octo/gadgets"
        with pytest.raises(Unavailable):
            await stage.provider.merge(request)
        assert stage.tip() == request.expect_parent
        assert stage.called("PUT", "/merge") == 1

    async def test_without_an_installation_everything_is_gone(self, stage):
        await stage.provider.tip(stage.repo, "main")
        stage.uninstall()
        with pytest.raises(Gone):
            await stage.provider.tip(stage.repo, "main")


class Budget:
    """docs/design/provider.md 5: what one landed pull request costs."""

    async def test_a_pull_request_tested_at_once_takes_few_calls(self, stage):
        await stage.rules(required_checks=["unit"])
        number, head = await stage.open({"a.txt": "a\n"})
        comment = str((await stage.act("comment", number=number, body="/merge"))["comment"])
        await stage.provider.repositories()
        await stage.provider.tip(stage.repo, "main")
        before = len(stage.calls())

        await stage.provider.access(stage.repo, stage.actor())
        await stage.provider.pull_request(stage.repo, number)
        await stage.provider.changed_files(stage.repo, number)
        assert isinstance(await stage.provider.required(stage.repo, "main"), Known)
        await stage.say(Reaction(number, comment, Emoji.ACCEPTED))
        built = await stage.provider.build(stage.request((number, head)))
        check = await stage.say(stage.check(head, CheckReportStatus.IN_PROGRESS, first=True))
        status = await stage.say(StatusComment(number, MARKER, "testing", first=True))
        await stage.settle()
        await stage.provider.checks(stage.repo, built.tip, skipped_pass=True)

        facts = await stage.provider.pull_request(stage.repo, number)
        assert facts.state is PullRequestState.OPEN
        await stage.provider.checks(stage.repo, built.tip, skipped_pass=True)
        await stage.provider.forget_rules(stage.repo, only_free=True)
        await stage.provider.required(stage.repo, "main")
        assert isinstance(await stage.provider.merge(stage.merging(number, head)), Merged)

        await stage.provider.discard(stage.repo, built.branch)
        await stage.say(stage.check(head, CheckReportStatus.SUCCESS, known_id=check))
        await stage.say(StatusComment(number, MARKER, "merged", known_id=status))
        await stage.say(Reaction(number, comment, Emoji.MERGED))

        # GitHub does not count what it answers with 304.
        calls = [call for call in stage.calls(before) if call["status"] != 304]
        writes = [call for call in calls if stage.is_write(call)]
        told = "\n".join(f"{call['method']} {call['path']}" for call in calls)
        assert len(writes) <= 12, told
        rest = [call for call in calls if not call["path"].endswith("/graphql")]
        # Nine writes and six of a build by REST, the reads of its stack, rules, files and tip.
        assert len(rest) <= 20, told
        assert len(calls) - len(rest) <= 6, told


async def seconds_away(stage):
    """Read what cannot be read; how long the provider is said to be away then."""
    with pytest.raises(Unavailable) as unavailable:
        await stage.provider.tip(stage.repo, "main")
    return (unavailable.value.retry_at - stage.clock.now()).total_seconds()

"""What every provider shows of our own acts, by whoever did them and never by what they say."""

from datetime import timedelta

import pytest

from service.provider.values import (
    CheckReportStatus,
    LandedByUs,
    LandedPull,
    Reply,
    StatusComment,
)

MARKER = "<!-- headgate:status v=1 queue=main -->"
EARLY = timedelta(days=1)


class OwnWork:
    """Landings and comments of our App, for a database that does not know them."""

    async def test_what_our_app_merged_is_ours(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        landed = await stage.provider.merge(stage.merging(number, head))
        assert await stage.provider.landed_by_us(stage.repo, number) == LandedByUs(landed.commit)

    async def test_what_our_app_advanced_is_ours(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        built = await stage.provider.build(stage.request((number, head)))
        await stage.provider.advance(stage.advancing(built.tip, built.branch))
        await stage.settle()
        assert await stage.provider.landed_by_us(stage.repo, number) == LandedByUs(built.tip)

    async def test_what_our_app_closed_after_its_landing_is_ours_with_its_commit(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        tip = stage.tip()
        landed = LandedPull(number, head, tip, "main", "main", may_show=False)
        assert not await stage.provider.settle_merged(stage.repo, landed)
        assert await stage.provider.landed_by_us(stage.repo, number) == LandedByUs(tip)

    async def test_a_commit_that_another_names_in_our_words_is_not_taken(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        tip = stage.tip()
        landed = LandedPull(number, head, tip, "main", "main", may_show=False)
        await stage.provider.settle_merged(stage.repo, landed)
        words = f"<!-- headgate:reply landed-{'0' * 40} -->"
        await stage.act("comment", number=number, body=words)
        assert await stage.provider.landed_by_us(stage.repo, number) == LandedByUs(tip)
        stage.forget_comments(number)
        await stage.act("comment", number=number, body=words)
        assert await stage.provider.landed_by_us(stage.repo, number) == LandedByUs(None)

    async def test_what_a_person_merged_or_closed_is_not_ours(self, stage):
        merged, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("merge", number=merged, bypass=True)
        closed, _ = await stage.open({"b.txt": "b\n"})
        await stage.act("close", number=closed)
        still_open, _ = await stage.open({"c.txt": "c\n"})
        for number in (merged, closed, still_open):
            assert await stage.provider.landed_by_us(stage.repo, number) is None

    async def test_a_draft_of_our_own_that_we_closed_is_no_landing(self, stage):
        built = await stage.provider.build(stage.request(await stage.open({"a.txt": "a\n"})))
        await stage.provider.discard(stage.repo, built.branch)
        await stage.settle()
        number = built.vehicle_number
        assert number is not None
        assert await stage.provider.landed_by_us(stage.repo, number) is None

    @pytest.mark.parametrize(
        ("status", "is_end"),
        [
            (CheckReportStatus.FAILURE, True),
            (CheckReportStatus.CANCELLED, True),
            (CheckReportStatus.NEUTRAL, True),
            (CheckReportStatus.SUCCESS, False),
            (CheckReportStatus.IN_PROGRESS, False),
        ],
    )
    async def test_a_check_run_of_ours_shows_the_end_of_its_submission_alone(
        self, stage, status, is_end
    ):
        _, head = await stage.open({"a.txt": "a\n"})
        report = stage.check(head, status, external_id="one")
        await stage.say(report)
        shows = stage.provider.shows_end
        assert await shows(stage.repo, head, report.name, "one") is is_end
        assert not await shows(stage.repo, head, report.name, "two")
        assert not await shows(stage.repo, head, "Headgate (other)", "one")

    async def test_status_comments_of_ours_are_told_newest_first(self, stage):
        since = stage.clock.now() - EARLY
        first, _ = await stage.open({"a.txt": "a\n"})
        second, _ = await stage.open({"b.txt": "b\n"})
        ids = [await stage.say(StatusComment(each, MARKER, "one")) for each in (first, second)]
        await stage.say(Reply(first, "a-1", f"no status: {MARKER}"))
        await stage.act("comment", number=first, body=f"{MARKER}\nfake")
        found = await stage.provider.statuses_posted(stage.repo, MARKER, since)
        assert sorted((one.number, one.id) for one in found) == [(first, ids[0]), (second, ids[1])]
        assert {one.body for one in found} == {f"{MARKER}\none"}
        later = stage.clock.now() + EARLY
        assert list(await stage.provider.statuses_posted(stage.repo, MARKER, later)) == []

    async def test_closed_pull_requests_are_those_onto_the_branch_that_closed_since(self, stage):
        since = stage.clock.now() - EARLY
        await stage.act("push", branch="release", files={"r.txt": "r\n"})
        closed, head = await stage.open({"a.txt": "a\n"})
        await stage.open({"b.txt": "b\n"})
        elsewhere, _ = await stage.open({"c.txt": "c\n"}, base="release")
        for number in (closed, elsewhere):
            await stage.act("close", number=number)
        read = stage.provider.closed_pull_requests
        assert [(one.number, one.head) for one in await read(stage.repo, "main", since)] == [
            (closed, head)
        ]
        assert list(await read(stage.repo, "main", stage.clock.now() + EARLY)) == []

    async def test_a_comment_on_what_was_closed_before_closes_nothing_since(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("close", number=number)
        stage.clock.advance(EARLY.total_seconds())
        since = stage.clock.now() - timedelta(hours=1)
        await stage.act("comment", number=number, body="thanks")
        assert list(await stage.provider.closed_pull_requests(stage.repo, "main", since)) == []

    async def test_a_check_run_replaces_that_of_a_submission_that_nobody_knows(self, stage):
        _, head = await stage.open({"a.txt": "a\n"})
        await stage.say(stage.check(head, CheckReportStatus.IN_PROGRESS, external_id="lost"))
        await stage.say(
            stage.check(head, CheckReportStatus.NEUTRAL, external_id="restored-1", replaces=True)
        )
        assert stage.own_checks(head) == [("completed", "neutral")]

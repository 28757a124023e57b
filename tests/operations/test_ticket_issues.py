"""An issue for each test that stays unhealthy: opened, kept up to date, closed, reopened."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from sqlalchemy import select

from service.accounts.store import audit
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane
from service.errors import Invalid
from service.notifications import notifications
from service.notifications.store import subscribers
from service.notifications.store.notifications import messages
from service.notifications.store.subscribers import Endpoint
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provider.errors import NotPermitted, OutcomeUnknown, Unavailable
from service.provider.tickets import Ticket, TicketRequest
from service.provider.values import NotPossible, Reply
from service.testhealth.operations import flags, settings, sweeps, tickets
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.operations.tickets import TicketLink
from service.testhealth.store import quarantine
from service.testhealth.store import ticket_issues as stored
from service.vocabulary import SYSTEM, Flag, RepoRef, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, Stage

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class Tracker(ValuesProvider):
    """A provider whose issues may be out of order; `writes` counts what was sent."""

    def __init__(self) -> None:
        super().__init__(HOST)
        self.writes = 0
        self.refusal: NotPossible | None = None
        self.before: Exception | None = None
        self.after: Exception | None = None

    async def put_ticket(self, repo: RepoRef, request: TicketRequest) -> Ticket:
        if self.before is not None:
            raise self.before
        self.writes += 1
        made = await super().put_ticket(repo, request)
        if self.after is not None:
            raise self.after
        return made

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        return self.refusal


@dataclass
class Desk:
    """A repository that wants issues, and what its tracker shows."""

    stage: Stage
    tracker: Tracker

    async def turn(self, *, on: bool) -> None:
        """Switch issues on or off."""
        changes = {"ticket_issues": on}
        await settings.update(self.stage.runtime, self.stage.repository, changes, SYSTEM)

    async def flag(self, flag: Flag, name: str = "total", why: str = "it is") -> None:
        """Somebody says how a test is; everything due is done."""
        request = FlagRequest(
            (await self.stage.case(name)).id, flag, None if flag is Flag.NONE else why
        )
        await flags.put(self.stage.runtime, self.stage.repository, request, SYSTEM)
        await self.work()

    async def passes(self, span: timedelta) -> None:
        """Time passes, and whatever that brings is done."""
        self.stage.clock.present += span
        await sweeps.expire(self.stage.runtime)
        await self.work()

    async def work(self) -> None:
        """Effects that are due are carried out."""
        self.tracker.now = self.stage.clock.present
        await Flow(self.stage.runtime, flows.NOTICES).drain()

    @property
    def issue(self) -> Ticket:
        """The only issue."""
        (found,) = self.tracker.tickets.values()
        return found

    @property
    def comments(self) -> list[str]:
        """First sentence of each comment."""
        said = [each for each in self.tracker.said if isinstance(each, Reply)]
        return [each.body.partition(". ")[0] for each in said]

    def close(self) -> None:
        """Somebody closes the issue."""
        now = self.stage.clock.present
        self.tracker.tickets[self.issue.number] = replace(self.issue, closed_at=now)

    def reopen(self) -> None:
        """Somebody reopens it."""
        self.tracker.tickets[self.issue.number] = replace(self.issue, closed_at=None)

    async def link(self, name: str = "total") -> str | None:
        """The ticket of a test."""
        stage = self.stage
        case = await stage.case(name)
        return await stage.runtime.store.read(quarantine.ticket_of, stage.repository.id, case.no)


@pytest.fixture
async def desk(store):
    """One test, `total`, which nobody calls flaky yet."""
    stage = await upload_stage.staged(store)
    tracker = Tracker()
    stage = replace(stage, runtime=replace(stage.runtime, providers={HOST: tracker}))
    await stage.ran({"total": "P"})
    made = Desk(stage, tracker)
    await made.turn(on=True)
    return made


@pytest.fixture
async def opened(desk):
    """The test is flaky for a day, and has its issue."""
    await desk.flag(Flag.FLAKY)
    await desk.passes(DAY)
    assert desk.issue.is_open
    return desk


async def test_who_carries_out_messages_and_issues_is_woken_by_a_new_status(desk: Desk) -> None:
    wakeups = desk.stage.runtime.wakeups
    topics = (notifications.TOPIC, outbox.TOPICS[Lane.NOTICE])
    before = [wakeups.version(topic) for topic in topics]
    case = await desk.stage.case("total")
    request = FlagRequest(case.id, Flag.FLAKY, "it is")
    await flags.put(desk.stage.runtime, desk.stage.repository, request, SYSTEM)
    after = [wakeups.version(topic) for topic in topics]
    assert all(new > old for new, old in zip(after, before, strict=True))


async def test_a_test_that_is_unhealthy_for_a_day_gets_an_issue(desk):
    await desk.flag(Flag.FLAKY)
    await desk.passes(DAY - HOUR)
    assert desk.tracker.tickets == {}
    await desk.passes(HOUR)
    assert desk.issue.title == "Flaky test: total"
    case = await desk.stage.case("total")
    assert f"/octo/widgets/tests/{case.id}" in desk.issue.body
    assert "Flagged flaky by" in desk.issue.body
    assert await desk.link() == desk.issue.url
    await desk.passes(HOUR)
    assert desk.tracker.writes == 1


async def test_three_pull_requests_bring_it_at_once(desk):
    for number in (1, 2):
        await desk.stage.ran({"total": "F"}, pr_number=number, run_id=str(number))
    await desk.flag(Flag.BROKEN)
    await desk.passes(HOUR)
    assert desk.tracker.tickets == {}
    await desk.stage.ran({"total": "F"}, pr_number=3, run_id="3")
    await desk.passes(timedelta(minutes=1))
    assert desk.issue.title == "Broken test: total"
    assert "| Pull requests hit in 7 days | 3 |" in desk.issue.body


async def test_a_healthy_test_that_hits_many_pull_requests_gets_none(desk):
    for number in (1, 2, 3):
        sha = Sha(str(number) * 40)
        await desk.stage.ran({"total": "F"}, pr_number=number, run_id=str(number), sha=sha)
    await desk.passes(2 * DAY)
    assert desk.tracker.tickets == {}


async def test_nothing_is_opened_while_the_switch_is_off(desk):
    await desk.turn(on=False)
    await desk.flag(Flag.FLAKY)
    await desk.passes(2 * DAY)
    assert desk.tracker.tickets == {}


async def test_at_most_five_are_opened_in_a_day_those_that_hit_most_first(desk):
    names = [f"test_{n}" for n in range(7)]
    await desk.stage.ran(dict.fromkeys(names, "P"))
    for n, name in enumerate(names):
        for number in range(n):
            await desk.stage.ran({name: "F"}, pr_number=number + 1, run_id=f"{name} {number}")
        await desk.flag(Flag.FLAKY, name)
    await desk.passes(DAY)
    titles = [each.title for each in desk.tracker.tickets.values()]
    assert sorted(titles) == [f"Flaky test: test_{n}" for n in (2, 3, 4, 5, 6)]
    await desk.passes(DAY - HOUR)
    assert len(desk.tracker.tickets) == 5
    await desk.passes(HOUR)
    assert len(desk.tracker.tickets) == 7


async def test_a_test_with_a_ticket_of_people_gets_no_issue(desk):
    url = "https://tickets.example.org/KAN-7"
    request = TicketLink((await desk.stage.case("total")).id, url)
    await tickets.link(desk.stage.runtime, desk.stage.repository, request, SYSTEM)
    await desk.flag(Flag.FLAKY)
    await desk.passes(2 * DAY)
    assert desk.tracker.tickets == {}
    assert await desk.link() == url


async def test_a_link_that_people_set_later_stays_and_the_issue_is_kept_all_the_same(opened):
    url = "https://tickets.example.org/KAN-7"
    request = TicketLink((await opened.stage.case("total")).id, url)
    await tickets.link(opened.stage.runtime, opened.stage.repository, request, SYSTEM)
    await opened.flag(Flag.BROKEN)
    assert opened.issue.title == "Broken test: total"
    assert await opened.link() == url


async def test_a_link_that_people_set_before_the_issue_is_made_stands_instead(desk):
    desk.tracker.before = Unavailable("away", desk.stage.clock.present)
    await desk.flag(Flag.FLAKY)
    await desk.passes(DAY)
    request = TicketLink((await desk.stage.case("total")).id, "https://tickets.example.org/KAN-7")
    await tickets.link(desk.stage.runtime, desk.stage.repository, request, SYSTEM)
    desk.tracker.before = None
    await desk.passes(2 * DAY)
    assert desk.tracker.tickets == {}
    await tickets.link(
        desk.stage.runtime, desk.stage.repository, replace(request, html_url=""), SYSTEM
    )
    await desk.passes(HOUR)
    assert desk.issue.is_open


async def test_the_link_follows_an_issue_whose_repository_moved(opened):
    number, moved = opened.issue.number, "https://github.test/new/name/issues/1000"
    opened.tracker.tickets[number] = replace(opened.issue, url=moved)
    await opened.passes(DAY)
    assert await opened.link() == moved
    opened.tracker.tickets.clear()
    await opened.flag(Flag.NONE)
    assert await opened.link() is None


async def test_each_new_status_is_a_comment_and_healthy_closes_it(opened):
    await opened.flag(Flag.BROKEN)
    assert opened.comments == ["This test is **broken** now"]
    assert opened.issue.is_open
    await opened.flag(Flag.NONE)
    assert opened.comments[1:] == ["This test is **healthy** again"]
    assert (opened.issue.title, opened.issue.is_open) == ("Healthy again: total", False)
    writes = opened.tracker.writes
    await opened.passes(3 * DAY)
    assert opened.tracker.writes == writes


async def test_new_figures_come_once_a_day_without_a_comment(opened):
    await opened.stage.ran({"total": "F"}, pr_number=1, run_id="1")
    await opened.passes(DAY - HOUR)
    assert "| Pull requests hit in 7 days | 0 |" in opened.issue.body
    await opened.passes(HOUR)
    assert "| Pull requests hit in 7 days | 1 |" in opened.issue.body
    assert opened.comments == []


async def test_flaky_again_within_ten_days_is_a_comment_and_opens_it_after_them(opened):
    await opened.flag(Flag.NONE)
    await opened.passes(3 * DAY)
    await opened.flag(Flag.FLAKY)
    assert opened.comments[1:] == ["This test is **flaky** now"]
    assert not opened.issue.is_open
    await opened.passes(7 * DAY - HOUR)
    assert not opened.issue.is_open
    await opened.passes(HOUR)
    assert opened.issue.is_open
    assert len(opened.comments) == 2


async def test_flaky_again_after_ten_days_opens_it_at_once(opened):
    await opened.flag(Flag.NONE)
    await opened.passes(10 * DAY)
    await opened.flag(Flag.FLAKY)
    assert opened.issue.is_open
    assert opened.comments[1:] == ["This test is **flaky** now"]
    assert len(opened.tracker.tickets) == 1


async def test_what_a_person_closes_stays_closed_until_the_status_changes(opened):
    opened.close()
    for _ in range(12):
        await opened.passes(DAY)
    assert not opened.issue.is_open
    assert opened.comments == []
    await opened.flag(Flag.BROKEN)
    assert opened.issue.is_open
    assert opened.comments == ["This test is **broken** now"]


async def test_what_a_person_reopens_stays_open_until_the_status_changes(opened):
    await opened.flag(Flag.NONE)
    opened.reopen()
    await opened.passes(2 * DAY)
    assert opened.issue.is_open
    await opened.flag(Flag.FLAKY)
    await opened.flag(Flag.NONE)
    assert not opened.issue.is_open


async def test_a_deleted_issue_is_not_made_again_for_the_same_status(opened):
    url = opened.issue.url
    opened.tracker.tickets.clear()
    await opened.passes(2 * DAY)
    assert opened.tracker.tickets == {}
    assert await opened.link() == url
    await opened.flag(Flag.NONE)
    assert await opened.link() is None
    await opened.flag(Flag.FLAKY)
    await opened.passes(DAY)
    assert opened.issue.title == "Flaky test: total"


async def test_switched_off_the_issue_is_left_alone_and_caught_up_with_later(opened):
    await opened.turn(on=False)
    await opened.flag(Flag.BROKEN)
    await opened.passes(2 * DAY)
    assert (opened.issue.title, opened.comments) == ("Flaky test: total", [])
    await opened.turn(on=True)
    await opened.passes(HOUR)
    assert opened.issue.title == "Broken test: total"
    assert opened.comments == ["This test is **broken** now"]


async def test_what_happened_to_a_closed_one_while_it_was_off_is_told_when_it_is_on(opened):
    await opened.flag(Flag.NONE)
    await opened.turn(on=False)
    await opened.flag(Flag.FLAKY)
    await opened.passes(3 * DAY)
    assert len(opened.comments) == 1
    await opened.turn(on=True)
    await opened.passes(HOUR)
    assert opened.comments[1:] == ["This test is **flaky** now"]


async def test_several_changes_that_nobody_has_told_yet_are_one_comment(opened):
    opened.tracker.before = Unavailable("away", opened.stage.clock.present + HOUR)
    await opened.flag(Flag.BROKEN)
    await opened.flag(Flag.NONE)
    assert opened.issue.title == "Flaky test: total"
    opened.tracker.before = None
    await opened.passes(2 * HOUR)
    assert opened.issue.title == "Healthy again: total"
    assert opened.comments[-1] == "This test is **healthy** again"


async def test_one_whose_answer_was_lost_is_found_again_not_made_twice(desk):
    await desk.flag(Flag.FLAKY)
    desk.tracker.after = OutcomeUnknown("lost")
    await desk.passes(DAY)
    assert await desk.link() is None
    desk.tracker.after = None
    await desk.passes(HOUR)
    assert len(desk.tracker.tickets) == 1
    assert await desk.link() == desk.issue.url
    assert desk.comments == []


async def test_a_comment_that_may_be_there_is_looked_for_under_the_same_name(opened):
    opened.tracker.after = OutcomeUnknown("lost")
    await opened.flag(Flag.BROKEN)
    opened.tracker.after = None
    await opened.passes(HOUR)
    first, again = [each for each in opened.tracker.said if isinstance(each, Reply)]
    assert (first.first, again.first) == (True, False)
    assert first.action_id == again.action_id


async def test_a_test_that_is_healthy_before_its_issue_is_made_gets_none(desk):
    await desk.flag(Flag.FLAKY)
    desk.tracker.before = Unavailable("away", desk.stage.clock.present + 2 * DAY)
    await desk.passes(DAY)
    await desk.flag(Flag.NONE)
    desk.tracker.before = None
    await desk.passes(2 * DAY)
    assert desk.tracker.tickets == {}
    case = await desk.stage.case("total")
    here = desk.stage.repository.id
    assert await desk.stage.runtime.store.read(stored.issue_of, here, case.no) is None


async def test_what_could_not_be_written_for_good_is_tried_again_the_next_day(desk):
    await desk.flag(Flag.FLAKY)
    desk.tracker.before = NotPermitted("Resource not accessible by integration", "issues: write")
    await desk.passes(DAY)
    for _ in range(12):
        await desk.passes(HOUR)
    desk.tracker.before = None
    await desk.passes(HOUR)
    assert desk.tracker.tickets == {}
    await desk.passes(DAY)
    assert desk.issue.is_open


async def test_issues_are_refused_where_they_cannot_be_written(desk):
    await desk.turn(on=False)
    desk.tracker.refusal = NotPossible("The App does not have the permission `issues: write`.")
    with pytest.raises(Invalid) as refused:
        await desk.turn(on=True)
    assert refused.value.code == "issues_not_writable"
    assert refused.value.detail == (
        "The App does not have the permission `issues: write`. Without that no issue of a test "
        "can be opened in octo/widgets."
    )
    assert not (await settings.read(desk.stage.runtime, desk.stage.repository)).ticket_issues
    desk.tracker.refusal = None
    await desk.turn(on=True)
    desk.tracker.refusal = NotPossible("gone meanwhile")
    await desk.turn(on=True)


async def test_the_link_is_told_to_endpoints_and_kept_in_the_audit_log(desk):
    endpoint = Endpoint(
        id="e1",
        org_id=desk.stage.repository.org_id,
        url="https://hooks.example.org",
        events=("test_case.ticket_linked",),
        repositories=None,
        description="",
        secret=b"",
        created_at=desk.stage.clock.present,
    )
    await desk.stage.runtime.store.run(subscribers.create, endpoint)
    await desk.flag(Flag.FLAKY)
    await desk.passes(DAY)
    bodies = await desk.stage.runtime.store.read(_bodies)
    assert [each["ticket"] for each in bodies] == [{"html_url": desk.issue.url}]
    (newest, *_) = await desk.stage.runtime.store.read(
        audit.newest, desk.stage.repository.org_id, 5
    )
    assert (newest.action, newest.actor) == ("test.link_ticket", SYSTEM)
    assert newest.subject == f"test/{(await desk.stage.case('total')).id}"
    assert newest.data == {"before": None, "after": desk.issue.url}


def _bodies(session: Tx) -> list[Any]:
    return [orjson.loads(row.body) for row in session.execute(select(messages.c.body))]

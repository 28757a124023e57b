"""What every provider does with tickets; the runners give the `stage`.

A stage has the provider, its repository, and what people do to issues there.
"""

from dataclasses import replace

import pytest

from service.provider.errors import NotPermitted, OutcomeUnknown, Refused
from service.provider.tickets import TicketRequest

MARKER = "<!-- headgate:ticket v=1 test=00000000-0000-4000-8000-000000000001 -->"
OTHER = MARKER.replace("0001 -->", "0002 -->")


def a_request(found=None, **changed):
    """An issue about a test, as it is first written."""
    made = TicketRequest(MARKER, "Flaky test: adds", f"{MARKER}\nIt fails now and then.", found)
    return replace(made, **changed)


class Kept:
    """One issue for each marker, made and changed."""

    async def test_there_is_none_before_it_is_made(self, stage):
        assert await stage.provider.ticket(stage.repo, MARKER, None) is None
        assert await stage.provider.ticket(stage.repo, MARKER, 999) is None

    async def test_it_is_made_once_and_found_by_its_marker_or_number(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        assert made.is_open
        assert str(made.number) in made.url
        assert (made.title, made.body) == (a_request().title, a_request().body)
        assert await stage.provider.ticket(stage.repo, MARKER, None) == made
        assert await stage.provider.ticket(stage.repo, MARKER, made.number) == made
        assert await stage.provider.ticket(stage.repo, OTHER, None) is None

    async def test_one_that_only_quotes_the_marker_is_another(self, stage):
        quoting = a_request(marker=OTHER, body=f"{OTHER}\n`adds {MARKER}` fails.")
        other = await stage.provider.put_ticket(stage.repo, quoting)
        assert await stage.provider.ticket(stage.repo, MARKER, None) is None
        body = f"{MARKER}\n`adds {OTHER}` fails."
        made = await stage.provider.put_ticket(stage.repo, a_request(body=body))
        assert await stage.provider.ticket(stage.repo, MARKER, None) == made
        assert await stage.provider.ticket(stage.repo, OTHER, None) == other

    async def test_its_text_is_rewritten_in_place(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        body = f"{MARKER}\nIt fails often."
        changed = await stage.provider.put_ticket(
            stage.repo, a_request(made, title="Broken test: adds", body=body)
        )
        assert changed == replace(made, title="Broken test: adds", body=body)
        assert await stage.provider.ticket(stage.repo, MARKER, None) == changed

    async def test_it_is_closed_and_reopened(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        closed = await stage.provider.put_ticket(stage.repo, a_request(made, is_open=False))
        assert not closed.is_open
        found = await stage.provider.ticket(stage.repo, MARKER, None)
        assert found == closed
        opened = await stage.provider.put_ticket(stage.repo, a_request(found, is_open=True))
        assert opened == made

    async def test_whether_it_is_open_is_left_as_people_have_it(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        await stage.close_issue(made.number)
        found = await stage.provider.ticket(stage.repo, MARKER, made.number)
        assert found is not None
        assert not found.is_open
        body = f"{MARKER}\nIt fails often."
        changed = await stage.provider.put_ticket(stage.repo, a_request(found, body=body))
        assert (changed.body, changed.closed_at) == (body, found.closed_at)

    async def test_a_deleted_one_is_none(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        await stage.delete_issue(made.number)
        assert await stage.provider.ticket(stage.repo, MARKER, made.number) is None
        assert await stage.provider.ticket(stage.repo, MARKER, None) is None


class Written:
    """The same where other people and a network are in between."""

    @pytest.fixture(autouse=True)
    async def granted(self, stage):
        """Our App may write issues."""
        await stage.permit(issues="write")

    async def test_what_stands_already_is_not_sent_again(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        calls = len(stage.calls())
        assert await stage.provider.put_ticket(stage.repo, a_request(made, is_open=True)) == made
        assert len(stage.calls()) == calls

    async def test_an_issue_of_somebody_else_with_our_marker_is_not_ours(self, stage):
        copied = a_request().body
        fake = (await stage.act("open_issue", title="Flaky test: adds", body=copied))["number"]
        assert await stage.provider.ticket(stage.repo, MARKER, None) is None
        assert await stage.provider.ticket(stage.repo, MARKER, fake) is None
        real = await stage.provider.put_ticket(stage.repo, a_request())
        assert await stage.provider.ticket(stage.repo, MARKER, None) == real

    async def test_a_pull_request_of_ours_with_the_marker_is_no_issue(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        built = await stage.provider.build(stage.request((number, head), body=MARKER))
        assert MARKER in stage.issue(built.vehicle_number).body
        assert await stage.provider.ticket(stage.repo, MARKER, None) is None
        assert await stage.provider.ticket(stage.repo, MARKER, built.vehicle_number) is None

    async def test_it_is_found_behind_many_others(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        for number in range(120):
            other = a_request(marker=f"<!-- {number} -->", body=f"<!-- {number} -->")
            await stage.provider.put_ticket(stage.repo, other)
        assert await stage.provider.ticket(stage.repo, MARKER, None) == made

    async def test_no_more_than_a_thousand_are_looked_through(self, stage):
        await stage.provider.put_ticket(stage.repo, a_request())
        stage.crowd_issues(1100)
        before = len(stage.calls())
        assert await stage.provider.ticket(stage.repo, MARKER, None) is None
        assert len(stage.calls()) - before == 10

    @pytest.mark.parametrize("kind", ["fail_after", "reset_after", "truncate"])
    async def test_one_whose_answer_was_lost_is_found_again(self, stage, kind):
        await stage.fault(kind, method="POST", path="*/issues")
        with pytest.raises(OutcomeUnknown):
            await stage.provider.put_ticket(stage.repo, a_request())
        found = await stage.provider.ticket(stage.repo, MARKER, None)
        assert found is not None
        assert await stage.provider.put_ticket(stage.repo, a_request(found)) == found
        assert stage.called("POST", "/issues") == 1

    async def test_a_long_text_is_cut(self, stage):
        long = a_request(title="t" * 300, body=f"{MARKER}\n" + "x" * 70_000)
        made = await stage.provider.put_ticket(stage.repo, long)
        assert (len(made.title), len(made.body)) == (256, 60_000)
        calls = len(stage.calls())
        await stage.provider.put_ticket(stage.repo, replace(long, found=made))
        assert len(stage.calls()) == calls

    async def test_without_the_permission_it_says_so_and_hears_of_the_grant_at_once(self, stage):
        await stage.permit(issues="read")
        refused = await stage.provider.no_tickets(stage.repo)
        assert refused is not None
        assert refused.reason == "The App does not have the permission `issues: write`."
        with pytest.raises(NotPermitted) as denied:
            await stage.provider.put_ticket(stage.repo, a_request())
        assert denied.value.permission == "issues: write"
        await stage.permit(issues="write")
        assert await stage.provider.no_tickets(stage.repo) is None
        await stage.provider.put_ticket(stage.repo, a_request())

    async def test_a_repository_without_issues_takes_none_and_says_so(self, stage):
        made = await stage.provider.put_ticket(stage.repo, a_request())
        stage.world.settings.issues = False
        refused = await stage.provider.no_tickets(stage.repo)
        assert refused is not None
        assert refused.reason == "Issues are switched off in the repository."
        with pytest.raises(Refused):
            await stage.provider.put_ticket(stage.repo, a_request())
        with pytest.raises(Refused):
            await stage.provider.put_ticket(stage.repo, a_request(made, is_open=False))

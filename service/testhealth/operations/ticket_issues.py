"""Issues of tests: requested in the transaction of their cause, written by the outbox.

An issue is written as the test is at that time, not as it was when the issue was requested. The
rules are in docs/design/quarantine.md 4 and `testhealth/detector/ticketing.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from service import sweeping
from service.accounts import audit_log, page_addresses
from service.accounts.store import access
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import ClaimedEffect, Lane, OutboxItem
from service.provider.tickets import Ticket, TicketRequest
from service.provider.values import Reply
from service.runtime import Runtime
from service.testhealth import tickets
from service.testhealth.detector import figures, ticketing
from service.testhealth.detector.ticketing import KeepTicket, ProviderIssue, TicketIssue, Writing
from service.testhealth.operations import lists, records
from service.testhealth.operations import tickets as test_tickets
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.store import cases as test_cases
from service.testhealth.store import listings, quarantine
from service.testhealth.store import ticket_issues as stored
from service.testhealth.store.cases import Place
from service.testhealth.store.days import Span
from service.testhealth.store.listings import ListedCase
from service.testhealth.tickets import TicketText
from service.text.markdown import Links
from service.vocabulary import SYSTEM, Health

outbox.EFFECT.add(KeepTicket)


@dataclass(frozen=True, slots=True)
class Kept:
    """A test and its issue as they are stored."""

    context: RepositoryContext
    test: ListedCase
    issue: TicketIssue

    @property
    def status(self) -> Health:
        """Return how the test is."""
        return self.test.status


def note_status(session: Tx, runtime: Runtime, context: RepositoryContext, no: int) -> None:
    """Have the test's issue told of its new status, if it has one.

    Called in the transaction of the change.
    """
    here = context.repository.id
    if not context.settings.ticket_issues or stored.issue_of(session, here, no) is None:
        return
    # Should it fail for good, the next look makes up for it.
    stored.put_off(session, here, [no], context.now + ticketing.LOOK_EVERY)
    _ask(session, runtime, context.repository, [no], context.now)


async def sweep(runtime: Runtime) -> None:
    """Ask for the issues that time alone brings: new ones, new figures, reopened ones."""
    places = await runtime.store.read(stored.places)
    await sweeping.one_by_one(_sweep_one(runtime, each) for each in places)


async def _sweep_one(runtime: Runtime, place: Place) -> None:
    now = runtime.clock.now()
    if await runtime.store.read(_is_due, place, now):
        await runtime.store.run(_ask_due, runtime, place, now)
        outbox.wake(runtime.wakeups, (Lane.NOTICE,))


def _is_due(session: Tx, place: Place, now: datetime) -> bool:
    return bool(stored.due(session, place.repository_id, now) or _wanting(session, place, now))


def _ask_due(session: Tx, runtime: Runtime, place: Place, now: datetime) -> None:
    # Held until the end, so that two processes never count the same day's room.
    settings = quarantine.settings_to_change(session, place)
    repository = access.repository(session, place.repository_id)
    if not settings.ticket_issues or not repository.available:
        return
    due = stored.due(session, repository.id, now)
    stored.put_off(session, repository.id, due, now + ticketing.LOOK_EVERY)
    new = _wanting(session, place, now)
    for case in listings.listed_cases(session, repository.id, new):
        stored.put(session, place, ticketing.new_issue(case.no, case.status, now))
    _ask(session, runtime, repository, [*due, *new], now)


def _wanting(session: Tx, place: Place, now: datetime) -> Sequence[int]:
    lately = stored.asked_since(session, place.repository_id, now - ticketing.NEW_WITHIN)
    return stored.wanting(session, place.repository_id, ticketing.opening(now, lately))


def _ask(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, nos: Iterable[int], now: datetime
) -> None:
    items = [
        OutboxItem(
            Lane.NOTICE,
            f"ticket/{repository.id}/{no}/{runtime.ids.uuid()}",
            "ticket",
            KeepTicket(no),
            next_at=now,
            supersede_key=f"ticket/{repository.id}/{no}",
        )
        for no in nos
    ]
    outbox.append(session, repository.id, None, 0, items)


async def keep(runtime: Runtime, row: ClaimedEffect, wanted: KeepTicket, *, first: bool) -> None:
    """Bring the test's issue up to date; safe to repeat. `first` as for `notices.tell`.

    Does nothing while the repository wants no issues. Raises the provider's errors.
    """
    now = runtime.clock.now()
    kept = await runtime.store.read(_kept, runtime, (row.repository_id, wanted.no), now)
    if kept is None:
        return
    ref = kept.context.repository.ref
    provider = runtime.provider_of(ref.host)
    marker = tickets.marker(kept.test.id)
    stands = await provider.ticket(ref, marker, kept.issue.number)
    is_linked = kept.test.ticket is not None
    writing = ticketing.writing_of(
        kept.issue, _standing(stands), kept.status, now, is_linked=is_linked
    )
    if writing is not None:
        view = _view(runtime, kept)
        runtime.crash_points.reach("act.ticket.before_send")
        if writing.comments and stands is not None:
            said = tickets.comment(view, _opens_at(stands, writing, kept.status))
            await provider.say(ref, Reply(stands.number, row.key, said, first=first))
        title, body = tickets.title(view), tickets.body(view)
        request = TicketRequest(marker, title, body, stands, writing.is_open)
        stands = await provider.put_ticket(ref, request)
        runtime.crash_points.reach("act.ticket.after_send")
    subject = f"test/{kept.test.id}"
    deed = audit_log.allowed(
        SYSTEM, kept.context.repository.org_id, "test.link_ticket", subject, now
    )
    await runtime.store.run(_remember, runtime, kept, _standing(stands), deed)
    runtime.crash_points.reach("act.ticket.before_settle")


def _kept(session: Tx, runtime: Runtime, of: tuple[int, int], now: datetime) -> Kept | None:
    repository_id, no = of
    context = records.context_of(session, runtime, access.repository(session, repository_id), now)
    issue = stored.issue_of(session, repository_id, no)
    if issue is None or not context.settings.ticket_issues:
        return None
    span = Span(now - figures.WEEK, now)
    measured = lists.with_figures(session, context, [no], span)
    return Kept(context, measured[0], issue) if measured else None


def _standing(ticket: Ticket | None) -> ProviderIssue | None:
    return None if ticket is None else ProviderIssue(ticket.number, ticket.url, ticket.closed_at)


def _opens_at(stands: Ticket, writing: Writing, status: Health) -> datetime | None:
    """Return when a closed issue that only gets a comment will be opened, None for any other."""
    if status is Health.HEALTHY or stands.closed_at is None or writing.is_open:
        return None
    return stands.closed_at + ticketing.REOPEN_AFTER


def _remember(
    session: Tx, runtime: Runtime, kept: Kept, stands: ProviderIssue | None, deed: AuditEntry
) -> None:
    repository = kept.context.repository
    no, before = kept.issue.no, kept.issue.html_url
    # First, as whoever judges a test does: two that lock in another order wait for each other.
    test_cases.lock(session, repository.id)
    if stored.issue_of(session, repository.id, no) is None:
        return
    after = ticketing.remembered(kept.issue, stands, kept.status, deed.at)
    if after is None:
        stored.forget(session, repository.id, no)
    else:
        stored.put(session, Place(repository.org_id, repository.id), after)
    # A ticket that a person has linked stays; ours has another address when its repository has.
    is_ours = quarantine.ticket_of(session, repository.id, no) == before
    address = None if after is None else after.html_url
    if is_ours and address != before:
        test_tickets.change(session, runtime, repository, (no, address), deed)


def _view(runtime: Runtime, kept: Kept) -> TicketText:
    options, repository = runtime.options, kept.context.repository
    page = None
    if options.public_url is not None:
        page = page_addresses.test(options, repository.ref, kept.test.id)
    return TicketText(kept.test, page, Links(repository.url, options.public_url), options.version)

"""Link tests to tickets (docs/design/quarantine.md 4)."""

from dataclasses import dataclass, replace
from urllib.parse import quote

from service.accounts import access, audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid
from service.runtime import Runtime
from service.testhealth.operations import messages, records
from service.testhealth.store import cases as test_cases
from service.testhealth.store import quarantine
from service.testhealth.store.cases import Place
from service.vocabulary import Actor

PLACE_OF_ID = "{id}"
"""The place of the ticket's own id in the repository's template."""


@dataclass(frozen=True, slots=True)
class TicketLink:
    """An address, or the id of a ticket elsewhere; an empty one unlinks."""

    test_id: str
    html_url: str | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class TicketView:
    """The test, and the address of its ticket, None when it has none."""

    test_id: str
    html_url: str | None


async def link(
    runtime: Runtime, repository: RepositoryRecord, request: TicketLink, actor: Actor
) -> TicketView:
    """Link a test to a ticket; the newest wins.

    Raises NotFound(test_not_found), Invalid(conflicting_fields, ticket_template_missing).
    """
    if (request.html_url is None) == (request.external_id is None):
        raise Invalid("Send either `html_url` or `external_ticket_id`.", code="conflicting_fields")
    now = runtime.clock.now()
    row = audit_log.allowed(
        actor, repository.org_id, "test.link_ticket", f"test/{request.test_id}", now
    )
    return await runtime.store.run(_link, runtime, repository, request, row)


def _link(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    request: TicketLink,
    row: AuditEntry,
) -> TicketView:
    access.recheck(session, row.actor, row.at)
    case = records.find_case(session, repository, request.test_id)
    test_cases.lock(session, repository.id)
    after = _address(session, repository, request)
    row = replace(row, subject=f"test/{case.id}")
    change(session, runtime, repository, (case.no, after), row)
    return TicketView(case.id, after)


def change(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    to: tuple[int, str | None],
    row: AuditEntry,
) -> None:
    """Link the test of this number to this ticket, or to none; who says so is in `row`."""
    no, after = to
    before = quarantine.ticket_of(session, repository.id, no)
    if after is None:
        quarantine.remove_ticket(session, repository.id, no)
    else:
        place = Place(repository.org_id, repository.id)
        quarantine.put_ticket(session, place, no, after, row.at)
    audit.append(session, replace(row, data={"before": before, "after": after}))
    if after != before:
        context = records.context_of(session, runtime, repository, row.at)
        messages.tell_ticket(session, runtime, context, no, after)


def _address(session: Tx, repository: RepositoryRecord, request: TicketLink) -> str | None:
    if request.html_url is not None:
        return request.html_url or None
    if not request.external_id:
        return None
    template = quarantine.settings_of(session, repository.id).ticket_url_template
    if template is None:
        raise Invalid(
            f"{repository.ref.slug} has no `ticket_url_template`; set one by "
            "`/flaky-tests/update-settings`, or send `html_url`.",
            code="ticket_template_missing",
        )
    return template.replace(PLACE_OF_ID, quote(request.external_id, safe=""))

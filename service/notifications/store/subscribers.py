"""Endpoints: which events each receives, and how it has answered lately.

See docs/design/notifications.md 1, 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from service.database.codec import RowCodec
from service.database.tables_tenants import OrganizationRow
from service.notifications.store.tables_notifications import EndpointRow as Row
from service.vocabulary import EndpointFormat, EndpointState


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A receiver of an organization, its secrets sealed; `repositories` None: of all.

    `previous_secret` signs too until `previous_until`. `failing_since` is the first failure
    after the last success, `failed_messages` how many messages failed since.
    """

    id: str
    org_id: int
    url: str
    events: tuple[str, ...]
    repositories: frozenset[int] | None
    description: str
    secret: bytes
    created_at: datetime
    format: EndpointFormat = EndpointFormat.JSON
    previous_secret: bytes | None = None
    previous_until: datetime | None = None
    state: EndpointState = EndpointState.ENABLED
    disabled_reason: str | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    failing_since: datetime | None = None
    failed_messages: int = 0


endpoints = Row.__table__
organizations = OrganizationRow.__table__
CODEC = RowCodec(Endpoint, endpoints)

SELECT = select(*CODEC.columns)
SELECT_ENABLED = SELECT.where(
    endpoints.c.org_id == bindparam("of_org"),
    endpoints.c.state == EndpointState.ENABLED.value,
).order_by(endpoints.c.id)


def create(session: Connection, endpoint: Endpoint) -> None:
    """Store a new endpoint."""
    session.execute(insert(endpoints), CODEC.row(endpoint))


def endpoint_by_id(session: Connection, endpoint_id: str, *, lock: bool = False) -> Endpoint | None:
    """Return an endpoint of any organization; `lock` keeps other changes of it out.

    Every change of an endpoint or of its attempts locks it first, so that none deadlock.
    """
    statement = SELECT.where(endpoints.c.id == endpoint_id)
    row = session.execute(statement.with_for_update() if lock else statement).first()
    return None if row is None else CODEC.value(row)


def endpoints_of(session: Connection, org_id: int) -> tuple[Endpoint, ...]:
    """Return an organization's endpoints, oldest first."""
    statement = SELECT.where(endpoints.c.org_id == org_id)
    rows = session.execute(statement.order_by(endpoints.c.created_at, endpoints.c.id))
    return tuple(CODEC.value(row) for row in rows)


def enabled(
    session: Connection, org_id: int, repository_id: int | None = None
) -> tuple[Endpoint, ...]:
    """Return an organization's enabled endpoints; of a repository: only those that include it."""
    listed = [CODEC.value(row) for row in session.execute(SELECT_ENABLED, {"of_org": org_id})]
    return tuple(
        each
        for each in listed
        if repository_id is None or each.repositories is None or repository_id in each.repositories
    )


def change(session: Connection, before: Endpoint, after: Endpoint) -> None:
    """Store the values that differ."""
    changes: Mapping[str, object] = CODEC.changes(before, after)
    if changes:
        session.execute(update(endpoints).where(endpoints.c.id == before.id).values(**changes))


def remove(session: Connection, endpoint_id: str) -> None:
    """Delete an endpoint; its deliveries are deleted by their age."""
    session.execute(delete(endpoints).where(endpoints.c.id == endpoint_id))


def note_success(session: Connection, endpoint_id: str, at: datetime) -> None:
    """Store a success; the failures before it no longer count."""
    session.execute(
        update(endpoints)
        .where(endpoints.c.id == endpoint_id)
        .values(last_success_at=at, failing_since=None, failed_messages=0)
    )


def note_failure(
    session: Connection, endpoint_id: str, at: datetime, *, is_new_message: bool
) -> Endpoint | None:
    """Store a failure and return the endpoint after it; None if it was deleted."""
    session.execute(
        update(endpoints)
        .where(endpoints.c.id == endpoint_id)
        .values(
            last_failure_at=at,
            failing_since=func.coalesce(endpoints.c.failing_since, at),
            failed_messages=endpoints.c.failed_messages + int(is_new_message),
        )
    )
    return endpoint_by_id(session, endpoint_id)


def disable(session: Connection, endpoint_id: str, why: str) -> bool:
    """Disable an endpoint; return False if it was disabled before."""
    is_enabled = endpoints.c.state == EndpointState.ENABLED.value
    return (
        session.execute(
            update(endpoints)
            .where(endpoints.c.id == endpoint_id, is_enabled)
            .values(state=EndpointState.DISABLED.value, disabled_reason=why)
        ).rowcount
        == 1
    )


def organization_slug(session: Connection, org_id: int) -> str:
    """Return the present name of an organization."""
    statement = select(organizations.c.slug).where(organizations.c.id == org_id)
    slug: str = session.execute(statement).scalar_one()
    return slug

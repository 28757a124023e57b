"""Endpoints: who is told of what, and how they have answered lately (API.md 9, 11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, case, delete, func, insert, select, update

from service.database.codec import RowCodec
from service.database.tables_tenants import OrganizationRow
from service.notifications.store.tables_notifications import EndpointRow as Row
from service.vocabulary import EndpointState


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

_THIS = endpoints.c.id == bindparam("of_id")
_OF_ORG = endpoints.c.org_id == bindparam("of_org")
_IS_ENABLED = endpoints.c.state == EndpointState.ENABLED.value

SELECT = select(*CODEC.columns)
SELECT_ONE = SELECT.where(_THIS)
# Whoever changes an endpoint or its attempts takes its row first, so that nobody waits crosswise.
LOCK_ONE = SELECT_ONE.with_for_update()
SELECT_OF_ORG = SELECT.where(_OF_ORG).order_by(endpoints.c.created_at, endpoints.c.id)
SELECT_ENABLED = SELECT.where(_OF_ORG, _IS_ENABLED).order_by(endpoints.c.id)
INSERT = insert(endpoints)
SELECT_SLUG = select(organizations.c.slug).where(organizations.c.id == bindparam("of_org"))
DELETE = delete(endpoints).where(_THIS)
NOTE_SUCCESS = (
    update(endpoints)
    .where(_THIS)
    .values(last_success_at=bindparam("at"), failing_since=None, failed_messages=0)
)
NOTE_FAILURE = (
    update(endpoints)
    .where(_THIS)
    .values(
        last_failure_at=bindparam("at"),
        failing_since=func.coalesce(endpoints.c.failing_since, bindparam("at")),
        failed_messages=endpoints.c.failed_messages
        + case((bindparam("is_new_message"), 1), else_=0),
    )
)
DISABLE = (
    update(endpoints)
    .where(_THIS, _IS_ENABLED)
    .values(state=EndpointState.DISABLED.value, disabled_reason=bindparam("why"))
)


def create(session: Connection, endpoint: Endpoint) -> None:
    """Store a new endpoint."""
    session.execute(INSERT, CODEC.row(endpoint))


def endpoint_by_id(session: Connection, endpoint_id: str, *, lock: bool = False) -> Endpoint | None:
    """One endpoint, whosever it is; `lock` keeps other changes of it out until the commit."""
    row = session.execute(LOCK_ONE if lock else SELECT_ONE, {"of_id": endpoint_id}).first()
    return None if row is None else CODEC.value(row)


def endpoints_of(session: Connection, org_id: int) -> tuple[Endpoint, ...]:
    """An organization's endpoints, oldest first."""
    return tuple(CODEC.value(row) for row in session.execute(SELECT_OF_ORG, {"of_org": org_id}))


def enabled(session: Connection, org_id: int) -> tuple[Endpoint, ...]:
    """Those of them that are sent anything."""
    return tuple(CODEC.value(row) for row in session.execute(SELECT_ENABLED, {"of_org": org_id}))


def change(session: Connection, before: Endpoint, after: Endpoint) -> None:
    """Write what differs."""
    changes: Mapping[str, object] = CODEC.changes(before, after)
    if changes:
        session.execute(update(endpoints).where(endpoints.c.id == before.id).values(**changes))


def remove(session: Connection, endpoint_id: str) -> None:
    """Forget an endpoint; what was sent to it is forgotten by its age."""
    session.execute(DELETE, {"of_id": endpoint_id})


def note_success(session: Connection, endpoint_id: str, at: datetime) -> None:
    """It has answered well: the failures before it count no more."""
    session.execute(NOTE_SUCCESS, {"of_id": endpoint_id, "at": at})


def note_failure(
    session: Connection, endpoint_id: str, at: datetime, *, is_new_message: bool
) -> Endpoint | None:
    """It has not; as it stands after that, None when it is gone."""
    told = {"of_id": endpoint_id, "at": at, "is_new_message": is_new_message}
    session.execute(NOTE_FAILURE, told)
    return endpoint_by_id(session, endpoint_id)


def disable(session: Connection, endpoint_id: str, why: str) -> bool:
    """Send it nothing more; False when that was so before."""
    return session.execute(DISABLE, {"of_id": endpoint_id, "why": why}).rowcount == 1


def organization_slug(session: Connection, org_id: int) -> str:
    """How the organization is called now."""
    slug: str = session.execute(SELECT_SLUG, {"of_org": org_id}).scalar_one()
    return slug

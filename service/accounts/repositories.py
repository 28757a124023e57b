"""Repositories as the provider has them now, and the organizations that own them."""

from service.accounts.store import access
from service.accounts.tenants import Organization, RepositoryRecord
from service.database.database import Tx
from service.provider.values import Repository
from service.runtime import Runtime

ORGANIZATIONS_MAX = 1000


def upsert(session: Tx, fresh: Repository) -> RepositoryRecord:
    """Store a repository under the organization that owns it now.

    After a transfer its queues go along, so that tokens of the former owner see nothing more.
    """
    org = access.ensure_organization(session, fresh.ref.host, fresh.owner_id, fresh.ref.owner)
    # Two that meet a repository for the first time do so one after the other.
    access.lock_organization(session, org.id)
    return access.upsert_repository(session, org.id, fresh)


async def organizations(runtime: Runtime) -> tuple[Organization, ...]:
    """Return the organizations that have a name now, by name; at most 1,000."""
    return await runtime.store.read(access.organizations_by_name, ORGANIZATIONS_MAX)

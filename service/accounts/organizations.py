"""The organizations of this deployment."""

from service.accounts.store import access
from service.accounts.tenants import Organization
from service.runtime import Runtime

ORGANIZATIONS_MAX = 1000


async def known(runtime: Runtime) -> tuple[Organization, ...]:
    """Return the organizations that have a name now, by name; at most 1,000."""
    return await runtime.store.read(access.organizations_by_name, ORGANIZATIONS_MAX)

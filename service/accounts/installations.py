"""The repositories that our App is installed on, and whether a host tells us of them at all."""

from collections.abc import Sequence

import structlog

from service.accounts import repositories
from service.accounts.tenants import RepositoryRecord
from service.provider.errors import ProviderError, Throttled, Unavailable
from service.runtime import Runtime
from service.troubles import Part, Trouble, TroubleName

log = structlog.get_logger()

PARTS = (Part.PROVIDER, Part.CREDENTIALS, Part.SECONDARY_LIMIT, Part.PRIMARY_LIMIT)
"""The parts whose trouble ends when installations are read.

Of limits of an account, which may be called no more, those that are over.
"""


async def read_all(runtime: Runtime) -> None:
    """Read the installations of every host again, for what a lost webhook would have told."""
    for host in runtime.providers:
        await read(runtime, host)


async def read(runtime: Runtime, host: str) -> Sequence[RepositoryRecord]:
    """Meet every repository of a host; those met. A host that cannot be read is in trouble."""
    try:
        listed = await runtime.providers[host].repositories()
    except ProviderError as trouble:
        _report(runtime, host, trouble)
        if isinstance(trouble, Unavailable):
            # GitHub does not answer; it is asked again.
            log.warning("provider_away", host=host, why=trouble.message)
        else:
            mend = "Check the App's id and its private key in the settings."
            # GitHub refuses the App's key, so no repository of the host is worked on. `mend` says
            # what to do.
            log.error("app_refused", host=host, why=trouble.message, mend=mend)
        return ()
    for part in PARTS:
        runtime.troubles.end(part, host)
    return [await runtime.store.run(repositories.upsert, fresh) for fresh in listed]


def _report(runtime: Runtime, host: str, error: ProviderError) -> None:
    """Report why installations cannot be read, unless the adapter has said it more precisely."""
    name, until = TroubleName.CREDENTIALS_REFUSED, None
    if isinstance(error, Throttled):
        name, until = TroubleName.SECONDARY_RATE_LIMIT, error.retry_at
    elif isinstance(error, Unavailable):
        name = TroubleName.PROVIDER_AWAY
    # What a refusal says may name an account, and everybody reads troubles.
    note = error.message if name is TroubleName.PROVIDER_AWAY else ""
    found = Trouble(name, runtime.clock.now(), until, host, note=note)
    if found.part not in {one.part for one in runtime.troubles.all() if one.host == host}:
        runtime.troubles.report(found)

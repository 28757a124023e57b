"""The repositories that our App is installed on, and whether a host tells us of them at all."""

from collections.abc import Sequence

import structlog

from service.accounts import repositories
from service.accounts.tenants import RepositoryRecord
from service.provider.errors import ProviderError, Unavailable
from service.runtime import Runtime

log = structlog.get_logger()


class TroubledHosts:
    """Hosts whose installations could not be read, each with the error."""

    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}


async def read_all(runtime: Runtime) -> None:
    """Read the installations of every host again, for what a lost webhook would have told."""
    for host in runtime.providers:
        await read(runtime, host)


async def read(runtime: Runtime, host: str) -> Sequence[RepositoryRecord]:
    """Meet every repository of a host; those met. A host that cannot be read is remembered."""
    try:
        listed = await runtime.providers[host].repositories()
    except ProviderError as trouble:
        runtime.memory.of(TroubledHosts).errors[host] = trouble
        if isinstance(trouble, Unavailable):
            # GitHub does not answer; it is asked again.
            log.warning("provider_away", host=host, why=trouble.message)
        else:
            mend = "Check the App's id and its private key in the settings."
            # GitHub refuses the App's key, so no repository of the host is worked on. `mend` says
            # what to do.
            log.error("app_refused", host=host, why=trouble.message, mend=mend)
        return ()
    runtime.memory.of(TroubledHosts).errors.pop(host, None)
    return [await runtime.store.run(repositories.upsert, fresh) for fresh in listed]

"""Find machines that fail tests which pass elsewhere, and tell people (docs/design/machines.md)."""

from datetime import datetime

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.detector import machines
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.detector.machines import BadMachine
from service.testhealth.operations import messages
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.store import bad_machines as stored
from service.testhealth.store import listings
from service.testhealth.store.cases import Place
from service.testhealth.store.listings import ListedCase

NAMED_MAX = 10
"""Tests that are named as examples."""

ADVICE = (
    "Whoever runs the CI machines takes such a machine out of service or repairs it. Its failures"
    " hardly count against the tests. The finding ends when its runs are like those of others."
)

FoundMachine = tuple[BadMachine, tuple[ListedCase, ...]]
"""A bad machine, and the tests that it fails most often."""


def renew(
    session: Tx,
    runtime: Runtime,
    context: RepositoryContext,
    index: EvidenceIndex,
    before: datetime | None,
) -> None:
    """Find the bad machines anew on a new day of the evidence clock; tell endpoints of new ones.

    `before` is the clock as it was, None without evidence.
    """
    scale = index.scale
    if scale is None or (before is not None and before.date() == scale.clock.date()):
        return
    repository = context.repository
    uploads = index.evidence.runs_on_machines(scale.clock - machines.WINDOW)
    found = machines.found(index.evidence.events, uploads, scale.clock)
    known = stored.of_repository(session, repository.id)
    if not found and not known:
        return
    stored.replace(session, Place(repository.org_id, repository.id), found)
    told = {each.machine for each in known}
    for bad in found:
        if bad.machine not in told:
            cases = listings.listed_cases(session, repository.id, bad.tests[:NAMED_MAX])
            message = messages.bad_machine(session, runtime, repository, (bad, cases), context.now)
            messages.tell(session, runtime, repository, message)


async def of_repository(runtime: Runtime, repository: RepositoryRecord) -> tuple[FoundMachine, ...]:
    """Return the bad machines of a repository, those first that fail most tests."""
    return await runtime.store.read(read, runtime, repository)


def read(session: Tx, runtime: Runtime, repository: RepositoryRecord) -> tuple[FoundMachine, ...]:
    """Return the same; those of which nothing was heard for long are left out."""
    since = runtime.clock.now() - machines.WINDOW
    found = [each for each in stored.of_repository(session, repository.id) if each.last > since]
    return tuple(
        (each, tuple(listings.listed_cases(session, repository.id, each.tests[:NAMED_MAX])))
        for each in sorted(found, key=lambda each: (-each.count, each.machine))
    )

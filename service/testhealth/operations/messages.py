"""What endpoints are told of tests, in the transaction of its cause (FLAKY.md 11)."""

from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.notifications import notifications
from service.notifications.messages import Message
from service.notifications.store import subscribers
from service.runtime import Runtime
from service.testhealth.operations import page_addresses
from service.testhealth.operations.payloads import CaseTold
from service.testhealth.operations.records import ShownTest


def told_of(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, test: ShownTest
) -> CaseTold:
    """A test as messages show it."""
    case = test.case
    return CaseTold(
        organization=subscribers.organization_slug(session, repository.org_id),
        repo=repository.ref,
        id=case.id,
        name=case.name,
        parent=case.parent,
        classname=case.classname,
        file=case.file,
        variant=case.variant,
        owners=case.owners,
        quarantined=test.quarantined,
        html_url=page_addresses.test(runtime.options, repository.ref, case.id),
    )


def tell(session: Tx, runtime: Runtime, repository: RepositoryRecord, message: Message) -> None:
    """Keep a message for the endpoints that want it and are told of this repository."""
    listening = subscribers.enabled(session, repository.org_id, repository.id)
    notifications.enqueue(session, runtime, message, listening)

"""Messages are stored in the transaction of their event; a worker sends them later."""

from service.database.database import Tx
from service.notifications import events, signing
from service.notifications.messages import Message
from service.notifications.store import notifications
from service.notifications.store.subscribers import Endpoint
from service.runtime import Runtime


def enqueue(
    session: Tx, runtime: Runtime, org_id: int, told: tuple[Message, list[Endpoint]]
) -> None:
    """Keep a message for those of the endpoints that want its event."""
    message, listening = told
    wanting = [each.id for each in listening if events.wants(each.events, message.event)]
    if wanting:
        kept = stored(runtime, org_id, message)
        notifications.append(session, kept, wanting, runtime.clock.now())


def stored(runtime: Runtime, org_id: int, message: Message) -> notifications.Message:
    """The message under an id of its own."""
    fresh = signing.message_id(runtime.ids.uuid())
    return notifications.Message(fresh, org_id, message.event, message.at, message.body)

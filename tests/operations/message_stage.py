"""An endpoint of a queue's organization, and a real receiver behind it."""

import ipaddress
from dataclasses import dataclass
from datetime import timedelta

from service.accounts import access, tokens
from service.accounts.tokens import TokenRequest
from service.database.paging import PageSelection
from service.http.callers import Caller
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.notifications import endpoints, notifications
from service.notifications.addresses import Rules
from service.notifications.endpoints import EndpointChange, EndpointView
from service.notifications.notifications import DeliveryPage
from service.notifications.store.delivery_log import Delivery
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef, Role
from tests.harness.receiver import Receiver
from tests.operations.conftest import WaitingClock

LOOPBACK = Rules(frozenset(range(1024, 65536)), (ipaddress.ip_network("127.0.0.0/8"),))


@dataclass
class Stage:
    """A queue whose organization has an endpoint, and the receiver behind it."""

    runtime: Runtime
    clock: WaitingClock
    queue: QueueRef
    caller: Caller
    receiver: Receiver
    view: EndpointView
    secret: str
    concurrency: int = 1

    async def hold(self, text: str = "freeze") -> None:
        """Something happens: the queue is held."""
        await queues.add_hold(self.runtime, self.queue, HoldRequest(text), SYSTEM)

    async def change(self) -> None:
        """Something else happens: its settings change."""
        self.concurrency += 1
        wish = QueueRequest({"concurrency": self.concurrency})
        await queues.update(self.runtime, self.queue, wish, SYSTEM)

    async def drain(self) -> None:
        """Everything due is sent."""
        await Flow(self.runtime, flows.NOTIFICATIONS).drain()

    async def pass_time(self, **span: float) -> None:
        """Time passes, and what became due is sent."""
        await self.clock.sleep(timedelta(**span).total_seconds())
        await self.drain()

    async def log(self, **wanted: object) -> list[Delivery]:
        """What the endpoint was sent, newest first."""
        wish = DeliveryPage(self.view.id, PageSelection(100), **wanted)  # type: ignore[arg-type]
        return list((await notifications.list_deliveries(self.runtime, self.caller, wish)).rows)

    async def endpoint(self) -> EndpointView:
        """The endpoint as it is now."""
        part = await endpoints.list_all(self.runtime, self.caller, PageSelection(100))
        return next(each for each in part.rows if each.id == self.view.id)

    async def another(self, receiver: Receiver, *wanted: str) -> tuple[EndpointView, str]:
        """One more endpoint."""
        wish = EndpointChange(receiver.url, wanted)
        return await endpoints.create(self.runtime, self.caller, wish)


async def a_caller(runtime: Runtime, queue: QueueRef, only: RepoRef | None = None) -> Caller:
    wish = TokenRequest(
        queue.repo.host, queue.repo.owner, "ops", Role.ADMIN, None if only is None else (only,)
    )
    made = await tokens.create_token(runtime, wish, SYSTEM)
    return await access.look_up(runtime, made.secret)

"""The pages of an organization's webhook endpoints, and of one with its deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.dashboard.page_of_tokens import repositories_of
from service.dashboard.requests import Action, OrganizationRequest
from service.database.paging import Page, PageSelection
from service.errors import NotFound
from service.http.models import common
from service.notifications import endpoints, notifications
from service.notifications.api.models.webhooks import CreateEndpoint, ReplayMessages
from service.notifications.endpoints import EndpointChange, EndpointView
from service.notifications.messages import PATTERNS
from service.notifications.notifications import Delivery, DeliveryPage, ReplayRequest
from service.provider.values import AccessLevel
from service.runtime import Runtime

DELIVERIES_ON_PAGE = 30


@dataclass(frozen=True, slots=True)
class WebhooksPage:
    """The endpoints, oldest first, and what they can select."""

    endpoints: tuple[EndpointView, ...]
    patterns: tuple[str, ...] = PATTERNS


@dataclass(frozen=True, slots=True)
class WebhookPage:
    """An endpoint and a part of its deliveries, newest first."""

    endpoint: EndpointView
    deliveries: Page[Delivery]


async def read(runtime: Runtime, request: OrganizationRequest) -> WebhooksPage:
    """Return the endpoints that the visitor reaches."""
    part = await endpoints.list_all(runtime, request.caller, PageSelection(endpoints.ENDPOINTS_MAX))
    return WebhooksPage(tuple(part.rows))


async def read_one(runtime: Runtime, request: OrganizationRequest) -> WebhookPage:
    """Return one endpoint with its deliveries. Raises NotFound, Malformed for a wrong cursor."""
    page = await read(runtime, request)
    endpoint = next((each for each in page.endpoints if each.id == request.id), None)
    if endpoint is None:
        raise NotFound("There is no such page.")
    selection = PageSelection(DELIVERIES_ON_PAGE, request.query.get("cursor"))
    wanted = DeliveryPage(request.id, selection)
    deliveries = await notifications.list_deliveries(runtime, request.caller, wanted)
    return WebhookPage(endpoint, deliveries)


async def create(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Create an endpoint; its secret is on this one page."""
    body = {
        "url": request.text("url"),
        "events": request.text("events").replace(",", " ").split(),
        "repositories": repositories_of(request),
        "description": request.text("description"),
        "format": request.text("format") or None,
    }
    change = common.read(CreateEndpoint, body).change()
    view, secret = await endpoints.create(runtime, request.caller, change)
    return {"secret": secret, "made": view}


async def rotate(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Make a new secret; the present one signs as well for a day."""
    hours = endpoints.OVERLAP_HOURS
    secret = await endpoints.rotate_secret(runtime, request.caller, request.id, hours)
    return {"secret": secret}


async def test(runtime: Runtime, request: OrganizationRequest) -> Mapping[str, object]:
    """Send a test message, and show what the receiver answered."""
    _, made = await notifications.send_test(runtime, request.caller, request.id)
    return {"tested": made}


async def enable(runtime: Runtime, request: OrganizationRequest) -> None:
    """Send messages again."""
    change = EndpointChange(is_enabled=True)
    await endpoints.update(runtime, request.caller, request.id, change)


async def disable(runtime: Runtime, request: OrganizationRequest) -> None:
    """Send no more messages."""
    change = EndpointChange(is_enabled=False)
    await endpoints.update(runtime, request.caller, request.id, change)


async def delete(runtime: Runtime, request: OrganizationRequest) -> str:
    """Delete the endpoint; lead to the list."""
    await endpoints.delete(runtime, request.caller, request.id)
    return f"/settings/{request.organization.slug}/webhooks"


async def replay(runtime: Runtime, request: OrganizationRequest) -> None:
    """Send one message again."""
    body = {"endpoint_id": request.id, "message_id": request.text("message")}
    asked = ReplayRequest(common.read(ReplayMessages, body).message_id)
    await notifications.replay(runtime, request.caller, request.id, asked)


ACTIONS: Mapping[str, Action[OrganizationRequest]] = {
    "create": Action(AccessLevel.ADMIN, create),
}
ACTIONS_OF_ONE: Mapping[str, Action[OrganizationRequest]] = {
    "rotate": Action(
        AccessLevel.ADMIN,
        rotate,
        "The new secret is shown once. Messages are signed with both secrets for 24 hours, so that "
        "the receiver can change.",
        "Rotate the secret",
    ),
    "test": Action(AccessLevel.ADMIN, test),
    "enable": Action(AccessLevel.ADMIN, enable),
    "disable": Action(AccessLevel.ADMIN, disable),
    "delete": Action(
        AccessLevel.ADMIN,
        delete,
        "Messages that still wait for this endpoint are not sent, and its deliveries are lost.",
        "Delete the endpoint",
    ),
    "replay": Action(AccessLevel.ADMIN, replay),
}

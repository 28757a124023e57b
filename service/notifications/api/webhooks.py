"""Handlers of the webhook endpoints: one operation each."""

import orjson

from service.errors import Invalid
from service.http.callers import Call
from service.http.route import Route, read, write
from service.notifications import endpoints, notifications
from service.notifications.api.models import webhooks as models
from service.notifications.api.models.answers import webhooks as answers
from service.vocabulary import Role

MISSING = "webhook_endpoint_not_found"


@write(
    "webhooks/create-endpoint",
    Role.ADMIN,
    models.CreateEndpoint,
    answers.EndpointCreated,
    "webhook_url_refused",
    "scope_exceeds_own",
    "limit_reached",
)
async def create(call: Call, request: models.CreateEndpoint) -> answers.EndpointCreated:
    """Create a webhook endpoint; its secret is in this answer alone."""
    view, secret = await endpoints.create(call.runtime, call.caller, request.change())
    return answers.EndpointCreated.of(view, secret=secret)


@read(
    "webhooks/list-endpoints",
    models.ListEndpoints,
    answers.EndpointsListed,
    "invalid_page_token",
    "page_token_expired",
    role=Role.ADMIN,
)
async def list_all(call: Call, request: models.ListEndpoints) -> answers.EndpointsListed:
    """List webhook endpoints, oldest first."""
    page = await endpoints.list_all(call.runtime, call.caller, request.page())
    listed = [answers.Endpoint.of(view) for view in page.rows]
    return answers.EndpointsListed(endpoints=listed, next_cursor=page.next_cursor)


@write(
    "webhooks/update-endpoint",
    Role.ADMIN,
    models.UpdateEndpoint,
    answers.Endpoint,
    MISSING,
    "webhook_url_refused",
    "scope_exceeds_own",
)
async def update(call: Call, request: models.UpdateEndpoint) -> answers.Endpoint:
    """Change a webhook endpoint; what is not sent stays."""
    change = request.change()
    view = await endpoints.update(call.runtime, call.caller, request.endpoint(), change)
    return answers.Endpoint.of(view)


@write(
    "webhooks/delete-endpoint", Role.ADMIN, models.DeleteEndpoint, answers.EndpointDeleted, MISSING
)
async def delete(call: Call, request: models.DeleteEndpoint) -> answers.EndpointDeleted:
    """Delete a webhook endpoint, and drop what was to be sent to it."""
    await endpoints.delete(call.runtime, call.caller, request.endpoint())
    return answers.EndpointDeleted(deleted=True)


@write("webhooks/rotate-secret", Role.ADMIN, models.RotateSecret, answers.SecretRotated, MISSING)
async def rotate_secret(call: Call, request: models.RotateSecret) -> answers.SecretRotated:
    """Make a new secret; the old one signs as well for some hours."""
    given = request.overlap_hours
    hours = endpoints.OVERLAP_HOURS if given is None else given
    secret = await endpoints.rotate_secret(call.runtime, call.caller, request.endpoint(), hours)
    return answers.SecretRotated(secret=secret)


@write("webhooks/test-endpoint", Role.ADMIN, models.TestEndpoint, answers.EndpointTested, MISSING)
async def test(call: Call, request: models.TestEndpoint) -> answers.EndpointTested:
    """Send `webhook.test` once, and answer when the receiver has, or after 15 s."""
    message_id, made = await notifications.send_test(call.runtime, call.caller, request.endpoint())
    return answers.EndpointTested.of(made, message_id=message_id)


@read(
    "webhooks/list-deliveries",
    models.ListDeliveries,
    answers.DeliveriesListed,
    MISSING,
    "invalid_time_range",
    "invalid_page_token",
    "page_token_expired",
    role=Role.ADMIN,
)
async def list_log(call: Call, request: models.ListDeliveries) -> answers.DeliveriesListed:
    """List messages to a webhook endpoint, newest events first."""
    if request.since is not None and request.until is not None and request.since >= request.until:
        raise Invalid("`until` must lie behind `since`.", code="invalid_time_range")
    page = await notifications.list_deliveries(call.runtime, call.caller, request.wanted())
    listed = [answers.Delivery.of(each, payload=orjson.loads(each.body)) for each in page.rows]
    return answers.DeliveriesListed(deliveries=listed, next_cursor=page.next_cursor)


@write(
    "webhooks/replay",
    Role.ADMIN,
    models.ReplayMessages,
    answers.Replayed,
    MISSING,
    "message_not_found",
    "conflicting_fields",
    "invalid_time_range",
    "limit_reached",
)
async def replay(call: Call, request: models.ReplayMessages) -> answers.Replayed:
    """Send messages to a webhook endpoint again, under their ids."""
    if not request.is_clear():
        raise Invalid(
            "Send `message_id` alone, or both `since` and `until` without it.",
            code="conflicting_fields",
        )
    endpoint_id = request.endpoint_id.lower()
    count = await notifications.replay(call.runtime, call.caller, endpoint_id, request.replay())
    return answers.Replayed(queued=count)


WEBHOOK_ROUTES: tuple[Route, ...] = (
    create,
    list_all,
    update,
    delete,
    rotate_secret,
    test,
    list_log,
    replay,
)
"""The webhook endpoints, in the order of the document."""

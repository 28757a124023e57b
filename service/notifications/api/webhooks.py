"""Handlers of the webhook endpoints (API.md 9): one operation each, and its answer spelled."""

import orjson

from service.errors import Invalid
from service.http.callers import Call
from service.notifications import delivery_log, endpoints, notifications
from service.notifications.api.models import webhooks as models
from service.notifications.api.models.answers import webhooks as answers
from service.notifications.delivery_log import DeliveryView


async def create(call: Call, asked: models.CreateEndpoint) -> answers.EndpointCreated:
    """`/webhooks/create-endpoint`; its secret is in this answer and no other."""
    view, secret = await endpoints.create(call.runtime, call.caller, asked.wish())
    return answers.EndpointCreated.of(view, secret=secret)


async def list_all(call: Call, asked: models.ListEndpoints) -> answers.EndpointsListed:
    """`/webhooks/list-endpoints`."""
    part = await endpoints.list_all(call.runtime, call.caller, asked.count(), asked.cursor)
    listed = [answers.Endpoint.of(view) for view in part.rows]
    return answers.EndpointsListed(endpoints=listed, next_cursor=part.next_cursor)


async def update(call: Call, asked: models.UpdateEndpoint) -> answers.Endpoint:
    """`/webhooks/update-endpoint`."""
    wish = asked.wish()
    view = await endpoints.update(call.runtime, call.caller, asked.endpoint(), wish)
    return answers.Endpoint.of(view)


async def delete(call: Call, asked: models.DeleteEndpoint) -> answers.EndpointDeleted:
    """`/webhooks/delete-endpoint`."""
    await endpoints.delete(call.runtime, call.caller, asked.endpoint())
    return answers.EndpointDeleted(deleted=True)


async def rotate_secret(call: Call, asked: models.RotateSecret) -> answers.SecretRotated:
    """`/webhooks/rotate-secret`."""
    given = asked.overlap_hours
    hours = endpoints.OVERLAP_HOURS if given is None else given
    secret = await endpoints.rotate_secret(call.runtime, call.caller, asked.endpoint(), hours)
    return answers.SecretRotated(secret=secret)


async def test(call: Call, asked: models.TestEndpoint) -> answers.EndpointTested:
    """`/webhooks/test-endpoint`: answers when the receiver has, or after its 15 s."""
    message_id, made = await notifications.send_test(call.runtime, call.caller, asked.endpoint())
    return answers.EndpointTested.of(made, message_id=message_id)


async def list_log(call: Call, asked: models.ListDeliveries) -> answers.DeliveriesListed:
    """`/webhooks/list-deliveries`."""
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise Invalid("`until` must lie behind `since`.", code="invalid_time_range")
    part = await delivery_log.read(call.runtime, call.caller, asked.wish())
    listed = [delivery(each) for each in part.rows]
    return answers.DeliveriesListed(deliveries=listed, next_cursor=part.next_cursor)


async def replay(call: Call, asked: models.Replay) -> answers.Replayed:
    """`/webhooks/replay`."""
    if not asked.is_clear():
        raise Invalid(
            "Send `message_id` alone, or both `since` and `until` without it.",
            code="conflicting_fields",
        )
    endpoint_id = asked.endpoint_id.lower()
    count = await notifications.replay(call.runtime, call.caller, endpoint_id, asked.wish())
    return answers.Replayed(queued=count)


def delivery(view: DeliveryView) -> answers.Delivery:
    """Return one message at one endpoint, with every attempt to send it."""
    return answers.Delivery.of(view, payload=orjson.loads(view.body))

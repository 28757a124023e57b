"""Handlers of the webhook endpoints (API.md 9): one operation each, and its answer spelled."""

import orjson

from service.errors import Invalid
from service.http import rendering
from service.http.call import Call
from service.http.rendering import Json
from service.notifications import delivery_log, endpoints, notifications
from service.notifications.api.models import webhooks as models
from service.notifications.delivery_log import AttemptView, DeliveryView
from service.notifications.endpoints import EndpointView


async def create(call: Call, asked: models.CreateEndpoint) -> Json:
    """`/webhooks/create-endpoint`; its secret is in this answer and no other."""
    view, secret = await endpoints.create(call.runtime, call.caller, asked.wish())
    return {**endpoint(view), "secret": secret}


async def list_all(call: Call, asked: models.ListEndpoints) -> Json:
    """`/webhooks/list-endpoints`."""
    part = await endpoints.list_all(call.runtime, call.caller, asked.count(), asked.cursor)
    return {"endpoints": [endpoint(view) for view in part.rows], **_more(part.next_cursor)}


async def update(call: Call, asked: models.UpdateEndpoint) -> Json:
    """`/webhooks/update-endpoint`."""
    wish = asked.wish()
    return endpoint(await endpoints.update(call.runtime, call.caller, asked.endpoint(), wish))


async def delete(call: Call, asked: models.DeleteEndpoint) -> Json:
    """`/webhooks/delete-endpoint`."""
    await endpoints.delete(call.runtime, call.caller, asked.endpoint())
    return {"deleted": True}


async def rotate_secret(call: Call, asked: models.RotateSecret) -> Json:
    """`/webhooks/rotate-secret`."""
    given = asked.overlap_hours
    hours = endpoints.OVERLAP_HOURS if given is None else given
    secret = await endpoints.rotate_secret(call.runtime, call.caller, asked.endpoint(), hours)
    return {"secret": secret}


async def test(call: Call, asked: models.TestEndpoint) -> Json:
    """`/webhooks/test-endpoint`: answers when the receiver has, or after its 15 s."""
    message_id, made = await notifications.send_test(call.runtime, call.caller, asked.endpoint())
    return {"message_id": message_id, **_ended(made)}


async def list_log(call: Call, asked: models.ListDeliveries) -> Json:
    """`/webhooks/list-deliveries`."""
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise Invalid("`until` must lie behind `since`.", code="invalid_time_range")
    part = await delivery_log.read(call.runtime, call.caller, asked.wish())
    return {"deliveries": [delivery(each) for each in part.rows], **_more(part.next_cursor)}


async def replay(call: Call, asked: models.Replay) -> Json:
    """`/webhooks/replay`."""
    if not asked.is_clear():
        raise Invalid(
            "Send `message_id` alone, or both `since` and `until` without it.",
            code="conflicting_fields",
        )
    endpoint_id = asked.endpoint_id.lower()
    count = await notifications.replay(call.runtime, call.caller, endpoint_id, asked.wish())
    return {"queued": count}


def endpoint(view: EndpointView) -> dict[str, object]:
    """An endpoint without its secret."""
    names = view.repositories
    return {
        "id": view.id,
        "url": view.url,
        "events": view.events,
        "repositories": None if names is None else [rendering.repository(ref) for ref in names],
        "description": view.description,
        "state": view.state.value,
        "disabled_reason": view.disabled_reason,
        "last_success_at": rendering.time_or_null(view.last_success_at),
        "last_failure_at": rendering.time_or_null(view.last_failure_at),
        "created_at": rendering.time(view.created_at),
    }


def delivery(view: DeliveryView) -> Json:
    """One message at one endpoint, with every try that was made."""
    return {
        "message_id": view.message_id,
        "event": view.event,
        "state": view.state.value,
        "attempts": [{"at": rendering.time(each.at), **_ended(each)} for each in view.attempts],
        "next_attempt_at": rendering.time_or_null(view.next_attempt_at),
        "payload": orjson.Fragment(view.body),
    }


def _ended(view: AttemptView) -> Json:
    """How a try ended; `error` null is a success."""
    return {
        "status_code": view.status_code,
        "duration_ms": view.duration_ms,
        "error": view.error,
    }


def _more(cursor: str | None) -> Json:
    """Where to go on, absent at the end."""
    return {} if cursor is None else {"next_cursor": cursor}

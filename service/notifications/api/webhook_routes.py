"""The webhook endpoints, one line each (API.md 9); all of them are an administrator's."""

from service.http.route import Route, read, write
from service.notifications.api import webhooks
from service.notifications.api.models import webhooks as models
from service.notifications.api.models.answers import webhooks as answers
from service.vocabulary import Role

ADMIN = Role.ADMIN
MISSING = "webhook_endpoint_not_found"

WEBHOOK_ROUTES: tuple[Route, ...] = (
    write("webhooks/create-endpoint", ADMIN, models.CreateEndpoint, webhooks.create).answering(
        answers.EndpointCreated, "webhook_url_refused", "scope_exceeds_own", "limit_reached"
    ),
    read("webhooks/list-endpoints", models.ListEndpoints, webhooks.list_all, ADMIN).answering(
        answers.EndpointsListed, "invalid_page_token", "page_token_expired"
    ),
    write("webhooks/update-endpoint", ADMIN, models.UpdateEndpoint, webhooks.update).answering(
        answers.Endpoint, MISSING, "webhook_url_refused", "scope_exceeds_own"
    ),
    write("webhooks/delete-endpoint", ADMIN, models.DeleteEndpoint, webhooks.delete).answering(
        answers.EndpointDeleted, MISSING
    ),
    write("webhooks/rotate-secret", ADMIN, models.RotateSecret, webhooks.rotate_secret).answering(
        answers.SecretRotated, MISSING
    ),
    write("webhooks/test-endpoint", ADMIN, models.TestEndpoint, webhooks.test).answering(
        answers.EndpointTested, MISSING
    ),
    read("webhooks/list-deliveries", models.ListDeliveries, webhooks.list_log, ADMIN).answering(
        answers.DeliveriesListed,
        MISSING,
        "invalid_time_range",
        "invalid_page_token",
        "page_token_expired",
    ),
    write("webhooks/replay", ADMIN, models.Replay, webhooks.replay).answering(
        answers.Replayed,
        MISSING,
        "message_not_found",
        "conflicting_fields",
        "invalid_time_range",
        "limit_reached",
    ),
)

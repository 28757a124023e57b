"""The webhook endpoints, one line each (API.md 9); all of them are an administrator's."""

from service.api import webhooks
from service.api.models import webhooks as models
from service.api.models.answers import webhooks as answers
from service.api.route import Route, read, write
from service.vocabulary import Role

ADMIN = Role.ADMIN

WEBHOOK_ROUTES: tuple[Route, ...] = (
    write("webhooks/create-endpoint", ADMIN, models.CreateEndpoint, webhooks.create).answering(
        answers.EndpointCreated, "limit_reached", "scope_exceeds_own", "webhook_url_refused"
    ),
    read("webhooks/list-endpoints", models.ListEndpoints, webhooks.list_endpoints, ADMIN).answering(
        answers.EndpointsListed, "invalid_page_token", "page_token_expired"
    ),
    write("webhooks/update-endpoint", ADMIN, models.UpdateEndpoint, webhooks.update).answering(
        answers.Endpoint, "webhook_endpoint_not_found", "scope_exceeds_own", "webhook_url_refused"
    ),
    write("webhooks/delete-endpoint", ADMIN, models.DeleteEndpoint, webhooks.delete).answering(
        answers.EndpointDeleted, "webhook_endpoint_not_found"
    ),
    write("webhooks/rotate-secret", ADMIN, models.RotateSecret, webhooks.rotate_secret).answering(
        answers.SecretRotated, "webhook_endpoint_not_found"
    ),
    write("webhooks/test-endpoint", ADMIN, models.TestEndpoint, webhooks.test).answering(
        answers.EndpointTested, "webhook_endpoint_not_found"
    ),
    read(
        "webhooks/list-deliveries", models.ListDeliveries, webhooks.list_deliveries, ADMIN
    ).answering(
        answers.DeliveriesListed,
        "webhook_endpoint_not_found",
        "invalid_time_range",
        "invalid_page_token",
        "page_token_expired",
    ),
    write("webhooks/replay", ADMIN, models.Replay, webhooks.replay).answering(
        answers.Replayed,
        "webhook_endpoint_not_found",
        "message_not_found",
        "conflicting_fields",
        "invalid_time_range",
        "limit_reached",
    ),
)

"""The webhook endpoints, one line each (API.md 9); all of them are an administrator's."""

from service.api import webhooks
from service.api.models import webhooks as models
from service.api.route import Route, read, write
from service.vocabulary import Role

ADMIN = Role.ADMIN

WEBHOOK_ROUTES: tuple[Route, ...] = (
    write("webhooks/create-endpoint", ADMIN, models.CreateEndpoint, webhooks.create),
    read("webhooks/list-endpoints", models.ListEndpoints, webhooks.list_endpoints, ADMIN),
    write("webhooks/update-endpoint", ADMIN, models.UpdateEndpoint, webhooks.update),
    write("webhooks/delete-endpoint", ADMIN, models.DeleteEndpoint, webhooks.delete),
    write("webhooks/rotate-secret", ADMIN, models.RotateSecret, webhooks.rotate_secret),
    write("webhooks/test-endpoint", ADMIN, models.TestEndpoint, webhooks.test),
    read("webhooks/list-deliveries", models.ListDeliveries, webhooks.list_deliveries, ADMIN),
    write("webhooks/replay", ADMIN, models.Replay, webhooks.replay),
)

"""The queue endpoints, one line each (API.md 5)."""

from service.api import lists, queues
from service.api.models import lists as listed
from service.api.models import queues as models
from service.api.route import Route, read, write
from service.vocabulary import Role

QUEUE_ROUTES: tuple[Route, ...] = (
    write("createQueue", Role.ADMIN, models.CreateQueue, queues.create),
    read("getQueue", models.GetQueue, queues.get),
    write("updateQueue", Role.ADMIN, models.UpdateQueue, queues.update),
    write("deleteQueue", Role.ADMIN, models.DeleteQueue, queues.delete),
    read("listQueues", listed.ListQueues, lists.queues),
    write("addQueueHold", Role.ADMIN, models.AddQueueHold, queues.add_hold),
    write("releaseQueueHold", Role.ADMIN, models.ReleaseQueueHold, queues.release_hold),
)

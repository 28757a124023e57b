"""The queue endpoints, one line each (API.md 5)."""

from service.http.route import Route, read, write
from service.mergequeue.api import lists, queues
from service.mergequeue.api.models import lists as listed
from service.mergequeue.api.models import queues as models
from service.mergequeue.api.models.answers import queues as answers
from service.vocabulary import Role

QUEUE_ROUTES: tuple[Route, ...] = (
    write("createQueue", Role.ADMIN, models.CreateQueue, queues.create).answering(
        answers.QueueCreated,
        "branch_not_found",
        "queue_exists",
        "merge_method_not_allowed",
        "limit_reached",
        "not_available_yet",
    ),
    read("getQueue", models.GetQueue, queues.get).answering(
        answers.QueueWithEntries, "queue_not_found"
    ),
    write("updateQueue", Role.ADMIN, models.UpdateQueue, queues.update).answering(
        answers.Queue,
        "unknown_field",
        "queue_not_found",
        "version_conflict",
        "mode_switch_in_progress",
        "merge_method_not_allowed",
        "conflicting_fields",
        "set_in_repository_file",
        "not_available_yet",
    ),
    write("deleteQueue", Role.ADMIN, models.DeleteQueue, queues.delete).answering(
        answers.QueueDeleted, "queue_not_found", "queue_not_empty"
    ),
    write("addQueueHold", Role.ADMIN, models.AddQueueHold, queues.add_hold).answering(
        answers.HoldAdded, "queue_not_found", "limit_reached"
    ),
    write("releaseQueueHold", Role.ADMIN, models.ReleaseQueueHold, queues.release_hold).answering(
        answers.HoldReleased, "queue_not_found", "hold_not_found", "hold_not_liftable"
    ),
    read("listQueues", listed.ListQueues, lists.queues).answering(
        answers.QueuesListed, "invalid_page_token", "page_token_expired"
    ),
)

"""Handler of the endpoint about conflicts between open pull requests."""

from collections.abc import Iterable

from service.http.callers import Call
from service.http.models.common import Named, PullRequest
from service.http.route import Route, read
from service.mergequeue.api import pull_requests
from service.mergequeue.api.models.answers import conflicts as answers
from service.mergequeue.conflict_pairs import ConflictPair, LandingOrder
from service.mergequeue.operations import radar


class GetConflicts(Named):
    """`/getConflicts`."""

    pr: PullRequest | None = None
    """Only the conflicts of this pull request, queued or not."""


@read("getConflicts", GetConflicts, answers.ConflictsShown, "queue_not_found")
async def get(call: Call, request: GetConflicts) -> answers.ConflictsShown:
    """Return which open pull requests will conflict with each other, and in which order to land.

    Also pull requests that nobody has submitted.
    """
    queue = await pull_requests.queue_of(call, request)
    found = await radar.foreseen(call.runtime, queue)
    pairs: Iterable[ConflictPair] = found.pairs
    orders: Iterable[LandingOrder] = found.orders
    if request.pr is not None:
        pairs, order = found.of(request.pr.number), found.order_of(request.pr.number)
        orders = () if order is None else (order,)
    return answers.ConflictsShown.of(
        found,
        pairs=[
            answers.ConflictPairShown(
                pr_numbers=[one.low, one.high],
                heads=[one.head_low, one.head_high],
                paths=[*one.paths],
                found_at=one.found_at,
            )
            for one in pairs
        ],
        orders=[
            answers.LandingOrderShown(
                first=[*one.first],
                rebased=[*one.rebased],
                rebases_otherwise=one.otherwise,
                text=one.text,
            )
            for one in orders
        ],
        not_compared=found.left,
    )


CONFLICT_ROUTES: tuple[Route, ...] = (get,)

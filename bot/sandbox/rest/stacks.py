"""Native stacks of pull requests."""

from functools import partial

from bot.sandbox.acts import pull_requests
from bot.sandbox.records import Stack
from bot.sandbox.refusal import not_found
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import pulls


async def list_stacks(call: Call) -> Answer:
    """The stacks, newest first; `pull_request` asks for that of one pull request."""
    repository = call.repository
    wanted = call.query.get("pull_request")
    found = [
        one
        for one in reversed(repository.stacks)
        if wanted is None or wanted in {str(number) for number in one.members}
    ]
    return Listing(found, partial(pulls.stack, repository))


async def get_stack(call: Call) -> Answer:
    """One stack."""
    return Reply(pulls.stack(call.repository, _stack(call)))


async def create_stack(call: Call) -> Answer:
    """Stack pull requests, the bottom first."""
    numbers = [int(one) for one in call.body.get("pull_requests", ())]
    made = await pull_requests.stack(call.repository, call.actor, numbers)
    return Reply(pulls.stack(call.repository, made), 201)


async def unstack(call: Call) -> Answer:
    """Dissolve a stack."""
    pull_requests.unstack(call.repository, _stack(call).members[0])
    return Reply(status=204)


def _stack(call: Call) -> Stack:
    for one in call.repository.stacks:
        if one.number == int(call.params["stack"]):
            return one
    raise not_found()


STACKS = "/repos/{owner}/{repo}/stacks"
STACK = rf"{STACKS}/{{stack:\d+}}"
READ, WRITE = ("pull_requests:read",), ("pull_requests:write",)

ROUTES = (
    Route("GET", STACKS, list_stacks, READ),
    Route("POST", STACKS, create_stack, WRITE),
    Route("GET", STACK, get_stack, READ),
    Route("POST", f"{STACK}/unstack", unstack, WRITE),
)

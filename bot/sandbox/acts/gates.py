"""What opens and shuts a merge beside reviews and checks, as acts by name.

Native stacks, the provider's own merge queue, deployments, results of code scanning.
"""

from collections.abc import Awaitable, Callable, Mapping

from bot.sandbox import merge_rules
from bot.sandbox.acts import pull_states, stacks
from bot.sandbox.acts.asked import Asked
from bot.sandbox.records import Json, Pull
from bot.sandbox.refusal import Refusal


def _pull(asked: Asked) -> Pull:
    pull = asked.issue.pull
    if pull is None:
        raise Refusal(400, f"#{asked.issue.number} is no pull request")
    return pull


async def _stack(asked: Asked) -> Json:
    """Put the pull requests `numbers`, the bottom first, into a native stack."""
    numbers = [int(one) for one in asked.value.get("numbers", ())]
    made = await stacks.create(asked.repository, asked.actor, numbers)
    return {"stack": made.number}


async def _unstack(asked: Asked) -> Json:
    """Dissolve the native stack of `number`."""
    stacks.dissolve(asked.repository, asked.issue.number)
    return {}


async def _enqueue(asked: Asked) -> Json:
    """Put a pull request into the provider's own merge queue; there it stays."""
    pull = _pull(asked)
    if not merge_rules.has_queue(asked.repository, pull.base_ref):
        raise Refusal(400, f"{pull.base_ref} has no merge queue")
    pull.queued = True
    told = pull_states.by(asked.actor.account)
    await pull_states.tell(asked.repository, asked.issue, "enqueued", told)
    return {}


async def _dequeue(asked: Asked) -> Json:
    """Take a pull request out of the provider's own merge queue."""
    _pull(asked).queued = False
    told = pull_states.by(asked.actor.account, reason="MANUAL")
    await pull_states.tell(asked.repository, asked.issue, "dequeued", told)
    return {}


async def _deploy(asked: Asked) -> Json:
    """Let the head of `number` have a successful deployment to `environment`."""
    asked.repository.deployed.add((_pull(asked).head_sha, asked.text("environment")))
    return {}


async def _scan(asked: Asked) -> Json:
    """Let the head of `number` have results of code scanning."""
    asked.repository.scanned.add(_pull(asked).head_sha)
    return {}


ACTS: Mapping[str, Callable[[Asked], Awaitable[Json]]] = {
    "deploy": _deploy,
    "dequeue": _dequeue,
    "enqueue": _enqueue,
    "scan": _scan,
    "stack": _stack,
    "unstack": _unstack,
}

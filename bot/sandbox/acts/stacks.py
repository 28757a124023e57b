"""Native stacks of pull requests: made and dissolved.

The caller holds the repository's lock. Source: the provider's "REST API endpoints for pull
request stacks". Whether leaving a stack raises an event is not documented, so it raises none.
"""

from collections.abc import Sequence
from itertools import pairwise

from bot.sandbox.acts import pull_states
from bot.sandbox.records import Actor, Issue, Pull, Stack
from bot.sandbox.refusal import not_found, refused
from bot.sandbox.shapes import pulls
from bot.sandbox.world import Repository


async def create(repository: Repository, actor: Actor, numbers: Sequence[int]) -> Stack:
    """Stack pull requests, the bottom first; raises `pull_request.stacked` for each.

    Raises Refusal(422) when they are no chain of one repository or one is stacked already.
    """
    members = [_pull_of(repository, number) for number in numbers]
    for issue, _ in members:
        if repository.stack_of(issue.number) is not None:
            raise refused("stack.member", issue.number)
    chain = pairwise(members)
    is_chain = all(above.base_ref == below.head_ref for (_, below), (_, above) in chain)
    if (
        len(members) < 2
        or not is_chain
        or any(one.head_repo != repository.id for _, one in members)
    ):
        raise refused("stack.form")
    made = Stack(
        repository.world.new_id(), len(repository.stacks) + 1, list(numbers), repository.world.now()
    )
    repository.stacks.append(made)
    for issue, _ in members:
        shown = pulls.stack_of_pull(repository, issue, made)
        told = pull_states.by(actor.account, stack=shown)
        await pull_states.tell(repository, issue, "stacked", told)
    return made


def dissolve(repository: Repository, number: int) -> None:
    """Dissolve the stack of a pull request. Raises Refusal(404) without one."""
    found = repository.stack_of(number)
    if found is None:
        raise not_found()
    repository.stacks.remove(found)


def _pull_of(repository: Repository, number: int) -> tuple[Issue, Pull]:
    issue = repository.issues.get(number)
    if issue is None or issue.pull is None:
        raise not_found()
    return issue, issue.pull

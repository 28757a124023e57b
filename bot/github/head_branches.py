"""Delete the head branch of a landed pull request, unless something else needs it.

The rules: docs/design/landing.md 8.
"""

from bot.github import graphql, refs
from bot.github.client import RepositoryClient
from bot.github.graphql import NO_COMMIT, RefUpdate
from bot.github.limits import quoted
from bot.github.protection import is_protected
from bot.github.pull_requests import is_open
from service.provider.errors import NotPermitted, Refused, Unavailable
from service.provider.values import NotPossible
from service.vocabulary import Sha


async def delete(client: RepositoryClient, number: int, head: Sha) -> NotPossible | None:
    """Delete the branch while it points to `head`; a branch that is gone is done.

    Raises Unavailable while GitHub shows the pull request as open: it would be closed unmerged.
    """
    facts = await graphql.facts(client, number)
    if is_open(facts):
        words = f"GitHub still shows pull request {number} as open."
        raise Unavailable(words, client.clock.now())
    if facts.pull.is_fork:
        return NotPossible("It is a branch of a fork.")
    branch = facts.pull.head_branch
    tip = await refs.read_head(client, branch)
    if tip is None:
        return None
    if tip != head:
        return NotPossible(f"It points to {tip}, which did not land.")
    reason = await _reason_to_keep(client, branch)
    if reason is not None:
        return NotPossible(reason)
    deletion = RefUpdate(branch, head, NO_COMMIT)
    try:
        _, troubles = await graphql.update_refs(client, facts.repository_node, [deletion])
    except (NotPermitted, Refused) as refusal:
        return NotPossible(quoted(refusal.message))
    return NotPossible(quoted(troubles[0].message)) if troubles else None


async def _reason_to_keep(client: RepositoryClient, branch: str) -> str | None:
    """Return why the branch must stay although its pull request has landed."""
    repository = (await client.get("")).fields
    if repository.flag("delete_branch_on_merge"):
        return "The repository itself deletes branches after a merge."
    if branch == repository.text("default_branch"):
        return "It is the default branch."
    if await is_protected(client, branch):
        return "Rules protect it."
    for role, name in (("base", branch), ("head", f"{client.repo.owner}:{branch}")):
        users, _ = await client.listed("/pulls", None, {"state": "open", role: name})
        if users:
            return f"It is the {role} of open pull request {users[0].number('number')}."
    return None

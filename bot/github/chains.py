"""Chains of pull requests that are no native stack, and the head branches of those that landed.

In a chain each is based on the branch of another one: docs/design/provider.md 11. A head branch is
deleted unless something else needs it: docs/design/landing.md 8.
"""

from bot.github import graphql, refs
from bot.github.client import RepositoryClient
from bot.github.graphql import NO_COMMIT, RefUpdate
from bot.github.limits import quoted
from bot.github.protection import is_protected
from bot.github.pull_requests import is_open
from service.provider.errors import NotPermitted, Refused, Unavailable
from service.provider.stacks import MergedFrom, Stack, StackMember
from service.provider.values import NotPossible, PullRequest
from service.vocabulary import PullRequestState, Sha


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


MEMBERS_MAX = 20


async def find(client: RepositoryClient, pull: PullRequest) -> Stack | None:
    """Return the open pull requests that lead from this one down to a branch without one.

    None if its base is the branch of no open pull request, if one of the branches belongs to
    several, and if there are more than MEMBERS_MAX.
    """
    members = [StackMember(pull.number, pull.head_sha, PullRequestState.OPEN)]
    base = pull.base_branch
    while len(members) <= MEMBERS_MAX:
        found = await refs.pulls_from(client, base, "open")
        if not found:
            break
        below = found[0]
        number = below.number("number")
        if len(found) > 1 or number in {one.number for one in members}:
            return None
        head = Sha(below.inner("head").text("sha"))
        members.append(StackMember(number, head, PullRequestState.OPEN))
        base = below.inner("base").text("ref")
    if not 1 < len(members) <= MEMBERS_MAX:
        return None
    return Stack(base, tuple(reversed(members)), is_native=False)


async def find_merged(client: RepositoryClient, branch: str) -> MergedFrom | None:
    """Return the newest pull request that came from the branch, if it was merged as the branch is.

    None if the branch has other commits by now: then it is still in use.
    """
    found = await refs.pulls_from(client, branch, "all")
    newest = max(found, key=lambda pull: pull.number("number"), default=None)
    if newest is None or newest.moment_or_none("merged_at") is None:
        return None
    tip = await refs.read_head(client, branch, is_awaited=True)
    if tip not in (None, newest.inner("head").text("sha")):
        return None
    return MergedFrom(newest.number("number"), newest.inner("base").text("ref"))


async def change_base(client: RepositoryClient, number: int, branch: str) -> NotPossible | None:
    """Base a pull request on another branch; one that is based on it already is done."""
    try:
        await client.send("PATCH", f"/pulls/{number}", {"base": branch})
    except (NotPermitted, Refused) as refusal:
        return NotPossible(quoted(refusal.message))
    return None

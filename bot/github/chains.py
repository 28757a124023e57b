"""Chains of pull requests that are no native stack: each is based on the branch of another one.

The rules: docs/design/provider.md 11.
"""

from bot.github import refs
from bot.github.client import RepositoryClient
from bot.github.limits import quoted
from service.provider.errors import NotPermitted, Refused
from service.provider.stacks import MergedFrom, Stack, StackMember
from service.provider.values import NotPossible, PullRequest
from service.vocabulary import PullRequestState, Sha

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

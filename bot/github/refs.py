"""Branches and commits of a repository: their names in addresses, reads and writes.

Writes touch only branches under our own prefix; `head_branches.py` has the one exception.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

from bot.github import graphql, limits, reading
from bot.github.client import ABSENT, RepositoryClient
from bot.github.reading import Fields
from service.errors import InvariantBroken
from service.provider.errors import OutcomeUnknown, RefusedCode
from service.provider.values import Commit
from service.vocabulary import Sha

HEADS = "refs/heads/"
PREFIX = "headgate/"
RETRIES_AFTER_S = (1.0, 2.0, 4.0)
CHAIN_MAX = 250  # commits between a landing's parent and the tip
COMPARE_PAGE = 100
REACHED = frozenset({"ahead", "identical"})

# https://docs.github.com/en/graphql/reference/objects#commithistoryconnection
HISTORY = """
query CommitHistory($owner: String!, $name: String!, $oid: GitObjectID!) {
  repository(owner: $owner, name: $name) {
    object(oid: $oid) { ... on Commit { history(first: 1) { totalCount } } }
  }
}
"""

T = TypeVar("T")


def branch_path(branch: str) -> str:
    """Encode a branch name or file path for a URL; slashes stay."""
    return "/".join(quote(segment, safe="") for segment in branch.split("/"))


def head_path(branch: str) -> str:
    """Encode a branch as a full reference, which GitHub cannot mistake for a tag or a commit."""
    return f"heads/{branch_path(branch)}"


async def read_tip(client: RepositoryClient, branch: str) -> Commit | None:
    """Ask for the newest commit of a branch; None when the branch does not exist."""
    answer = await client.find(f"/commits/{head_path(branch)}", is_kept=True)
    return None if answer is None else _keep(client, answer.fields)


async def read_new_name(client: RepositoryClient, branch: str) -> str | None:
    """Return the branch to which GitHub redirects the name of a renamed one, else None.

    GitHub answers 301 for a renamed branch (google/go-github issue 1895). It also redirects a
    missing `master` to the default branch (github/rest-api-description issue 7096).
    """
    answer = await client.find(f"/branches/{branch_path(branch)}")
    name = None if answer is None else answer.fields.text("name")
    return None if name == branch else name


async def read_commit(client: RepositoryClient, sha: Sha) -> Commit | None:
    """Return a commit, read once per process; None when GitHub does not know it."""
    cached = client.caches.commit(client.repo, sha)
    if cached is not None:
        return cached
    answer = await client.find(f"/git/commits/{sha}")
    return None if answer is None else _keep(client, answer.fields)


async def read_head(
    client: RepositoryClient, branch: str, *, is_awaited: bool = False
) -> Sha | None:
    """Return the commit that a branch points to; None when the branch does not exist.

    `is_awaited`: the branch is about to appear, so that its absence does not mean that the
    repository is gone.
    """
    tail = f"/git/ref/{head_path(branch)}"
    if is_awaited:
        answer = await client.get(tail, expects=ABSENT)
        return None if answer.status in ABSENT else reading.ref_of(answer.fields)[1]
    found = await client.find(tail)
    return None if found is None else reading.ref_of(found.fields)[1]


async def is_ancestor(client: RepositoryClient, ancestor: Sha, descendant: Sha) -> bool:
    """Return whether `ancestor` equals `descendant` or is reachable from it.

    False for commits that GitHub does not know.
    """
    if ancestor == descendant:
        return True
    answer = await client.find(f"/compare/{ancestor}...{descendant}", {"per_page": 1})
    return answer is not None and answer.fields.text("status") in REACHED


async def count_history(client: RepositoryClient, sha: Sha) -> int | None:
    """Return how many commits are reachable from a commit, itself too; None for an unknown one."""
    shown = await graphql.repository(client, HISTORY, {"oid": sha})
    commit = shown.inner_or_none("object")
    return None if commit is None else commit.inner("history").number("totalCount")


async def first_parents(
    client: RepositoryClient, newest: Commit, expect: Sha
) -> tuple[Commit, ...] | None:
    """Return the first parents from `newest` back to `expect`, which is left out.

    None when `expect` is not reached within 250 commits.
    """
    if newest.sha == expect:
        return ()
    if newest.parents[:1] == (expect,):
        return (newest,)
    between = await _commits_between(client, expect, newest.sha)
    chain: list[Commit] = [newest]
    while chain[-1].parents and len(chain) < CHAIN_MAX:
        parent = chain[-1].parents[0]
        if parent == expect:
            return tuple(chain)
        if parent not in between:
            return None
        chain.append(between[parent])
    return None


async def _commits_between(client: RepositoryClient, base: Sha, head: Sha) -> dict[Sha, Commit]:
    """Return the commits reachable from `head` and not from `base`, as many as a chain needs."""
    commits: dict[Sha, Commit] = {}
    tail = f"/compare/{base}...{head}"
    for page in range(1, CHAIN_MAX // COMPARE_PAGE + 3):
        answer = await client.get(tail, {"per_page": COMPARE_PAGE, "page": page}, expects=ABSENT)
        if answer.status in ABSENT:
            break
        listed = [_keep(client, each) for each in answer.fields.each("commits")]
        commits.update((commit.sha, commit) for commit in listed)
        if len(listed) < COMPARE_PAGE:
            break
    return commits


def _keep(client: RepositoryClient, answer: Fields) -> Commit:
    return client.caches.keep_commit(client.repo, reading.commit_of(answer))


async def pulls_from(client: RepositoryClient, branch: str, state: str) -> list[Fields]:
    """Return the pull requests that come from this branch of the repository, newest first.

    GitHub's filter is not enough: a fork of the same owner may have a branch of that name, and
    GitHub ignores a `head` that it does not understand.
    """
    query = {"head": f"{client.repo.owner}:{branch}", "state": state}
    listed, _ = await client.listed("/pulls", None, query)
    return [pull for pull in listed if _is_from(pull, branch)]


def _is_from(pull: Fields, branch: str) -> bool:
    head, own = pull.inner("head"), pull.inner("base").inner("repo").id("id")
    repository = head.inner_or_none("repo")
    is_own = repository is not None and repository.id("id") == own
    return is_own and head.text("ref") == branch


async def create_branch(client: RepositoryClient, branch: str, sha: Sha) -> bool:
    """Create the branch; False when the name is taken. Raises Refused."""
    _check_prefix(branch)
    body = {"ref": f"{HEADS}{branch}", "sha": sha}
    answer = await client.send("POST", "/git/refs", body, expects=(422,))
    if answer.status != 422:
        return True
    if limits.refusal_of(answer.message) is RefusedCode.NAME_TAKEN:
        return False
    raise client.github.error_of(answer, "/git/refs")


async def reset_branch(client: RepositoryClient, branch: str, sha: Sha) -> None:
    """Point one of our branches to another commit."""
    _check_prefix(branch)
    await client.send("PATCH", f"/git/refs/{head_path(branch)}", {"sha": sha, "force": True})


async def delete_branch(client: RepositoryClient, branch: str) -> bool:
    """Delete the branch; False when it did not exist."""
    _check_prefix(branch)
    tail = f"/git/refs/{head_path(branch)}"
    answer = await client.send("DELETE", tail, expects=(404, 422))
    if answer.status < 300:
        return True
    if answer.status == 404:
        await client.check_repository()
        return False
    if "does not exist" in answer.message.lower():
        return False
    raise client.github.error_of(answer, tail)


async def retry_unknown(client: RepositoryClient, act: Callable[[], Awaitable[T]]) -> T:
    """Run an idempotent action, and again while its outcome is unknown: four times in all."""
    for wait_s in RETRIES_AFTER_S:
        try:
            return await act()
        except OutcomeUnknown:
            await client.clock.sleep(wait_s)
    return await act()


def _check_prefix(branch: str) -> None:
    if not branch.startswith(PREFIX):
        raise InvariantBroken("I10", f'"{branch}" is not a branch of ours')

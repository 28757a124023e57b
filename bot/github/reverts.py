"""Reverts of landed commits, as pull requests of our App (docs/design/red-target.md 4).

A revert is a merge: of a commit on the culprit that has its parent's tree. GitHub makes it on a
scratch branch, so that a conflict is one as in git. What is published is one commit on the tip.
"""

from datetime import timedelta

from bot.github import limits, reading, refs
from bot.github.client import RepositoryClient
from bot.github.wire import Answer
from service.provider.errors import Gone, GoneKind, Unavailable
from service.provider.reverts import OpenedRevert, RevertRequest
from service.provider.values import Commit, NotPossible
from service.vocabulary import Sha

REWRITTEN = "The branch does not contain the commit any more."
CONFLICT = "The revert conflicts with what landed since."
NOTHING_LEFT = "Later commits have undone the change already."
FOREIGN = "Its branch has commits that Headgate has not made."


async def open_revert(
    client: RepositoryClient, request: RevertRequest
) -> OpenedRevert | NotPossible:
    """Make the revert's branch and open its pull request, or find what an earlier try made."""
    return await refs.retry_unknown(client, lambda: _open(client, request))


async def follow(client: RepositoryClient, branch: str, sha: Sha) -> None:
    """Point a branch of ours to a commit; make it if there is none. Safe to repeat."""
    if not await refs.create_branch(client, branch, sha):
        await refs.reset_branch(client, branch, sha)


async def _open(client: RepositoryClient, request: RevertRequest) -> OpenedRevert | NotPossible:
    known = await refs.pulls_from(client, request.branch, "all")
    if known:
        number, head, _ = reading.pull_ref_of(known[0])
        if known[0].moment_or_none("merged_at") is not None:
            return OpenedRevert(number, head)
        if known[0].words("state") != "open":
            return NotPossible(f"Its revert #{number} was closed.")
        is_revert = await _is_revert(client, request, head)
        return OpenedRevert(number, head) if is_revert else NotPossible(FOREIGN)
    there = await refs.read_head(client, request.branch, is_awaited=True)
    if there is None:
        made = await _made(client, request)
        if isinstance(made, NotPossible):
            return made
        if not await refs.create_branch(client, request.branch, made):
            raise _later(client, "The branch of the revert has just appeared.")
        there = made
    elif not await _is_revert(client, request, there):
        return NotPossible(FOREIGN)
    return OpenedRevert(await _pull_request(client, request), there)


async def _is_revert(client: RepositoryClient, request: RevertRequest, head: Sha) -> bool:
    """Return whether a commit is what we make: on the target, and it takes the change back.

    Everybody with write access can push to a branch of this name.
    """
    commit = await refs.read_commit(client, head)
    tip = await refs.read_tip(client, request.target)
    if commit is None or tip is None or len(commit.parents) != 1:
        return False
    base = await refs.read_commit(client, commit.parents[0])
    if base is None or not await refs.is_ancestor(client, base.sha, tip.sha):
        return False
    return await _tree_without(client, request, base) == commit.tree


async def _made(client: RepositoryClient, request: RevertRequest) -> Sha | NotPossible:
    """Return a commit on the tip that takes the change back."""
    tip = await refs.read_tip(client, request.target)
    if tip is None:
        raise Gone(f"{request.target} is gone.", GoneKind.BRANCH)
    tree = await _tree_without(client, request, tip)
    if isinstance(tree, NotPossible):
        return tree
    return await _commit(client, request.message, tree, tip.sha)


async def _tree_without(
    client: RepositoryClient, request: RevertRequest, base: Commit
) -> Sha | NotPossible:
    """Return the tree of a commit of the target after the change is taken back."""
    parent = await refs.read_commit(client, request.parent)
    if parent is None:
        raise Gone(f"The commit {request.parent} is gone.", GoneKind.BRANCH)
    if not await refs.is_ancestor(client, request.commit, base.sha):
        return NotPossible(REWRITTEN)
    undone = await _commit(client, request.message, parent.tree, request.commit)
    if not await refs.create_branch(client, request.scratch, base.sha):
        await refs.reset_branch(client, request.scratch, base.sha)
    merged = await _merged(client, request, undone)
    await refs.delete_branch(client, request.scratch)
    if isinstance(merged, NotPossible):
        return merged
    return NotPossible(NOTHING_LEFT) if merged.tree == base.tree else merged.tree


async def _commit(client: RepositoryClient, message: str, tree: Sha, parent: Sha) -> Sha:
    body = {"message": message, "tree": tree, "parents": [parent]}
    answer = await client.send("POST", "/git/commits", body)
    return Sha(answer.fields.text("sha"))


async def _merged(
    client: RepositoryClient, request: RevertRequest, undone: Sha
) -> Commit | NotPossible:
    body = {"base": request.scratch, "head": undone, "commit_message": request.message}
    for wait_s in limits.YOUNG_WAITS_S:
        answer = await client.create("POST", "/merges", body, expects=(404, 409))
        if answer.status < 300:
            return reading.commit_of(answer.fields)
        if answer.status == 409:
            return NotPossible(CONFLICT)
        # Our branch or commit may not be visible yet.
        await client.clock.sleep(wait_s)
    raise _later(client, "The revert cannot be made now.")


async def _pull_request(client: RepositoryClient, request: RevertRequest) -> int:
    body = {
        "title": request.title,
        "body": request.body,
        "head": request.branch,
        "base": request.target,
    }
    answer: Answer | None = None
    for wait_s in limits.YOUNG_WAITS_S:
        answer = await client.create("POST", "/pulls", body, expects=(422,))
        if answer.status < 300:
            return reading.pull_ref_of(answer.fields)[0]
        if "invalid" not in answer.message.lower():
            raise client.github.error_of(answer, "/pulls")
        # Our branch may not be visible yet where pull requests are made.
        await client.clock.sleep(wait_s)
    words = answer.message if answer is not None else ""
    raise _later(client, words or "The branch of the revert is not visible yet.")


def _later(client: RepositoryClient, words: str) -> Unavailable:
    return Unavailable(words, client.clock.now() + timedelta(seconds=limits.UNAVAILABLE_S))

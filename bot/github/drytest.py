"""A test branch that changes nothing: one empty commit on the target's tip, shown to CI."""

from bot.github import limits, reading, refs
from bot.github.client import RepositoryClient
from service.provider.audits import DryTest, DryTestRequest
from service.provider.errors import Gone, GoneKind, Refused, RefusedCode
from service.provider.values import Vehicle
from service.vocabulary import Sha


async def start(client: RepositoryClient, request: DryTestRequest) -> DryTest:
    """Make the branch and open its draft pull request, where test branches are drafts.

    Raises Refused, and removes the branch if its draft is refused for another reason than that
    the repository has none.
    """
    sha = await empty_commit(client, request.tip, request.message)
    if not await refs.create_branch(client, request.branch, sha):
        raise Refused(f"{request.branch} exists.", RefusedCode.NAME_TAKEN)
    if request.vehicle is Vehicle.PUSH:
        return DryTest(request.branch, sha)
    try:
        await open_draft(client, request)
    except Refused as refused:
        if refused.code is not RefusedCode.DRAFT_NOT_SUPPORTED:
            await refs.delete_branch(client, request.branch)
            raise
        return DryTest(request.branch, sha, refused.message)
    return DryTest(request.branch, sha)


async def empty_commit(client: RepositoryClient, parent: Sha, message: str) -> Sha:
    """Make a commit that changes nothing, on no branch. Raises Gone for an unknown parent."""
    base = await refs.read_commit(client, parent)
    if base is None:
        raise Gone(f"Commit {parent} is gone.", GoneKind.BRANCH)
    body = {"message": message, "tree": base.tree, "parents": [base.sha]}
    made = await client.send("POST", "/git/commits", body)
    return Sha(made.fields.text("sha"))


async def open_draft(client: RepositoryClient, request: DryTestRequest) -> int:
    """Open the draft pull request of a branch that was just made; its number. Raises Refused."""
    body = {
        "title": request.title,
        "body": request.body,
        "head": request.branch,
        "base": request.target,
        "draft": True,
    }
    for wait_s in limits.YOUNG_WAITS_S:
        answer = await client.create("POST", "/pulls", body, expects=(422,))
        if answer.status < 300:
            return reading.pull_ref_of(answer.fields)[0]
        if "head invalid" not in answer.message.lower():
            break
        # Our branch may not be visible yet where pull requests are made.
        await client.clock.sleep(wait_s)
    raise client.github.error_of(answer, "/pulls")

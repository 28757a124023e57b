"""Test branches that exist: listed, deleted, put back, with their draft pull requests."""

from bot.github import reading, refs
from bot.github.client import RepositoryClient
from service.provider.errors import Refused, RefusedCode
from service.provider.values import VehicleRef
from service.vocabulary import Sha


async def discard(client: RepositoryClient, branch: str) -> None:
    """Delete the branch, which closes its draft pull request; does nothing without a branch."""
    await refs.retry_unknown(client, lambda: _discard(client, branch))


async def restore(client: RepositoryClient, branch: str, sha: Sha) -> None:
    """Create the branch again and reopen its draft; raises Refused(NAME_TAKEN)."""
    await refs.retry_unknown(client, lambda: _restore(client, branch, sha))


async def vehicles(client: RepositoryClient) -> tuple[VehicleRef, ...]:
    """Return every branch under our prefix."""
    listed, _ = await client.listed(f"/git/matching-refs/{refs.head_path(refs.PREFIX)}")
    named = [reading.ref_of(each) for each in listed]
    return tuple(VehicleRef(name.removeprefix(refs.HEADS), sha) for name, sha in named)


async def _discard(client: RepositoryClient, branch: str) -> None:
    if await refs.delete_branch(client, branch):
        return
    # Gone before: then GitHub closed the draft as well, unless the deletion was not ours.
    for number, _, _ in await pulls_of(client, branch, "open"):
        await _set_state(client, number, "closed")


async def _restore(client: RepositoryClient, branch: str, sha: Sha) -> None:
    is_created = await refs.create_branch(client, branch, sha)
    if not is_created and await refs.read_head(client, branch) != sha:
        raise Refused(f"{branch} points elsewhere.", RefusedCode.NAME_TAKEN)
    if await pulls_of(client, branch, "open"):
        return
    for number, head, _ in (await pulls_of(client, branch, "closed"))[:1]:
        if head == sha:
            await _set_state(client, number, "open")


async def pulls_of(client: RepositoryClient, branch: str, state: str) -> list[tuple[int, Sha, str]]:
    """Return the pull requests with this branch of ours as head, newest first."""
    return [reading.pull_ref_of(each) for each in await refs.pulls_from(client, branch, state)]


async def _set_state(client: RepositoryClient, number: int, state: str) -> None:
    """Close or reopen a pull request; GitHub refuses to reopen a merged one, which is fine."""
    await client.create("PATCH", f"/pulls/{number}", {"state": state}, expects=(422,))

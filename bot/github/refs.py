"""Branches of our own: made, moved, deleted; never anything outside our prefix."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.github import limits, paths
from bot.github.line import Line
from service.errors import InvariantBroken
from service.provider.errors import OutcomeUnknown, RefusedCode
from service.vocabulary import Sha

PREFIX = "headgate/"
AGAIN_S = (1.0, 2.0, 4.0)

T = TypeVar("T")


async def create(line: Line, branch: str, sha: Sha) -> bool:
    """Make the branch; False when there is one of that name. Raises Refused."""
    _check(branch)
    body = {"ref": f"{paths.HEADS}{branch}", "sha": sha}
    answer = await line.send("POST", "/git/refs", body, expects=(422,))
    if answer.status != 422:
        return True
    if limits.refusal_of(answer.message) is RefusedCode.NAME_TAKEN:
        return False
    raise line.client.error_of(answer, "/git/refs")


async def reset(line: Line, branch: str, sha: Sha) -> None:
    """Let a branch of ours point elsewhere."""
    _check(branch)
    tail = f"/git/refs/{paths.of_head(branch)}"
    await line.send("PATCH", tail, {"sha": sha, "force": True})


async def delete(line: Line, branch: str) -> bool:
    """Delete the branch; False when it was not there."""
    _check(branch)
    tail = f"/git/refs/{paths.of_head(branch)}"
    answer = await line.send("DELETE", tail, expects=(404, 422))
    if answer.status < 300:
        return True
    if answer.status == 404:
        await line.get("")  # says whether the whole repository is gone
        return False
    if "does not exist" in answer.message.lower():
        return False
    raise line.client.error_of(answer, tail)


async def repeated(line: Line, act: Callable[[], Awaitable[T]]) -> T:
    """Run what reads back by itself again while its outcome is unknown, four times in all."""
    for wait_s in AGAIN_S:
        try:
            return await act()
        except OutcomeUnknown:
            await line.clock.sleep(wait_s)
    return await act()


def _check(branch: str) -> None:
    if not branch.startswith(PREFIX):
        raise InvariantBroken("I10", f'"{branch}" is not a branch of ours')

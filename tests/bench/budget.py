"""What one landed pull request costs at the provider (docs/design/provider.md 5).

The standard story: a comment, one run that starts at once, a draft pull request, a squash.
"""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.harness.world import CI, World, WorldOptions, living

CALLS_MAX, WRITES_MAX = 25, 14
"""See docs/design/provider.md 5; comment and check run are edited twice, since they show the checks
of the run as soon as its test branch is built."""
ONCE = CI.replace("pull_request: true", "pull_request: false").replace(
    "push: [", 'push: ["topic-*", '
)
OPTIONS = WorldOptions(ci=ONCE, speed=4)
"""CI that runs once for a commit, and time slow enough for what is joined to be joined."""


def is_collecting(call: Mapping[str, object]) -> bool:
    """Whether a call asks for what CI left: one for each CI run that ends, landed or not."""
    return str(call["path"]).endswith("/artifacts")


def is_free(call: Mapping[str, object]) -> bool:
    """Whether GitHub does not count the call: nothing had changed since the same was asked."""
    return call["status"] == HTTPStatus.NOT_MODIFIED


def is_write(call: Mapping[str, object]) -> bool:
    """Whether a call changes something; a GraphQL query is a POST that does not."""
    is_query = call["path"] == "/api/graphql" and "mutation" not in str(call["body"])
    return call["method"] != "GET" and not is_query


async def calls_of_one_landing(world: World) -> Sequence[Mapping[str, object]]:
    """Every call for the second pull request of a queue, from its comment to the last notice.

    But for what its CI left: that is read whether a queue asked for the run or not. Nor calls
    that GitHub does not count.
    """
    first = await world.open()
    await world.comment("/merge", on=first)
    await world.settle()
    number = await world.open()
    await world.settle()
    before = len(world.sandbox.world.calls)
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [first, number]
    calls = list(world.sandbox.world.calls)[before:]
    return [call for call in calls if not is_collecting(call) and not is_free(call)]


def run() -> dict[str, object]:
    """One line of the table."""
    calls = asyncio.run(_measured())
    return {
        "goal": "V15",
        "subject": "provider calls per landed pull request",
        "calls": len(calls),
        "calls_goal": CALLS_MAX,
        "writes": len([call for call in calls if is_write(call)]),
        "writes_goal": WRITES_MAX,
    }


async def _measured() -> Sequence[Mapping[str, object]]:
    with TemporaryDirectory() as folder:
        async with living(Path(folder), OPTIONS) as world:
            return await calls_of_one_landing(world)

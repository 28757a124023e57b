"""What one landed pull request costs at the provider (docs/design/provider.md 5).

The standard story: a comment, one run that starts at once, a draft pull request, a squash.
"""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.harness.world import CI, World, WorldOptions, living

REST_MAX, WRITES_MAX, GRAPHQL_MAX = 12, 10, 6
"""See docs/design/provider.md 5: REST calls, those of them that write, and GraphQL queries, which
have a limit of their own."""
ONCE = CI.replace("pull_request: true", "pull_request: false").replace(
    "push: [", 'push: ["topic-*", '
)
OPTIONS = WorldOptions(ci=ONCE, speed=4, settings={"build_method": "git"})
"""CI that runs once for a commit, and time slow enough for what is joined to be joined."""


def is_collecting(call: Mapping[str, object]) -> bool:
    """Whether a call asks for what CI left: one for each CI run that ends, landed or not."""
    return str(call["path"]).endswith("/artifacts")


def is_free(call: Mapping[str, object]) -> bool:
    """Whether GitHub does not count the call: nothing had changed since the same was asked."""
    is_api = str(call["path"]).startswith("/api/")
    return call["status"] == HTTPStatus.NOT_MODIFIED or not is_api


def is_query(call: Mapping[str, object]) -> bool:
    """Whether a call is of GraphQL; no story here writes by it."""
    return call["path"] == "/api/graphql"


def is_write(call: Mapping[str, object]) -> bool:
    """Whether a call changes something."""
    return call["method"] != "GET" and not is_query(call)


async def calls_of_one_landing(world: World) -> Sequence[Mapping[str, object]]:
    """Every call for the second pull request of a queue, from its comment to the last notice.

    But for what its CI left: that is read whether a queue asked for the run or not. Nor calls
    that GitHub does not count: unchanged reads, and the transport of git.
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
        "rest": len([call for call in calls if not is_query(call)]),
        "rest_goal": REST_MAX,
        "graphql": len([call for call in calls if is_query(call)]),
        "graphql_goal": GRAPHQL_MAX,
        "writes": len([call for call in calls if is_write(call)]),
        "writes_goal": WRITES_MAX,
    }


async def _measured() -> Sequence[Mapping[str, object]]:
    with TemporaryDirectory() as folder:
        async with living(Path(folder), OPTIONS) as world:
            return await calls_of_one_landing(world)

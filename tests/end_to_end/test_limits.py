"""The whole story under GitHub's limits: calls are paced, all pull requests land, all are told."""

from itertools import pairwise

import pytest

from tests.harness.world import World, WorldOptions

PULL_REQUESTS = 4
STAMP_S = 1  # the log of calls has whole seconds


@pytest.fixture
def world_options() -> WorldOptions:
    """Limits on, on both sides."""
    return WorldOptions(has_limits=True)


async def test_all_land_and_are_told_within_github_s_limits(world: World) -> None:
    await world.make_queue()
    numbers = [await world.open() for _ in range(PULL_REQUESTS)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == numbers
    for number in numbers:
        assert "Merged" in world.comment_on(number)
        assert world.check_on(number).endswith("(success)")
    calls = [one for one in world.sandbox.world.calls if one["by"] == "headgate[bot]"]
    assert calls
    assert not [one for one in calls if one["status"] in (403, 429)]
    writes = [one for one in calls if one["method"] in ("POST", "PATCH", "PUT", "DELETE")]
    spaced = [one["at"] for one in writes if not _skips_the_spacing(one)]
    assert max(spaced.count(at) for at in spaced) <= 1 + STAMP_S
    assert all(one <= other for one, other in pairwise(spaced))


def _skips_the_spacing(call: dict[str, str]) -> bool:
    """A landing goes first, and a GraphQL query is no write."""
    return call["path"].endswith(("/merge", "/graphql", "/access_tokens"))

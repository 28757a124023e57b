"""What one landed pull request costs at the provider (docs/design/provider.md 5)."""

import pytest

from tests.bench import budget
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """The standard story's world."""
    return budget.OPTIONS


async def test_a_pull_request_tested_at_once_stays_within_the_budget(world: World) -> None:
    calls = await budget.calls_of_one_landing(world)
    told = "\n".join(f"{call['method']} {call['path']}" for call in calls)
    assert len([call for call in calls if budget.is_write(call)]) <= budget.WRITES_MAX, told
    queries = len([call for call in calls if budget.is_query(call)])
    assert len(calls) - queries <= budget.REST_MAX, told
    assert queries <= budget.GRAPHQL_MAX, told

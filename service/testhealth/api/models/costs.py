"""Bodies of the endpoints about what tests take and cost, in snake_case."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from service.http.models import common
from service.testhealth.api.models.tests import AboutTests, Text
from service.testhealth.filters import TimeOrder
from service.testhealth.flake_costs import WEEKS_MAX
from service.testhealth.operations.slow_tests import FILES_MAX, SHARDS_MAX, ShardsWanted

SLOWEST_MAX = 200
SLOWEST = 50


class ListSlowestTests(AboutTests):
    """`/flaky-tests/list-slowest-tests`: the tests that took longest in the last counted week."""

    order_by: Annotated[TimeOrder, BeforeValidator(common.one_of(TimeOrder))] = TimeOrder.TOTAL
    """Which tests come first: by the time of all their runs, or by its median or 95th percentile.
    """
    owner: Text | None = None
    """Only tests of this owner, or `none`. For example `@octo/web`."""
    limit: Annotated[int, Field(ge=1, le=SLOWEST_MAX)] = SLOWEST
    """How many tests at most."""


class PlanShards(AboutTests):
    """`/flaky-tests/plan-shards`: shards that take about as long as one another."""

    count: Annotated[int, Field(ge=1, le=SHARDS_MAX)]
    """How many shards. For example `4`."""
    files: Annotated[list[Text], Field(max_length=FILES_MAX)] | None = None
    """The files to divide, as reports name them; without it all that the service knows, so that
    new files are in no shard. For example `["tests/test_cart.py"]`.
    """
    variant: Text | None = None
    """Times of this variant; without it of the slowest one. For example `linux`."""

    def wanted(self) -> ShardsWanted:
        """As operations take it."""
        return ShardsWanted(self.count, tuple(self.files or ()), self.variant)


class GetFlakeCosts(AboutTests):
    """`/flaky-tests/get-flake-costs`: what flaky tests cost, week by week and by owner."""

    weeks: Annotated[int, Field(ge=1, le=WEEKS_MAX)] = WEEKS_MAX
    """How many weeks, the present one included."""

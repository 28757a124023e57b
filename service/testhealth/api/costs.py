"""Handlers of the endpoints about what tests take and what flaky ones cost."""

from service.http.callers import Call
from service.http.route import Route, read
from service.testhealth.api.models import costs as models
from service.testhealth.api.models.answers import costs as answers
from service.testhealth.flake_costs import Cost, Week
from service.testhealth.operations import flake_costs, records, settings, slow_tests
from service.testhealth.operations.records import RepositoryAddresses
from service.testhealth.operations.slow_tests import Period, SlowTest
from service.testhealth.times import Times
from service.vocabulary import Role

ORG = "organization_not_found"
DECIMALS = 3


@read("flaky-tests/list-slowest-tests", models.ListSlowestTests, answers.SlowestTestsListed, ORG)
async def list_slowest(call: Call, asked: models.ListSlowestTests) -> answers.SlowestTestsListed:
    """List the tests that take longest, with their trend."""
    addresses = await _addresses(call, asked)
    found = await slow_tests.slowest(
        call.runtime, addresses.repository, asked.order_by, asked.owner or "", asked.limit
    )
    return answers.SlowestTestsListed(
        week=_period(found.period),
        tests_timed=found.count,
        total_seconds=found.now_ms / 1000,
        total_seconds_before=found.before_ms / 1000,
        tests=[_slow(addresses, each) for each in found.tests],
    )


@read(
    "flaky-tests/plan-shards",
    models.PlanShards,
    answers.ShardsPlanned,
    ORG,
    "times_unknown",
    role=Role.CI,
)
async def plan_shards(call: Call, asked: models.PlanShards) -> answers.ShardsPlanned:
    """Divide test files into shards that take about as long as one another."""
    addresses = await _addresses(call, asked)
    found = await slow_tests.plan_shards(call.runtime, addresses.repository, asked.wanted())
    plan = found.plan
    return answers.ShardsPlanned(
        week=_period(found.period),
        shards=[
            answers.ShardShown(
                index=index,
                expected_seconds=round(shard.expected_s, DECIMALS),
                files=list(shard.files),
            )
            for index, shard in enumerate(plan.shards, 1)
        ],
        worst_expected_seconds=round(plan.worst_s, DECIMALS),
        files_known=plan.known,
        files_unknown=plan.unknown,
        too_little_is_known=plan.too_little_is_known,
        note=found.note,
    )


@read("flaky-tests/get-flake-costs", models.GetFlakeCosts, answers.FlakeCostsShown, ORG)
async def get_flake_costs(call: Call, asked: models.GetFlakeCosts) -> answers.FlakeCostsShown:
    """Say what flaky tests cost, week by week and by owner."""
    addresses = await _addresses(call, asked)
    repository = addresses.repository
    found = await flake_costs.of_repository(call.runtime, repository, asked.weeks)
    limit = (await settings.read(call.runtime, repository)).flake_cost_alert_minutes
    counted = None
    if found.first is not None and found.last is not None:
        counted = answers.CountedDays(first_day=found.first, last_day=found.last)
    return answers.FlakeCostsShown(
        counted=counted,
        weeks=[_week(week) for week in found.weeks],
        owners=[
            answers.OwnerOfCosts(
                owner=each.owner or None,
                weeks=[_cost(cost) for cost in each.weeks],
            )
            for each in found.owners
        ],
        alert_minutes=limit,
        alert=flake_costs.is_above(found.present.cost, limit),
    )


async def _addresses(
    call: Call, asked: models.ListSlowestTests | models.PlanShards | models.GetFlakeCosts
) -> RepositoryAddresses:
    ref, slug = asked.repo.ref, asked.org_url_slug
    return await records.find_addresses(call.runtime, call.caller, ref, slug)


def _period(period: Period | None) -> answers.CountedDays | None:
    if period is None:
        return None
    return answers.CountedDays(first_day=period.first, last_day=period.last)


def _slow(addresses: RepositoryAddresses, slow: SlowTest) -> answers.SlowTestShown:
    case, trend = slow.case, slow.trend
    return answers.SlowTestShown(
        id=case.id,
        html_url=addresses.address_of(case.id),
        name=case.name,
        variant=case.variant,
        file_path=case.file or None,
        codeowners=list(case.owners),
        week=_times(slow.now),
        week_before=_times(slow.before),
        median_change=None if trend is None else round(trend, DECIMALS),
    )


def _times(times: Times) -> answers.TimesShown:
    return answers.TimesShown(
        runs=times.runs,
        total_seconds=times.total_ms / 1000,
        median_seconds=times.median_ms / 1000,
        p95_seconds=times.p95_ms / 1000,
    )


def _cost(cost: Cost) -> answers.CostShown:
    return answers.CostShown(
        ci_seconds=round(cost.ci_ms / 1000),
        pull_request_seconds=round(cost.wait_ms / 1000),
        queue_failures=round(cost.failures, DECIMALS),
    )


def _week(week: Week) -> answers.WeekOfCosts:
    cost = _cost(week.cost)
    return answers.WeekOfCosts(
        ci_seconds=cost.ci_seconds,
        pull_request_seconds=cost.pull_request_seconds,
        queue_failures=cost.queue_failures,
        week_start=week.start,
        days_counted=week.counted,
    )


COST_ROUTES: tuple[Route, ...] = (list_slowest, plan_shards, get_flake_costs)
"""The endpoints, in the order of the document."""

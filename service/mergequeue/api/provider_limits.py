"""The handler of `/getProviderLimits`."""

from collections.abc import Mapping

from service.accounts import access
from service.http.callers import Call
from service.http.route import Route, read
from service.mergequeue.api.models import provider_limits as models
from service.mergequeue.api.models.answers import provider_limits as answers
from service.provider.budget import Budget, Pressure
from service.vocabulary import Role

DIGITS = 2
PRESSURES: Mapping[Pressure, answers.PressureWord] = {
    Pressure.NONE: "none",
    Pressure.HIGH: "high",
    Pressure.CRITICAL: "critical",
}


@read("getProviderLimits", models.GetProviderLimits, answers.ProviderLimits, role=Role.READ)
async def get(call: Call, request: models.GetProviderLimits) -> answers.ProviderLimits:
    """Return how much of the provider's limits is used."""
    repository = await access.find_repository(call.runtime, call.caller, request.repo.ref)
    provider = call.runtime.providers.get(repository.ref.host)
    budget = None if provider is None else provider.budget(repository.ref)
    if budget is None:
        return answers.ProviderLimits(
            pressure=None, limits=[], calls=None, landed=None, per_landed_pull_request=None
        )
    return _shown(budget)


def _shown(budget: Budget) -> answers.ProviderLimits:
    shares = None
    if budget.landed:
        each = {kind: round(n / budget.landed, DIGITS) for kind, n in budget.calls.items()}
        shares = answers.CallsPerLanding(**each)
    limits = [
        answers.LimitShown(
            name=use.name.value,
            used=use.used,
            max=use.most,
            left=use.left,
            frees_at=use.frees_at,
        )
        for use in budget.limits
    ]
    return answers.ProviderLimits(
        pressure=PRESSURES[budget.pressure],
        limits=limits,
        calls=answers.CallsShown(**budget.calls),
        landed=budget.landed,
        per_landed_pull_request=shares,
    )


LIMIT_ROUTES: tuple[Route, ...] = (get,)
"""The endpoint about the provider's limits."""

"""Actions of the page of a test: people decide whether it is quarantined."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from service.dashboard.requests import Action, PageRequest
from service.http.models import common
from service.http.models.common import Request
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.testhealth.operations import overrides
from service.testhealth.operations.overrides import OverrideRequest
from service.vocabulary import Override


class Quarantine(Request):
    """The fields of the form: what people decide, why, and for how long."""

    override: Annotated[Override, BeforeValidator(common.one_of(Override, Override.UNSPECIFIED))]
    reason: Annotated[common.Reason, Field(min_length=1)]
    days: Literal["14", "30", "90", "366"] = "30"


async def put(runtime: Runtime, request: PageRequest) -> None:
    """Set a quarantine override."""
    given = request.read(Quarantine)
    until = request.now + timedelta(days=int(given.days))
    asked = OverrideRequest(request.id, given.override, given.reason, until)
    await overrides.put(runtime, request.where.repository, asked, request.visitor.actor)


async def end(runtime: Runtime, request: PageRequest) -> None:
    """Remove the quarantine override."""
    asked = OverrideRequest(request.id, Override.UNSPECIFIED)
    await overrides.put(runtime, request.where.repository, asked, request.visitor.actor)


OF_TEST: Mapping[str, Action[PageRequest]] = {
    "quarantine": Action(AccessLevel.WRITE, put),
    "end": Action(AccessLevel.WRITE, end),
}

"""Overrides of the quarantine of tests: who asks for one, which of them count, and what is true."""

from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from service.accounts.api import auth
from service.dashboard import queue_actions
from service.dashboard.visitors import Visitor
from service.errors import NotAllowed
from service.http.callers import Caller
from service.provider.values import AccessLevel
from service.testhealth.api import tests as endpoints
from service.testhealth.operations import records
from service.testhealth.settings import TestSettings
from service.vocabulary import Actor, ActorKind, Health, Override, Role

SETTINGS = TestSettings(quarantine_enabled=True, auto_quarantine_enabled=True)


@dataclass(frozen=True)
class Asked:
    """An override that somebody asks for; `is_allowed`: they have the right to."""

    test: str
    override: Override
    at: datetime
    expires_at: datetime | None
    is_allowed: bool


@dataclass
class Overrides:
    """What was asked, and what of it the service has stored; the newest is the last."""

    asked: list[Asked] = field(default_factory=list)
    stored: list[Asked] = field(default_factory=list)

    def ask_by_token(self, asked: Asked, role: Role) -> None:
        """A token asks the endpoint."""
        caller = Caller("t1", "CI", 1, "octo", "github.test", role, None)
        try:
            auth.check_role(caller, endpoints.set_override.role)
        except NotAllowed:
            return self._take(asked, is_stored=False)
        return self._take(asked, is_stored=True)

    def ask_on_page(self, asked: Asked, level: AccessLevel) -> None:
        """A person with this access presses the button of the test's page."""
        visitor = Visitor(Actor(ActorKind.PERSON, "will", "12"), "tag", level=level)
        may = visitor.may(queue_actions.OF_TEST["quarantine"].needs)
        self._take(asked, is_stored=may)

    def _take(self, asked: Asked, *, is_stored: bool) -> None:
        self.asked.append(asked)
        if is_stored:
            self.stored.append(asked)

    def quarantines(self, test: str, at: datetime) -> bool:
        """Whether the service calls a test quarantined at a moment."""
        said = [one for one in self.stored if one.test == test and one.at <= at]
        case = SimpleNamespace(
            override=said[-1].override if said else Override.UNSPECIFIED,
            expires_at=said[-1].expires_at if said else None,
            status=Health.FLAKY if is_flaky(test) else Health.HEALTHY,
        )
        home = SimpleNamespace(settings=SETTINGS, now=at)
        return records.setting_of(cast(Any, home), cast(Any, case)) is not None

    def is_quarantined(self, test: str, at: datetime) -> bool:
        """Whether it truly is: by the last word of somebody with the right, or as a flaky test."""
        said = [one for one in self.asked if one.test == test and one.at <= at and one.is_allowed]
        last = said[-1] if said else None
        if last is None or (last.expires_at is not None and last.expires_at <= at):
            return is_flaky(test)
        if last.override is Override.UNSPECIFIED:
            return is_flaky(test)
        return last.override is Override.ALWAYS_QUARANTINE


def is_flaky(test: str) -> bool:
    """Whether a test, by its id, is flaky since long."""
    return test.partition("::")[2].startswith("flaky")

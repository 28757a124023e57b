"""Decide who may come in: the one place where a token opens an endpoint or a page.

The order is docs/design/http.md 1: ready, known, not too often, allowed. The counts of
docs/design/limits.md 3 are kept here, so that whoever guesses tokens is counted once, wherever they
knock.
"""

from typing import NamedTuple

import structlog
from aiohttp import web

from service.accounts import access, jobs
from service.accounts.api import auth
from service.errors import NotAllowed, Overloaded
from service.http import callers
from service.http.callers import Caller
from service.http.health import Readiness
from service.http.rates import LIMITS, RateClass, Turnstile
from service.runtime import Runtime
from service.vocabulary import Role

RECOVERING_RETRY_AFTER_S = 5


class AccessRequest(NamedTuple):
    """The object of a request: its name in the audit log, the role it takes, what it counts as.

    `role` None: any token will do.
    """

    endpoint: str
    role: Role | None
    rate: RateClass
    request_id: str = ""


class Admission:
    """Lets callers in, for all endpoints and pages of one process."""

    def __init__(self, runtime: Runtime, readiness: Readiness) -> None:
        self._runtime = runtime
        self._readiness = readiness
        self._turnstile = Turnstile(runtime.options, runtime.clock)

    def check_ready(self) -> None:
        """Raise Overloaded(recovering) while the state is compared with the provider's."""
        if self._readiness.is_recovering:
            raise Overloaded(
                "Headgate has just started and compares its state with the provider.",
                retry_after_s=RECOVERING_RETRY_AFTER_S,
                code="recovering",
            )

    def count(self, key: str, kind: RateClass) -> None:
        """Count a request of a person, who is known by other means than a token.

        Raises Overloaded while recovering, HttpRefused 429 for one too many.
        """
        self.check_ready()
        self._turnstile.take(key, kind)

    def check_stranger(self, request: web.BaseRequest) -> None:
        """Raise HttpRefused 429 for an address from which too many sign-ins were refused."""
        self.check_ready()
        self._turnstile.check_stranger(request)

    def count_stranger(self, request: web.BaseRequest) -> None:
        """Count a refused sign-in."""
        self._turnstile.count_stranger(request)

    async def reader(self, request: web.BaseRequest, token: str, page: str) -> Caller:
        """Return who reads a page by this token; raises as `caller`."""
        return await self.caller(request, token, AccessRequest(page, Role.READ, RateClass.READ))

    async def job(self, request: web.BaseRequest, token: str, wanted: AccessRequest) -> Caller:
        """The job of CI that an OIDC token proves; raises as `caller`, and Unavailable."""
        self.check_ready()
        named = request.headers.get(callers.REPOSITORY, "").strip()
        caller = await jobs.caller_of(self._runtime, token, named)
        self._turnstile.take(f"{caller.org_id} {caller.name}", wanted.rate)
        auth.check_role(caller, wanted.role)
        return caller

    async def caller(self, request: web.BaseRequest, token: str, wanted: AccessRequest) -> Caller:
        """Return who holds the token, if they may and not too often.

        Raises Overloaded, Unauthenticated, HttpRefused 429, NotAllowed; the last is written down.
        """
        self.check_ready()
        caller = await auth.holder_of(self._runtime, request, token, self._turnstile)
        try:
            self._turnstile.take(caller.token_id, wanted.rate)
        finally:
            request[LIMITS] = self._turnstile.limits_of(caller.token_id, wanted.rate)
        try:
            auth.check_role(caller, wanted.role)
        except NotAllowed:
            with structlog.contextvars.bound_contextvars(request_id=wanted.request_id):
                await access.note_denial(self._runtime, caller, wanted.endpoint)
            raise
        return caller

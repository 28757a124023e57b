"""Find who visits a page, and whether they may see its repository (docs/design/security.md 6).

By a sign-in at the provider, with a session cookie; by an API token of role read, sent as the
password of HTTP Basic; or by being on this machine. What a visitor may not see is answered like
something that does not exist.
"""

import asyncio
import ipaddress
from base64 import b64decode
from collections.abc import Collection
from dataclasses import replace
from typing import assert_never

from aiohttp import web

from service.accounts import access, sessions
from service.accounts.api.admission import Admission
from service.accounts.tenants import RepositoryRecord
from service.dashboard.visitors import LOCAL, Levels, Rights, Visitor
from service.errors import NotFound, ServiceError, Unauthenticated
from service.http import addresses
from service.http.rates import RateClass
from service.provider.errors import ProviderError
from service.provider.values import AccessLevel
from service.runtime import DashboardAuth, Runtime
from service.vocabulary import Channel, RepoRef

CREDENTIALS_LENGTH_MAX = 1000
"""Characters of credentials that are read; a token has 64."""


class Misdirected(ServiceError):
    """A page for this machine alone was requested under another name."""


class Readers:
    """Lets visitors in, as the setting says."""

    def __init__(self, runtime: Runtime, admission: Admission) -> None:
        self._runtime = runtime
        self._admission = admission
        self._levels = Levels(runtime)

    async def visitor(self, request: web.Request, *, is_change: bool = False) -> Visitor:
        """Return who visits; a change counts against the rate of writes.

        Raises Misdirected, NotFound, and what `Admission.reader` raises.
        """
        visitor = await self._known(request)
        if is_change:
            self._admission.count(visitor.key, RateClass.WRITE)
        return visitor

    async def _known(self, request: web.Request) -> Visitor:
        match self._runtime.options.dashboard_auth:
            case DashboardAuth.GITHUB:
                return await self._person(request)
            case DashboardAuth.TOKEN:
                token = password_of(request.headers.get("Authorization", ""))
                if not token:
                    raise Unauthenticated("No token was sent.")
                caller = await self._admission.reader(request, token, "page")
                actor = replace(caller.actor, channel=Channel.DASHBOARD)
                return Visitor(actor, self._runtime.keys.form_tag(token), caller)
            case DashboardAuth.LOOPBACK:
                if not is_loopback(request.host):
                    raise Misdirected("These pages are for readers on this machine.")
                if addresses.is_passed_on(request):
                    raise Misdirected("A proxy passed this request on.")
                self._admission.check_ready()
                return Visitor(LOCAL, self._runtime.keys.form_tag("this machine"))
            case DashboardAuth.OFF:
                raise NotFound("There are no pages here.")
            case other:
                assert_never(other)

    async def _person(self, request: web.Request) -> Visitor:
        cookie = request.cookies.get(cookie_name(self._runtime), "")
        self._admission.check_ready()
        person = await sessions.person_of(self._runtime, cookie)
        sign_in = self._runtime.sign_in
        if person is None or sign_in is None:
            raise Unauthenticated("No person is signed in.")
        visitor = Visitor(person, self._runtime.keys.form_tag(cookie), host=sign_in.host)
        self._admission.count(visitor.key, RateClass.READ)
        return visitor

    async def rights_of(self, visitor: Visitor, *, is_change: bool = False) -> Rights:
        """Return which queues the visitor may see, and their access to each repository."""
        return await self._levels.everywhere(visitor, is_change=is_change)

    async def readable(self, visitor: Visitor, repos: Collection[RepoRef]) -> frozenset[RepoRef]:
        """Return those of the repositories that the visitor may read, as far as that is known."""
        asked = sorted(repos, key=str)
        found = await asyncio.gather(*(self._is_readable(visitor, repo) for repo in asked))
        return frozenset(
            repo for repo, is_readable in zip(asked, found, strict=True) if is_readable
        )

    async def _is_readable(self, visitor: Visitor, repo: RepoRef) -> bool:
        try:
            return await self._levels.of(visitor, repo) >= AccessLevel.READ
        except ProviderError:
            return False

    async def home(
        self, request: web.Request, *, is_change: bool = False
    ) -> tuple[RepositoryRecord, Visitor]:
        """Return the repository of the path and the visitor, if they may read it.

        With `is_change` the visitor's rights are read anew. Raises what `visitor` raises, and
        NotFound.
        """
        visitor = await self.visitor(request, is_change=is_change)
        main_host = self._runtime.options.main_host
        if visitor.caller is not None:
            ref = _ref_of(request, main_host or visitor.caller.host)
            repository = await access.find_repository(self._runtime, visitor.caller, ref)
        else:
            ref = _ref_of(request, main_host)
            repository = await access.repository_of_anyone(self._runtime, ref)
        level = await self._levels.of(visitor, repository.ref, is_change=is_change)
        if level < AccessLevel.READ:
            raise NotFound("There is no such page.")
        return repository, replace(visitor, level=level)


def cookie_name(runtime: Runtime) -> str:
    """Return the name of the session's cookie; under TLS browsers bind it to this host alone."""
    return "__Host-headgate" if is_secure(runtime) else "headgate"


def is_secure(runtime: Runtime) -> bool:
    """Return whether browsers reach the pages under TLS."""
    return (runtime.options.public_url or "").startswith("https://")


def _ref_of(request: web.Request, main_host: str | None) -> RepoRef:
    """The repository that a path names. Raises NotFound where its host is not known."""
    where = request.match_info
    host = where.get("host", main_host)
    if host is None:
        raise NotFound("There is no such page.")
    return RepoRef(host, where["owner"], where["name"])


def password_of(authorization: str) -> str:
    """The password of HTTP Basic, empty where there is none; who it belongs to does not matter."""
    scheme, _, packed = authorization.strip().partition(" ")
    if scheme.lower() != "basic" or len(packed) > CREDENTIALS_LENGTH_MAX:
        return ""
    try:
        told = b64decode(packed.strip(), validate=True).decode("utf-8")
    except ValueError:
        return ""
    return told.partition(":")[2].strip()


def is_loopback(host: str) -> bool:
    """Return whether a host, with or without a port, is this machine by its name.

    A name of others that leads here is not: a page of theirs could else read ours (rebinding).
    """
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

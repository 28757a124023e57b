"""Who reads a page, and whether they may see its repository (docs/design/security.md 6).

By an API token of role read, sent as the password of HTTP Basic, which every browser asks for
by itself; or by being on this machine. Whatever is not theirs is as if it were not there.
"""

import ipaddress
from base64 import b64decode
from typing import assert_never

from aiohttp import web

from service.accounts import access
from service.accounts.api.admission import Admission
from service.errors import NotFound, ServiceError, Unauthenticated
from service.http.callers import Caller
from service.runtime import DashboardAuth, Runtime
from service.testhealth.operations.records import RepositoryAddresses
from service.vocabulary import RepoRef

CREDENTIALS_LENGTH_MAX = 1000
"""Characters of credentials that are looked at; a token has 64."""


class Misdirected(ServiceError):
    """A page that is for this machine alone was asked for under another name."""


class Readers:
    """Lets readers in, as the setting says."""

    def __init__(self, runtime: Runtime, admission: Admission) -> None:
        self._runtime = runtime
        self._admission = admission

    async def reader(self, request: web.Request) -> Caller | None:
        """Return who reads; None: somebody on this machine, who may see everything.

        Raises Misdirected, NotFound, and what `Admission.reader` raises.
        """
        match self._runtime.options.dashboard_auth:
            case DashboardAuth.TOKEN:
                token = password_of(request.headers.get("Authorization", ""))
                if not token:
                    raise Unauthenticated("No token was sent.")
                return await self._admission.reader(request, token, "page")
            case DashboardAuth.LOOPBACK:
                if not is_loopback(request.host):
                    raise Misdirected("These pages are for readers on this machine.")
                self._admission.check_ready()
                return None
            case DashboardAuth.OFF:
                raise NotFound("There are no pages here.")
            case other:
                assert_never(other)

    async def home(self, request: web.Request) -> RepositoryAddresses:
        """The repository of the path, if the reader may see it.

        Raises what `reader` raises, and NotFound.
        """
        options = self._runtime.options
        caller = await self.reader(request)
        if caller is None:
            ref = _ref_of(request, options.main_host)
            return RepositoryAddresses(
                await access.repository_of_anyone(self._runtime, ref), options
            )
        ref = _ref_of(request, options.main_host or caller.host)
        return RepositoryAddresses(
            await access.find_repository(self._runtime, caller, ref), options
        )


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
    """Whether a host, with or without a port, is this machine by its name.

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

"""A job of CI as a caller: it proves itself by an OIDC token, of the provider or of another CI.

See docs/design/security.md 1.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from service.accounts.access import AccessVersion
from service.accounts.store import access
from service.accounts.tenants import Organization, RepositoryRecord
from service.database.database import Tx
from service.errors import Unauthenticated
from service.http.callers import Caller
from service.provider.ci import ProvedJob
from service.runtime import Runtime
from service.vocabulary import RepoRef, Role

NOT_SET_UP = (
    "OIDC tokens are not accepted here: set HEADGATE_PUBLIC_URL or HEADGATE_OIDC_AUDIENCE, or send"
    " an x-api-token."
)
ELSEWHERE = (
    "An OIDC token uploads test results, reports failed tests, lists suspected tests, sets impacted"
    " targets and does nothing else. Send an x-api-token, which `headgate token create` makes."
)
UNKNOWN_REPOSITORY = (
    "The OIDC token is of a repository on which the App is not installed. Install it there first."
)

UNNAMED = (
    "The header x-headgate-repository must name the repository of the OIDC token, as"
    " `github.com/octo/widgets`."
)

_JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")


def is_oidc(token: str) -> bool:
    """Return whether the text has the shape of a JSON web token, which none of our tokens has."""
    return _JWT.fullmatch(token) is not None


@dataclass(frozen=True, slots=True)
class ReportIssuers:
    """Reads the setting `report_issuers` of a repository, which test health has."""

    of: Callable[[Tx, int], tuple[str, ...]]


async def caller_of(runtime: Runtime, token: str, named: str = "") -> Caller:
    """The caller that an OIDC token proves: role `ci`, in the token's repository alone.

    With `named`, the repository to which settings bind the project of the token's CI system.
    Raises Unauthenticated, and Unavailable while the issuer's keys cannot be read.
    """
    if named:
        return await _of_other_ci(runtime, token, named)
    tokens = runtime.job_tokens
    if tokens is None:
        raise Unauthenticated(NOT_SET_UP)
    job = await tokens.job_of(token)
    runtime.memory.of(AccessVersion).newest = await runtime.store.access_version()
    found = await runtime.store.read(_repository, tokens.host, job.repository_id)
    if found is None:
        raise Unauthenticated(UNKNOWN_REPOSITORY)
    return _caller(*found, job)


async def _of_other_ci(runtime: Runtime, token: str, named: str) -> Caller:
    if runtime.other_ci is None:
        raise Unauthenticated(NOT_SET_UP)
    host, _, rest = named.partition("/")
    owner, _, name = rest.rpartition("/")
    if not (host and owner and name):
        raise Unauthenticated(UNNAMED)
    runtime.memory.of(AccessVersion).newest = await runtime.store.access_version()
    found = await runtime.store.read(_bound, runtime, RepoRef(host, owner, name))
    # A repository that is not here is answered like one that names no issuer.
    accepted = () if found is None else found[2]
    job = await runtime.other_ci.job_of(token, accepted, named)
    if found is None:
        raise Unauthenticated(UNKNOWN_REPOSITORY)
    return _caller(found[0], found[1], job)


def _caller(record: RepositoryRecord, org: Organization, job: ProvedJob) -> Caller:
    return Caller(
        token_id="",
        name=f"CI run {job.run_id}",
        org_id=record.org_id,
        org_slug=org.slug,
        host=record.ref.host,
        role=Role.CI,
        repositories=frozenset({record.id}),
        job=job,
    )


def _bound(
    session: Tx, runtime: Runtime, ref: RepoRef
) -> tuple[RepositoryRecord, Organization, tuple[str, ...]] | None:
    record = access.repository_by_ref(session, None, ref)
    if record is None:
        return None
    accepted = runtime.links.of(ReportIssuers).of(session, record.id)
    return record, access.organization(session, record.org_id), accepted


def _repository(
    session: Tx, host: str, provider_id: str
) -> tuple[RepositoryRecord, Organization] | None:
    record = access.repository_by_provider_id(session, host, provider_id)
    return None if record is None else (record, access.organization(session, record.org_id))

"""A job of the provider's CI as a caller: it proves itself by an OIDC token.

See docs/design/security.md 1.
"""

import re

from service.accounts.access import AccessVersion
from service.accounts.store import access
from service.database.database import Tx
from service.database.records import Organization, RepositoryRecord
from service.errors import Unauthenticated
from service.http.callers import Caller
from service.runtime import Runtime
from service.vocabulary import Role

NOT_SET_UP = (
    "OIDC tokens are not accepted here: set HEADGATE_PUBLIC_URL or HEADGATE_OIDC_AUDIENCE, or send"
    " an x-api-token."
)
ELSEWHERE = (
    "An OIDC token uploads test results, sets impacted targets and does nothing else. Send an"
    " x-api-token, which `headgate token create` makes."
)
UNKNOWN_REPOSITORY = (
    "The OIDC token is of a repository on which the App is not installed. Install it there first."
)

_JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")


def is_oidc(token: str) -> bool:
    """Whether the text has the shape of a JSON web token, which none of our tokens has."""
    return _JWT.fullmatch(token) is not None


async def caller_of(runtime: Runtime, token: str) -> Caller:
    """The caller that an OIDC token proves: role `ci`, in the token's repository alone.

    Raises Unauthenticated, and Unavailable while the issuer's keys cannot be read.
    """
    tokens = runtime.job_tokens
    if tokens is None:
        raise Unauthenticated(NOT_SET_UP)
    job = await tokens.job_of(token)
    runtime.memory.of(AccessVersion).newest = await runtime.store.access_version()
    found = await runtime.store.read(_repository, tokens.host, job.repository_id)
    if found is None:
        raise Unauthenticated(UNKNOWN_REPOSITORY)
    record, org = found
    return Caller(
        token_id="",
        name=f"CI run {job.run_id}",
        org_id=record.org_id,
        org_slug=org.slug,
        host=tokens.host,
        role=Role.CI,
        repositories=frozenset({record.id}),
        job=job,
    )


def _repository(
    session: Tx, host: str, provider_id: str
) -> tuple[RepositoryRecord, Organization] | None:
    record = access.repository_by_provider_id(session, host, provider_id)
    return None if record is None else (record, access.organization(session, record.org_id))

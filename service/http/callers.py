"""The caller of an API request."""

from dataclasses import dataclass

from service.provider.ci import ProvedJob
from service.vocabulary import Role


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking through the API: a token's organization and its host, role and scope.

    `repositories` are the repository ids it is limited to, None: all of the organization. A
    fork's CI run has no token; its `token_id` is empty. So is that of a `job` that proved itself.
    """

    token_id: str
    name: str
    org_id: int
    org_slug: str
    host: str
    role: Role
    repositories: frozenset[int] | None
    job: ProvedJob | None = None

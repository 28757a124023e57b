"""Organizations, their repositories and their API tokens, as stored and as shown."""

from dataclasses import dataclass
from datetime import datetime

from service.vocabulary import MergeMethod, RepoRef, Role


@dataclass(frozen=True, slots=True)
class Organization:
    """A tenant: an account at a host, bound by the provider's numeric id once installed."""

    id: int
    host: str
    provider_id: str | None
    slug: str


@dataclass(frozen=True, slots=True)
class RepositoryRecord:
    """A repository as last read; `available` is false when gone, archived or not ours."""

    id: int
    org_id: int
    ref: RepoRef
    provider_id: str
    default_branch: str
    merge_methods: frozenset[MergeMethod]
    archived: bool
    available: bool
    url: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """An API token; `digest` is its keyed hash, `repositories` None means all.

    A rotation makes it expire earlier than it was granted. In all queues together it may have so
    many `open_entries`, and use so many `ci_minutes` a day (docs/design/budgets.md 2); 0: no limit.
    """

    id: str
    org_id: int
    org_slug: str
    host: str
    name: str
    role: Role
    digest: bytes
    repositories: frozenset[int] | None
    created_at: datetime
    granted_until: datetime | None
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    open_entries: int = 0
    ci_minutes: int = 0


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token without its secret. `repositories` None: all of the organization.

    Those it is limited to are spelled as they are now, by id.
    """

    id: str
    name: str
    role: Role
    org_slug: str
    host: str
    repositories: tuple[RepoRef, ...] | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    open_entries: int
    ci_minutes: int


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its secret text is shown this once."""

    secret: str
    view: TokenView

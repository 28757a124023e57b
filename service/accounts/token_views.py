"""API tokens as answers show them."""

from dataclasses import dataclass
from datetime import datetime

from service.vocabulary import RepoRef, Role


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


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its secret text is shown this once."""

    secret: str
    view: TokenView

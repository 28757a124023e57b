"""Answers of the token endpoints (API.md 9)."""

from service.api.models.answers.common import RepositoryShown, SnakeAnswer, Time
from service.vocabulary import Role


class OrganizationShown(SnakeAnswer):
    """An organization of a host."""

    slug: str
    host: str


class Token(SnakeAnswer):
    """A token without its secret; `repositories` null is all of the organization's."""

    id: str
    name: str
    role: Role
    organization: OrganizationShown
    repositories: list[RepositoryShown] | None
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None

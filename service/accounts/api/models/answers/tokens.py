"""Answers of the token endpoints."""

from typing import Literal

from service.http.models.answers.common import LeftOut, RepositoryShown, SnakeAnswer, Time
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


class IssuedToken(Token):
    """A new token; `token` is its secret, shown this once."""

    token: str


class TokensListed(SnakeAnswer):
    """Live tokens; no `next_cursor` at the end."""

    tokens: list[Token]
    next_cursor: LeftOut[str] = None


class TokenRevoked(SnakeAnswer):
    """The token is good for nothing any more."""

    revoked: Literal[True]

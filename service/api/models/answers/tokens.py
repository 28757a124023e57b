"""Answers of the token endpoints (API.md 9)."""

from typing import Annotated, Literal

from pydantic import Field

from service.api.models.answers.common import LeftOut, RepositoryShown, SnakeAnswer, Time
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
    """A new token with its secret, which is told this once."""

    token: Annotated[str, Field(pattern=r"^hgt_[0-9A-Za-z]{10}_[0-9A-Za-z]{49}$")]


class TokensListed(SnakeAnswer):
    """Some of an organization's live tokens, oldest first."""

    tokens: list[Token]
    next_cursor: LeftOut[str] = None


class TokenRevoked(SnakeAnswer):
    """A token has ended."""

    revoked: Literal[True]

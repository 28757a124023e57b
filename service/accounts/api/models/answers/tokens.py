"""Answers of the token endpoints."""

from typing import Literal

from service.http.models.answers.common import LeftOut, RepositoryShown, SnakeAnswer, Time
from service.vocabulary import Role


class OrganizationShown(SnakeAnswer):
    """An organization of a host."""

    slug: str
    """Slug of the organization. For example `octo`."""
    host: str
    """Host of the organization. For example `github.com`."""


class Token(SnakeAnswer):
    """A token without its secret; `repositories` null is all of the organization's."""

    id: str
    """The ten characters after `hgt_`. For example `7hQ2mX9aLk`."""
    name: str
    """What the token is for. For example `ci`."""
    role: Role
    """What it may do."""
    organization: OrganizationShown
    """The organization that it belongs to."""
    repositories: list[RepositoryShown] | None
    """The repositories that it is limited to; null: all of the organization."""
    created_at: Time
    """When it was made."""
    expires_at: Time | None
    """When it ends; null: never."""
    last_used_at: Time | None
    """When it was used last; null: never."""
    open_entries: int
    """Pull requests that it may have in all queues at a time; 0: no limit. For example `6`."""
    ci_minutes: int
    """CI minutes a day (UTC) that the test runs of its pull requests may take; 0: no limit. For
    example `600`.
    """


class IssuedToken(Token):
    """A new token; `token` is its secret, shown this once."""

    token: str
    """The secret, shown this once. For example
    `hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjl`.
    """


class TokensListed(SnakeAnswer):
    """Live tokens; no `next_cursor` at the end."""

    tokens: list[Token]
    """Tokens that work."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""


class TokenRevoked(SnakeAnswer):
    """The token is good for nothing any more."""

    revoked: Literal[True]
    """It works no longer."""

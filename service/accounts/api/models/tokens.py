"""Bodies of the token endpoints."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from service.accounts.tokens import EXPIRES_IN_DAYS, EXPIRES_IN_DAYS_MAX, OVERLAP_HOURS
from service.errors import Invalid
from service.http.models import common
from service.http.models.common import Integer, Repository, SnakeRequest
from service.http.models.shared import SnakeListed
from service.vocabulary import RepoRef, Role

NAME_LENGTH_MAX = 100
REPOSITORIES_MAX = 500
OVERLAP_HOURS_MAX = 24
OPEN_ENTRIES_MAX = 5000
CI_MINUTES_MAX = 1_000_000

TokenId = Annotated[str, Field(pattern=common.TOKEN_ID, examples=["7hQ2mX9aLk"])]


class CreateToken(SnakeRequest):
    """`/tokens/create`; no repositories means all that the creating token sees."""

    name: Annotated[
        str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=common.VISIBLE_LINE)
    ]
    """What the token is for. For example `ci`."""
    role: Annotated[Role, BeforeValidator(common.one_of(Role))]
    """What it may do."""
    repositories: (
        Annotated[list[Repository], Field(min_length=1, max_length=REPOSITORIES_MAX)] | None
    ) = None
    """Only these repositories; without it all that your token sees."""
    expires_in_days: Annotated[Integer, Field(ge=1, le=EXPIRES_IN_DAYS_MAX)] | None = None
    """Days until it ends; 90 unless sent."""
    never_expires: bool | None = None
    """Whether it has no end."""
    open_entries: Annotated[Integer, Field(ge=0, le=OPEN_ENTRIES_MAX)] | None = None
    """Pull requests that it may have in all queues at a time; 0: no limit. For example `6`."""
    ci_minutes: Annotated[Integer, Field(ge=0, le=CI_MINUTES_MAX)] | None = None
    """CI minutes a day (UTC) that the test runs of its pull requests may take; 0: no limit. For
    example `600`.
    """

    def lifetime_days(self) -> int | None:
        """Days to live, None: without end. Raises Invalid(conflicting_fields)."""
        if self.never_expires and self.expires_in_days is not None:
            raise Invalid(
                "Send expires_in_days or never_expires, not both.", code="conflicting_fields"
            )
        if self.never_expires:
            return None
        return EXPIRES_IN_DAYS if self.expires_in_days is None else self.expires_in_days

    def scope(self) -> tuple[RepoRef, ...] | None:
        """The repositories it is limited to, None: it is not."""
        return None if self.repositories is None else tuple(one.ref for one in self.repositories)


class ListTokens(SnakeListed):
    """`/tokens/list`."""


class RotateToken(SnakeRequest):
    """`/tokens/rotate`."""

    id: TokenId
    """The token to replace."""
    overlap_hours: Annotated[Integer, Field(ge=0, le=OVERLAP_HOURS_MAX)] | None = None
    """Hours that the old token works on; 24 unless sent."""

    def overlap(self) -> int:
        """Hours that the old one works on."""
        return OVERLAP_HOURS if self.overlap_hours is None else self.overlap_hours


class RevokeToken(SnakeRequest):
    """`/tokens/revoke`."""

    id: TokenId
    """The token to end."""

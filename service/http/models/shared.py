"""Fields that lists and endpoints in snake_case share."""

from typing import Annotated

from pydantic import Field

from service.database.paging import PageSelection
from service.http.models import common
from service.http.models.common import Integer, Request, SnakeRequest

TAKE = 50
TAKE_MAX = 100
# A page token is a position with a tag: no sort key makes it longer.
CURSOR_LENGTH_MAX = 4096
SLUG_LENGTH_MAX = 100

Uuid = Annotated[str, Field(pattern=common.UUID, examples=["0f8c6c1e-5b0e-4f3e-9d0a-3b1a54c1b7de"])]
"""An id that we made, in any letter case."""

Take = Annotated[Integer, Field(ge=1, le=TAKE_MAX)]
"""How many rows of a list to answer."""

Cursor = Annotated[str, Field(max_length=CURSOR_LENGTH_MAX)]
"""Where to go on: what the list before answered; empty is the first page."""

OrgSlug = Annotated[str, Field(min_length=1, max_length=SLUG_LENGTH_MAX, pattern=common.LINE)]
"""An organization's slug, in any letter case."""


class Listed(Request):
    """A part of a list in camelCase."""

    take: Take | None = None
    """How many rows to answer; 50 unless sent."""
    cursor: Cursor | None = None
    """Where to go on: the cursor of the answer before; without it the first page."""

    def page(self) -> PageSelection:
        """Return which page is requested."""
        return PageSelection(TAKE if self.take is None else self.take, self.cursor)


class SnakeListed(Listed, SnakeRequest):
    """A part of a list in snake_case."""


class PageQuery(SnakeRequest):
    """Which page of a list of tests; no token is the first one."""

    ignores_unknown = True

    page_size: Take
    """How many tests to answer."""
    page_token: Cursor | None = None
    """A token of an answer before; without it the first page."""

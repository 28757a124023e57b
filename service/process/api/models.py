"""What the metrics page is asked for (SPECIFICATION.md 4.4)."""

from typing import Annotated

from pydantic import Field

from service.errors import Malformed
from service.http.models import common
from service.http.models.common import Request
from service.vocabulary import RepoRef

SLUG_LENGTH_MAX = 356
"""An owner, a slash and a name (API.md 1.4)."""

Slug = Annotated[str, Field(max_length=SLUG_LENGTH_MAX, pattern=common.SLUG)]
Host = Annotated[str, Field(max_length=255, pattern=common.HOST)]


class AskMetrics(Request):
    """Which repository; none: all that the token sees, whatever host is named."""

    repo: Slug | None = None
    repo_host: Host | None = None

    def ref(self) -> RepoRef | None:
        """The repository, split at the last slash.

        Raises Malformed(invalid_parameter) for one without its host.
        """
        if self.repo is None:
            return None
        if self.repo_host is None:
            raise Malformed(
                "repo needs repoHost beside it, as repoHost=github.com.", code="invalid_parameter"
            )
        owner, _, name = self.repo.rpartition("/")
        return RepoRef(self.repo_host.lower(), owner, name)

"""The metrics page: its request and its handler (docs/reference/metrics.md)."""

from typing import Annotated

from pydantic import Field

from service.accounts import access
from service.errors import Malformed
from service.http.callers import Call
from service.http.models import common
from service.http.models.common import Request
from service.http.rates import RateClass
from service.http.route import VERSIONED, Fetched, Page, Route
from service.process import figures
from service.vocabulary import RepoRef, Role

SLUG_LENGTH_MAX = 356
"""An owner, a slash and a name (docs/design/http.md 4)."""

Slug = Annotated[str, Field(max_length=SLUG_LENGTH_MAX, pattern=common.SLUG)]
Host = Annotated[str, Field(max_length=255, pattern=common.HOST)]


class AskMetrics(Request):
    """Which repository; none: all that the token sees, whatever host is named."""

    ignores_unknown = True

    repo: Slug | None = None
    """Only this repository, as owner and name; together with `repoHost`. For example
    `octo/widgets`.
    """
    repo_host: Host | None = None
    """Host of the repository. For example `github.com`."""

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


async def queues(call: Call, asked: AskMetrics) -> Page:
    """Return the metrics of the organization's queues as text for Prometheus.

    The header `Accept` is ignored.
    """
    ref = asked.ref()
    repository = (
        None if ref is None else await access.find_repository(call.runtime, call.caller, ref)
    )
    body = await figures.page(call.runtime, call.caller, repository)
    return Page(figures.CONTENT_TYPE, body)


METRIC_ROUTES: tuple[Route, ...] = (
    Fetched(
        f"{VERSIONED}/getMergeQueueMetrics",
        Role.READ,
        queues,
        rate=RateClass.METRICS,
        query=AskMetrics,
        operation="getMergeQueueMetrics",
    ).answering(figures.CONTENT_TYPE),
)

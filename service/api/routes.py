"""Every endpoint, one line each (API.md 4 to 6, 9, 10)."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from service.api import health, pull_requests, queues, testing, tokens
from service.api.call import Call
from service.api.health import Readiness
from service.api.models import pull_requests as pull_request_models
from service.api.models import queues as queue_models
from service.api.models import testing as testing_models
from service.api.models.common import Request
from service.api.responses import Json
from service.operations.views import Caller
from service.vocabulary import Role

Asked = TypeVar("Asked", bound=Request)
Shown = Json | bytes

VERSIONED = "/v1"


@dataclass(frozen=True, slots=True)
class Posted:
    """An endpoint that is asked by a JSON object; `writes` when it may change something.

    `forks` says who a request comes from that names a fork's CI run instead of a token.
    """

    path: str
    role: Role
    model: type[Request]
    handler: Callable[..., Awaitable[Shown]]
    writes: bool
    forks: Callable[..., Awaitable[Caller]] | None = None
    method = "POST"


@dataclass(frozen=True, slots=True)
class Fetched:
    """An endpoint without body that any token may ask."""

    path: str
    handler: Callable[[Call], Awaitable[Json]]
    method = "GET"


@dataclass(frozen=True, slots=True)
class Open:
    """An endpoint without token, about this process alone."""

    path: str
    handler: Callable[[Readiness, str], tuple[int, object]]
    method = "GET"


Route = Posted | Fetched | Open


def _read(
    name: str, model: type[Asked], handler: Callable[[Call, Asked], Awaitable[Shown]]
) -> Posted:
    return Posted(f"{VERSIONED}/{name}", Role.READ, model, handler, writes=False)


def _write(
    name: str, role: Role, model: type[Asked], handler: Callable[[Call, Asked], Awaitable[Shown]]
) -> Posted:
    return Posted(f"{VERSIONED}/{name}", role, model, handler, writes=True)


_pull, _queue, _test = pull_request_models, queue_models, testing_models

ROUTES: tuple[Route, ...] = (
    _write("submitPullRequest", Role.QUEUE, _pull.SubmitPullRequest, pull_requests.submit),
    _write("cancelPullRequest", Role.QUEUE, _pull.CancelPullRequest, pull_requests.cancel),
    _write(
        "restartTestsOnPullRequest",
        Role.QUEUE,
        _pull.RestartTestsOnPullRequest,
        pull_requests.restart,
    ),
    replace(
        _write("setImpactedTargets", Role.CI, _pull.SetImpactedTargets, pull_requests.set_targets),
        forks=pull_requests.fork_caller,
    ),
    _read("getSubmittedPullRequest", _pull.GetSubmittedPullRequest, pull_requests.get),
    _read("explainPullRequest", _pull.ExplainPullRequest, pull_requests.explained),
    _read(
        "previewCancelPullRequest",
        _pull.PreviewCancelPullRequest,
        pull_requests.preview_cancel,
    ),
    _write("createQueue", Role.ADMIN, _queue.CreateQueue, queues.create),
    _read("getQueue", _queue.GetQueue, queues.get),
    _write("updateQueue", Role.ADMIN, _queue.UpdateQueue, queues.update),
    _write("deleteQueue", Role.ADMIN, _queue.DeleteQueue, queues.delete),
    _write("addQueueHold", Role.ADMIN, _queue.AddQueueHold, queues.add_hold),
    _write("releaseQueueHold", Role.ADMIN, _queue.ReleaseQueueHold, queues.release_hold),
    _read("getMergeQueueTestingDetails", _test.GetMergeQueueTestingDetails, testing.details),
    Fetched(f"{VERSIONED}/tokens/self", tokens.own),
    Open(f"{VERSIONED}/status", health.status),
    Open("/healthz", health.healthz),
    Open("/readyz", health.readyz),
)
"""The table. Its paths are case-sensitive and have no trailing slash."""

BY_LOWER: Mapping[str, str] = {route.path.lower(): route.path for route in ROUTES}


def nearest(path: str) -> str | None:
    """The endpoint that somebody probably meant, if one is near."""
    found = difflib.get_close_matches(path.lower()[:200], BY_LOWER, n=1, cutoff=0.7)
    return BY_LOWER[found[0]] if found else None

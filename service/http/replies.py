"""Answers as they are sent: successes and refusals. `app.py` decides which a request gets."""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from aiohttp import web

from service.errors import ServiceError
from service.http import callers, errors
from service.http.encoding import Encoder
from service.http.errors import Problem
from service.http.models.common import Spelling
from service.http.route import JSON, Page, Shown
from service.provider.errors import ProviderError
from service.runtime import Runtime

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Server": "headgate",
}
"""Headers of every answer (docs/design/http.md 3, 5)."""

PACKED_MIN = 1024
"""Bytes of a body from which on it is compressed."""
THREAD_BYTES = 65_536
"""Bytes from which on a thread compresses."""

log = structlog.get_logger()


def compress(request: web.BaseRequest, response: web.Response) -> None:
    """Compress the body by gzip for a client that accepts it, and say that it depends on that.

    Only answers whose caller sends a token, and public ones: a page of a session has the secret of
    its forms, whose length could tell a part of it (docs/design/security.md 6).
    """
    body = response.body
    if not isinstance(body, bytes) or len(body) < PACKED_MIN:
        return
    response.headers["Vary"] = "Accept-Encoding"
    if _accepts_gzip(request.headers.get("Accept-Encoding", "")):
        response.enable_compression(web.ContentCoding.gzip)


def _accepts_gzip(accepted: str) -> bool:
    """Return whether a value of Accept-Encoding names gzip and does not refuse it."""
    for each in accepted.lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "").rstrip("0") not in ("q=", "q=0.")
    return False


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """Status, Content-Type and body of an answer."""

    status: int
    content_type: str
    body: bytes

    def response(
        self, request_id: str, headers: Mapping[str, str], *, closes: bool = False
    ) -> web.Response:
        """Return the response, with further headers; `closes`: its connection ends with it."""
        own = {"Content-Type": self.content_type, "X-Request-Id": request_id}
        challenge = callers.CHALLENGE if self.status == 401 else {}
        response = web.Response(
            status=self.status,
            body=self.body,
            headers={**HEADERS, **own, **challenge, **headers},
            zlib_executor_size=THREAD_BYTES,
        )
        if closes:
            response.force_close()
        return response


class Replies:
    """Makes answers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._encoder = Encoder(runtime.options.enum_case)

    def success(self, status: int, shown: Shown, request_id: str) -> web.Response:
        """Return the response of a handler's answer."""
        headers = shown.headers if isinstance(shown, Page) else {}
        return self.encoded(status, shown).response(request_id, headers)

    def encoded(self, status: int, shown: Shown) -> WholeAnswer:
        """Return a handler's answer with its bytes."""
        if isinstance(shown, bytes):
            return WholeAnswer(status, JSON, shown)
        if isinstance(shown, Page):
            return WholeAnswer(status, shown.content_type, shown.body)
        return WholeAnswer(status, JSON, self._encoder.encoded(shown))

    def refusal(
        self,
        request: web.BaseRequest,
        error: ServiceError | ProviderError,
        request_id: str,
        spelled: Spelling,
    ) -> web.Response:
        """Return the response of an error."""
        problem = self.logged_problem(request, error, request_id, spelled)
        return self.problem(request, problem, request_id, closes=problem.closes)

    def logged_problem(
        self,
        request: web.BaseRequest,
        error: ServiceError | ProviderError,
        request_id: str,
        spelled: Spelling,
    ) -> Problem:
        """Return the refusal of an error, and write its line in the log."""
        problem = errors.problem_of(error, self._runtime.clock.now(), spelled)
        # A request was refused, or a page of figures was read.
        log.info(
            "request",
            request_id=request_id,
            endpoint=request.path[:100],
            status=problem.status,
            code=problem.code,
            exc_info=error if problem.status == 500 else None,
        )
        return problem

    def problem(
        self, request: web.BaseRequest, problem: Problem, request_id: str, *, closes: bool
    ) -> web.Response:
        """Return the response of a refusal; `closes`: its connection ends with it."""
        whole = self.encoded_problem(request, problem, request_id)
        return whole.response(request_id, problem.headers, closes=closes)

    def encoded_problem(
        self, request: web.BaseRequest, problem: Problem, request_id: str
    ) -> WholeAnswer:
        """Return a refusal in the form that the client prefers."""
        content_type, body = errors.content(
            problem,
            as_text=errors.prefers("text/plain", request.headers.get("Accept")),
            public_url=self._runtime.options.public_url,
            request_id=request_id,
        )
        return WholeAnswer(problem.status, content_type, body)

"""Answers as they are sent: what handlers said, and what stands against a request.

Which of them a request gets is decided in `app.py`.
"""

from collections.abc import Mapping

import structlog
from aiohttp import web

from service.errors import ServiceError
from service.http import answer, callers, errors
from service.http.answer import Answer
from service.http.encoding import Encoder
from service.http.errors import Problem
from service.http.models.common import Spelling
from service.http.repeats import WholeAnswer
from service.http.route import Page, Shown
from service.provider.errors import ProviderError
from service.runtime import Runtime

log = structlog.get_logger()


class Replies:
    """Makes answers, with the head that all of them have."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._encoder = Encoder(runtime.options.enum_case)
        self._heads = answer.Heads()

    def success(self, status: int, shown: Shown, request_id: str) -> Answer:
        """What a handler answered."""
        kind, body = self.encoded(shown)
        now = self._runtime.clock.now()
        if not isinstance(shown, Page):
            return Answer(status, self._heads.head(status, kind, request_id, now), body)
        more = dict(shown.headers)
        cached = more.pop("Cache-Control", "no-store")
        head = self._heads.head(status, kind, request_id, now, cached)
        return Answer(status, head + answer.lines(more), body)

    def encoded(self, shown: Shown) -> tuple[str, bytes]:
        """Content-Type and bytes of what a handler answered."""
        if isinstance(shown, bytes):
            return answer.JSON, shown
        if isinstance(shown, Page):
            return shown.content_type, shown.body
        return answer.JSON, self._encoder.encoded(shown)

    def refusal(
        self,
        request: web.BaseRequest,
        error: ServiceError | ProviderError,
        request_id: str,
        spelled: Spelling,
    ) -> Answer:
        """The answer to an error."""
        problem = self.noted(request, error, request_id, spelled)
        return self.problem(request, problem, request_id, closes=problem.closes)

    def noted(
        self,
        request: web.BaseRequest,
        error: ServiceError | ProviderError,
        request_id: str,
        spelled: Spelling,
    ) -> Problem:
        """The refusal that an error is; the log has its line."""
        problem = errors.problem_of(error, self._runtime.clock.now(), spelled)
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
    ) -> Answer:
        """A refusal; `closes`: no further request is read from its connection."""
        said = self.told(request, problem, request_id)
        return self.sent(said, request_id, problem.headers, closes=closes)

    def told(self, request: web.BaseRequest, problem: Problem, request_id: str) -> WholeAnswer:
        """A refusal in the form that the client wants."""
        content_type, body = errors.content(
            problem,
            as_text=errors.prefers_text(request.headers.get("Accept")),
            public_url=self._runtime.options.public_url,
            request_id=request_id,
        )
        return WholeAnswer(problem.status, content_type, body)

    def sent(
        self,
        said: WholeAnswer,
        request_id: str,
        headers: Mapping[str, str],
        *,
        closes: bool = False,
    ) -> Answer:
        """An answer that is ready, with further headers of its own."""
        now = self._runtime.clock.now()
        head = self._heads.head(said.status, said.content_type, request_id, now)
        if said.status == 401:
            head += answer.lines(callers.CHALLENGE)
        return Answer(said.status, head + answer.lines(headers), said.body, closes=closes)

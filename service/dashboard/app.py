"""The way from a request to a page or a refusal."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import jinja2
import structlog
from aiohttp import web

from service.accounts import page_addresses
from service.accounts.api.admission import Admission
from service.dashboard import pages
from service.dashboard.filters import FILTERS
from service.dashboard.pages import PageKind, PageRequest
from service.dashboard.readers import Misdirected, Readers
from service.errors import ServiceError
from service.http import documents, errors, replies
from service.runtime import DashboardAuth, Runtime

TEMPLATES = Path(__file__).with_name("templates")

HSTS: Mapping[str, str] = {"Strict-Transport-Security": "max-age=31536000"}
"""Under TLS, for a year (docs/design/security.md 6)."""

CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Basic realm="Headgate", charset="UTF-8"'}

_NAME = "[A-Za-z0-9_.-]+"
_NOT_OURS = f"(?!(?i:{'|'.join(sorted(page_addresses.OUR_SEGMENTS))})/)"
Values = Mapping[str, object]
"""What a template is filled with."""

HOMES = (
    f"/{{owner:{_NOT_OURS}{_NAME}}}/{{name:{_NAME}}}",
    f"/~{{host:{_NAME}}}/{{owner:{_NAME}}}/{{name:{_NAME}}}",
)
"""Where pages of a repository stand: `/octo/widgets`, and with its host in front."""

log = structlog.get_logger()


SAID: Mapping[int, tuple[str, str]] = {
    400: ("This page cannot be shown", "Its address is wrong or too old. Begin at its first page."),
    401: (
        "A token is needed",
        "Your browser asks for a user name and a password: any name will do, the password is an "
        "API token of role read.",
    ),
    403: ("This token may not read pages", "Pages need a token of role read, queue or admin."),
    404: ("There is no such page", "Or the token that you read with may not see it."),
    405: ("Pages are only read", "Ask for them by GET or HEAD."),
    421: (
        "These pages are for this machine",
        "Ask for them as localhost or 127.0.0.1, or let readers in by token: "
        "HEADGATE_DASHBOARD_AUTH=token.",
    ),
    429: ("Too many requests", "Try again in a moment."),
    503: ("Not just now", "Headgate has just started, or is busy. Try again in a moment."),
}
"""What a refusal says: its title, and what to do."""
UNEXPECTED = ("Something went wrong", "It is in the log of whoever runs Headgate.")


def routes(runtime: Runtime, admission: Admission) -> list[web.RouteDef]:
    """The routes of all pages; none where pages are off."""
    if runtime.options.dashboard_auth is DashboardAuth.OFF:
        return []
    answers = Pages(runtime, admission)
    return [
        web.route("*", "/", answers.first),
        *(
            web.route("*", f"{home}/{kind.path}", answers.shown(kind))
            for kind in pages.PAGES
            for home in HOMES
        ),
    ]


class Pages:
    """Makes pages from their templates."""

    def __init__(self, runtime: Runtime, admission: Admission) -> None:
        self._runtime = runtime
        self._readers = Readers(runtime, admission)
        public_url = runtime.options.public_url or ""
        self._headers = {
            **replies.HEADERS,
            **documents.SAFE,
            **(HSTS if public_url.startswith("https://") else {}),
        }
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(
            style=documents.address("pages.css"),
            script=documents.address("live.js"),
            version=runtime.options.version,
        )

    async def first(self, request: web.Request) -> web.StreamResponse:
        """Answer `/`: all queues that the reader may see."""

        async def read() -> Values:
            caller = await self._readers.reader(request)
            page = await pages.queues(self._runtime, caller, request.query)
            return {"page": page, "live": pages.OVERVIEW_LIVE_S}

        return await self._answered(request, "queues.html", read)

    def shown(self, kind: PageKind) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of one page of a repository."""

        async def handler(request: web.Request) -> web.StreamResponse:
            async def read() -> Values:
                where = await self._readers.home(request)
                now = self._runtime.clock.now()
                wanted = PageRequest(where, request.match_info, request.query, now)
                tag = await self._tag(kind, wanted)
                if tag is not None and request.headers.get("If-None-Match") == tag:
                    return {"tag": tag, "is_known": True}
                page = await kind.read(self._runtime, wanted)
                home = page_addresses.home(self._runtime.options, where.repository.ref)
                repository = where.repository
                live = None if tag is None else pages.LIVE_S
                values = {"page": page, "home": home, "repository": repository, "live": live}
                return {**values, "tag": tag}

            return await self._answered(request, kind.template, read)

        return handler

    async def _answered(
        self, request: web.Request, template: str, read: Callable[[], Awaitable[Values]]
    ) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return self._refusal(405, {"Allow": "GET, HEAD"})
        try:
            values = await read()
        except Misdirected:
            return self._refusal(421, {})
        except ServiceError as error:
            problem = errors.problem_of(error, self._runtime.clock.now())
            log.info("page", page=template, status=problem.status, code=error.code)
            return self._refusal(problem.status, problem.headers)
        tag = values.get("tag")
        if values.get("is_known"):
            return web.Response(status=304, headers={**self._headers, "ETag": str(tag)})
        answer = self._answer(
            200, template, {"live": None, **values, "now": self._runtime.clock.now()}
        )
        if tag is not None:
            answer.headers["ETag"] = str(tag)
        return answer

    async def _tag(self, kind: PageKind, wanted: PageRequest) -> str | None:
        """Return the tag of what the page shows; None: it has none.

        It changes with the queue and with the minute, because pages show times that pass.
        """
        if kind.version is None:
            return None
        version = await kind.version(self._runtime, wanted)
        return f'"{self._runtime.options.version}/{version}/{wanted.now:%H:%M}"'

    def _refusal(self, status: int, headers: Mapping[str, str]) -> web.Response:
        heading, remedy = SAID.get(status, UNEXPECTED)
        values = {"heading": heading, "remedy": remedy, "now": None, "live": None}
        answer = self._answer(status, "refused.html", values)
        answer.headers.update(headers)
        if status == 401:
            answer.headers.update(CHALLENGE)
        return answer

    def _answer(self, status: int, name: str, values: Values) -> web.Response:
        html = self._templates.get_template(name).render(values)
        return web.Response(
            text=html,
            status=status,
            content_type="text/html",
            charset="utf-8",
            headers=self._headers,
        )

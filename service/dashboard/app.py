"""The pages there are, and the way from a request to a page or a refusal.

Pages that show a queue, and forms, are not among them yet.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import jinja2
import structlog
from aiohttp import web

from service.accounts.api.admission import Admission
from service.dashboard.filters import FILTERS
from service.dashboard.readers import Misdirected, Readers
from service.errors import NotFound, ServiceError
from service.http import documents, errors, replies
from service.runtime import DashboardAuth, Runtime
from service.testhealth.operations import page_addresses, page_of_test, page_of_upload
from service.testhealth.operations.records import RepositoryAddresses

TEMPLATES = Path(__file__).with_name("templates")

HSTS: Mapping[str, str] = {"Strict-Transport-Security": "max-age=31536000"}
"""Under TLS, for a year (docs/design/security.md 6)."""

CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Basic realm="Headgate", charset="UTF-8"'}

_NAME = "[A-Za-z0-9_.-]+"
_NOT_OURS = f"(?!(?i:{'|'.join(sorted(page_addresses.OUR_SEGMENTS))})/)"
HOMES = (
    f"/{{owner:{_NOT_OURS}{_NAME}}}/{{name:{_NAME}}}",
    f"/~{{host:{_NAME}}}/{{owner:{_NAME}}}/{{name:{_NAME}}}",
)
"""Where pages of a repository stand: `/octo/widgets`, and with its host in front."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PageKind:
    """A page of a repository's thing: its path, its template, what it shows.

    `read` raises NotFound for a thing that is not there.
    """

    path: str
    template: str
    read: Callable[[Runtime, RepositoryAddresses, str], Awaitable[object]]


PAGES = (
    PageKind("tests/{id}", "test.html", page_of_test.read),
    PageKind("uploads/{id}", "upload.html", page_of_upload.read),
)
"""Every page."""

SAID: Mapping[int, tuple[str, str]] = {
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
    pages = Pages(runtime, admission)
    return [
        web.route("*", f"{home}/{kind.path}", pages.shown(kind)) for home in HOMES for kind in PAGES
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

    def shown(self, kind: PageKind) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """What aiohttp calls for one page."""

        async def handler(request: web.Request) -> web.StreamResponse:
            if request.method not in ("GET", "HEAD"):
                return self._refusal(405, {"Allow": "GET, HEAD"})
            try:
                found = await self._readers.home(request)
                page = await kind.read(self._runtime, found, _id_of(request))
            except Misdirected:
                return self._refusal(421, {})
            except ServiceError as error:
                problem = errors.problem_of(error, self._runtime.clock.now())
                log.info("page", page=kind.template, status=problem.status, code=error.code)
                return self._refusal(problem.status, problem.headers)
            home = page_addresses.home(self._runtime.options, found.repository.ref)
            return self._answer(200, kind.template, {"page": page, "home": home})

        return handler

    def _refusal(self, status: int, headers: Mapping[str, str]) -> web.Response:
        heading, remedy = SAID.get(status, UNEXPECTED)
        answer = self._answer(status, "refused.html", {"heading": heading, "remedy": remedy})
        answer.headers.update(headers)
        if status == 401:
            answer.headers.update(CHALLENGE)
        return answer

    def _answer(self, status: int, name: str, values: Mapping[str, object]) -> web.Response:
        style = documents.address("pages.css")
        html = self._templates.get_template(name).render(values, style=style)
        return web.Response(
            text=html,
            status=status,
            content_type="text/html",
            charset="utf-8",
            headers=self._headers,
        )


def _id_of(request: web.Request) -> str:
    """The id of a thing, as it is stored. Raises NotFound for what is none."""
    try:
        return str(UUID(request.match_info["id"]))
    except ValueError:
        raise NotFound("There is no such page.") from None

"""Makes answers of templates: pages, refusals, redirects. Every one has the same headers."""

import functools
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import jinja2
import structlog
from aiohttp import web

from service import troubles
from service.accounts.tenants import RepositoryRecord
from service.dashboard import requests, streams, tabs
from service.dashboard.filters import FILTERS
from service.dashboard.readers import Misdirected
from service.errors import ServiceError
from service.http import documents, errors, replies
from service.http.errors import Problem
from service.provider.errors import ProviderError
from service.runtime import DashboardAuth, Runtime

TEMPLATES = Path(__file__).with_name("templates")

HSTS: Mapping[str, str] = {"Strict-Transport-Security": "max-age=31536000"}
"""Under TLS, for a year (docs/design/security.md 6)."""

CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Basic realm="Headgate", charset="UTF-8"'}

Values = Mapping[str, object]
"""The values that fill a template."""

REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("This page cannot be shown", "Its address is wrong or too old. Begin at its first page."),
    401: (
        "A token is needed",
        "Your browser asks for a user name and a password: any name will do, the password is an "
        "API token of role read.",
    ),
    403: ("This token may not read pages", "Pages need a token of role read, queue or admin."),
    404: ("There is no such page", "Or you have no access to it."),
    405: ("This page takes no such request", "Ask for it by GET or HEAD."),
    421: (
        "These pages are for this machine",
        "Ask for them directly, as localhost or 127.0.0.1: this request names another host, or a "
        "proxy passed it on. To let others in, set HEADGATE_PUBLIC_URL to the address that they "
        "use, or HEADGATE_DASHBOARD_AUTH=token.",
    ),
    429: ("Too many requests", "Try again in a moment."),
    502: ("The provider refused", "Headgate could not read your rights. Its log has the reason."),
    503: ("Not just now", "Headgate cannot show this page now. Try again in a moment."),
}
"""The texts of a refusal: its title, and what to do."""
SIGN_IN = "You see here what you may see on {}."
FORBIDDEN = "This was not done"
NEVER_SUBMITTED = "To merge it through this queue, comment /merge on it."
UNEXPECTED = ("Something went wrong", "It is in the log of whoever runs Headgate.")

log = structlog.get_logger()


@functools.cache
def _templates() -> jinja2.Environment:
    """Return the templates, which each process compiles once, when a page first needs them."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(FILTERS)
    templates.globals.update(
        style=documents.address("pages.css"),
        script=documents.address("live.js"),
        frame=documents.address("frame.js"),
        wall_style=documents.address("wall.css"),
        times=documents.address("times.js"),
        brand_icon=tabs.BRAND,
        tag_field=requests.TAG,
    )
    return templates


class Rendering:
    """Fills templates for one deployment."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        public_url = runtime.options.public_url or ""
        self._headers = {
            **replies.HEADERS,
            **documents.safe(runtime.options.framed_by),
            **(HSTS if public_url.startswith("https://") else {}),
        }

    def page(self, status: int, name: str, values: Values) -> web.Response:
        """Return the page of a template; values of these names may be left out."""
        absent: Values = {
            "visitor": None,
            "live": False,
            "refused": None,
            "outcome": None,
            "given": {},
            "version": self._runtime.options.version,
        }
        filled = {**absent, **values, "troubles": self._troubles_of(values.get("repository"))}
        html = _templates().get_template(name).render(filled)
        return web.Response(
            text=html,
            status=status,
            content_type="text/html",
            charset="utf-8",
            headers=self._headers,
        )

    def _troubles_of(self, repository: object) -> list[str]:
        """Return the troubles that concern a page, in sentences: of a repository, or of all."""
        known, now = self._runtime.troubles, self._runtime.clock.now()
        if isinstance(repository, RepositoryRecord):
            found = known.of(repository.ref.host, repository.ref.owner)
        else:
            found = tuple(each for each in known.all() if not each.owner)
        return [troubles.sentence(each, now) for each in found]

    def lines(self, text: str, file: str) -> web.Response:
        """Return lines of JSON as a file of this name."""
        answer = web.Response(
            text=text, content_type="application/jsonl", charset="utf-8", headers=self._headers
        )
        answer.headers["Content-Disposition"] = f'attachment; filename="{file}"'
        return answer

    def stream(self) -> web.StreamResponse:
        """Return the answer that tells when a page has changed, not begun yet."""
        answer = web.StreamResponse(headers={**self._headers, "X-Accel-Buffering": "no"})
        answer.content_type = streams.CONTENT
        return answer

    def unchanged(self, tag: str) -> web.Response:
        """Return the answer to a request for a page that the browser has already."""
        return web.Response(status=304, headers={**self._headers, "ETag": tag})

    def redirect(self, status: int, address: str) -> web.Response:
        """Return the answer that leads to another address."""
        return web.Response(status=status, headers={**self._headers, "Location": address})

    def problem_of(self, error: ServiceError | ProviderError, page: str) -> Problem:
        """Return the status and the text of an error, and log it."""
        problem = errors.problem_of(error, self._runtime.clock.now())
        code = error.code if isinstance(error, ServiceError) else type(error).__name__
        log.info("page", page=page, status=problem.status, code=code)
        return problem

    def error(
        self, error: ServiceError | ProviderError, page: str, path: str = "/"
    ) -> web.Response:
        """Return the page of an error; `path` is where a sign-in leads back to."""
        if isinstance(error, Misdirected):
            return self.refusal(421)
        problem = self.problem_of(error, page)
        is_signing_in = self._runtime.options.dashboard_auth is DashboardAuth.GITHUB
        if problem.status == 401 and is_signing_in:
            return self.sign_in_again(401, "Sign in to see this page", SIGN_IN, path)
        own = None
        if isinstance(error, requests.Foreign):
            own = FORBIDDEN, error.detail
        elif problem.code == "never_submitted":
            own = problem.detail.removesuffix("."), NEVER_SUBMITTED
        elif problem.status == 400:
            own = REFUSALS[400][0], f"{problem.detail} Begin at its first page."
        return self.refusal(problem.status, problem.headers, own)

    def sign_in_again(
        self, status: int, heading: str, remedy: str, path: str = "/"
    ) -> web.Response:
        """Return a page whose link begins a sign-in."""
        name = self._runtime.sign_in.name if self._runtime.sign_in is not None else ""
        address = f"/login?next={quote(path, safe='')}"
        values = {"heading": heading, "remedy": remedy.format(name), "now": None}
        return self.page(status, "refused.html", {**values, "sign_in": (address, name)})

    def refusal(
        self,
        status: int,
        headers: Mapping[str, str] | None = None,
        words: tuple[str, str] | None = None,
    ) -> web.Response:
        """Return the page of a refusal."""
        heading, remedy = words or REFUSALS.get(status, UNEXPECTED)
        values = {"heading": heading, "remedy": remedy, "now": None, "sign_in": None}
        answer = self.page(status, "refused.html", values)
        answer.headers.update(headers or {})
        if status == 401:
            answer.headers.update(CHALLENGE)
        return answer

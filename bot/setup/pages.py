"""Make set-up pages: templates, headers, refusals."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from aiohttp import web

from bot.settings import Settings
from service.dashboard.filters import FILTERS
from service.dashboard.rendering import HSTS
from service.http import documents, replies

TEMPLATES = Path(__file__).with_name("templates")
STYLE = "setup.css"

NO_SESSION = (
    "This page needs a set-up link",
    "The link is used or too old, or this browser has not opened it. Run `headgate setup-url` on "
    "the machine of Headgate, in its environment, and open the address that it prints.",
)
FOREIGN_FORM = (
    "The form was not sent from this page",
    "Go back to the page, reload it, and send the form again.",
)


async def fields_of(request: web.Request) -> dict[str, str]:
    """Return the fields of a form. One that cannot be read has none, so it lacks its secret."""
    try:
        posted = await request.post()
    except (ValueError, LookupError):
        return {}
    return {name: str(value) for name, value in posted.items()}


class Pages:
    """Makes the pages of one deployment."""

    def __init__(self, settings: Settings) -> None:
        is_secure = (settings.public_url or "").startswith("https://")
        self._headers: Mapping[str, str] = {
            **replies.HEADERS,
            **documents.SAFE,
            **(HSTS if is_secure else {}),
        }
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)

    def page(
        self, name: str, status: int = 200, *, posts_to: str = "", **values: object
    ) -> web.Response:
        """Return the page of a template; `posts_to`: another site to which its form is sent."""
        html = self._templates.get_template(name).render(
            values, posts_to=posts_to, style=documents.address(STYLE)
        )
        headers = dict(self._headers)
        if posts_to:
            parts = urlsplit(posts_to)
            policy = headers["Content-Security-Policy"]
            allowed = f"form-action 'self' {parts.scheme}://{parts.netloc}"
            headers["Content-Security-Policy"] = policy.replace("form-action 'self'", allowed)
        return web.Response(
            text=html, status=status, content_type="text/html", charset="utf-8", headers=headers
        )

    def refused(
        self, status: int, words: tuple[str, str], *, reload_s: int | None = None
    ) -> web.Response:
        """Return a page that says why something was not done, and what to do.

        `reload_s`: the browser opens the address again after this pause.
        """
        heading, remedy = words
        return self.page("refused.html", status, heading=heading, remedy=remedy, reload_s=reload_s)

    def redirect(self, path: str) -> web.Response:
        """Send the browser to another page of ours."""
        return web.Response(status=303, headers={**self._headers, "Location": path})


async def style(_request: web.Request) -> web.Response:
    """Return the style sheet."""
    text = (documents.STATIC / STYLE).read_text("utf-8")
    headers = {**replies.HEADERS, **documents.FOREVER}
    return web.Response(text=text, content_type="text/css", headers=headers)

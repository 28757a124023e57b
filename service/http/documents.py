"""Handlers of the documents (docs/design/http.md 10), which are the same for everybody.

Nothing is loaded from elsewhere, and no page holds script or style of its own.
"""

import functools
import hashlib
import html
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from markdown_it import MarkdownIt
from pydantic import BaseModel, Field

from service.http import codes, errors, openapi, reference
from service.http.errors import HttpRefused
from service.http.models import unknown
from service.http.route import JSON, Contract, Document, Look, Page, Route
from service.runtime import EnumCase

HTML = "text/html; charset=utf-8"

STATIC = Path(__file__).resolve().parent.parent / "dashboard/static"
"""Files that pages load."""

LOADED = frozenset(
    {"docs.css", "frame.js", "live.js", "pages.css", "setup.css", "times.js", "wall.css"}
)
"""Every file that a page loads, those of the dashboard too."""

KINDS: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""Suffix of a file → its Content-Type."""

FOREVER: Mapping[str, str] = {"Cache-Control": "public, max-age=31536000, immutable"}
"""Of files: their address changes with their bytes."""

SAFE: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""The headers by which every page instructs browsers (docs/design/security.md 6)."""


def safe(framed_by: str | None) -> Mapping[str, str]:
    """Return what every page says to browsers; pages of the origin `framed_by` may frame it."""
    if framed_by is None:
        return SAFE
    policy = SAFE["Content-Security-Policy"].removesuffix("'none'") + framed_by
    return {**SAFE, "Content-Security-Policy": policy}


class ErrorCode(BaseModel):
    """The variable of `/docs/errors/{code}`."""

    code: Annotated[str, Field(json_schema_extra={"enum": list(errors.STATUS_OF)})]
    """The code of a problem."""


def _specification(look: Look) -> Page:
    """Return this document."""
    return Page(JSON, openapi.encoded(look.contract, look.case))


def shown(look: Look) -> Page:
    """Show this document to people."""
    return _page("Headgate API", _reference(look.contract, look.case))


@functools.lru_cache(maxsize=2)
def _reference(contract: Contract, case: EnumCase) -> str:
    """Everything in the document as HTML, behind a list of its parts."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse("\n".join(reference.lines_of(contract, case)))
    parts: list[str] = []
    for opened, inline in itertools.pairwise(tokens):
        if opened.type == "heading_open":
            place = anchor(inline.content)
            opened.attrSet("id", place)
            words = parser.renderInline(inline.content)
            parts.append(f'<li class="{opened.tag}"><a href="#{place}">{words}</a></li>')
    content = parser.renderer.render(tokens, parser.options, {})
    return (
        '<h1>Headgate API</h1><p>The document for programs: <a href="/openapi.json">'
        "/openapi.json</a>. The page <code>/docs/errors/{code}</code> says what to do about an "
        'error code.</p><details><summary>Every endpoint and object</summary><nav aria-label="'
        f'Parts of this page"><ul class="parts">{"".join(parts)}</ul></nav></details>{content}'
    )


def anchor(heading: str) -> str:
    """Return the id of a heading, as GitHub makes it for the same page in the repository.

    Lower case, without punctuation, and each blank is a hyphen
    (https://docs.github.com/en/get-started/writing-on-github, "Section links").
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def error(look: Look) -> Page:
    """Show what an error code means and what to do."""
    code = look.variables["code"]
    status = errors.STATUS_OF.get(code)
    if status is None:
        detail = f"There is no code {code[:100]}."
        meant = unknown.nearest(code, tuple(errors.STATUS_OF))
        more = {} if meant is None else {"did_you_mean": f"/docs/errors/{meant}"}
        raise HttpRefused("unknown_endpoint", detail, **more)
    title, remedy = errors.TITLES[code], _marked(codes.REMEDIES[code])
    return _page(
        title,
        f"<h1>{html.escape(title)}</h1><p><code>{code}</code>, status {status}</p><p>{remedy}</p>"
        '<p>Every code and endpoint: <a href="/docs/api">/docs/api</a>.</p>',
    )


def _every_error(_: Look) -> Page:
    """List the error codes, each with a link to its page."""
    rows = "".join(
        f'<li><a href="/docs/errors/{code}"><code>{code}</code></a>, status {status}: '
        f"{html.escape(errors.TITLES[code])}</li>"
        for code, status in errors.STATUS_OF.items()
    )
    return _page("Error codes", f"<h1>Error codes</h1><ul>{rows}</ul>")


def static(look: Look) -> Page:
    """A file that a page loads, by the digest of its bytes. Raises HttpRefused 404."""
    name = look.variables["name"]
    # What is not on the list is never looked for: a name may be anything.
    if name not in LOADED or not (STATIC / name).is_file():
        raise HttpRefused("unknown_endpoint", "There is no such file.")
    path = STATIC / name
    if look.variables["digest"] != _digest(path):
        raise HttpRefused("unknown_endpoint", "This file has other bytes now.")
    return Page(KINDS[path.suffix], path.read_bytes(), 200, FOREVER)


def address(name: str) -> str:
    """Return where a file of `STATIC` is found; it changes with the file's bytes."""
    return f"/static/{_digest(STATIC / name)}/{name}"


@functools.lru_cache(maxsize=64)
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _page(title: str, content: str) -> Page:
    return _whole(title, f"<main>{content}</main>")


def _whole(title: str, body: str) -> Page:
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)}</title><link rel="stylesheet" href="{address("docs.css")}">'
        f'<script src="{address("frame.js")}"></script></head>'
        f"<body>{body}</body></html>\n"
    )
    return Page(HTML, text.encode(), 200, SAFE)


def _marked(text: str) -> str:
    """A sentence as HTML; what stands between backticks is code."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(
        f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts)
    )


DOCUMENT_ROUTES: tuple[Route, ...] = (
    Document("/openapi.json", _specification, JSON, operation="getOpenApiDocument"),
    Document("/docs", shown, HTML, operation="getDocs"),
    Document("/docs/api", shown, HTML, operation="getApiViewer"),
    Document(
        "/docs/errors/{code}",
        error,
        HTML,
        variables=ErrorCode,
        codes=("unknown_endpoint",),
        operation="getErrorPage",
    ),
    Document("/docs/errors", _every_error, HTML, is_listed=False),
    Document("/docs/errors/", _every_error, HTML, is_listed=False),
    Document("/static/{digest}/{name:.+}", static, "text/javascript", is_listed=False),
)

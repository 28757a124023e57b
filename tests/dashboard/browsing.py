"""A reader of pages: asks over HTTP, sees the text, follows links."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from bot import wiring
from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.http.health import Readiness
from service.runtime import Runtime
from service.vocabulary import SYSTEM, RepoRef, Role
from tests.api.wire import Reply, Wire, connected, served
from tests.operations.upload_stage import HOST

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Scope = tuple[RepoRef, ...]
VOID = {"meta", "link", "br", "input"}
BLOCKS = {"h1", "h2", "p", "li", "div", "tr", "section", "summary", "header", "title", "dl"}


@dataclass
class Page(HTMLParser):
    """A page as a browser has it: `tags` with their attributes, `lines` of visible text.

    `unseen`: how many elements are open around a hidden one, itself included.
    """

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=lambda: [""])
    comments: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    unseen: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            if not self.unseen and (tag == "dialog" or "hidden" in dict(attrs)):
                self.unseen = len(self.open)
        self._break(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"
        if len(self.open) < self.unseen:
            self.unseen = 0
        self._break(tag)

    def handle_data(self, data):
        if not self.unseen:
            self.lines[-1] += data

    def handle_comment(self, data):
        self.comments.append(data)

    def _break(self, tag):
        if tag in BLOCKS:
            self.lines.append("")
        elif tag in ("td", "th", "dt", "dd"):
            self.lines[-1] += " "

    @property
    def text(self) -> str:
        """What a reader sees, line by line; ids are masked, for they differ every time."""
        shown = [" ".join(line.split()) for line in self.lines]
        return UUID.sub("<id>", "\n".join(line for line in shown if line))

    @property
    def links(self) -> list[str]:
        """Where its links lead."""
        return [str(attrs["href"]) for tag, attrs in self.tags if tag == "a"]


def parsed(html: bytes) -> Page:
    """The page, well formed."""
    page = Page()
    page.feed(html.decode())
    page.close()
    assert page.open == []
    return page


@dataclass
class Browser:
    """Somebody with a token, and a connection, opened anew where the server has ended it."""

    wire: Wire
    port: int
    password: str

    async def get(self, path: str, *lines: str, **more: str) -> Reply:
        """Ask for a path; `host`, `password`, `method` are said where they matter."""
        method = more.get("method", "GET")
        password = more.get("password", self.password)
        head = [f"{method} {path} HTTP/1.1", f"Host: {more.get('host', 'queue.example.org')}"]
        if password:
            head.append(f"Authorization: Basic {b64encode(f':{password}'.encode()).decode()}")
        if self.wire.has_ended:
            await self.wire.close()
            self.wire = Wire(*await asyncio.open_connection("127.0.0.1", self.port))
        await self.wire.send("\r\n".join([*head, *lines, "", ""]).encode())
        return await self.wire.reply(to_head=method == "HEAD")

    async def see(self, path: str, **more: str) -> Page:
        """The page, which must be there."""
        reply = await self.get(path, **more)
        assert reply.status == 200, reply.body.decode()
        return parsed(reply.body)


async def token_of(
    runtime: Runtime, role: Role, org: str = "octo", repositories: Scope | None = None
) -> str:
    """A token of this role in an organization."""
    wish = TokenRequest(HOST, org, "a reader", role, repositories)
    return (await tokens.create_token(runtime, wish, SYSTEM)).secret


@asynccontextmanager
async def browsing(
    runtime: Runtime, password: str = "", readiness: Readiness | None = None, **options: Any
) -> AsyncIterator[Browser]:
    """A browser of pages of this runtime, with some options changed."""
    asked = replace(runtime, options=replace(runtime.options, **options))
    if readiness is None:
        readiness = Readiness()
        readiness.mark("recovery", "ok")
    app = wiring.build_own_app(asked, readiness)
    async with served(app) as port, connected(port) as wire:
        browser = Browser(wire, port, password)
        yield browser
        await browser.wire.close()

"""A browser without JavaScript: it opens pages, fills forms, keeps cookies, follows redirects."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import aiohttp

TEXTS = ("text", "url", "hidden")


@dataclass
class Form:
    """A form of a page: where it is sent, its fields as they are filled, its buttons."""

    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass
class Page(HTMLParser):
    """What a browser has of a page: its forms, links and text."""

    url: str
    status: int
    policy: str
    referrer: str
    forms: list[Form] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    reload_s: int | None = None
    words: list[str] = field(default_factory=list)
    _open: str = ""
    _named: list[tuple[str, str]] = field(default_factory=list)
    _href: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self._open = tag
        if tag == "form":
            action = urljoin(self.url, given.get("action") or self.url)
            self.forms.append(Form(action, given.get("method", "get")))
        elif tag == "button":
            value = (given.get("name", ""), given.get("value", ""))
            self._named = [value] if value[0] else []
        elif tag == "meta" and given.get("http-equiv") == "refresh":
            self.reload_s = int(given["content"])
        elif tag == "a":
            self._href = given.get("href", "")
        elif tag in ("input", "textarea", "select") and self.forms and given.get("name"):
            is_box = given.get("type") in ("checkbox", "radio")
            if not is_box or "checked" in given:
                self.forms[-1].fields.append((given["name"], given.get("value", "")))

    def handle_data(self, data):
        text = " ".join(data.split())
        if not text:
            return
        self.words.append(text)
        if self._open == "button" and self.forms:
            self.forms[-1].buttons[text] = self._named
        if self._open == "a":
            self.links[text] = urljoin(self.url, self._href)

    @property
    def text(self) -> str:
        """The words that a person sees."""
        return " ".join(self.words)

    def form(self, button: str) -> Form:
        """The form with this button."""
        found = [one for one in self.forms if button in one.buttons]
        assert found, f"{self.url} has no button {button!r}: {self.text}"
        return found[0]


class Browser:
    """One browser; `page` is what it shows."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http
        self.page = Page("", 0, "", "")

    async def open(self, url: str) -> Page:
        """Open an address."""
        async with self.http.get(url) as answer:
            return await self._shown(answer)

    async def follow(self, words: str) -> Page:
        """Follow the link with these words."""
        return await self.open(self.page.links[words])

    async def press(self, button: str, **fields: str) -> Page:
        """Send the form of a button with some fields filled in."""
        form = self.page.form(button)
        here, there = urlsplit(self.page.url), urlsplit(form.action)
        is_same = here.netloc == there.netloc
        allowed = re.search(r"form-action ([^;]*)", self.page.policy)
        if allowed is not None and not is_same:
            assert f"{there.scheme}://{there.netloc}" in allowed[1].split()
        kept = [one for one in form.fields if one[0] not in fields]
        is_named = is_same and self.page.referrer != "no-referrer"
        origin = f"{here.scheme}://{here.netloc}" if is_named else "null"
        data = [*kept, *fields.items(), *form.buttons[button]]
        headers = {"Origin": origin}
        async with self.http.post(form.action, data=data, headers=headers) as answer:
            return await self._shown(answer)

    async def _shown(self, answer: aiohttp.ClientResponse) -> Page:
        policy = answer.headers.get("Content-Security-Policy", "")
        referrer = answer.headers.get("Referrer-Policy", "")
        self.page = Page(str(answer.url), answer.status, policy, referrer)
        self.page.feed(await answer.text())
        return self.page


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser with an empty cookie jar."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as http:
        yield Browser(http)

"""The page of the playground, on loopback: pull requests on the left, the queue on the right.

The queue is Headgate's own page in a frame, with its own live updates. Stories, comments and new
pull requests are forms, which work without JavaScript.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import jinja2
from aiohttp import web

from bot.demo import buttons, ground, story, widgets
from bot.demo.ground import QUEUE, Ground
from bot.demo.stage import LOOPBACK
from bot.program import VERSION
from bot.sandbox import standing
from bot.sandbox.app import LOOPBACK as HOSTS
from bot.sandbox.app import guard
from bot.sandbox.records import CheckRun
from bot.sandbox.world import PullRequest
from service import dashboard
from service.dashboard import marks
from service.dashboard.filters import FILTERS
from service.dashboard.marks import Mark
from service.http import documents
from service.mergequeue.engine.states import EntryState

LIVE_S = 1
SHOWN_MAX = 30
TEXT_MAX = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
TEMPLATES = Path(__file__).with_name("templates")
SERVICE_TEMPLATES = Path(dashboard.__file__).with_name("templates")
STYLE = "playground.css"
FILES: Mapping[str, Path] = {
    STYLE: TEMPLATES / STYLE,
    "pages.css": documents.STATIC / "pages.css",
    "frame.js": documents.STATIC / "frame.js",
    "live.js": documents.STATIC / "live.js",
}
"""Files that the page loads; look, themes and live updates are those of the dashboard."""

OPEN, MERGED = Mark("Open", "entering", "good"), marks.ENTRIES[EntryState.MERGED]
CLOSED = Mark("Closed", "removed", "wait")
KINDS: Mapping[str, tuple[str, Mapping[str, str] | None]] = {
    "good": ("adds a file", None),
    "bad": ("breaks a test", {"widgets/cart.py": story.CHEAPER}),
    "mail": ("changes the mail sender", {"widgets/mail.py": 'SENDER = "hello@widgets.example"\n'}),
}
"""The kinds of changes of a new pull request: words, and its files; None: a file of its own."""

Act = Callable[[Mapping[str, str]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Row:
    """A pull request as the page shows it; `command` is what a visitor may comment next."""

    pull: PullRequest
    mark: Mark
    check: CheckRun | None
    said: str
    command: str


class Page:
    """Answers the requests of one playground."""

    def __init__(self, playground: Ground) -> None:
        self._ground = playground
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader([TEMPLATES, SERVICE_TEMPLATES]),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)

    def app(self) -> web.Application:
        """Return the application; it refuses what pages of other sites send."""
        app = web.Application(middlewares=[guard(HOSTS)])
        app.router.add_get("/", self.show)
        app.router.add_get("/static/{name}", self.file)
        for path, act in (
            ("/stories", self._story),
            ("/comments", self._comment),
            ("/pulls", self._open),
            ("/pace", self._pace),
            ("/end", self._end),
        ):
            app.router.add_post(path, self._sent(act))
        return app

    async def show(self, _: web.Request) -> web.Response:
        """The page."""
        playground = self._ground
        html = self._templates.get_template("playground.html").render(
            ground=playground,
            rows=[self._row(pull) for pull in playground.pulls[:SHOWN_MAX]],
            buttons=[(one, self._is_played(one.name)) for one in buttons.BUTTONS],
            paces=ground.PACES,
            kinds=KINDS,
            live=LIVE_S,
            version=VERSION,
            queue=f"{playground.stage.service}/{story.SLUG}/{QUEUE}",
            stand_in=f"{playground.stage.sandbox.url}/{story.SLUG}",
        )
        return web.Response(
            text=html,
            content_type="text/html",
            headers=_headers(playground.stage.service),
        )

    async def file(self, request: web.Request) -> web.Response:
        """A file that the page loads."""
        path = FILES.get(request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound
        kind = documents.KINDS[path.suffix].partition(";")[0]
        return web.Response(body=path.read_bytes(), content_type=kind, charset="utf-8")

    def _is_played(self, name: str) -> bool:
        task = self._ground.playing.get(name)
        return task is not None and not task.done()

    def _row(self, pull: PullRequest) -> Row:
        submission = self._ground.watch.submissions.get(pull.number)
        is_queued = submission is not None and not submission.is_final
        mark = OPEN if pull.open else MERGED if pull.merged else CLOSED
        if submission is not None and pull.open:
            mark = marks.ENTRIES[EntryState(submission.state)]
        runs = standing.latest(pull.repository.check_runs(pull.head_sha))
        own = [run for run in runs if run.name == widgets.CHECK]
        app = self._ground.stage.sandbox.app
        said = [run.title or "" for run in runs if run.suite.app is app]
        return Row(
            pull,
            mark,
            own[-1] if own else None,
            said[-1] if said else "",
            "/merge cancel" if is_queued else "/merge",
        )

    def _sent(self, act: Act) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of a form, which leads back to the page."""

        async def handler(request: web.Request) -> web.StreamResponse:
            if self._ground.is_over:
                raise web.HTTPSeeOther("/")
            form = await request.post()
            fields = {name: _clean(str(value)) for name, value in form.items()}
            try:
                await act(fields)
            except aiohttp.ClientResponseError as refused:
                self._ground.say(f"Refused: {refused.message}")
            except (KeyError, ValueError) as wrong:
                raise web.HTTPBadRequest(text=f"The form is wrong: {wrong}") from wrong
            raise web.HTTPSeeOther("/")

        return handler

    async def _story(self, form: Mapping[str, str]) -> None:
        buttons.start(self._ground, buttons.BY_NAME[form["story"]])

    async def _comment(self, form: Mapping[str, str]) -> None:
        await self._ground.comment("alice", int(form["number"]), form["text"].strip() or "/merge")

    async def _open(self, form: Mapping[str, str]) -> None:
        _, files = KINDS[form["kind"]]
        title = form["title"].strip() or "Change something"
        await self._ground.open("alice", title, files or self._ground.own_file())

    async def _pace(self, form: Mapping[str, str]) -> None:
        self._ground.set_pace(form["pace"])

    async def _end(self, _: Mapping[str, str]) -> None:
        await self._ground.end()


def _clean(text: str) -> str:
    """Return a text that git can store: a commit message without NUL and control characters."""
    return _CONTROL.sub("", text)[:TEXT_MAX]


def _headers(framed: str) -> Mapping[str, str]:
    policy = documents.SAFE["Content-Security-Policy"]
    return {**documents.SAFE, "Content-Security-Policy": f"{policy}; frame-src {framed}"}


@asynccontextmanager
async def serving(playground: Ground, port: int) -> AsyncIterator[str]:
    """Serve the page on loopback; yield its address."""
    runner = web.AppRunner(Page(playground).app(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port, reuse_address=True).start()
        yield f"http://{LOOPBACK}:{port}/"
    finally:
        await runner.cleanup()

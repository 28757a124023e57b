"""The page of the playground, on loopback: pull requests on the left, the queue on the right.

The queue is Headgate's own page in a frame, with its own live updates. Stories, comments and new
pull requests are forms, which work without JavaScript. Each button plays a story.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import jinja2
from aiohttp import web

from bot.demo import ground, story, watching, widgets
from bot.demo.ground import LOOK_S, QUEUE, Ground
from bot.demo.stage import LOOPBACK, NOT_ANSWERED
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
from service.errors import ServiceError
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
    "times.js": documents.STATIC / "times.js",
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

_STORY_TIMEOUT_S = 900.0
_WRONG_TEST = widgets.test_file("mail", 'self.assertTrue(mail.SENDER.endswith(".org"))')
_RIGHT_TEST = widgets.test_file("mail", 'self.assertTrue(mail.SENDER.endswith(".example"))')


@dataclass(frozen=True, slots=True)
class Button:
    """A story: what its button says, what a visitor will see, and what happens."""

    name: str
    label: str
    shows: str
    play: Callable[[Ground], Awaitable[None]]


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
            buttons=[(one, self._is_played(one.name)) for one in BUTTONS],
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
        start(self._ground, _BY_NAME[form["story"]])

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


async def _break_a_test(ground: Ground) -> None:
    """Submit one that breaks a test, and a good one behind it."""
    bad = await ground.open("bob", "Round totals up", {"widgets/cart.py": story.ROUNDED_UP})
    good = await ground.open("alice", "Sort the wish list", ground.own_file())
    await ground.merge("bob", bad)
    await ground.merge("alice", good)
    await ground.until([bad, good])


async def _excuse_a_flake(ground: Ground) -> None:
    """Submit one while a test fails that is known to be flaky."""
    ground.say("It rains on the CI machine: test_picnic, which is known to be flaky, will fail")
    ground.stage.set_rain(is_on=True)
    try:
        number = await ground.open("bob", "List the picnics", ground.own_file())
        await ground.merge("bob", number)
        await ground.until([number])
    finally:
        ground.stage.set_rain(is_on=False)
    for name in sorted(watching.excused_in(await ground.runs_of(number))):
        ground.say(f"{name} failed in the test run; the failure was excused", [number])


async def _conflict(ground: Ground) -> None:
    """Submit two that write the same file; their tests end once both are queued."""
    name = f"routes_{ground.made + 1}"
    path, sign = f"widgets/{name}.py", f"{name}-are-queued"

    def files(route: str) -> dict[str, str]:
        test = f"{name}_{route}"
        waiting = widgets.awaiting_test_file(test, sign)
        return {path: f'ROUTE = "/{route}"\n', f"tests/test_{test}.py": waiting}

    try:
        first = await ground.open("alice", "Rename the routes", files("v2"))
        second = await ground.open("bob", "Rename the routes differently", files("new"))
        await ground.merge("alice", first)
        await ground.merge("bob", second)
    finally:
        # Once the first lands, every test run has its test, also if the story has broken off.
        ground.stage.show_sign(sign)
    await ground.until([first, second])


async def _stack(ground: Ground) -> None:
    """Submit a stack of three by one comment on its top."""
    bottom = await ground.open("alice", "Orders 1: a model", ground.own_file())
    middle = await ground.open("alice", "Orders 2: a store", ground.own_file(), ground.pull(bottom))
    top = await ground.open("alice", "Orders 3: a page", ground.own_file(), ground.pull(middle))
    await ground.stage.act("alice", "stack", numbers=[bottom, middle, top])
    ground.say("The three are a stack", [bottom, top])
    await ground.merge("alice", top)
    await ground.until([bottom, middle, top])


async def _lose_webhooks(ground: Ground) -> None:
    """Submit one while no webhook arrives."""
    ground.say("From now on every webhook is lost; sweeps must find what happens")
    fault = await ground.stage.add_fault({"match": {}, "fault": {"kind": "drop"}})
    try:
        number = await ground.open("bob", "Log the orders", ground.own_file())
        await ground.merge("bob", number)
        await ground.until([number])
    finally:
        await ground.stage.clear_fault(fault)
    ground.say("Webhooks arrive again")


async def _urgent(ground: Ground) -> None:
    """Submit an urgent one while another one is tested."""
    waiting = await ground.open("bob", "Tidy the cart", ground.own_file())
    hotfix = await ground.open("alice", "Hotfix", ground.own_file())
    await ground.merge("bob", waiting)
    await ground.until([waiting], lambda each: each.is_being_tested or each.is_final)
    await ground.merge("alice", hotfix, "/merge --priority=urgent")
    await ground.until([waiting, hotfix])


async def _break_main(ground: Ground) -> None:
    """Break the branch itself, and repair it once the queue has noticed.

    Each time by a test of its own, so that its earlier results do not make it flaky.
    """
    path = f"tests/test_sender_{ground.made + 1}.py"
    await ground.push({path: _WRONG_TEST}, "Test the sender")
    await ground.push(ground.own_file(), "Keep working on the broken branch")
    number = await ground.open("bob", "Count the mails", ground.own_file())
    await ground.merge("bob", number)
    while not (held := await ground.holds()) and not ground.watch.submissions[number].is_final:
        await ground.clock.sleep(LOOK_S)
    for each in held:
        ground.say(f"The queue stopped: {each.text}")
    await ground.push({path: _RIGHT_TEST}, "Correct the test of the sender")
    for each in held:
        await ground.release(each, "main is repaired")
    await ground.until([number])


BUTTONS: tuple[Button, ...] = (
    Button(
        "break-a-test",
        "Break a test",
        "One pull request breaks a test; the one behind it lands without it.",
        _break_a_test,
    ),
    Button(
        "flaky-test",
        "Flaky test",
        "A known flaky test fails. Its failure is excused, and the pull request lands.",
        _excuse_a_flake,
    ),
    Button(
        "conflict",
        "Conflict",
        "Two change the same file. The second one fails once the first has landed.",
        _conflict,
    ),
    Button(
        "stack",
        "Stack of three",
        "One /merge on the top lands three from the bottom up, tested by one run.",
        _stack,
    ),
    Button(
        "urgent",
        "Urgent",
        "A hotfix goes ahead of one that is being tested.",
        _urgent,
    ),
    Button(
        "lost-webhooks",
        "Lose webhooks",
        "No webhook arrives. Sweeps find the comment and the checks, only later.",
        _lose_webhooks,
    ),
    Button(
        "broken-main",
        "Break main",
        "A push by hand breaks main. The queue stops and blames no pull request until main passes.",
        _break_main,
    ),
)
_BY_NAME = {button.name: button for button in BUTTONS}


def start(ground: Ground, button: Button) -> None:
    """Begin a story, unless it is being played."""
    before = ground.playing.get(button.name)
    if before is None or before.done():
        ground.playing[button.name] = asyncio.create_task(_played(ground, button))


async def _played(ground: Ground, button: Button) -> None:
    try:
        async with asyncio.timeout(_STORY_TIMEOUT_S) as limit:
            await button.play(ground)
    except (aiohttp.ClientError, ServiceError) as broken:
        ground.say(f"“{button.label}” broke off: {broken}")
    except TimeoutError:
        # The session's own time limit for a response raises the same error.
        if limit.expired():
            ground.say(f"“{button.label}” was not over after {_STORY_TIMEOUT_S:.0f} s")
        else:
            ground.say(f"“{button.label}” broke off: {NOT_ANSWERED}")

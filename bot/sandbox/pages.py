"""The sandbox in a browser: repositories, histories, pull requests, as a chosen person.

Plain server-made HTML and forms, without JavaScript. Every form is an action of
acts/actions_by_people.py. Comments are Markdown: escaped text goes in, and of HTML only a few bare
tags are let through, because status comments fold their history with them.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from aiohttp import web
from markdown_it import MarkdownIt

from bot.sandbox import merge_rules, rules, standing
from bot.sandbox.acts import actions_by_people, pull_states
from bot.sandbox.records import Account, CheckRun, Json, Kind, Status
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import PullRequest, Repository, World

HISTORY_SHOWN = 50
FOLLOW_S = 2
COOKIE = "sandbox_as"
FOLDER = Path(__file__).with_name("templates")
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
GLYPHS = {"success": "✓", "neutral": "○", "skipped": "○", "cancelled": "○", "pending": "●"}
MERGE_WORDS = {
    "DIRTY": "This branch conflicts with its base.",
    "DRAFT": "This pull request is still a draft.",
    "BEHIND": "This branch is out of date with its base.",
    "BLOCKED": "The rules of the branch do not allow merging yet.",
    "UNSTABLE": "It can be merged, though not every check has passed.",
    "CLEAN": "It can be merged.",
}
# The fields that a form may send; the control plane accepts more.
FIELDS = "number body branch method box comment button check title label"
FACES = ("#0b6e4f", "#7a3e9d", "#b5460f", "#1d5fa8", "#8a1c4a", "#5b6510")
Show = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BARE_TAGS = ("details", "summary", "sub", "sup", "kbd")
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BOX_LINE = re.compile(r"^(\s*[-*] )\[([ xX])\] (.*)$", re.MULTILINE)
# Private-use characters mark the place of a box; the source may not bring its own.
_MARK = re.compile("\ue000(\\d+)\ue001")
_MARKS = re.compile("[\ue000\ue001]")

_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check of a page: glyph, words and the buttons it shows."""

    glyph: str
    name: str
    word: str
    title: str
    app: str
    url: str | None = None
    buttons: tuple[Json, ...] = ()


class Pages:
    """The pages of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        loader = jinja2.FileSystemLoader(FOLDER)
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
        )

    def add_to(self, app: web.Application) -> None:
        """Add the pages to an application."""
        base = "/{owner:[^/_][^/]*}/{repo}"
        number = rf"{base}/pull/{{number:\d{{1,9}}}}"
        routes: tuple[tuple[str, str, Show], ...] = (
            ("GET", "/", self.home),
            ("GET", "/_sandbox/sandbox.css", self.style),
            ("GET", r"/_sandbox/avatar/{id:\d+}", self.avatar),
            ("POST", "/_sandbox/person", self.choose),
            ("GET", base, self.history),
            ("GET", f"{base}/pulls", self.pulls),
            ("GET", number, self.pull),
            ("POST", f"{number}/acts", self.act),
            ("GET", rf"{base}/runs/{{id:\d{{1,18}}}}", self.run),
            ("POST", f"{base}/acts", self.act),
        )
        for method, path, show in routes:
            app.router.add_route(method, path, self._with_missing(show))

    def _with_missing(self, show: Show) -> Show:
        """Replace a bare 404 by a page that leads back."""

        async def shown(request: web.Request) -> web.StreamResponse:
            try:
                return await show(request)
            except web.HTTPNotFound:
                message = f"Nothing is at {request.path}."
                return self.show(request, "refused.html", 404, message=message)

        return shown

    def show(
        self, request: web.Request, name: str, status: int = 200, **values: Any
    ) -> web.Response:
        """Return the page of a template."""
        repository = values.setdefault("repository", None)
        roles = [
            (one, repository.role_of(one) if repository is not None else "")
            for one in self.world.accounts.values()
            if one.kind is Kind.USER
        ]
        html = self._templates.get_template(name).render(
            values,
            me=self.me(request),
            people=roles,
            here=request.path.removesuffix("/acts"),
            rendered=rendered,
        )
        return web.Response(text=html, content_type="text/html", status=status, headers=SECURITY)

    def me(self, request: web.Request) -> Account:
        """The person chosen in this browser; the first one before any choice."""
        chosen = self.world.account(request.cookies.get(COOKIE, ""))
        if chosen is not None and chosen.kind is Kind.USER:
            return chosen
        return next(iter(self.world.accounts.values()))

    def _repository(self, request: web.Request) -> Repository:
        repository = self.world.repository("{owner}/{repo}".format_map(request.match_info))
        if repository is None:
            raise web.HTTPNotFound
        return repository

    async def home(self, request: web.Request) -> web.Response:
        """All repositories."""
        listed = list(self.world.repositories.values())
        return self.show(request, "home.html", repositories=listed, web=self.world.web)

    async def history(self, request: web.Request) -> web.Response:
        """The first-parent history of a branch."""
        repository = self._repository(request)
        branch = request.query.get("branch", repository.default_branch)
        tip = repository.git.branch(branch)
        commits = repository.git.objects.first_parents(tip, HISTORY_SHOWN) if tip else []
        return self.show(
            request,
            "history.html",
            repository=repository,
            branch=branch,
            branches=repository.git.branches(),
            commits=[(one, _checks(repository, one.sha)) for one in commits],
        )

    async def pulls(self, request: web.Request) -> web.Response:
        """The pull requests: open ones first, newest first; an App's apart."""
        repository = self._repository(request)
        pulls = sorted(repository.pulls(), key=lambda pull: (not pull.open, -pull.number))
        return self.show(
            request,
            "pulls.html",
            repository=repository,
            pulls=[pull for pull in pulls if pull.author.kind is not Kind.BOT],
            made=[pull for pull in pulls if pull.author.kind is Kind.BOT],
            state_of=_state_of,
        )

    async def pull(self, request: web.Request, error: str = "") -> web.Response:
        """One pull request, with the error of the last form."""
        repository = self._repository(request)
        issue = repository.issues.get(int(request.match_info["number"]))
        pull = issue.pull if issue is not None else None
        if pull is None:
            raise web.HTTPNotFound
        unknown = "Checking whether it can be merged…" if pull.open else ""
        return self.show(
            request,
            "pull.html",
            422 if error else 200,
            repository=repository,
            pull=pull,
            state=_state_of(pull),
            merge_state=MERGE_WORDS.get(merge_rules.merge_state(pull), unknown),
            decision=merge_rules.review_decision(pull),
            methods=sorted(rules.merge_methods(repository, pull.base_ref)),
            checks=_checks(repository, pull.head_sha),
            files=await pull_states.changed_files(pull),
            commits=pull_states.commits_of(pull),
            conversation=_conversation_of(pull),
            error=error,
            follow_s=FOLLOW_S if "follow" in request.query else 0,
        )

    async def run(self, request: web.Request) -> web.Response:
        """One check run: its output, which is the log for the sandbox's own CI."""
        repository = self._repository(request)
        number = int(request.match_info["id"])
        runs = (run for sha in repository.suites for run in repository.check_runs(sha))
        run = next((run for run in runs if run.id == number), None)
        if run is None:
            raise web.HTTPNotFound
        check = _run_line(repository, run)
        return self.show(request, "run.html", repository=repository, run=run, check=check)

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Do the action of a form as the chosen person, and go back to the page."""
        repository = self._repository(request)
        form = await request.post()
        value: Json = {name: str(form[name]) for name in FIELDS.split() if form.get(name)}
        value |= {"act": str(form.get("act", "")), "as": self.me(request).login}
        value["repo"] = repository.full_name
        if form.get("path"):
            value["files"] = {str(form["path"]): _written(str(form.get("text", "")))}
        if "draft" in form:
            value["draft"] = form["draft"] == "true"
        try:
            made = await actions_by_people.act(self.world, value)
        except Refusal as refused:
            if "number" in request.match_info:
                return await self.pull(request, refused.message)
            return self.show(request, "refused.html", 422, message=refused.message)
        number = request.match_info.get("number") or made.get("number")
        page = f"/{quote(repository.full_name)}"
        anchor = f"#issuecomment-{made['comment']}" if made.get("comment") else ""
        raise web.HTTPSeeOther(f"{page}/pull/{number}{anchor}" if number else page)

    async def choose(self, request: web.Request) -> web.StreamResponse:
        """Become another person in this browser."""
        form = await request.post()
        back = str(form.get("back", "/"))
        answer = web.HTTPSeeOther(back if back.startswith("/") and back[1:2] != "/" else "/")
        answer.set_cookie(COOKIE, str(form.get("as", "")), httponly=True, samesite="Strict")
        raise answer

    async def style(self, _: web.Request) -> web.Response:
        """The style sheet."""
        text = (FOLDER / "sandbox.css").read_text()
        return web.Response(text=text, content_type="text/css", headers=SECURITY)

    async def avatar(self, request: web.Request) -> web.Response:
        """A face: a disc in a color of the account's own."""
        color = FACES[int(request.match_info["id"]) % len(FACES)]
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">'
            f'<circle cx="4" cy="4" r="4" fill="{color}"/></svg>'
        )
        return web.Response(text=svg, content_type="image/svg+xml", headers=SECURITY)


def _written(text: str) -> str:
    """The text of a form's field as a file has it: bare newlines, the last line ended."""
    lines = text.replace("\r\n", "\n")
    return lines if not lines or lines.endswith("\n") else f"{lines}\n"


def _state_of(pull: PullRequest) -> str:
    if pull.open:
        return "draft" if pull.draft else "open"
    return "merged" if pull.merged else "closed"


def _conversation_of(pull: PullRequest) -> list[tuple[str, Any]]:
    """Return comments and reviews by time, then the conversations on the code."""
    entries: list[tuple[datetime, str, Any]] = [
        (one.created_at, "comment", one) for one in pull.comments
    ]
    entries += [(one.submitted_at, "review", one) for one in pull.reviews]
    entries.sort(key=lambda entry: entry[0])
    return [(kind, one) for _, kind, one in entries] + [("thread", one) for one in pull.threads]


def _checks(repository: Repository, sha: str) -> list[CheckLine]:
    runs = [_run_line(repository, one) for one in standing.latest(repository.check_runs(sha))]
    return runs + [_status_line(one) for one in standing.latest_statuses(repository, sha)]


def _run_line(repository: Repository, run: CheckRun) -> CheckLine:
    word, app = run.conclusion or run.status, run.suite.app
    has_buttons = run.status == "completed" and app is repository.world.app
    buttons = tuple(run.actions) if has_buttons else ()
    glyph = GLYPHS.get(word, "●" if run.conclusion is None else "✗")
    url = f"/{repository.full_name}/runs/{run.id}"
    return CheckLine(
        glyph, run.name, word.replace("_", " "), run.title or "", app.name, url, buttons
    )


def _status_line(status: Status) -> CheckLine:
    glyph, title = GLYPHS.get(status.state, "✗"), status.description or ""
    return CheckLine(glyph, status.context, status.state, title, status.creator.login)


def rendered(body: str, form: str | None = None) -> str:
    """The HTML of a comment; with `form` its boxes are buttons of the form of that id."""
    boxes: list[tuple[bool, str]] = []

    def mark(line: re.Match[str]) -> str:
        label = _HTML_COMMENT.sub("", line[3]).strip()
        boxes.append((line[2] != " ", label))
        return f"{line[1]}\ue000{len(boxes) - 1}\ue001{label}"

    source = _BOX_LINE.sub(mark, _MARKS.sub("", body))
    # A closing tag ends the list before it; here tags are text until the end.
    source = source.replace("\n</details>", "\n\n</details>")
    html = str(_markdown.render(_HTML_COMMENT.sub("", source)))
    for tag in _BARE_TAGS:
        html = html.replace(f"&lt;{tag}&gt;", f"<{tag}>").replace(f"&lt;/{tag}&gt;", f"</{tag}>")
    return _MARK.sub(lambda found: _box(boxes[int(found[1])], form), html)


def _box(box: tuple[bool, str], form: str | None) -> str:
    is_ticked, label = box
    sign = "☑" if is_ticked else "☐"
    if form is None:
        return f"{sign} "
    text = escape(label)
    return (
        f'<button class="box" form="{escape(form)}" name="box" value="{text}" '
        f'aria-label="{text}">{sign}</button> '
    )

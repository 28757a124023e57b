"""The sandbox in a browser: repositories, histories, pull requests, as a chosen person.

Plain server-made HTML and forms, without JavaScript. Every form is an action of
acts/actions_by_people.py, so nothing can be done here that the control plane cannot do.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from aiohttp import web

from bot.sandbox import merge_rules, rules, standing
from bot.sandbox.acts import actions_by_people, pull_states
from bot.sandbox.deliver import APP_SLUG
from bot.sandbox.markdown import rendered
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
GLYPHS = {
    "success": "✓",
    "failure": "✗",
    "neutral": "○",
    "skipped": "○",
    "cancelled": "○",
    "pending": "●",
    "error": "✗",
}
# What a form may send; the rest of an act's fields only the control plane knows.
FIELDS = (
    "number",
    "body",
    "branch",
    "method",
    "box",
    "comment",
    "button",
    "check",
    "title",
    "label",
)
FACES = ("#0b6e4f", "#7a3e9d", "#b5460f", "#1d5fa8", "#8a1c4a", "#5b6510")
Show = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check of a page: glyph, words and the buttons it shows."""

    glyph: str
    name: str
    word: str
    title: str
    app: str
    url: str | None = None
    buttons: tuple[Mapping[str, Any], ...] = ()


class Pages:
    """The pages of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        loader = jinja2.FileSystemLoader(FOLDER)
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
        )

    def show(
        self, request: web.Request, name: str, status: int = 200, **values: Any
    ) -> web.Response:
        """A page from its template."""
        repository = values.get("repository")
        people_here = [
            (one, repository.role_of(one) if repository is not None else "")
            for one in self.world.accounts.values()
            if one.kind is Kind.USER
        ]
        html = self._templates.get_template(name).render(
            {"repository": None, **values},
            me=self.me(request),
            people=people_here,
            here=request.path.removesuffix("/acts"),
        )
        return web.Response(text=html, content_type="text/html", status=status, headers=SECURITY)

    def me(self, request: web.Request) -> Account:
        """The person chosen in this browser; the first one before any choice."""
        chosen = self.world.account(request.cookies.get(COOKIE, ""))
        if chosen is not None and chosen.kind is Kind.USER:
            return chosen
        return next(iter(self.world.accounts.values()))

    def repository(self, request: web.Request) -> Repository:
        """The repository of the path. Raises 404."""
        found = self.world.repository("{owner}/{repo}".format_map(request.match_info))
        if found is None:
            raise web.HTTPNotFound
        return found

    async def home(self, request: web.Request) -> web.Response:
        """All repositories."""
        found = list(self.world.repositories.values())
        return self.show(request, "home.html", repositories=found, web=self.world.web)

    async def history(self, request: web.Request) -> web.Response:
        """The first-parent history of a branch."""
        repository = self.repository(request)
        branch = request.query.get("branch", repository.default_branch)
        tip = repository.git.branch(branch)
        commits = repository.git.objects.first_parents(tip, HISTORY_SHOWN) if tip else []
        return self.show(
            request,
            "history.html",
            repository=repository,
            branch=branch,
            branches=repository.git.branches(),
            commits=[(one, self._checks(repository, one.sha)) for one in commits],
        )

    async def pulls(self, request: web.Request) -> web.Response:
        """The pull requests: open ones first, newest first; an App's apart."""
        repository = self.repository(request)
        pulls = sorted(repository.pulls(), key=lambda pull: (not pull.open, -pull.number))
        return self.show(
            request,
            "pulls.html",
            repository=repository,
            pulls=[pull for pull in pulls if pull.author.kind is not Kind.BOT],
            made=[pull for pull in pulls if pull.author.kind is Kind.BOT],
            state_of=state_of,
        )

    async def pull(self, request: web.Request) -> web.Response:
        """One pull request."""
        return await self._pull(request)

    async def _pull(self, request: web.Request, error: str = "") -> web.Response:
        repository = self.repository(request)
        issue = repository.issues.get(int(request.match_info["number"]))
        pull = issue.pull if issue is not None else None
        if pull is None:
            raise web.HTTPNotFound
        return self.show(
            request,
            "pull.html",
            422 if error else 200,
            repository=repository,
            pull=pull,
            state=state_of(pull),
            merge_state=merge_words(pull),
            decision=merge_rules.review_decision(pull),
            methods=sorted(rules.merge_methods(repository, pull.base_ref)),
            checks=self._checks(repository, pull.head_sha),
            files=await pull_states.changed_files(pull),
            commits=pull_states.commits_of(pull),
            conversation=conversation_of(pull),
            rendered=rendered,
            error=error,
            follow_s=FOLLOW_S if "follow" in request.query else 0,
        )

    async def run(self, request: web.Request) -> web.Response:
        """One check run: what its reporter said, the log of the sandbox's own CI included."""
        repository = self.repository(request)
        asked = int(request.match_info["id"])
        for sha in repository.suites:
            for one in repository.check_runs(sha):
                if one.id == asked:
                    return self.show(
                        request,
                        "run.html",
                        repository=repository,
                        run=one,
                        check=_run_line(repository, one),
                        rendered=rendered,
                    )
        raise web.HTTPNotFound

    def _checks(self, repository: Repository, sha: str) -> list[CheckLine]:
        runs = [_run_line(repository, one) for one in standing.latest(repository.check_runs(sha))]
        return runs + [_status_line(one) for one in standing.latest_statuses(repository, sha)]

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Do what a form asks, as the chosen person, and go back to the page."""
        repository = self.repository(request)
        form = await request.post()
        value: Json = {name: str(form[name]) for name in FIELDS if form.get(name)}
        value |= {"act": str(form.get("act", "")), "as": self.me(request).login}
        value["repo"] = repository.full_name
        if form.get("path"):
            value["files"] = {str(form["path"]): written(str(form.get("text", "")))}
        if "draft" in form:
            value["draft"] = form["draft"] == "true"
        try:
            made = await actions_by_people.act(self.world, value)
        except Refusal as refused:
            if "number" in request.match_info:
                return await self._pull(request, refused.message)
            return self.show(request, "refused.html", 422, message=refused.message)
        number = request.match_info.get("number") or made.get("number")
        place = f"/{quote(repository.full_name)}"
        spot = f"#issuecomment-{made['comment']}" if made.get("comment") else ""
        raise web.HTTPSeeOther(f"{place}/pull/{number}{spot}" if number else place)

    async def choose(self, request: web.Request) -> web.StreamResponse:
        """Become another seeded person in this browser."""
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
        color = face(int(request.match_info["id"]))
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">'
            f'<circle cx="4" cy="4" r="4" fill="{color}"/></svg>'
        )
        return web.Response(text=svg, content_type="image/svg+xml", headers=SECURITY)


def add_to(app: web.Application, world: World) -> None:
    """Add the pages of a world to its application."""
    pages = Pages(world)
    base = "/{owner:[^/_][^/]*}/{repo}"
    number = rf"{base}/pull/{{number:\d{{1,9}}}}"
    routes: tuple[tuple[str, str, Show], ...] = (
        ("GET", "/", pages.home),
        ("GET", "/_sandbox/sandbox.css", pages.style),
        ("GET", r"/_sandbox/avatar/{id:\d+}", pages.avatar),
        ("POST", "/_sandbox/person", pages.choose),
        ("GET", base, pages.history),
        ("GET", f"{base}/pulls", pages.pulls),
        ("GET", number, pages.pull),
        ("POST", f"{number}/acts", pages.act),
        ("GET", rf"{base}/runs/{{id:\d{{1,18}}}}", pages.run),
        ("POST", f"{base}/acts", pages.act),
    )
    for method, path, show in routes:
        app.router.add_route(method, path, framed(pages, show))


def framed(pages: Pages, show: Show) -> Show:
    """The same, with a page that leads back in place of a bare 404."""

    async def shown(request: web.Request) -> web.StreamResponse:
        try:
            return await show(request)
        except web.HTTPNotFound:
            message = f"Nothing is at {request.path}."
            return pages.show(request, "refused.html", 404, message=message)

    return shown


def written(text: str) -> str:
    """The text of a form's field as a file has it: bare newlines, the last line ended."""
    lines = text.replace("\r\n", "\n")
    return lines if not lines or lines.endswith("\n") else f"{lines}\n"


def face(number: int) -> str:
    """The color of an account."""
    return FACES[number % len(FACES)]


def state_of(pull: PullRequest) -> str:
    """Return draft, open, merged or closed."""
    if pull.open:
        return "draft" if pull.draft else "open"
    return "merged" if pull.merged else "closed"


def merge_words(pull: PullRequest) -> str:
    """Return the text of the merge box."""
    return {
        "UNKNOWN": "Checking whether it can be merged…" if pull.open else "",
        "DIRTY": "This branch conflicts with its base.",
        "DRAFT": "This pull request is still a draft.",
        "BEHIND": "This branch is out of date with its base.",
        "BLOCKED": "The rules of the branch do not allow merging yet.",
        "UNSTABLE": "It can be merged, though not every check has passed.",
        "CLEAN": "It can be merged.",
    }[merge_rules.merge_state(pull)]


def conversation_of(pull: PullRequest) -> list[tuple[str, Any]]:
    """Return comments and reviews by time, then the conversations on the code."""
    entries: list[tuple[datetime, str, Any]] = [
        (one.created_at, "comment", one) for one in pull.comments
    ]
    entries += [(one.submitted_at, "review", one) for one in pull.reviews]
    entries.sort(key=lambda entry: entry[0])
    return [(kind, one) for _, kind, one in entries] + [("thread", one) for one in pull.threads]


def _run_line(repository: Repository, run: CheckRun) -> CheckLine:
    word = run.conclusion or run.status
    shown = (
        tuple(run.actions) if run.status == "completed" and run.suite.app.slug == APP_SLUG else ()
    )
    glyph = GLYPHS.get(word, "●" if run.conclusion is None else "✗")
    title = run.title or ""
    url = f"/{repository.full_name}/runs/{run.id}"
    return CheckLine(glyph, run.name, word.replace("_", " "), title, run.suite.app.name, url, shown)


def _status_line(status: Status) -> CheckLine:
    glyph = GLYPHS.get(status.state, "●")
    login = status.creator.login
    return CheckLine(glyph, status.context, status.state, status.description or "", login)

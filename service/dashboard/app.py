"""The way from a request to a page, a change or a refusal."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import structlog
from aiohttp import web

from service.accounts import access, audit_log, page_addresses
from service.accounts.api.admission import Admission
from service.dashboard import (
    administration,
    page_of_find,
    page_of_mine,
    page_of_wall,
    pages,
    queue_actions,
    readers,
    requests,
    streams,
)
from service.dashboard.readers import Readers
from service.dashboard.rendering import Rendering, Values
from service.dashboard.requests import (
    Action,
    AnyVisit,
    OrganizationRequest,
    PageKind,
    PageRequest,
    Version,
)
from service.dashboard.sign_in import SignInPages
from service.dashboard.streams import Streams
from service.dashboard.visitors import Rights, Visitor
from service.errors import Malformed, NotAllowed, ServiceError
from service.http.errors import Problem
from service.mergequeue.operations import landing_evidence, overview
from service.mergequeue.wording import replies
from service.provider.errors import ProviderError
from service.provider.values import AccessLevel
from service.runtime import DashboardAuth, Runtime
from service.testhealth.operations.records import RepositoryAddresses

_NAME = "[A-Za-z0-9_.-]+"
_COMMIT = "[0-9a-f]{40}|[0-9a-f]{64}"
_NOT_OURS = f"(?!(?i:{'|'.join(sorted(page_addresses.OUR_SEGMENTS))})/)"

HOMES = (
    f"/{{owner:{_NOT_OURS}{_NAME}}}/{{name:{_NAME}}}",
    f"/~{{host:{_NAME}}}/{{owner:{_NAME}}}/{{name:{_NAME}}}",
)
"""The addresses of a repository's pages: `/octo/widgets`, and with its host in front."""

CONFIRMED = "confirmed"
"""The field that answers the question of an action."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = structlog.get_logger()


def routes(runtime: Runtime, admission: Admission, open_streams: Streams) -> list[web.RouteDef]:
    """The routes of all pages; none where pages are off."""
    if runtime.options.dashboard_auth is DashboardAuth.OFF:
        return []
    rendering = Rendering(runtime)
    answers = Pages(runtime, admission, rendering, open_streams)
    sign_in = runtime.sign_in
    return [
        web.post("/", answers.refusing(answers.pause_all)),
        web.route("*", "/", answers.only_read(answers.first)),
        web.route("*", "/find", answers.only_read(answers.find)),
        web.post("/mine", answers.refusing(answers.remember_team)),
        web.route("*", "/mine", answers.only_read(answers.mine)),
        web.route("*", "/wall", answers.only_read(answers.wall)),
        web.route("*", "/help", answers.only_read(answers.help)),
        web.route("*", "/settings", answers.only_read(answers.settings)),
        web.route("*", "/activity", answers.only_read(answers.activity)),
        *([] if sign_in is None else SignInPages(runtime, admission, rendering, sign_in).routes()),
        *(
            web.route("*", f"/settings/{{org:{_NAME}}}{kind.path}", answers.of_organization(kind))
            for kind in administration.PAGES
        ),
        *(
            web.route(
                "*", f"{home}/evidence/{{commit:{_COMMIT}}}", answers.only_read(answers.evidence)
            )
            for home in HOMES
        ),
        *(
            web.route("*", f"{home}/{kind.path}", answers.shown(kind))
            for kind in pages.PAGES
            for home in HOMES
        ),
    ]


def unknown_page(runtime: Runtime) -> Callable[[], web.Response] | None:
    """Return a function that shows a page for an unknown address; None if pages are off."""
    if runtime.options.dashboard_auth is DashboardAuth.OFF:
        return None
    return partial(Rendering(runtime).refusal, 404)


class Pages:
    """Answers requests for pages, and forms of pages."""

    def __init__(
        self, runtime: Runtime, admission: Admission, rendering: Rendering, streams: Streams
    ) -> None:
        self._runtime = runtime
        self._streams = streams
        self._readers = Readers(runtime, admission)
        self._rendering = rendering

    def only_read(self, read: Handler) -> Handler:
        """Return the handler of a page without forms."""

        async def handler(request: web.Request) -> web.StreamResponse:
            if request.method not in ("GET", "HEAD"):
                return self._rendering.refusal(405, {"Allow": "GET, HEAD"})
            return await self.refusing(read)(request)

        return handler

    def refusing(self, answer: Handler) -> Handler:
        """Return a handler that answers with the page of an error where there is one."""

        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                return await answer(request)
            except (ServiceError, ProviderError) as error:
                return self._rendering.error(error, request.path, request.path_qs)

        return handler

    async def first(self, request: web.Request) -> web.StreamResponse:
        """Answer `/`: all queues that the visitor may see."""
        visitor = await self._readers.visitor(request)
        rights = await self._readers.rights_of(visitor)

        async def tag() -> tuple[str, str]:
            version = await pages.version_of_queues(self._runtime, rights.scope)
            return self._tag_of(version, visitor)

        async def values() -> Values:
            return {**await self._queues(visitor, rights, request), "live": True}

        return await self._followed(request, visitor, tag, ("queues.html", values))

    async def _queues(self, visitor: Visitor, rights: Rights, request: web.Request) -> Values:
        page = await pages.queues(self._runtime, rights, request.query)
        return {"page": page, "visitor": visitor, "now": self._runtime.clock.now()}

    async def pause_all(self, request: web.Request) -> web.StreamResponse:
        """Ask whether to pause every queue, pause them, and show what came of it."""
        visitor = await self._readers.visitor(request, is_change=True)
        form = await requests.read(request, visitor, self._runtime.options)
        rights = await self._readers.rights_of(visitor, is_change=True)
        values: Values = {"visitor": visitor, "given": form}
        if not form.get(CONFIRMED):
            question = {"question": queue_actions.PAUSE_ALL, "confirmed": CONFIRMED, "page": None}
            values = {**values, **question, "action": {"button": queue_actions.PAUSE_ALL_BUTTON}}
            return self._rendering.page(200, "confirm.html", {**values, "now": None})
        request_id = self._runtime.ids.uuid().replace("-", "")
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            outcome = await queue_actions.pause_all(self._runtime, rights, visitor.actor, form)
        log.info("form", page="queues.html", action="pause-all", by=visitor.key)
        values = await self._queues(visitor, rights, request)
        return self._rendering.page(200, "queues.html", {**values, "outcome": outcome})

    async def wall(self, request: web.Request) -> web.StreamResponse:
        """Answer `/wall`: the queues that the address names, or all, on one screen."""
        visitor = await self._readers.visitor(request)
        rights = await self._readers.rights_of(visitor)
        names = page_of_wall.names_of(request.query.getall("queue", []))
        scope, unknown = await page_of_wall.scope_of(self._runtime, rights, names)

        async def tag() -> tuple[str, str]:
            changes = await overview.changes(self._runtime, scope)
            return self._tag_of(Version(changes), visitor)

        async def values() -> Values:
            page = await page_of_wall.read(self._runtime, scope, unknown)
            now = self._runtime.clock.now()
            return {"page": page, "visitor": visitor, "now": now, "live": True}

        return await self._followed(request, visitor, tag, ("wall.html", values))

    async def mine(self, request: web.Request) -> web.StreamResponse:
        """Answer `/mine`: the pull requests of the visitor and of their team."""
        visitor = await self._readers.visitor(request)
        rights = await self._readers.rights_of(visitor)
        cookie = request.cookies.get(page_of_mine.COOKIE, "")
        asked = request.query.get("team")
        team = (
            page_of_mine.remembered(visitor, cookie)
            if asked is None
            else page_of_mine.team_of(asked)
        )

        async def tag() -> tuple[str, str]:
            changes = await overview.changes(self._runtime, rights.scope)
            return self._tag_of(Version(f"{changes}-{','.join(team)}"), visitor)

        async def values() -> Values:
            page = await page_of_mine.read(self._runtime, visitor, rights, team)
            now = self._runtime.clock.now()
            return {"page": page, "visitor": visitor, "now": now, "live": True}

        return await self._followed(request, visitor, tag, ("mine.html", values))

    async def remember_team(self, request: web.Request) -> web.StreamResponse:
        """Let the browser remember the visitor's team, and lead to its page."""
        visitor = await self._readers.visitor(request, is_change=True)
        form = await requests.read(request, visitor, self._runtime.options)
        team = page_of_mine.team_of(form.get("team", ""))
        answer = self._rendering.redirect(303, page_of_mine.address_of(team) if team else "/mine")
        answer.set_cookie(
            page_of_mine.COOKIE,
            page_of_mine.cookie_of(visitor, team),
            path="/mine",
            max_age=page_of_mine.REMEMBERED_S if team else 0,
            httponly=True,
            samesite="Lax",
            secure=readers.is_secure(self._runtime),
        )
        return answer

    async def find(self, request: web.Request) -> web.StreamResponse:
        """Answer `/find`: lead to the only thing found, or list what was found."""
        visitor = await self._readers.visitor(request)
        rights = await self._readers.rights_of(visitor)
        found = await page_of_find.read(
            self._runtime, rights.scope, request.query.get("q", "").strip()
        )
        if found.only:
            return self._rendering.redirect(302, found.only)
        values = {"page": found, "visitor": visitor, "now": self._runtime.clock.now()}
        return self._rendering.page(200, "find.html", values)

    async def help(self, request: web.Request) -> web.StreamResponse:
        """Answer `/help`: the commands and the keys."""
        visitor = await self._readers.visitor(request)
        values = {"page": replies.HELP, "visitor": visitor, "now": self._runtime.clock.now()}
        return self._rendering.page(200, "help.html", values)

    async def settings(self, request: web.Request) -> web.StreamResponse:
        """Answer `/settings`: the organizations that the visitor administers."""
        visitor = await self._readers.visitor(request)
        found = await administration.organizations_of(self._runtime, visitor)
        values = {"page": found, "visitor": visitor, "now": self._runtime.clock.now()}
        return self._rendering.page(200, "settings.html", values)

    async def activity(self, request: web.Request) -> web.StreamResponse:
        """Answer `/activity`: the audit log, as a page or as lines of JSON."""
        visitor = await self._readers.visitor(request)
        page = await administration.activity(self._runtime, visitor, request.query)
        if "export" in request.query:
            return self._rendering.lines(page.lines(), "activity.jsonl")
        readable = partial(self._readers.readable, visitor)
        page = await administration.with_tests(self._runtime, page, readable)
        values = {"page": page, "visitor": visitor, "now": self._runtime.clock.now()}
        return self._rendering.page(200, "activity.html", values)

    async def evidence(self, request: web.Request) -> web.StreamResponse:
        """Answer with the signed evidence of a landed commit, as a file."""
        repository, _ = await self._readers.home(request)
        commit = request.match_info["commit"]
        found = await landing_evidence.of_repository(self._runtime, repository, commit)
        text = "".join(f"{each.envelope}\n" for each in found)
        return self._rendering.lines(text, f"evidence-{commit[:12]}.jsonl")

    def shown(self, kind: PageKind[PageRequest]) -> Handler:
        """Return the handler of one page of a repository."""
        return self._handler(kind, self._of_repository)

    def of_organization(self, kind: PageKind[OrganizationRequest]) -> Handler:
        """Return the handler of one page of an organization."""
        return self._handler(kind, self._of_organization)

    def _handler(
        self, kind: PageKind[AnyVisit], find: Callable[[web.Request], Awaitable[AnyVisit]]
    ) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                if request.method in ("GET", "HEAD"):
                    return await self._page(kind, await find(request), request)
                if request.method == "POST" and kind.actions:
                    return await self._sent(kind, await find(request), request)
            except (ServiceError, ProviderError) as error:
                return self._rendering.error(error, kind.template, request.path_qs)
            allowed = "GET, HEAD, POST" if kind.actions else "GET, HEAD"
            return self._rendering.refusal(405, {"Allow": allowed})

        return handler

    async def _of_repository(self, request: web.Request) -> PageRequest:
        is_change = request.method == "POST"
        repository, visitor = await self._readers.home(request, is_change=is_change)
        return PageRequest(
            visitor=visitor,
            names=request.match_info,
            query=request.query,
            now=self._runtime.clock.now(),
            where=RepositoryAddresses(repository, self._runtime.options),
        )

    async def _of_organization(self, request: web.Request) -> OrganizationRequest:
        visitor = await self._readers.visitor(request, is_change=request.method == "POST")
        slug = request.match_info["org"]
        organization = await administration.organization_of(self._runtime, visitor, slug)
        return OrganizationRequest(
            visitor=replace(visitor, level=AccessLevel.ADMIN),
            names=request.match_info,
            query=request.query,
            now=self._runtime.clock.now(),
            organization=organization,
        )

    async def _page(
        self, kind: PageKind[AnyVisit], visit: AnyVisit, request: web.Request
    ) -> web.StreamResponse:
        values = partial(self._values, kind, visit)
        if kind.version is None:
            return self._rendering.page(200, kind.template, await values())
        tag = partial(self._tag, kind.version, visit)
        return await self._followed(request, visit.visitor, tag, (kind.template, values))

    async def _followed(
        self,
        request: web.Request,
        visitor: Visitor,
        tag: Callable[[], Awaitable[tuple[str, str]]],
        page: tuple[str, Callable[[], Awaitable[Values]]],
    ) -> web.StreamResponse:
        """Answer with a page that has a tag, that it has not changed, or with its stream."""
        present, _ = await tag()
        if request.method == "GET" and request.headers.get("Accept") == streams.CONTENT:
            return await self._streams.follow(request, self._rendering.stream(), visitor.key, tag)
        if request.headers.get("If-None-Match") == present:
            return self._rendering.unchanged(present)
        template, values = page
        answer = self._rendering.page(200, template, await values())
        answer.headers["ETag"] = present
        return answer

    async def _values(self, kind: PageKind[AnyVisit], visit: AnyVisit) -> Values:
        return {
            **visit.frame(),
            "page": await kind.read(self._runtime, visit),
            "visitor": visit.visitor,
            "actions": kind.actions,
            "live": kind.version is not None,
            "now": visit.now,
        }

    async def _tag(
        self, version_of: Callable[[Runtime, AnyVisit], Awaitable[Version]], visit: AnyVisit
    ) -> tuple[str, str]:
        """Return the tag of what a page shows now, and the topic that its changes wake.

        The tag changes with the queue, with the visitor's access, and with the minute, because
        pages show times that pass.
        """
        return self._tag_of(await version_of(self._runtime, visit), visit.visitor)

    def _tag_of(self, version: Version, visitor: Visitor) -> tuple[str, str]:
        level, now = visitor.level.value, self._runtime.clock.now()
        troubles = "+".join(one.name for one in self._runtime.troubles.all())
        own = self._runtime.options.version
        tag = f'"{own}/{version.number}/{level}/{now:%H:%M}/{troubles}"'
        return tag, version.topic

    async def _sent(
        self, kind: PageKind[AnyVisit], visit: AnyVisit, request: web.Request
    ) -> web.StreamResponse:
        """Do what a form asks for, and lead to the next page; or show why not."""
        form = await requests.read(request, visit.visitor, self._runtime.options)
        name = form.get("action", "")
        action = kind.actions.get(name)
        if action is None:
            raise Malformed("This page has no such action.")
        visit = replace(visit, form=form)
        request_id = self._runtime.ids.uuid().replace("-", "")
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._check_access(action, name, visit)
                if action.question and not form.get(CONFIRMED):
                    values = await self._values(kind, visit)
                    question = action.question.format_map(defaultdict(str, form, **visit.names))
                    asked = {"action": action, "question": question, "confirmed": CONFIRMED}
                    more = {**asked, "given": form, "live": False}
                    return self._rendering.page(200, "confirm.html", {**values, **more})
                outcome = await action.act(self._runtime, visit)
            except (ServiceError, ProviderError) as error:
                problem = self._rendering.problem_of(error, kind.template)
                if isinstance(error, Malformed):
                    problem = replace(problem, detail=requests.faults_of(error))
                return await self._refused(kind, visit, problem)
            log.info("form", page=kind.template, action=name, by=visit.visitor.key)
        if outcome is None or isinstance(outcome, str):
            return self._rendering.redirect(303, outcome or request.path_qs)
        values = await self._values(kind, replace(visit, form={}))
        return self._rendering.page(200, kind.template, {**values, **outcome})

    async def _check_access(self, action: Action[AnyVisit], name: str, visit: AnyVisit) -> None:
        """Raise NotAllowed, and store the denial, unless the visitor has the access it takes."""
        visitor, owner = visit.visitor, visit.owner
        if visitor.may(action.needs):
            return
        has = visitor.level.name.lower()
        entry = audit_log.allowed(
            visitor.actor, owner.org_id, f"page.{name}", owner.subject, visit.now
        )
        await access.store_denial(self._runtime, entry, f"has {has}")
        name = owner.subject.partition("/")[2]
        raise NotAllowed(
            f"This needs {action.needs.name.lower()} access to {name}, and you have {has} access."
        )

    async def _refused(
        self, kind: PageKind[AnyVisit], visit: AnyVisit, problem: Problem
    ) -> web.StreamResponse:
        """Return the page of the form with the reason on top and the fields as they were sent."""
        values = await self._values(kind, visit)
        more = {"refused": problem, "given": visit.form, "live": False}
        answer = self._rendering.page(problem.status, kind.template, {**values, **more})
        answer.headers.update(problem.headers)
        return answer

"""The way from a request to a page, a change or a refusal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog
from aiohttp import web

from service.accounts import access, audit_entries, page_addresses
from service.accounts.api.admission import Admission
from service.dashboard import forms, pages
from service.dashboard.pages import Action, PageKind, PageRequest
from service.dashboard.readers import Readers
from service.dashboard.rendering import Rendering, Values
from service.dashboard.sign_in import SignInPages
from service.errors import Malformed, NotAllowed, ServiceError
from service.http.errors import Problem
from service.provider.errors import ProviderError
from service.runtime import DashboardAuth, Runtime
from service.testhealth.operations.records import RepositoryAddresses

_NAME = "[A-Za-z0-9_.-]+"
_NOT_OURS = f"(?!(?i:{'|'.join(sorted(page_addresses.OUR_SEGMENTS))})/)"

HOMES = (
    f"/{{owner:{_NOT_OURS}{_NAME}}}/{{name:{_NAME}}}",
    f"/~{{host:{_NAME}}}/{{owner:{_NAME}}}/{{name:{_NAME}}}",
)
"""Where pages of a repository stand: `/octo/widgets`, and with its host in front."""

CONFIRMED = "confirmed"
"""The field that answers the question of an action."""

log = structlog.get_logger()


def routes(runtime: Runtime, admission: Admission) -> list[web.RouteDef]:
    """The routes of all pages; none where pages are off."""
    if runtime.options.dashboard_auth is DashboardAuth.OFF:
        return []
    rendering = Rendering(runtime)
    answers = Pages(runtime, admission, rendering)
    sign_in = runtime.sign_in
    return [
        web.route("*", "/", answers.first),
        *([] if sign_in is None else SignInPages(runtime, admission, rendering, sign_in).routes()),
        *(
            web.route("*", f"{home}/{kind.path}", answers.shown(kind))
            for kind in pages.PAGES
            for home in HOMES
        ),
    ]


class Pages:
    """Answers requests for pages, and forms of pages."""

    def __init__(self, runtime: Runtime, admission: Admission, rendering: Rendering) -> None:
        self._runtime = runtime
        self._readers = Readers(runtime, admission)
        self._rendering = rendering

    async def first(self, request: web.Request) -> web.StreamResponse:
        """Answer `/`: all queues that the visitor may see."""
        if request.method not in ("GET", "HEAD"):
            return self._rendering.refusal(405, {"Allow": "GET, HEAD"})
        try:
            visitor = await self._readers.visitor(request)
            scope = await self._readers.scope_of(visitor)
            page = await pages.queues(self._runtime, scope, request.query)
        except (ServiceError, ProviderError) as error:
            return self._rendering.error(error, "/", request.path_qs)
        now = self._runtime.clock.now()
        values = {"page": page, "visitor": visitor, "live": pages.OVERVIEW_LIVE_S, "now": now}
        return self._rendering.page(200, "queues.html", values)

    def shown(self, kind: PageKind) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of one page of a repository."""

        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                if request.method in ("GET", "HEAD"):
                    return await self._page(kind, await self._wanted(request), request)
                if request.method == "POST" and kind.actions:
                    return await self._sent(kind, request)
            except (ServiceError, ProviderError) as error:
                return self._rendering.error(error, kind.template, request.path_qs)
            allowed = "GET, HEAD, POST" if kind.actions else "GET, HEAD"
            return self._rendering.refusal(405, {"Allow": allowed})

        return handler

    async def _wanted(self, request: web.Request, *, is_change: bool = False) -> PageRequest:
        repository, visitor = await self._readers.home(request, is_change=is_change)
        where = RepositoryAddresses(repository, self._runtime.options)
        now = self._runtime.clock.now()
        return PageRequest(where, visitor, request.match_info, request.query, now)

    async def _page(
        self, kind: PageKind, wanted: PageRequest, request: web.Request
    ) -> web.StreamResponse:
        tag = await self._tag(kind, wanted)
        if tag is not None and request.headers.get("If-None-Match") == tag:
            return self._rendering.unchanged(tag)
        values = await self._values(kind, wanted)
        answer = self._rendering.page(200, kind.template, values)
        if tag is not None:
            answer.headers["ETag"] = tag
        return answer

    async def _values(self, kind: PageKind, wanted: PageRequest) -> Values:
        repository = wanted.where.repository
        return {
            "page": await kind.read(self._runtime, wanted),
            "home": page_addresses.home(self._runtime.options, repository.ref),
            "repository": repository,
            "visitor": wanted.visitor,
            "live": None if kind.version is None else pages.LIVE_S,
            "now": wanted.now,
        }

    async def _tag(self, kind: PageKind, wanted: PageRequest) -> str | None:
        """Return the tag of what the page shows; None: it has none.

        It changes with the queue, with the visitor's access, and with the minute, because pages
        show times that pass.
        """
        if kind.version is None:
            return None
        version = await kind.version(self._runtime, wanted)
        level = wanted.visitor.level.value
        return f'"{self._runtime.options.version}/{version}/{level}/{wanted.now:%H:%M}"'

    async def _sent(self, kind: PageKind, request: web.Request) -> web.StreamResponse:
        """Do what a form asks for, and lead to the next page; or show why not."""
        wanted = await self._wanted(request, is_change=True)
        form = await forms.read(request, wanted.visitor, self._runtime.options)
        wanted = replace(wanted, form=form)
        name = form.get("action", "")
        action = kind.actions.get(name)
        if action is None:
            raise Malformed("This page has no such action.")
        request_id = self._runtime.ids.uuid().replace("-", "")
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._check_access(action, name, wanted)
                if action.question and not form.get(CONFIRMED):
                    return await self._question(kind, action, wanted)
                path = await action.act(self._runtime, wanted)
            except (ServiceError, ProviderError) as error:
                problem = self._rendering.problem_of(error, kind.template)
                return await self._refused(kind, wanted, problem)
            log.info("form", page=kind.template, action=name, by=wanted.visitor.key)
        return self._rendering.redirect(303, path or request.path_qs)

    async def _check_access(self, action: Action, name: str, wanted: PageRequest) -> None:
        """Raise NotAllowed, and store the denial, unless the visitor has the access it takes."""
        visitor, repository = wanted.visitor, wanted.where.repository
        if visitor.may(action.needs):
            return
        subject = f"{repository.ref.host}/{repository.ref.slug}"
        has = visitor.level.name.lower()
        entry = audit_entries.allowed(
            visitor.actor, repository.org_id, f"page.{name}", subject, wanted.now
        )
        await access.store_denial(self._runtime, entry, f"has {has}")
        raise NotAllowed(
            f"This needs {action.needs.name.lower()} access to {repository.ref.slug}, and you "
            f"have {has} access."
        )

    async def _question(
        self, kind: PageKind, action: Action, wanted: PageRequest
    ) -> web.StreamResponse:
        values = await self._values(kind, wanted)
        asked = {"action": action, "given": wanted.form, "confirmed": CONFIRMED, "live": None}
        return self._rendering.page(200, "confirm.html", {**values, **asked})

    async def _refused(
        self, kind: PageKind, wanted: PageRequest, problem: Problem
    ) -> web.StreamResponse:
        """Return the page of the form with the reason on top and the fields as they were sent."""
        values = await self._values(kind, wanted)
        more = {"refused": problem, "given": wanted.form, "live": None}
        answer = self._rendering.page(problem.status, kind.template, {**values, **more})
        answer.headers.update(problem.headers)
        return answer

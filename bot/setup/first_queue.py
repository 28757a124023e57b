"""The page after the installation: the repositories that the App sees, and their first queues."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from aiohttp import web

from bot.settings import Settings
from bot.setup import entering, pages, sessions
from bot.setup.entering import Entering
from bot.setup.pages import FOREIGN_FORM, NO_SESSION, Pages
from bot.setup.sessions import Session, Sessions
from service.accounts import administrators, installations, page_addresses
from service.accounts import sessions as people
from service.accounts.tenants import RepositoryRecord
from service.dashboard import readers
from service.errors import DatabaseUnavailable, Invalid, NotFound, ServiceError
from service.http import errors
from service.http.health import Readiness
from service.mergequeue.engine.model import FileFault, RequiredSet
from service.mergequeue.operations import queue_access, queues, repository_files, requirements
from service.mergequeue.operations.repository_files import Reading
from service.mergequeue.operations.requirements import Resolved
from service.mergequeue.operations.views import QueueView
from service.mergequeue.wording import holds, rule_notes
from service.mergequeue.wording.rule_notes import RuleNote
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.troubles import sentences
from service.vocabulary import Actor, ActorKind, Channel, MergeMethod

PATH = "/setup/queues"
ADMINISTRATOR = "/setup/administrator"
SHOWN_MAX = 20
"""Repositories on a page: each costs a few calls to GitHub."""
STARTING = ("Headgate is starting", "This page reloads until Headgate has started.")
RELOAD_S = 2
"""Pause before the page of a service that starts reloads."""
OPERATOR = Actor(ActorKind.PERSON, "operator (set-up page)", channel=Channel.DASHBOARD)
"""The creator of queues here, as the audit log names them."""

Show = Callable[[web.Request, Session], Awaitable[web.Response]]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Row:
    """A repository with the checks of its default branch; `problem`: why it cannot have a queue."""

    repository: RepositoryRecord
    branch: str
    required: RequiredSet
    method: MergeMethod | None = None
    notes: Sequence[RuleNote] = ()
    faults: Sequence[FileFault] = ()
    has_queue: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Created:
    """A queue that was just created; `page` None: there are no pages, or no public address.

    `pulls` is the address of the repository's pull requests.
    """

    view: QueueView
    holds: Sequence[str]
    page: str | None
    pulls: str


@dataclass(frozen=True, slots=True)
class Administrator:
    """The account that may become an administrator; `person` None: they have not signed in.

    `provider` is where they sign in, as people call it.
    """

    provider: str
    person: Actor | None = None
    is_named: bool = False


class FirstQueue:
    """The pages `/setup` of a service that runs."""

    def __init__(
        self, runtime: Runtime, settings: Settings, readiness: Readiness, open_sessions: Sessions
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._readiness = readiness
        self._sessions = open_sessions
        self._pages = Pages(settings)
        self._entering = Entering(settings, open_sessions, PATH)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the pages."""
        return [
            web.get("/setup", self.enter, allow_head=False),
            web.get("/setup/callback", self.enter, allow_head=False),
            web.post(entering.PATH, self._entering.enter),
            web.get(PATH, partial(self._with_session, self.show), allow_head=False),
            web.post(PATH, partial(self._with_session, self.create)),
            web.post(ADMINISTRATOR, partial(self._with_session, self.make_administrator)),
        ]

    async def _with_session(self, show: Show, request: web.Request) -> web.Response:
        """Show a page to a browser with a session, once the service is ready."""
        session = self._sessions.of(request)
        if session is None:
            return self._pages.refused(403, NO_SESSION)
        if self._readiness.is_recovering:
            return self._pages.refused(503, STARTING, reload_s=RELOAD_S)
        try:
            return await show(request, session)
        except DatabaseUnavailable as away:
            return self._pages.refused(503, ("Not just now", away.detail))

    async def enter(self, request: web.Request) -> web.Response:
        """Show the page that exchanges a link for a session; without a link, go to the list."""
        token = request.query.get("token")
        return self._pages.redirect(PATH) if token is None else self._entering.offer(token)

    async def show(self, request: web.Request, session: Session) -> web.Response:
        """Show the repositories, each with what a queue would find."""
        return await self._list(request, session)

    async def make_administrator(self, request: web.Request, session: Session) -> web.Response:
        """Make the person an administrator who has signed in in this browser.

        The set-up link proves an operator, the sign-in proves which account they have.
        """
        form = await pages.fields_of(request)
        if not sessions.is_own_form(request, session, form.get("csrf", ""), self._settings):
            return self._pages.refused(403, FOREIGN_FORM)
        person = await self._person(request)
        if person is not None and person.id == form.get("person") and self._may_name:
            host = self._runtime.sign_in.host if self._runtime.sign_in else ""
            await administrators.add(self._runtime, host, person, OPERATOR)
            log.info("administrator_named", login=person.login, id=person.id)
        return self._pages.redirect(PATH)

    @property
    def _may_name(self) -> bool:
        """Return whether people sign in at the provider and no setting names administrators."""
        return self._runtime.sign_in is not None and not self._runtime.options.admins

    async def _person(self, request: web.Request) -> Actor | None:
        """Return the person who has signed in in this browser."""
        cookie = request.cookies.get(readers.cookie_name(self._runtime), "")
        return await people.person_of(self._runtime, cookie)

    async def _administrator(self, request: web.Request) -> Administrator | None:
        """Return what the page says of administrators; None if it cannot name them."""
        sign_in = self._runtime.sign_in
        if sign_in is None or not self._may_name:
            return None
        person = await self._person(request)
        if person is None:
            return Administrator(sign_in.name)
        known = await administrators.is_administrator(self._runtime, sign_in.host, person)
        return Administrator(sign_in.name, person, is_named=known)

    async def create(self, request: web.Request, session: Session) -> web.Response:
        """Create the queue of a branch with the same settings as the first `/merge` does."""
        form = await pages.fields_of(request)
        if not sessions.is_own_form(request, session, str(form.get("csrf", "")), self._settings):
            return self._pages.refused(403, FOREIGN_FORM)
        number, branch = str(form.get("repository", "")), str(form.get("branch", "")).strip()
        try:
            repository, view = await self._create(number, branch)
        except DatabaseUnavailable:
            raise
        except ServiceError as error:
            status = errors.problem_of(error, self._runtime.clock.now()).status
            return await self._list(request, session, error=error.detail, status=status)
        except ProviderError as error:
            return await self._list(request, session, error=error.message, status=502)
        log.info("first_queue_created", repo=view.queue.repo.slug, branch=view.queue.branch)
        now = self._runtime.clock.now()
        told = [holds.message(one, view.queue.branch, now) for one in view.holds]
        ref, options = view.queue.repo, self._runtime.options
        page = page_addresses.of_queue(options, ref, view.queue.branch)
        created = Created(view, told, page, f"{repository.url}/pulls")
        return await self._list(request, session, created=created)

    async def _create(self, number: str, branch: str) -> tuple[RepositoryRecord, QueueView]:
        known = await self._known()
        repository = next((one for one in known if str(one.id) == number), None)
        if repository is None:
            raise NotFound("The App does not see this repository any more.")
        resolved, _ = await self._resolved(repository, branch)
        problem = problem_of(repository, branch, resolved)
        if problem:
            raise Invalid(problem)
        request = queues.first_request(repository, resolved)
        view = await queues.create(self._runtime, repository, branch, request, OPERATOR)
        return repository, view

    async def _resolved(
        self, repository: RepositoryRecord, branch: str
    ) -> tuple[Resolved, Reading | None]:
        """Return the required statuses of a branch and what its repository file says."""
        reading = await repository_files.future_reading(self._runtime, repository, branch)
        override = None if reading is None else repository_files.required_by(reading)
        resolved = await requirements.resolve(self._runtime, repository.ref, branch, override)
        return resolved, reading

    async def _known(self) -> list[RepositoryRecord]:
        """Return the repositories of all hosts as the providers list them now, by name."""
        runtime = self._runtime
        listed = [
            one for host in runtime.providers for one in await installations.read(runtime, host)
        ]
        return sorted(listed, key=lambda one: one.ref.slug.lower())

    async def _list(
        self,
        request: web.Request,
        session: Session,
        *,
        created: Created | None = None,
        error: str = "",
        status: int = 200,
    ) -> web.Response:
        text = request.query.get("page", "1")
        number = max(1, int(text)) if text.isdecimal() and len(text) < 6 else 1
        known = await self._known()
        start = (number - 1) * SHOWN_MAX
        rows = await asyncio.gather(*map(self._row, known[start : start + SHOWN_MAX]))
        troubled = sentences(self._runtime.troubles.all(), self._runtime.clock.now())
        return self._pages.page(
            "queues.html",
            status,
            rows=rows,
            owners=sorted({one.ref.owner for one in known}, key=str.lower),
            total=len(known),
            number=number,
            has_more=start + SHOWN_MAX < len(known),
            created=created,
            error=error or troubled,
            csrf=session.csrf,
            install_url=session.install_url,
            administrator=await self._administrator(request),
            sign_in=f"/login?next={PATH}",
            names=ADMINISTRATOR,
        )

    async def _row(self, repository: RepositoryRecord) -> Row:
        branch = repository.default_branch
        having = await queue_access.branches_with_queue(self._runtime, repository)
        if branch in having:
            return Row(repository, branch, RequiredSet(), has_queue=True)
        try:
            resolved, reading = await self._resolved(repository, branch)
        except ProviderError as trouble:
            return Row(repository, branch, RequiredSet(), problem=trouble.message)
        return Row(
            repository,
            branch,
            resolved.required,
            _method_of(reading) or queues.first_method(repository, resolved),
            rule_notes.rule_notes(resolved.required.notes),
            () if reading is None else reading.faults,
            problem=problem_of(repository, branch, resolved),
        )


def _method_of(reading: Reading | None) -> MergeMethod | None:
    """Return the merge method that the repository file sets."""
    method = None if reading is None else reading.settings.get("merge_method")
    return method if isinstance(method, MergeMethod) else None


def problem_of(repository: RepositoryRecord, branch: str, resolved: Resolved) -> str:
    """Return why a branch cannot have a queue now, and what to do; empty if it can."""
    if repository.archived:
        return "The repository is archived. Unarchive it on GitHub."
    if resolved.owned:
        return f"GitHub's own merge queue owns {branch}. Remove that rule to use Headgate here."
    if resolved.error is not None:
        return f"The required checks of {branch} cannot be read: {resolved.error}"
    if not resolved.required.names:
        return (
            f"{branch} requires no checks, so the queue would test nothing. Require the checks of "
            "your CI by branch protection or a ruleset on GitHub, then reload this page."
        )
    if queues.first_method(repository, resolved) is None:
        return f"No merge method is allowed for {branch}. Allow one in the repository's settings."
    return ""

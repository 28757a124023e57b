"""Calls to GitHub: tokens, rate limits, redirects, paging, retries, and errors from answers.

`GitHubClient` is one host, `RepositoryClient` one repository there at one priority. A read is
repeated; a write is sent once and raises OutcomeUnknown when its answer is lost.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlencode

from cachetools import LRUCache

from bot.github import auth, limits, pacing
from bot.github.caches import Caches
from bot.github.limits import Limit
from bot.github.options import GitHubOptions, is_limited, write_spacing_s
from bot.github.pacing import AnonymousShare, CallKind, Cost, Outage, Pacer, Priority
from bot.github.reading import Fields, Unreadable
from bot.github.troubles import HostTroubles
from bot.github.wire import REDIRECTS, TOTAL_S, Answer, Broken, Exchange, Observer, Wire
from service.clock import Clock
from service.parsers import Parsers
from service.provider.errors import (
    Gone,
    GoneKind,
    OutcomeUnknown,
    ProviderError,
    Suspended,
    Throttled,
    Unavailable,
)
from service.telemetry import SILENT, Meter
from service.troubles import Troubles
from service.vocabulary import RepoRef

LIMITED_TRIES = 3
LANDING_SEND_S = 8.0  # less is not worth sending
CACHED_TOTAL_MAX = 16 * 1024 * 1024  # of JSON, which takes a few times as much when it is parsed
CACHED_BYTES_MAX = 256 * 1024
CACHED_ROW_BYTES = 3000  # headers and address of an answer
PAGES_MAX = 50
PER_PAGE = 100
ABSENT = (404, 409, 422)  # missing; the repository is empty; not a commit

Query = Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call. `tail` is below the repository's address; the caller reads `expects` statuses.

    `missing`: what a 404 means while the repository exists. `is_kept`: the answer may be cached
    and revalidated by its ETag. `is_read`: may be sent twice. `is_seen`: it writes what people
    see, which GitHub may limit as content. `until_s`: when its answer must be there, by the
    monotonic clock. `is_moved`: it followed a rename already.
    """

    repo: RepoRef
    priority: Priority
    method: str
    tail: str = ""
    query: Query | None = None
    body: Mapping[str, object] | None = None
    expects: tuple[int, ...] = ()
    missing: GoneKind = GoneKind.BRANCH
    is_read: bool = False
    is_seen: bool = False
    is_kept: bool = False
    is_graphql: bool = False
    is_moved: bool = False
    until_s: float | None = None

    @property
    def resource(self) -> str:
        """The primary rate limit that it counts against."""
        return "graphql" if self.is_graphql else "core"

    @property
    def cost(self) -> Cost:
        """The points and limits of GitHub that the call uses."""
        if self.is_read:
            return Cost(self.priority, False, 1, resource=self.resource)
        is_content = limits.creates_content(self.method, self.tail)
        return Cost(self.priority, True, 5, is_content, self.is_seen, self.resource)


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer that a 304 confirms."""

    etag: str
    answer: Answer
    size: int


class GitHubClient:
    """State shared by all calls to one host: connections, tokens, rate limiters, caches."""

    def __init__(
        self,
        options: GitHubOptions,
        clock: Clock,
        telemetry: Meter = SILENT,
        parsers: Parsers | None = None,
        troubles: Troubles | None = None,
    ) -> None:
        self.options = options
        self.clock = clock
        self.parsers = parsers or Parsers()
        self._telemetry = telemetry
        self._troubles = HostTroubles(options.host, clock, troubles or Troubles(clock))
        self._wire = Wire(options, self._troubles, telemetry)
        self._pacers: dict[str, Pacer] = {}
        self.tokens = auth.Tokens(self._wire, options, clock, self._troubles, self._pacer)
        self.caches = Caches()
        self._answers: LRUCache[tuple[str, str], CachedAnswer] = LRUCache(
            CACHED_TOTAL_MAX, lambda cached: cached.size + CACHED_ROW_BYTES
        )
        self._outage = Outage(clock)
        self._anonymous = AnonymousShare(clock)

    async def close(self) -> None:
        """Close every connection."""
        await self._wire.close()

    def observe(self, observer: Observer | None) -> None:
        """Show each exchange from now on to an observer; None: to no one."""
        self._wire.observer = observer

    async def run(self, call: Call) -> Answer:
        """Return the answer of a call that succeeded or has an expected status, else raise.

        A landing is sent and answered within 15 s or not at all, since its permit lives 30 s.
        """
        if call.is_read:
            return await self._read(call)
        if call.priority is Priority.LANDING:
            call = replace(call, until_s=self.clock.monotonic_s() + TOTAL_S)
        return await self._write(call)

    async def app_call(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> Answer:
        """Call a path of the API, or a next page, as the App itself."""
        answer = await self.tokens.as_app(method, self._absolute(path), body)
        if answer.status >= 400:
            raise self.error_of(answer, path)
        return answer

    async def slug(self) -> str:
        """Return the App's name in addresses, read once unless an answer contained it before."""
        return self.tokens.slug or await self.read_slug()

    async def read_slug(self) -> str:
        """Return the same, read now: the App may have been renamed."""
        self.tokens.slug = slug = (await self.app_call("GET", "/app")).fields.text("slug")
        return slug

    async def installation_call(self, installation: str, path: str) -> Answer:
        """Read with a token for all of an installation; only to list repositories."""
        answer = await self._as_installation(installation, path)
        if answer.status == 401:
            answer = await self._as_installation(installation, path)
        if answer.status >= 300:
            raise self.error_of(answer, path)
        return answer

    async def _as_installation(self, installation: str, path: str) -> Answer:
        grant = await self.tokens.of_installation(installation)
        url = self._absolute(path)
        async with self._pacer(installation).turn(Cost(Priority.SWEEP, False, 1)):
            try:
                answer = await self._wire.send(Exchange("GET", url, grant.token, False))
            except Broken as failure:
                raise self._unavailable(failure.message) from failure
        self.tokens.obey(answer, installation)
        if answer.status == 401:
            self.tokens.refuse(grant)
        return answer

    async def _read(self, call: Call) -> Answer:
        words = ""
        for attempt in range(limits.READ_TRIES):
            if attempt:
                seed = f"{call.tail} {self.clock.monotonic_s()}"
                await self.clock.sleep(limits.retry_wait_s(attempt - 1, seed))
            try:
                answer = await self._attempt(call)
            except Broken as failure:
                words = failure.message
                continue
            if answer.status < 500:
                self._outage.answered()
                return await self._accepted(call, answer)
            words = f"GitHub answered {answer.status}"
        raise self._unavailable(words)

    async def _write(self, call: Call) -> Answer:
        what = f"{call.method} {call.tail}"
        try:
            answer = await self._attempt(call)
        except Broken as failure:
            if not failure.sent:
                raise self._unavailable(failure.message) from failure
            raise OutcomeUnknown(f"{what}: {failure.message}.") from failure
        if answer.status >= 500:
            raise OutcomeUnknown(f"{what}: GitHub answered {answer.status}.")
        self._outage.answered()
        if answer.status in REDIRECTS:
            return await self._write(await self._redirected(call))
        return await self._accepted(call, answer)

    async def _redirected(self, call: Call) -> Call:
        """Return the same call at the repository's new name. A landing never follows a rename."""
        if call.priority is Priority.LANDING or call.is_moved:
            raise self._unavailable(f"{call.repo.slug} has another name now")
        repository = (await self.run(_repository_read(call))).fields
        owner, _, name = repository.text("full_name").partition("/")
        moved = RepoRef(call.repo.host, owner, name)
        self.tokens.learn(moved, repository.id("id"))
        return replace(call, repo=moved, is_moved=True)

    async def _attempt(self, call: Call) -> Answer:
        """Send the call; wait for a rate limit, and renew an expired token once.

        GitHub did nothing when it answers with a limit or a 401, so a write may be sent again.
        """
        answer = await self._send(call)
        if answer.status == 401:
            answer = await self._send(call)
        for _ in range(LIMITED_TRIES):
            limit = limits.limit_in(answer, self.clock.now())
            if limit is None:
                return answer
            await self._obey(call, limit)
            answer = await self._send(call)
        return answer

    async def _obey(self, call: Call, limit: Limit) -> None:
        grant = await self.tokens.of(call.repo)
        pacer = self._pacer(grant.installation)
        wait_s = pacer.strike(limit, call.resource)
        later = self.clock.now() + timedelta(seconds=wait_s)
        if limit.is_primary:
            until = pacer.spent_until(call.resource)
            self._troubles.spent(call.repo.owner, call.resource, until)
        else:
            self._troubles.asked_to_wait(call.repo.owner, later)
        impatient = call.priority is Priority.LANDING or wait_s > pacing.PATIENCE_S
        if impatient:
            raise Throttled("GitHub's rate limit is used up for now.", later)
        await self.clock.sleep(wait_s)

    async def _send(self, call: Call) -> Answer:
        grant = await self.tokens.of(call.repo)
        pacer = self._pacer(grant.installation)
        if call.priority is Priority.ANONYMOUS:
            left = pacer.left_of(call.resource)
            self._anonymous.take(grant.installation, call.repo.slug, left)
        url = self._url(call)
        key = (f"{grant.installation} {call.repo.slug}", url)
        cached = self._answers.get(key) if call.is_kept else None
        etag = None if cached is None else cached.etag
        async with pacer.turn(call.cost):
            within_s, asked_s = self._time_left_s(call), self.clock.monotonic_s()
            is_landing = call.priority is Priority.LANDING
            exchange = Exchange(
                call.method, url, grant.token, False, call.body, etag, within_s, is_landing
            )
            answer = await self._wire.send(exchange, follows=call.is_read)
        pacer.note(answer.headers)
        is_free = cached is not None and answer.status == 304
        pacer.counts.add(CallKind.FREE_READ if is_free else call.cost.kind)
        self._report_left()
        if answer.status == 401:
            self.tokens.refuse(grant)
        if answer.status < 400:
            pacer.reset_strikes()
        if limits.limit_in(answer, self.clock.now()) is None:
            owner, until = call.repo.owner, pacer.spent_until(call.resource)
            self._troubles.spent(owner, call.resource, until)
            self._troubles.unlimited(owner, asked_s)
        if cached is not None and is_free:
            return cached.answer
        if call.is_kept and answer.status == 200:
            self._cache(key, answer)
        return answer

    def _report_left(self) -> None:
        pacers = self._pacers.values()
        left = [pacer.remaining for pacer in pacers if pacer.remaining is not None]
        if left:
            self._telemetry.level("headgate_provider_rate_limit_remaining", min(left))
        content = [pacer.content_left for pacer in pacers if pacer.content_left is not None]
        if content:
            self._telemetry.level("headgate_provider_content_remaining", min(content))

    def _time_left_s(self, call: Call) -> float:
        if call.until_s is None:
            return TOTAL_S
        left_s = call.until_s - self.clock.monotonic_s()
        if left_s < LANDING_SEND_S:
            raise self._unavailable("it took too long until the landing could be sent")
        return left_s

    def _cache(self, key: tuple[str, str], answer: Answer) -> None:
        etag, length = answer.headers.get("etag"), answer.headers.get("content-length", "0")
        # When a list grows, a full page stays the same, and 304 would hide the page behind it.
        is_full_end = answer.next_page is None and answer.size >= PER_PAGE
        if etag and length.isdecimal() and int(length) <= CACHED_BYTES_MAX and not is_full_end:
            self._answers[key] = CachedAnswer(etag, answer, int(length))

    async def _accepted(self, call: Call, answer: Answer) -> Answer:
        if answer.status < 300 or answer.status in call.expects:
            return answer
        if answer.status in (404, 410, 451):
            raise await self._gone(call, answer)
        raise self.error_of(answer, call.tail)

    async def _gone(self, call: Call, answer: Answer) -> ProviderError:
        """Return what is gone, after a read of the repository itself."""
        if call.tail or call.is_graphql:
            try:
                await self.run(_repository_read(call))
            except Gone as gone:
                return gone
            words = answer.message or "Not Found"
            return Gone(f"{call.repo.slug}{call.tail}: {words}", call.missing)
        self.tokens.forget_name(call.repo)
        try:
            await self.tokens.of(call.repo)
        except (Gone, Suspended) as lost:
            return lost
        return Gone(f"{call.repo.slug} is gone.", GoneKind.REPOSITORY)

    def error_of(self, answer: Answer, path: str) -> ProviderError:
        """Return the error that a refusal means when its status was not expected."""
        error = limits.error_of(answer, path, self.clock.now())
        return error or self._unavailable(limits.words_of(answer))

    def _unavailable(self, words: str) -> Unavailable:
        later = self.clock.now() + timedelta(seconds=self._outage.failed())
        return Unavailable(f"GitHub cannot be used now: {words}.", later)

    def pacer_of(self, repo: RepoRef) -> Pacer | None:
        """Return the limiter of a repository; None before the first call to it."""
        installation = self.tokens.installation_of(repo)
        return None if installation is None else self._pacer(installation)

    def _pacer(self, installation: str) -> Pacer:
        if installation not in self._pacers:
            self._pacers[installation] = Pacer(
                self.clock,
                write_spacing_s(self.options),
                self._telemetry,
                is_limited=is_limited(self.options),
            )
        return self._pacers[installation]

    def _absolute(self, path: str) -> str:
        root = self.options.addresses.api
        return path if path.startswith(f"{root}/") else root + path

    def _url(self, call: Call) -> str:
        if call.is_graphql:
            return self.options.addresses.graphql
        if call.tail.startswith(self.options.addresses.api + "/"):
            return call.tail
        query = f"?{urlencode(call.query)}" if call.query else ""
        return f"{self.options.addresses.of_repository(call.repo)}{call.tail}{query}"


@dataclass(frozen=True, slots=True)
class RepositoryClient:
    """Calls to one repository at one priority."""

    github: GitHubClient
    repo: RepoRef
    priority: Priority

    @property
    def clock(self) -> Clock:
        """The clock that every wait uses."""
        return self.github.clock

    @property
    def caches(self) -> Caches:
        """The caches of the host's repositories."""
        return self.github.caches

    async def get(
        self,
        tail: str,
        query: Query | None = None,
        *,
        expects: tuple[int, ...] = (),
        missing: GoneKind = GoneKind.BRANCH,
        is_kept: bool = False,
    ) -> Answer:
        """Read below the repository's address."""
        call = replace(self._call("GET", tail, expects, missing), query=query)
        return await self.github.run(replace(call, is_read=True, is_kept=is_kept))

    async def find(
        self,
        tail: str,
        query: Query | None = None,
        *,
        absent: tuple[int, ...] = ABSENT,
        is_kept: bool = False,
    ) -> Answer | None:
        """Read what may not exist; None on an `absent` status. Raises Gone(REPOSITORY)."""
        answer = await self.get(tail, query, expects=absent, is_kept=is_kept)
        if answer.status not in absent:
            return answer
        if answer.status == 404:
            await self.check_repository()
        return None

    async def check_repository(self) -> None:
        """Raise Gone when the whole repository is gone, which a 404 below it may mean."""
        await self.get("", is_kept=True)

    async def pages(
        self,
        tail: str,
        member: str | None = None,
        query: Query | None = None,
        *,
        missing: GoneKind = GoneKind.BRANCH,
        is_kept: bool = False,
    ) -> AsyncIterator[Answer]:
        """Yield every page of a list, at most 50; the last may still name a next one."""
        asked: Query | None = {"per_page": PER_PAGE, **(query or {})}
        for _ in range(PAGES_MAX):
            answer = await self.get(tail, asked, missing=missing, is_kept=is_kept)
            yield answer if member is None else _member_of(answer, member)
            if answer.next_page is None:
                return
            tail, asked, missing = self._checked(answer.next_page), None, GoneKind.BRANCH

    async def listed(
        self,
        tail: str,
        member: str | None = None,
        query: Query | None = None,
        *,
        missing: GoneKind = GoneKind.BRANCH,
        is_kept: bool = False,
    ) -> tuple[tuple[Fields, ...], bool]:
        """Return the members of a list, and whether these are all."""
        members: list[Fields] = []
        complete = True
        async for page in self.pages(tail, member, query, missing=missing, is_kept=is_kept):
            members += page.objects
            complete = page.next_page is None
        return tuple(members), complete

    async def send(
        self,
        method: str,
        tail: str,
        body: Mapping[str, object] | None = None,
        *,
        expects: tuple[int, ...] = (),
    ) -> Answer:
        """Write once. Raises OutcomeUnknown when the answer was lost."""
        call = self._call(method, tail, expects, GoneKind.BRANCH)
        return await self.github.run(replace(call, body=body))

    async def create(
        self,
        method: str,
        tail: str,
        body: Mapping[str, object],
        *,
        expects: tuple[int, ...] = (),
        missing: GoneKind = GoneKind.PULL_REQUEST,
    ) -> Answer:
        """Like `send`, for what people see, which GitHub may limit as content."""
        call = self._call(method, tail, expects, missing)
        return await self.github.run(replace(call, body=body, is_seen=True))

    async def graphql(
        self, document: str, variables: Mapping[str, object], *, is_mutation: bool = False
    ) -> Answer:
        """Run a document; the caller reads the errors inside a 200."""
        call = replace(self._call("POST", "", (), GoneKind.BRANCH), is_graphql=True)
        body = {"query": document, "variables": variables}
        return await self.github.run(replace(call, body=body, is_read=not is_mutation))

    def _call(self, method: str, tail: str, expects: tuple[int, ...], missing: GoneKind) -> Call:
        return Call(
            repo=self.repo,
            priority=self.priority,
            method=method,
            tail=tail,
            expects=expects,
            missing=missing,
        )

    def _checked(self, url: str) -> str:
        """Return the address of a next page; our token is sent to no other host."""
        if not url.startswith(self.github.options.addresses.api + "/"):
            raise Unreadable("next page: at another host")
        return url


def _member_of(answer: Answer, member: str) -> Answer:
    return replace(answer, content=answer.fields.members(member))


def _repository_read(call: Call) -> Call:
    """Return the read of the repository that a call is about."""
    return Call(
        repo=call.repo,
        priority=call.priority,
        method="GET",
        missing=call.missing,
        is_read=True,
        until_s=call.until_s,
    )

"""Calls to GitHub: tokens, turns, redirects, paging, retries, and answers as errors.

A read is repeated, a write is sent once; that its answer was lost is said by OutcomeUnknown.
What to call is not known here: `line.py` says it for one repository.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlencode

from cachetools import LRUCache

from bot.github import auth, limits, pacing, paths
from bot.github.fields import Fields
from bot.github.limits import Finding, Trouble
from bot.github.options import GitHubOptions, is_limited, write_spacing_s
from bot.github.outage import Outage
from bot.github.pacing import Cost, Pacer, Priority
from bot.github.strangers import Strangers
from bot.github.wire import REDIRECTS, TOTAL_S, Answer, Broken, Exchange, Wire
from service.clock import Clock
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    OutcomeUnknown,
    ProviderError,
    Refused,
    RefusedCode,
    Suspended,
    Throttled,
    Unavailable,
)
from service.telemetry import SILENT, Meter
from service.vocabulary import RepoRef

REDIRECTS_MAX = 3
LIMITED_TRIES = 3
LANDING_SEND_S = 8.0  # less is not worth sending
KEPT_ANSWERS_MAX = 5000
KEPT_BYTES_MAX = 256 * 1024
QUOTE_CHARS_MAX = 300
RATE_LIMITED = "RATE_LIMITED"

Query = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `tail` stands below the repository; `expects` are statuses the caller reads.

    `missing`: what a 404 means once the repository was seen to be there. `is_kept`: the answer
    may be kept and asked for again by its ETag. `is_read`: may be sent twice. `until_s`: by the
    monotonic clock, when its answer must be there. `is_moved`: it followed a rename already.
    """

    repo: RepoRef
    priority: Priority
    method: str
    tail: str
    query: Query
    body: Mapping[str, object] | None
    expects: frozenset[int]
    missing: GoneKind
    is_read: bool
    is_content: bool = False
    is_kept: bool = False
    is_graphql: bool = False
    is_moved: bool = False
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that a 304 brings back."""

    etag: str
    answer: Answer


class Client:
    """Everything of one host that all lines share: connections, tokens, limiters, ETags."""

    def __init__(self, options: GitHubOptions, clock: Clock, telemetry: Meter = SILENT) -> None:
        self.options = options
        self.clock = clock
        self._telemetry = telemetry
        self._wire = Wire(options, telemetry)
        self.tokens = auth.Tokens(self._wire, options, clock)
        self._pacers: dict[str, Pacer] = {}
        self._kept: LRUCache[tuple[str, str], Kept] = LRUCache(KEPT_ANSWERS_MAX)
        self._outage = Outage(clock)
        self._strangers = Strangers(clock)

    async def close(self) -> None:
        """Let go of connections."""
        await self._wire.close()

    async def run(self, call: Call) -> Answer:
        """Make the call; its answer if it succeeded or its status was expected, else an error.

        A landing is sent and answered within 15 s or not at all: a permit lives 30.
        """
        if call.is_read:
            return await self._read(call)
        if call.priority is Priority.LANDING:
            call = replace(call, until_s=self.clock.monotonic_s() + TOTAL_S)
        return await self._write(call)

    async def app_call(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> Answer:
        """A call in the App's own name, to a path of the API or to a next page of it."""
        root = self.options.addresses.api
        answer = await self.tokens.as_app(
            method, path if path.startswith(root) else root + path, body
        )
        if answer.status >= 400:
            raise self.error_of(answer, path)
        return answer

    async def slug(self) -> str:
        """The App's name in addresses, asked once when no answer has told it before."""
        if self.tokens.slug is None:
            self.tokens.slug = (await self.app_call("GET", "/app")).fields.text("slug")
        return self.tokens.slug

    async def installation_call(self, installation: str, path: str) -> Answer:
        """A read with a token for all of an installation; only to list repositories."""
        root = self.options.addresses.api
        grant = await self.tokens.of_installation(installation)
        url = path if path.startswith(root) else root + path
        async with self._pacer(installation).turn(Cost(Priority.SWEEP, False, 1)):
            try:
                answer = await self._wire.send(Exchange("GET", url, grant.token, False))
            except Broken as failure:
                raise self._unavailable(failure.message) from failure
        if answer.status >= 300:
            raise self.error_of(answer, path)
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
            return await self._write(await self._elsewhere(call))
        return await self._accepted(call, answer)

    async def _elsewhere(self, call: Call) -> Call:
        """The same call where the repository is now; never a landing (GITHUB.md 2.2)."""
        if call.priority is Priority.LANDING or call.is_moved:
            raise self._unavailable(f"{call.repo.slug} has another name now")
        found = await self.run(
            replace(call, method="GET", tail="", body=None, is_read=True, is_content=False)
        )
        owner, _, name = found.fields.text("full_name").partition("/")
        moved = RepoRef(call.repo.host, owner, name)
        self.tokens.learn(moved, found.fields.id("id"))
        return replace(call, repo=moved, is_moved=True)

    async def _attempt(self, call: Call) -> Answer:
        """One try with its turn: limits waited out, an expired token renewed once.

        Neither a limit nor a 401 has done anything, so writes may go on as well.
        """
        answer = await self._send(call)
        if answer.status == 401:
            self.tokens.drop(call.repo)
            answer = await self._send(call)
        for _ in range(LIMITED_TRIES):
            finding = _limit_of(answer)
            if finding is None:
                return answer
            await self._obey(call, finding)
            answer = await self._send(call)
        return answer

    async def _obey(self, call: Call, finding: Finding) -> None:
        grant = await self.tokens.of(call.repo)
        wait_s = self._pacer(grant.installation).strike(finding, _resource(call))
        impatient = call.priority is Priority.LANDING or wait_s > pacing.PATIENCE_S
        if impatient:
            later = self.clock.now() + timedelta(seconds=wait_s)
            raise Throttled("GitHub's rate limit is used up for now.", later)
        await self.clock.sleep(wait_s)

    async def _send(self, call: Call) -> Answer:
        grant = await self.tokens.of(call.repo)
        pacer = self._pacer(grant.installation)
        if call.priority is Priority.STRANGER:
            left = pacer.left_of(_resource(call))
            self._strangers.take(grant.installation, call.repo.slug, left)
        url = self._url(call)
        key = (f"{grant.installation} {call.repo.slug}", url)
        kept = self._kept.get(key) if call.is_kept else None
        exchange = Exchange(call.method, url, grant.token, False, call.body)
        async with pacer.turn(_cost(call)):
            answer = await self._follow(
                replace(
                    exchange,
                    etag=None if kept is None else kept.etag,
                    within_s=self._time_left_s(call),
                ),
                follows=call.is_read,
            )
        pacer.note(answer.headers)
        self._tell_remaining()
        if answer.status < 400:
            pacer.fine()
        if kept is not None and answer.status == 304:
            return kept.answer
        if call.is_kept and answer.status == 200:
            self._keep(key, answer)
        return answer

    def _tell_remaining(self) -> None:
        left = [one for pacer in self._pacers.values() if (one := pacer.remaining) is not None]
        if left:
            self._telemetry.level("headgate_provider_rate_limit_remaining", min(left))

    def _time_left_s(self, call: Call) -> float:
        if call.until_s is None:
            return TOTAL_S
        left_s = call.until_s - self.clock.monotonic_s()
        if left_s < LANDING_SEND_S:
            raise self._unavailable("it took too long until the landing could be sent")
        return left_s

    async def _follow(self, exchange: Exchange, *, follows: bool) -> Answer:
        """The answer, through redirects on the same host for what may be sent twice."""
        root = self.options.addresses.api + "/"
        answer = await self._wire.send(exchange)
        for _ in range(REDIRECTS_MAX):
            location = answer.headers.get("location", "")
            if not (follows and answer.status in REDIRECTS and location.startswith(root)):
                break
            answer = await self._wire.send(replace(exchange, url=location))
        return answer

    def _keep(self, key: tuple[str, str], answer: Answer) -> None:
        etag, length = answer.headers.get("etag"), answer.headers.get("content-length", "0")
        if etag and length.isdecimal() and int(length) <= KEPT_BYTES_MAX:
            self._kept[key] = Kept(etag, answer)

    async def _accepted(self, call: Call, answer: Answer) -> Answer:
        if answer.status < 300 or answer.status in call.expects:
            return answer
        if answer.status in (404, 410, 451):
            raise await self._gone(call, answer)
        raise self.error_of(answer, call.tail)

    async def _gone(self, call: Call, answer: Answer) -> ProviderError:
        """What is gone, after a second read one level up (GITHUB.md 2.5)."""
        if call.tail or call.is_graphql:
            above = replace(
                call, method="GET", tail="", query={}, body=None, is_read=True, is_graphql=False
            )
            try:
                await self.run(replace(above, expects=frozenset(), is_kept=False))
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
        """What a refusal means where its status was not expected."""
        words = quoted(answer.message) or f"GitHub answered {answer.status}."
        finding = limits.finding_of(answer.status, answer.headers, answer.message)
        match None if finding is None else finding.trouble:
            case Trouble.SUSPENDED:
                return Suspended("The owner has suspended the App.")
            case Trouble.WORKFLOWS:
                return Refused(words, RefusedCode.WORKFLOWS)
            case Trouble.FORBIDDEN | Trouble.UNAUTHORIZED:
                return NotPermitted(words, limits.permission_of(path, answer.headers))
            case Trouble.REFUSED:
                return Refused(words, limits.refusal_of(answer.message))
            case Trouble.MISSING | Trouble.GONE:
                return Gone(words, GoneKind.REPOSITORY)
            case Trouble.SECONDARY | Trouble.PRIMARY:
                later = self.clock.now() + timedelta(seconds=limits.SECONDARY_S)
                return Throttled("GitHub's rate limit is used up for now.", later)
            case _:
                return self._unavailable(words)

    def _unavailable(self, words: str) -> Unavailable:
        later = self.clock.now() + timedelta(seconds=self._outage.failed())
        return Unavailable(f"GitHub cannot be used now: {words}.", later)

    def _pacer(self, installation: str) -> Pacer:
        if installation not in self._pacers:
            self._pacers[installation] = Pacer(
                self.clock,
                write_spacing_s(self.options),
                is_limited=is_limited(self.options),
            )
        return self._pacers[installation]

    def _url(self, call: Call) -> str:
        if call.is_graphql:
            return self.options.addresses.graphql
        if call.tail.startswith(self.options.addresses.api + "/"):
            return call.tail
        query = f"?{urlencode(call.query)}" if call.query else ""
        return f"{self.options.addresses.api}{paths.of_repository(call.repo)}{call.tail}{query}"


def quoted(words: str) -> str:
    """GitHub's words, short enough to keep."""
    return words if len(words) <= QUOTE_CHARS_MAX else words[: QUOTE_CHARS_MAX - 1] + "…"


def _resource(call: Call) -> str:
    return "graphql" if call.is_graphql else "core"


def _cost(call: Call) -> Cost:
    if call.is_read:
        return Cost(call.priority, False, 1, resource=_resource(call))
    return Cost(call.priority, True, 5, call.is_content, _resource(call))


def _limit_of(answer: Answer) -> Finding | None:
    """The limit that an answer tells of; GraphQL says it inside a success."""
    if answer.status == 200 and isinstance(answer.content, dict) and "errors" in answer.content:
        kinds = [error.words("type") for error in Fields(answer.content).each("errors")]
        if RATE_LIMITED in kinds:
            reset = answer.headers.get("x-ratelimit-reset", "")
            return Finding(Trouble.PRIMARY, reset=float(reset) if reset.isdecimal() else None)
    finding = limits.finding_of(answer.status, answer.headers, answer.message)
    limited = finding is not None and finding.trouble in (Trouble.SECONDARY, Trouble.PRIMARY)
    return finding if limited else None

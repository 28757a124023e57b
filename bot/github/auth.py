"""Authentication: the App's JWT and the tokens of its installations.

Tokens are kept in memory only, each for one installation and one repository. They are never
logged and appear only in request headers.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import jwt
import structlog

from bot.github import limits, told_times
from bot.github.options import GitHubOptions
from bot.github.pacing import Pacer
from bot.github.reading import permissions_of
from bot.github.troubles import HostTroubles
from bot.github.wire import Answer, Broken, Exchange, Wire
from service.clock import Clock
from service.provider.errors import (
    AppRefused,
    Gone,
    GoneKind,
    NotPermitted,
    ProviderError,
    Suspended,
    Throttled,
    Unavailable,
)
from service.vocabulary import RepoRef

BACKDATED_S = 60
LIFETIME_S = 540  # GitHub's limit is 600
REUSED_S = 300
SKEW_MAX_S = 30
"""By so much this machine's clock may differ from GitHub's; a larger difference is corrected."""
CORRECTED_MAX = 2
"""A call is signed so often by a time that its refusal tells: that of a proxy may come and go."""
EARLY_S = 300
KEPT_MIN_S = 60
"""A token is kept at least so long, or an end in the past would make each call ask for another."""
LOOKUP_KEPT_S = 3600

AS_APP = ""
"""In place of an installation: the App itself, which has limits of its own."""

log = structlog.get_logger()


REFUSED_KEY = (
    "GitHub refuses the App's key: an operator must check the App's id and its private key in the "
    "settings."
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token, what it may do, and the installation whose rate limits it counts against.

    `renew_s`: when to replace it, in seconds of the monotonic clock.
    """

    token: str = field(repr=False)
    installation: str
    renew_s: float
    permissions: Mapping[str, str]


@dataclass(slots=True)
class Credentials:
    """The credentials of one repository, its installation and its token; or of an installation.

    `failure` is why the newest of `failures` attempts to get a token failed.
    """

    installation: str | None = None
    looked_up_s: float = 0.0
    token: Token | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failure: ProviderError | None = None
    failures: int = 0


class Tokens:
    """Mints, stores and renews tokens, one call at a time for each repository.

    GitHub limits the App itself apart from its installations: `pacer_of` gives the limiter of an
    installation, and that of the App for `AS_APP`.
    """

    def __init__(
        self,
        wire: Wire,
        options: GitHubOptions,
        clock: Clock,
        troubles: HostTroubles,
        pacer_of: Callable[[str], Pacer],
    ) -> None:
        self._wire = wire
        self._pacer_of = pacer_of
        self._troubles = troubles
        self._options = options
        self._clock = clock
        self._seats: dict[str, Credentials] = defaultdict(Credentials)
        self._ids: dict[str, str] = {}
        self._wide: dict[str, Credentials] = defaultdict(Credentials)
        self._signed: tuple[float, datetime, str] | None = None
        self._ahead = timedelta()
        self._doubts_date = False
        self._key = 0
        self.slug = options.slug

    def learn(self, repo: RepoRef, repository_id: str) -> None:
        """Remember a repository's number, by which its tokens are narrowed."""
        self._ids[repo.slug.lower()] = repository_id

    def installation_of(self, repo: RepoRef) -> str | None:
        """Return the installation of a repository if it is known; makes no call."""
        seat = self._seats.get(repo.slug.lower())
        return None if seat is None else seat.installation

    def drop(self, repo: RepoRef) -> None:
        """Forget the token and the installation of a repository."""
        seat = self._seats[repo.slug.lower()]
        seat.token, seat.installation = None, None

    def refuse(self, token: Token) -> None:
        """Forget a token that GitHub refused, wherever it is; one that replaced it stays."""
        for seat, kept in self._kept():
            if kept is token:
                seat.token, seat.installation = None, None

    def learn_rights(self, installation: str, permissions: Mapping[str, str]) -> None:
        """Forget the tokens of an installation that were minted with other rights than these."""
        for seat, kept in self._kept():
            if kept.installation == installation and kept.permissions != permissions:
                seat.token = None

    def _kept(self) -> Iterator[tuple[Credentials, Token]]:
        """Yield every token with its place."""
        for seat in (*self._seats.values(), *self._wide.values()):
            if seat.token is not None:
                yield seat, seat.token

    def forget_name(self, repo: RepoRef) -> None:
        """Forget the number behind a name, which may belong to another repository now."""
        self._ids.pop(repo.slug.lower(), None)
        self.drop(repo)

    async def of(self, repo: RepoRef) -> Token:
        """Return a token for one repository that is valid for at least 5 minutes.

        Raises Suspended, Gone, NotPermitted, Unavailable.
        """
        seat = self._seats[repo.slug.lower()]
        return await _shared(seat, lambda: self._grant(repo, seat))

    async def _grant(self, repo: RepoRef, seat: Credentials) -> Token:
        installation = await self._installation(repo, seat)
        return await self._renewed(seat, installation, repo)

    async def of_installation(self, installation: str) -> Token:
        """Return a token for all of an installation; only to list or find its repositories."""
        seat = self._wide[installation]
        return await _shared(seat, lambda: self._renewed(seat, installation, None))

    async def _renewed(self, seat: Credentials, installation: str, repo: RepoRef | None) -> Token:
        """Return the token of a place, a new one if there is none or it is old.

        It is narrowed to the repository if there is one.
        """
        if seat.token is None or self._clock.monotonic_s() >= seat.token.renew_s:
            number = None if repo is None else await self._id_of(repo, installation)
            body = {} if number is None else {"repository_ids": [int(number)]}
            seat.token = await self._mint(installation, body)
        return seat.token

    async def as_app(self, method: str, url: str, body: Mapping[str, object] | None) -> Answer:
        """Call as the App itself; after a 401 the call is repeated with the next key.

        A token that a wrong clock made is signed again by GitHub's time first. Raises AppRefused
        when no key is accepted, Unavailable, and Throttled while the App is limited.
        """
        asked_s = self._clock.monotonic_s()
        signed = self._signed_token()
        answer = await self._patiently(Exchange(method, url, signed, True, body))
        for _ in range(CORRECTED_MAX):
            used, signed = signed, self._signed_token()
            if answer.status != 401 or signed == used:
                break
            answer = await self._patiently(Exchange(method, url, signed, True, body))
        if answer.status == 401 and self._ahead:
            answer = await self._by_other_clock(Exchange(method, url, "", True, body))
        for _ in self._options.private_keys[1:]:
            if answer.status != 401:
                break
            self._key = (self._key + 1) % len(self._options.private_keys)
            self._signed = None
            answer = await self._patiently(Exchange(method, url, self._signed_token(), True, body))
        if answer.status == 401:
            self._signed = None
            self._troubles.refused()
            raise AppRefused(REFUSED_KEY)
        self._troubles.accepted()
        self._troubles.unlimited("", asked_s)
        return answer

    def obey(self, answer: Answer, installation: str, owner: str | None = None) -> None:
        """Keep the limit that an answer reports, for all calls it holds for; raise Throttled then.

        `owner`: whose limit it is, "" for the App itself; None: nobody is told of it.
        """
        pacer = self._pacer_of(installation)
        limit = limits.limit_in(answer, self._clock.now())
        if limit is None:
            if answer.status < 400:
                pacer.reset_strikes()
            return
        later = self._clock.now() + timedelta(seconds=pacer.strike(limit, "core"))
        if owner is not None:
            self._troubles.asked_to_wait(owner, later)
        raise Throttled("GitHub's rate limit is used up for now.", later)

    async def _by_other_clock(self, exchange: Exchange) -> Answer:
        """Call again by our own clock instead of the header's, or the other way; keep what works.

        A proxy between may tell any time.
        """
        self._doubts_date, self._signed = not self._doubts_date, None
        answer = await self._patiently(replace(exchange, bearer=self._signed_token()))
        if answer.status == 401:
            self._doubts_date, self._signed = not self._doubts_date, None
        return answer

    def _signed_token(self) -> str:
        """Return the App's JWT, signed anew after five minutes by either clock."""
        now_s, now = self._clock.monotonic_s(), self._their_now()
        if self._signed is not None:
            signed_s, signed_at, token = self._signed
            if now_s - signed_s < REUSED_S and abs(now - signed_at) < timedelta(seconds=REUSED_S):
                return token
        at = int(now.timestamp())
        claims = {"iat": at - BACKDATED_S, "exp": at + LIFETIME_S, "iss": self._options.app_id}
        token = jwt.encode(claims, self._options.private_keys[self._key], algorithm="RS256")
        self._signed = (now_s, now, token)
        return token

    def _their_now(self) -> datetime:
        """Return the time by GitHub's clock."""
        return self._clock.now() - (timedelta() if self._doubts_date else self._ahead)

    def _compare_clocks(self, answer: Answer) -> None:
        """Learn from an answer's header `Date` by how much this machine's clock is wrong."""
        date = answer.headers.get("date")
        if date is None:
            return
        ahead_s = told_times.skew_s(date, self._clock.now())
        ahead = timedelta(seconds=ahead_s if abs(ahead_s) > SKEW_MAX_S else 0)
        if abs(ahead - self._ahead) > timedelta(seconds=SKEW_MAX_S):
            # This machine's clock differs from GitHub's; tokens are made and kept by GitHub's.
            log.warning("clock_differs", ahead_s=round(ahead_s))
        self._ahead = ahead
        self._doubts_date = self._doubts_date and bool(ahead)

    async def _installation(self, repo: RepoRef, seat: Credentials) -> str:
        now_s = self._clock.monotonic_s()
        if seat.installation is not None and now_s - seat.looked_up_s < LOOKUP_KEPT_S:
            return seat.installation
        answer = await self.as_app(
            "GET", f"{self._options.addresses.of_repository(repo)}/installation", None
        )
        if answer.status != 200:
            raise self._lost(answer, f"{repo.slug} is gone, or the App is not installed there.")
        found = answer.fields.id("id")
        self.slug = answer.fields.text_or("app_slug", None) or self.slug
        seat.token = seat.token if seat.installation == found else None
        seat.installation, seat.looked_up_s = found, now_s
        return found

    async def _id_of(self, repo: RepoRef, installation: str) -> str:
        known = self._ids.get(repo.slug.lower())
        if known is not None:
            return known
        url = self._options.addresses.of_repository(repo)
        grant = await self.of_installation(installation)
        answer = await self._patiently(Exchange("GET", url, grant.token, False), installation)
        if answer.status == 401:
            self.refuse(grant)
            grant = await self.of_installation(installation)
            answer = await self._patiently(Exchange("GET", url, grant.token, False), installation)
        if answer.status != 200:
            raise self._lost(answer, f"{repo.slug} is gone, or the App may not see it.")
        self.learn(repo, answer.fields.id("id"))
        return answer.fields.id("id")

    async def _mint(self, installation: str, body: Mapping[str, object]) -> Token:
        url = self._url(f"/app/installations/{installation}/access_tokens")
        answer = await self.as_app("POST", url, body)
        if answer.status == 422:
            raise Gone("The repository is not in the installation.", GoneKind.REPOSITORY)
        if answer.status != 201:
            raise self._lost(answer, "The installation is gone.", GoneKind.INSTALLATION)
        left_s = (answer.fields.moment("expires_at") - self._their_now()).total_seconds()
        return Token(
            answer.fields.text("token"),
            installation,
            self._clock.monotonic_s() + max(left_s - EARLY_S, KEPT_MIN_S),
            permissions_of(answer.fields),
        )

    def _lost(
        self, answer: Answer, words: str, kind: GoneKind = GoneKind.REPOSITORY
    ) -> ProviderError:
        error = limits.error_of(answer, "", self._clock.now())
        if isinstance(error, Gone):
            return Gone(words, kind)
        if isinstance(error, Suspended | Throttled | NotPermitted) and answer.status != 401:
            return error
        return Unavailable(f"GitHub answered {answer.status}.", self._later())

    def _later(self) -> datetime:
        return self._clock.now() + timedelta(seconds=limits.UNAVAILABLE_S)

    async def _patiently(self, exchange: Exchange, installation: str = AS_APP) -> Answer:
        """Send a request, and again while GitHub cannot be used; each of these may be repeated.

        Raises Throttled, also without a request while a limit holds that was heard of.
        """
        words = ""
        for attempt in range(limits.READ_TRIES):
            if attempt:
                await self._clock.sleep(limits.retry_wait_s(attempt - 1, exchange.url))
            self._pacer_of(installation).refuse_if_closed()
            try:
                answer = await self._wire.send(exchange, follows=True)
            except Broken as failure:
                words = failure.message
            else:
                self._compare_clocks(answer)
                self.obey(answer, installation, None if installation else "")
                if answer.status < 500:
                    return answer
                words = f"GitHub answered {answer.status}"
        raise Unavailable(f"GitHub cannot be asked for a token: {words}.", self._later())

    def _url(self, path: str) -> str:
        return self._options.addresses.api + path


async def _shared(seat: Credentials, attempt: Callable[[], Awaitable[Token]]) -> Token:
    """Return the token of a place, by one attempt at a time.

    Calls that wait for the same attempt share its failure: otherwise each would wait for its own
    time-out, one after the other.
    """
    failures = seat.failures
    async with seat.lock:
        if seat.failure is not None and seat.failures != failures:
            raise seat.failure
        try:
            return await attempt()
        except ProviderError as failure:
            seat.failure, seat.failures = failure, seat.failures + 1
            if isinstance(failure, Gone | Suspended):
                seat.token, seat.installation = None, None
            raise

"""Authentication: the App's JWT and the tokens of its installations.

Tokens are kept in memory only, each for one installation and one repository. They are never
logged and appear only in request headers.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import jwt

from bot.github import limits
from bot.github.options import GitHubOptions
from bot.github.reading import permissions_of
from bot.github.wire import Answer, Broken, Exchange, Wire
from service.clock import Clock
from service.provider.errors import (
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
SKEW_MAX_S = 60
EARLY = timedelta(minutes=5)
LOOKUP_KEPT_S = 3600


@dataclass(frozen=True, slots=True)
class Token:
    """A token, what it may do, and the installation whose rate limits it counts against."""

    token: str = field(repr=False)
    installation: str
    expires_at: datetime
    permissions: Mapping[str, str]


@dataclass(slots=True)
class Credentials:
    """The credentials of one repository: its installation and its token.

    `failure` is why the newest of `failures` attempts to get a token failed.
    """

    installation: str | None = None
    looked_up_s: float = 0.0
    token: Token | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failure: ProviderError | None = None
    failures: int = 0


class Tokens:
    """Mints, stores and renews tokens, one call at a time for each repository."""

    def __init__(self, wire: Wire, options: GitHubOptions, clock: Clock) -> None:
        self._wire = wire
        self._options = options
        self._clock = clock
        self._seats: dict[str, Credentials] = defaultdict(Credentials)
        self._ids: dict[str, str] = {}
        self._wide: dict[str, Token] = {}
        self._signed: tuple[float, str] | None = None
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

    def learn_rights(self, installation: str, permissions: Mapping[str, str]) -> None:
        """Forget the tokens of an installation that were minted with other rights than these."""
        for seat in self._seats.values():
            token = seat.token if seat.installation == installation else None
            if token is not None and token.permissions != permissions:
                seat.token = None

    def forget_name(self, repo: RepoRef) -> None:
        """Forget the number behind a name, which may belong to another repository now."""
        self._ids.pop(repo.slug.lower(), None)
        self.drop(repo)

    async def of(self, repo: RepoRef) -> Token:
        """Return a token for one repository that is valid for at least 5 minutes.

        Calls that wait for the same attempt share its failure: otherwise each would wait for its
        own time-out, one after the other. Raises Suspended, Gone, NotPermitted, Unavailable.
        """
        seat = self._seats[repo.slug.lower()]
        failures = seat.failures
        async with seat.lock:
            if seat.failure is not None and seat.failures != failures:
                raise seat.failure
            try:
                return await self._grant(repo, seat)
            except ProviderError as failure:
                seat.failure, seat.failures = failure, seat.failures + 1
                if isinstance(failure, Gone | Suspended):
                    seat.token, seat.installation = None, None
                raise

    async def _grant(self, repo: RepoRef, seat: Credentials) -> Token:
        installation = await self._installation(repo, seat)
        if seat.token is None or self._is_old(seat.token):
            number = await self._id_of(repo, installation)
            seat.token = await self._mint(installation, {"repository_ids": [int(number)]})
        return seat.token

    async def of_installation(self, installation: str) -> Token:
        """Return a token for all of an installation; only to list or find its repositories."""
        token = self._wide.get(installation)
        if token is None or self._is_old(token):
            token = await self._mint(installation, {})
            self._wide[installation] = token
        return token

    async def as_app(self, method: str, url: str, body: Mapping[str, object] | None) -> Answer:
        """Call as the App itself; after a 401 the call is repeated with the next key.

        Raises NotPermitted when no key is accepted, naming a wrong clock, and Unavailable.
        """
        answer = await self._patiently(Exchange(method, url, self._signed_token(), True, body))
        for _ in self._options.private_keys[1:]:
            if answer.status != 401:
                break
            self._key = (self._key + 1) % len(self._options.private_keys)
            self._signed = None
            answer = await self._patiently(Exchange(method, url, self._signed_token(), True, body))
        if answer.status == 401:
            self._signed = None
            raise NotPermitted(self._reason(answer))
        return answer

    def _signed_token(self) -> str:
        """Return the App's JWT, which is signed anew every five minutes."""
        now_s = self._clock.monotonic_s()
        if self._signed is not None and now_s - self._signed[0] < REUSED_S:
            return self._signed[1]
        now = int(self._clock.now().timestamp())
        claims = {"iat": now - BACKDATED_S, "exp": now + LIFETIME_S, "iss": self._options.app_id}
        token = jwt.encode(claims, self._options.private_keys[self._key], algorithm="RS256")
        self._signed = (now_s, token)
        return token

    def _reason(self, answer: Answer) -> str:
        skew_s = self._skew_s(answer.headers.get("date"))
        if abs(skew_s) > SKEW_MAX_S:
            return f"This machine's clock is off by {round(skew_s)} s, so GitHub refuses the App."
        return "GitHub refuses the App's key. Make a new one and set HEADGATE_GITHUB_PRIVATE_KEY."

    def _skew_s(self, date: str | None) -> float:
        try:
            theirs = parsedate_to_datetime(date or "")
        except ValueError:
            return 0.0
        return (self._clock.now() - theirs.astimezone(UTC)).total_seconds()

    def _is_old(self, token: Token) -> bool:
        return token.expires_at - EARLY <= self._clock.now()

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
        self.slug = self.slug or answer.fields.text_or("app_slug", None)
        seat.token = seat.token if seat.installation == found else None
        seat.installation, seat.looked_up_s = found, now_s
        return found

    async def _id_of(self, repo: RepoRef, installation: str) -> str:
        known = self._ids.get(repo.slug.lower())
        if known is not None:
            return known
        grant = await self.of_installation(installation)
        url = self._options.addresses.of_repository(repo)
        answer = await self._patiently(Exchange("GET", url, grant.token, False))
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
        return Token(
            answer.fields.text("token"),
            installation,
            answer.fields.moment("expires_at"),
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

    async def _patiently(self, exchange: Exchange) -> Answer:
        """Send a request, and again while GitHub cannot be used; each of these may be repeated."""
        words = ""
        for attempt in range(limits.READ_TRIES):
            if attempt:
                await self._clock.sleep(limits.retry_wait_s(attempt - 1, exchange.url))
            try:
                answer = await self._wire.send(exchange, follows=True)
            except Broken as failure:
                words = failure.message
            else:
                if answer.status < 500:
                    return answer
                words = f"GitHub answered {answer.status}"
        raise Unavailable(f"GitHub cannot be asked for a token: {words}.", self._later())

    def _url(self, path: str) -> str:
        return self._options.addresses.api + path

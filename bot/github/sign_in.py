"""Sign-in with GitHub: the web application flow of the App's OAuth client, with PKCE.

The user access token is used once, to read who signed in, and then dropped: what a person may do
in a repository is read by the App's installation. The flow:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlencode

import aiohttp
import structlog
from gidgethub import sansio

from bot.github.options import GitHubOptions
from bot.github.reading import Fields, Unreadable
from service.clock import Clock
from service.errors import Unauthenticated
from service.provider.errors import ProviderError, Unavailable
from service.vocabulary import Actor, ActorKind, Channel

CALLBACK = "/auth/github/callback"
TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 64 * 1024
RETRY_S = 30.0
CODE_REFUSED = "bad_verification_code"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The client id and secret of the App; `root` is our public address."""

    id: str
    secret: str = field(repr=False)
    root: str


class GitHubSignIn:
    """Signs people in at one host; see `service.runtime.SignIn`."""

    name = "GitHub"
    callback = CALLBACK

    def __init__(self, options: GitHubOptions, client: OAuthClient, clock: Clock) -> None:
        self.host = options.host
        self._options = options
        self._client = client
        self._clock = clock

    def address(self, state: str, verifier: str) -> str:
        """Return GitHub's page that asks the person to sign in."""
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "client_id": self._client.id,
            "redirect_uri": self._redirect_uri,
            "state": state,
            "code_challenge": urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{self._options.addresses.web}/login/oauth/authorize?{urlencode(query)}"

    async def person_of(self, code: str, verifier: str) -> Actor:
        """Exchange the code for a token, and read with it who signed in."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as session:
                token = await self._token(session, code, verifier)
                return await self._user(session, token)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failed:
            later = self._clock.now() + timedelta(seconds=RETRY_S)
            why = str(failed) if isinstance(failed, Unreadable) else type(failed).__name__
            raise Unavailable(f"{self.host} did not say who signed in: {why}.", later) from failed

    async def _token(self, session: aiohttp.ClientSession, code: str, verifier: str) -> str:
        form = {
            "client_id": self._client.id,
            "client_secret": self._client.secret,
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        url = f"{self._options.addresses.web}/login/oauth/access_token"
        headers = {"Accept": "application/json", "User-Agent": self._options.user_agent}
        sent = session.post(
            url,
            data=form,
            headers=headers,
            allow_redirects=False,
            proxy=self._options.proxies.of(url),
        )
        answer = await _read(sent)
        error = answer.words("error")
        if error == CODE_REFUSED:
            raise Unauthenticated("GitHub does not know this code. Sign in again.")
        if error:
            # GitHub refuses the App's client id or client secret, so nobody can sign in.
            log.error("sign_in_refused", host=self.host, error=error)
            raise ProviderError(f"{self.host} refuses sign-ins of this App ({error}).")
        return answer.text("access_token")

    async def _user(self, session: aiohttp.ClientSession, token: str) -> Actor:
        headers = sansio.create_headers(self._options.user_agent, oauth_token=token)
        headers["accept"] = "application/vnd.github+json"
        headers["x-github-api-version"] = self._options.api_version
        url = f"{self._options.addresses.api}/user"
        proxy = self._options.proxies.of(url)
        user = await _read(session.get(url, headers=headers, allow_redirects=False, proxy=proxy))
        return Actor(ActorKind.PERSON, user.text("login"), user.id("id"), Channel.DASHBOARD)

    @property
    def _redirect_uri(self) -> str:
        return f"{self._client.root}{CALLBACK}"


async def _read(sent: "aiohttp.client._RequestContextManager") -> Fields:
    """Return the answer as an object. Raises ValueError for one that is none."""
    async with sent as answer:
        if answer.status != 200:
            raise Unreadable(f"status {answer.status}")
        raw = await answer.content.read(ANSWER_BYTES_MAX)
        while not answer.content.at_eof() and len(raw) < ANSWER_BYTES_MAX:
            raw += await answer.content.read(ANSWER_BYTES_MAX - len(raw))
    return Fields(json.loads(raw))

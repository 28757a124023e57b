"""One issuer of OIDC tokens: its published keys, and the claims that it signed for us.

The keys are fetched with a limit of time and size, and kept. A token with an unknown key causes a
new fetch once a minute at most, because everybody may send one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

import aiohttp
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from service.clock import Clock
from service.errors import Unauthenticated
from service.provider.errors import Unavailable

ALGORITHM = "RS256"
LEEWAY_S = 30
TOKEN_CHARS_MAX = 4_096  # GitHub's have some 1,500
KEY_BITS_MIN = 2_048
KEYS_MAX = 50
KEYS_BYTES_MAX = 128 * 1024
FETCH_S = 5.0
REFRESH_S = 60.0
KEPT_S = 3_600.0
KEPT_MAX_S = 86_400.0  # while the issuer is away
RETRY_S = 30.0
ISSUER_SHOWN_MAX = 200

Fetch = Callable[[str], Awaitable[tuple[int, bytes]]]
"""Returns status and body of an address, the body of status 200 alone.

Raises aiohttp.ClientError, TimeoutError and ValueError.
"""


async def fetched(address: str, proxy: str | None = None) -> tuple[int, bytes]:
    """Return what an address answers that the operator or GitHub has named; see `Fetch`."""
    timeout = aiohttp.ClientTimeout(total=FETCH_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(address, allow_redirects=False, proxy=proxy) as answer,
    ):
        return answer.status, await _bounded(answer) if answer.status == 200 else b""


class Issuer:
    """Verifies tokens of one issuer for one audience, with the first keys that it publishes.

    `keys_at` are addresses of its keys: after 404 the next one is asked.
    """

    def __init__(
        self,
        address: str,
        audience: str,
        clock: Clock,
        keys_at: Sequence[str],
        fetch: Fetch = fetched,
    ) -> None:
        self.address = address
        self._audience = audience
        self._clock = clock
        self._keys_at = keys_at
        self._fetch_from = fetch
        self._keys: dict[str, RSAPublicKey] = {}
        self._fetched_s: float | None = None
        self._tried_s: float | None = None
        self._lock = asyncio.Lock()

    async def claims_of(self, token: str) -> Mapping[str, object]:
        """Return what a token proves. Raises Unauthenticated, Unavailable without keys."""
        if len(token) > TOKEN_CHARS_MAX:
            raise refused("it is too long")
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise refused("it is not a JSON web token") from None
        kid = head.get("kid")
        if head.get("alg") != ALGORITHM or not isinstance(kid, str):
            raise refused(f"it is not signed by {ALGORITHM} with a named key")
        claims = self._verified(token, await self._key(kid))
        self._check_times(claims)
        return claims

    def _verified(self, token: str, key: RSAPublicKey) -> Mapping[str, object]:
        """Return the claims of a token that this issuer signed for us.

        `_check_times` checks its times, by our clock and with a leeway on both sides.
        """
        try:
            found: Mapping[str, object] = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                issuer=self.address,
                options={
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "require": ["exp", "iat", "nbf", "iss", "aud"],
                },
            )
        except jwt.InvalidAudienceError:
            raise refused(f"ask for it with the audience {self._audience}") from None
        except jwt.InvalidIssuerError:
            raise self._of_another_issuer(token) from None
        except jwt.InvalidSignatureError:
            raise refused("its signature is wrong") from None
        except jwt.PyJWTError as failed:
            raise refused(str(failed)[:200]) from None
        return found

    def _of_another_issuer(self, token: str) -> Unauthenticated:
        """Return the refusal of a token of another issuer; it names a missing enterprise slug."""
        said = said_by(token)
        why = f"its issuer is {said}, not {self.address}"
        if said.startswith(f"{self.address}/"):
            why += "; an enterprise with an issuer of its own sets HEADGATE_OIDC_ISSUER to it"
        return refused(why)

    def _check_times(self, claims: Mapping[str, object]) -> None:
        now = self._clock.now().timestamp()
        ends, begins, issued = claims["exp"], claims["nbf"], claims["iat"]
        if not (
            isinstance(ends, int | float)
            and isinstance(begins, int | float)
            and isinstance(issued, int | float)
        ):
            raise refused("exp, nbf and iat must be numbers")
        if ends <= now - LEEWAY_S:
            raise refused("it has expired; ask for a new one right before each upload")
        if max(begins, issued) > now + LEEWAY_S:
            raise refused("it is not valid yet; compare the clocks")

    async def _key(self, kid: str) -> RSAPublicKey:
        """Return the issuer's key of that id. Raises Unauthenticated, Unavailable."""
        async with self._lock:
            now_s = self._clock.monotonic_s()
            is_old = self._fetched_s is None or now_s - self._fetched_s > KEPT_S
            may_ask = self._tried_s is None or now_s - self._tried_s >= REFRESH_S
            if (kid not in self._keys or is_old) and may_ask:
                self._tried_s = now_s
                await self._fetch(now_s)
            key = self._keys.get(kid)
            if key is not None:
                return key
            if self._fetched_s is None:
                raise self._unavailable("they could not be fetched a moment ago")
        raise refused("no published key of the issuer has signed it")

    async def _fetch(self, now_s: float) -> None:
        """Replace the keys by those published now; old ones stay while the issuer is away."""
        try:
            keys = await self._published()
        except (aiohttp.ClientError, TimeoutError, ValueError, jwt.PyJWTError) as failed:
            if self._fetched_s is None or now_s - self._fetched_s > KEPT_MAX_S:
                self._keys, self._fetched_s = {}, None
                raise self._unavailable(type(failed).__name__) from failed
            return
        self._keys, self._fetched_s = keys, now_s

    async def _published(self) -> dict[str, RSAPublicKey]:
        raw = await self._raw_keys()
        found: dict[str, RSAPublicKey] = {}
        for each in jwt.PyJWKSet.from_json(raw.decode()).keys[:KEYS_MAX]:
            key = each.key
            is_strong = isinstance(key, RSAPublicKey) and key.key_size >= KEY_BITS_MIN
            if each.key_id and isinstance(key, RSAPublicKey) and is_strong:
                found[each.key_id] = key
        return found

    async def _raw_keys(self) -> bytes:
        """Return the published key set, of the first address that has one."""
        status = 0
        for address in self._keys_at:
            status, raw = await self._fetch_from(address)
            if status == 200:
                return raw
            if status != 404:
                break
        raise ValueError(f"status {status}")

    def _unavailable(self, why: str) -> Unavailable:
        later = self._clock.now() + timedelta(seconds=RETRY_S)
        return Unavailable(f"The keys of {self.address} cannot be read: {why}.", later)


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body. Raises ValueError if it is too large."""
    raw = await answer.content.read(KEYS_BYTES_MAX + 1)
    while not answer.content.at_eof() and len(raw) <= KEYS_BYTES_MAX:
        raw += await answer.content.read(KEYS_BYTES_MAX + 1 - len(raw))
    if len(raw) > KEYS_BYTES_MAX:
        raise ValueError("too large")
    return raw


def said_by(token: str) -> str:
    """Return the issuer that a token names, which nothing proves; empty if it names none."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        return ""
    return str(claims.get("iss"))[:ISSUER_SHOWN_MAX]


def refused(why: str) -> Unauthenticated:
    """Return the refusal of a token."""
    return Unauthenticated(f"The OIDC token was not accepted: {why}.")

"""GitHub's OIDC tokens of Actions jobs: verified with the issuer's published keys.

A job with `permissions: id-token: write` asks GitHub for a short-lived token that says which
repository, run, attempt, commit and ref it is of. Forks get none. The keys are fetched from the
issuer with a limit of time and size, and kept; a token with an unknown key causes a new fetch
once a minute at most, because everybody may send one.
"""

import asyncio
import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

import aiohttp
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from bot.github.options import CLOUD_SUFFIX, PUBLIC_HOST, GitHubOptions
from bot.github.outcomes import CI_TRIGGERS
from bot.github.reading import Fields, Unreadable
from service.clock import Clock
from service.errors import Unauthenticated
from service.provider.ci import CiTrigger, ProvedJob
from service.provider.errors import Unavailable
from service.vocabulary import Sha

PUBLIC_ISSUER = "https://token.actions.githubusercontent.com"
KEYS_PATH = "/.well-known/jwks"
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

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MERGE_REF = re.compile(r"refs/pull/([1-9][0-9]{0,9})/(?:merge|head)")
_BRANCHES = "refs/heads/"


def issuer_of(options: GitHubOptions) -> str:
    """Return the issuer of a host: its own on ghe.com and on Enterprise Server."""
    web = options.addresses.web
    if web == f"https://{PUBLIC_HOST}":
        return PUBLIC_ISSUER
    if options.host.endswith(CLOUD_SUFFIX) and web == f"https://{options.host}":
        return f"https://token.actions.{options.host}"
    return f"{web}/_services/token"


def key_addresses_of(issuer: str) -> tuple[str, ...]:
    """Addresses of an issuer's keys, in the order in which they are asked for.

    The issuer of one enterprise is below that of its host (`https://HOST/<enterprise>`), and
    its keys are those of the host.
    """
    parts = urlsplit(issuer)
    root = f"{parts.scheme}://{parts.netloc}"
    return tuple(dict.fromkeys((issuer + KEYS_PATH, root + KEYS_PATH)))


class OidcTokens:
    """Verifies tokens of one issuer for one audience; see `service.runtime.JobTokens`."""

    def __init__(self, host: str, issuer: str, audience: str, clock: Clock) -> None:
        self.host = host
        self._issuer = issuer
        self._audience = audience
        self._clock = clock
        self._keys: dict[str, RSAPublicKey] = {}
        self._fetched_s: float | None = None
        self._tried_s: float | None = None
        self._lock = asyncio.Lock()

    async def job_of(self, token: str) -> ProvedJob:
        """Return the job that a token proves. Raises Unauthenticated, Unavailable without keys."""
        if len(token) > TOKEN_CHARS_MAX:
            raise _refused("it is too long")
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise _refused("it is not a JSON web token") from None
        kid = head.get("kid")
        if head.get("alg") != ALGORITHM or not isinstance(kid, str):
            raise _refused(f"it is not signed by {ALGORITHM} with a named key")
        claims = self._verified(token, await self._key(kid))
        self._check_times(claims)
        try:
            return _job_of(Fields(claims))
        except Unreadable as missing:
            raise _refused(f"a claim is missing or odd ({missing})") from None

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
                issuer=self._issuer,
                options={
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "require": ["exp", "iat", "nbf", "iss", "aud"],
                },
            )
        except jwt.InvalidAudienceError:
            raise _refused(f"ask for it with the audience {self._audience}") from None
        except jwt.InvalidIssuerError:
            raise self._of_another_issuer(token) from None
        except jwt.InvalidSignatureError:
            raise _refused("its signature is wrong") from None
        except jwt.PyJWTError as failed:
            raise _refused(str(failed)[:200]) from None
        return found

    def _of_another_issuer(self, token: str) -> Unauthenticated:
        """Return the refusal of a token of another issuer; it names a missing enterprise slug."""
        claims = jwt.decode(token, options={"verify_signature": False})
        said = str(claims.get("iss"))[:ISSUER_SHOWN_MAX]
        why = f"its issuer is {said}, not {self._issuer}"
        if said.startswith(f"{self._issuer}/"):
            why += "; an enterprise with an issuer of its own sets HEADGATE_OIDC_ISSUER to it"
        return _refused(why)

    def _check_times(self, claims: Mapping[str, object]) -> None:
        now = self._clock.now().timestamp()
        ends, begins, issued = claims["exp"], claims["nbf"], claims["iat"]
        if not (
            isinstance(ends, int | float)
            and isinstance(begins, int | float)
            and isinstance(issued, int | float)
        ):
            raise _refused("exp, nbf and iat must be numbers")
        if ends <= now - LEEWAY_S:
            raise _refused("it has expired; ask for a new one right before each upload")
        if max(begins, issued) > now + LEEWAY_S:
            raise _refused("it is not valid yet; compare the clocks")

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
        raise _refused("no published key of the issuer has signed it")

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
        """Return the published key set; after 404 at the issuer's own address, that of its host."""
        timeout = aiohttp.ClientTimeout(total=FETCH_S)
        status = 0
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for address in key_addresses_of(self._issuer):
                async with session.get(address, allow_redirects=False) as answer:
                    status = answer.status
                    if status == 200:
                        return await _bounded(answer)
                    if status != 404:
                        break
        raise ValueError(f"status {status}")

    def _unavailable(self, why: str) -> Unavailable:
        later = self._clock.now() + timedelta(seconds=RETRY_S)
        return Unavailable(f"The keys of {self._issuer} cannot be read: {why}.", later)


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body. Raises ValueError if it is too large."""
    raw = await answer.content.read(KEYS_BYTES_MAX + 1)
    while not answer.content.at_eof() and len(raw) <= KEYS_BYTES_MAX:
        raw += await answer.content.read(KEYS_BYTES_MAX + 1 - len(raw))
    if len(raw) > KEYS_BYTES_MAX:
        raise ValueError("too large")
    return raw


def _job_of(claims: Fields) -> ProvedJob:
    """Return the job of a verified token. Raises Unreadable for a missing or invalid claim."""
    ref, event, sha = claims.text("ref"), claims.text("event_name"), claims.text("sha")
    attempt = claims.text("run_attempt")
    if not _SHA.fullmatch(sha) or not attempt.isdecimal():
        raise Unreadable("sha or run_attempt")
    trigger = CI_TRIGGERS.get(event, CiTrigger.UNKNOWN)
    branch = ref.removeprefix(_BRANCHES) if ref.startswith(_BRANCHES) else ""
    merge = None
    if trigger is CiTrigger.PULL_REQUEST:
        branch, merge = claims.words("head_ref"), _MERGE_REF.fullmatch(ref)
    return ProvedJob(
        repository_id=claims.id("repository_id"),
        run_id=claims.id("run_id"),
        run_attempt=int(attempt),
        trigger=trigger,
        sha=Sha(sha),
        branch=branch,
        pr_number=int(merge[1]) if merge is not None else None,
        # Older Enterprise Servers have no such claim.
        check_run_id=claims.id_or_none("check_run_id") or "",
    )


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(f"The OIDC token was not accepted: {why}.")

"""Callers and their credentials: App keys and JWTs, installation tokens, tokens of people.

Rules: the provider's pages "Generating a JSON Web Token for a GitHub App" and "Generating an
installation access token". rest/call.py decides what a caller may do to a repository.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.types import Options

from bot.sandbox.records import Account, Actor, App, Installation
from bot.sandbox.refusal import refused
from bot.sandbox.world import Repository, World

JWT_LIFETIME_MAX_S = 600
JWT_SKEW_S = 60  # the provider allows the issuer's clock to be a little ahead
TOKEN_LIFETIME = timedelta(hours=1)
TOKEN_LENGTH = 520
KEY_BITS = 2048
# The times are compared with the clock of the callers, not with the wall.
TIMES_UNCHECKED = Options(verify_exp=False, verify_iat=False, verify_nbf=False)


@dataclass(frozen=True, slots=True)
class InstallationToken:
    """A token of an installation, narrowed to `repositories` and `permissions`."""

    installation: Installation
    repositories: frozenset[int] | None
    permissions: dict[str, str]
    expires_at: datetime

    def effective(self) -> dict[str, str]:
        """The present permissions: those of the token that the installation still has."""
        granted = self.installation.permissions
        return {
            name: "read" if "read" in (level, granted[name]) else level
            for name, level in self.permissions.items()
            if name in granted
        }

    def sees(self, repository: Repository) -> bool:
        """Return whether the token is for a repository."""
        is_chosen = self.repositories is None or repository.id in self.repositories
        return is_chosen and repository.world.covers(self.installation, repository)


Caller = App | InstallationToken | Account | None
"""The author of a call: an App by its key, an installation by its token, a person, or unknown."""


@cache
def private_key() -> rsa.RSAPrivateKey:
    """The App's private key; one per program run, since making one takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


class Credentials:
    """The keys and tokens of this world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._public = private_key().public_key()
        self._tokens: dict[str, InstallationToken] = {}
        self._people: dict[str, Account] = {}
        self._count = 0

    @property
    def pem(self) -> bytes:
        """The App's private key as a PEM file."""
        return private_key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )

    def person_token(self, login: str) -> str:
        """The token of a person; always the same one."""
        return f"sandbox_pat_{login.lower()}"

    def mint_user_token(self, account: Account, random: str) -> str:
        """Make a user access token of the App for a person who signed in."""
        token = f"ghu_{random}"
        self._people[token] = account
        return token

    def mint(
        self,
        installation: Installation,
        repositories: frozenset[int] | None,
        permissions: dict[str, str],
    ) -> tuple[str, InstallationToken]:
        """Make an installation token of TOKEN_LENGTH characters, valid for an hour."""
        self._count += 1
        seed = f"{self.world.seed}:{installation.id}:{self._count}".encode()
        secret = "ghs_"
        while len(secret) < TOKEN_LENGTH:
            secret += hashlib.sha256(seed + secret.encode()).hexdigest()
        secret = secret[:TOKEN_LENGTH]
        now = self.world.timeline.callers_now()
        token = InstallationToken(installation, repositories, permissions, now + TOKEN_LIFETIME)
        self._tokens = {key: one for key, one in self._tokens.items() if now < one.expires_at}
        self._tokens[secret] = token
        return secret, token

    def revoke(self, token: str) -> None:
        """Make a token worthless."""
        self._tokens.pop(token, None)

    def caller_of(self, secret: str | None) -> Caller:
        """Return the caller of a bearer token.

        Raises Refusal(401) for anything unknown, expired or badly signed.
        """
        if secret is None:
            return None
        token = self._tokens.get(secret)
        if token is not None:
            is_over = self.world.timeline.callers_now() >= token.expires_at
            if is_over or token.installation.id not in self.world.installations:
                raise refused("auth.bad")
            return token
        if secret in self._people:
            return self._people[secret]
        if secret.startswith("sandbox_pat_"):
            account = self.world.account(secret.removeprefix("sandbox_pat_"))
            if account is not None:
                return account
        if secret.count(".") == 2:
            return self._app_of_jwt(secret)
        raise refused("auth.bad")

    def _app_of_jwt(self, token: str) -> App:
        try:
            claims = jwt.decode(token, self._public, algorithms=["RS256"], options=TIMES_UNCHECKED)
        except jwt.InvalidTokenError:
            raise refused("auth.jwt") from None
        now = self.world.timeline.callers_now().timestamp()
        issued, expires = claims.get("iat"), claims.get("exp")
        if not isinstance(issued, int | float) or issued > now + JWT_SKEW_S:
            raise refused("auth.iat")
        if not isinstance(expires, int | float) or expires <= now:
            raise refused("auth.exp_past")
        if expires - now > JWT_LIFETIME_MAX_S:
            raise refused("auth.exp_far")
        issuer = str(claims.get("iss", ""))
        app = self.world.app
        if app is None or issuer not in (str(app.id), app.client_id):
            raise refused("auth.gone")
        return app


def actor_of(caller: Caller) -> Actor | None:
    """Return the actor of a caller's changes; None when it can change nothing."""
    match caller:
        case InstallationToken(installation=installation):
            return Actor(installation.app.bot, installation.app, caller.effective())
        case Account():
            return Actor(caller)
        case _:
            return None

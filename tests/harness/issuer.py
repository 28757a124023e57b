"""An issuer of OIDC tokens like GitHub's: real keys, published over HTTP."""

import functools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

AUDIENCE = "https://queue.example.org"
KEYS = "/.well-known/jwks"
GITLAB_KEYS = "/-/jwks"


def a_key() -> RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


@dataclass
class Issuer:
    """Signs tokens with `key`; `published` are the keys by id, `asked` counts reads of them."""

    url: str = ""
    key: RSAPrivateKey = field(default_factory=functools.cache(a_key))
    published: dict[str, RSAPrivateKey] = field(default_factory=dict)
    asked: int = 0
    padding: str = ""
    status: int = 200

    async def keys(self, _: web.Request) -> web.Response:
        """The published keys as a JSON web key set."""
        self.asked += 1
        algorithm = jwt.algorithms.RSAAlgorithm
        found = [
            {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": "RS256"}
            for kid, key in self.published.items()
        ]
        body = json.dumps({"keys": found, "padding": self.padding})
        return web.Response(text=body, status=self.status, content_type="application/json")

    def claims(self, now: float, **more: Any) -> dict[str, Any]:
        """The claims of a push to main; `more` replaces some, None leaves them out."""
        found = {
            "iss": self.url,
            "aud": AUDIENCE,
            "iat": int(now),
            "nbf": int(now) - 300,
            "exp": int(now) + 300,
            "repository_id": "1",
            "run_id": "77",
            "run_attempt": "1",
            "event_name": "push",
            "ref": "refs/heads/main",
            "sha": "a" * 40,
            "workflow_ref": "octo/widgets/.github/workflows/ci.yml@refs/heads/main",
            "head_ref": "",
            "base_ref": "",
            **more,
        }
        return {name: value for name, value in found.items() if value is not None}

    def token(self, now: float, **more: Any) -> str:
        """A token signed by the published key."""
        return self.signed(self.claims(now, **more))

    def signed(
        self, claims: dict[str, Any], key: Any = None, kid: str = "one", algorithm: str = "RS256"
    ) -> str:
        """The claims signed by any key under any name."""
        return jwt.encode(claims, key or self.key, algorithm=algorithm, headers={"kid": kid})


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """An issuer on this machine, with one published key named `one`."""
    issuer = Issuer()
    issuer.published["one"] = issuer.key
    app = web.Application()
    for path in (KEYS, GITLAB_KEYS):
        app.router.add_get(path, issuer.keys)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        issuer.url = f"http://{host}:{port}"
        yield issuer
    finally:
        await runner.cleanup()

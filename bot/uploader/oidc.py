"""The job's own token from GitHub Actions, in place of an API token (OpenID Connect)."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from bot.uploader import sending
from bot.uploader.sending import Came, Unsent

URL, TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
TIMEOUT_S = 10.0


def token_of(environ: Mapping[str, str], service: str) -> str:
    """A fresh token for the service at this address; empty where GitHub offers none.

    A job is offered one by `permissions: id-token: write`. Raises Unsent when asking fails.
    """
    where, bearer = environ.get(URL, ""), environ.get(TOKEN, "")
    if not where or not bearer:
        return ""
    root = sending.address_of(service)
    parts = urlsplit(where)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unsent(f"{URL} is no http address")
    asked = urllib.request.Request(  # noqa: S310 - the scheme was looked at
        f"{where}{'&' if parts.query else '?'}audience={quote(root, safe='')}",
        headers={"Authorization": f"Bearer {sending.token_of(bearer)}"},
    )
    address = f"{parts.scheme}://{parts.netloc}"
    opener = sending.opener_of(parts.scheme, sending.proxy_of(address))
    came = sending.within(TIMEOUT_S, lambda: sending.answer_of(opener, asked, TIMEOUT_S))
    value = None
    if isinstance(came, Came) and came.status == 200:
        value = (sending.json_of(came.body) or {}).get("value")
    if not isinstance(value, str) or not is_oidc(value):
        raise Unsent("GitHub gave this job no OIDC token")
    return value


def is_oidc(token: str) -> bool:
    """Whether the token is a JSON web token, which no API token is."""
    return token.startswith("eyJ") and token.count(".") == 2

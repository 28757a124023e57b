"""The job's own token from its CI (OpenID Connect), in place of an API token."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from bot.uploader import transport
from bot.uploader.transport import RequestFailed, Transient

URL, TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
GIVEN = "HEADGATE_OIDC_TOKEN"
TIMEOUT_S = 10.0


def given_token(environ: Mapping[str, str]) -> str:
    """Return the token that a job of another CI system has asked for; empty without one.

    Raises RequestFailed for what is no such token.
    """
    token = environ.get(GIVEN, "").strip()
    if token and not is_oidc(token):
        raise RequestFailed(f"{GIVEN} is not an OIDC token")
    return token


def fetch_token(environ: Mapping[str, str], service_url: str) -> str:
    """Return a fresh token for the service at this address; empty where GitHub offers none.

    GitHub offers one to a job with `permissions: id-token: write`. Raises RequestFailed.
    """
    url, bearer = environ.get(URL, ""), environ.get(TOKEN, "")
    if not url or not bearer:
        return ""
    audience = transport.root_of(service_url)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestFailed(f"{URL} is not an http address")
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        f"{url}{'&' if parts.query else '?'}audience={quote(audience, safe='')}",
        headers={"Authorization": f"Bearer {transport.header_token(bearer)}"},
    )
    token = None
    try:
        response = transport.open_within(f"{parts.scheme}://{parts.netloc}", request, TIMEOUT_S)
        if response.status == HTTPStatus.OK:
            token = (transport.json_object(response.body) or {}).get("value")
    except Transient:
        pass
    if not isinstance(token, str) or not is_oidc(token):
        raise RequestFailed("GitHub gave this job no OIDC token")
    return token


def is_oidc(token: str) -> bool:
    """Return whether the token is a JSON web token, which no API token is."""
    return token.startswith("eyJ") and token.count(".") == 2

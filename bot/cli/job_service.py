"""The service as a CI job reaches it: with an API token, else with the job's own OIDC token."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bot.cli import destination
from bot.cli.exits import Failed
from bot.uploader import ci
from bot.uploader.transport import Clock, Request, RequestFailed, Service
from service.vocabulary import RepoRef

_CLOCK = Clock()

TOKEN_AGE_MAX_S = 120.0
"""A job's OIDC token is asked for anew after this time; GitHub's are valid for five minutes."""


class JobService(NamedTuple):
    """The API as a CI job calls it, and the repository of the job.

    `org` None: the token's organization, or the repository's owner.
    """

    url: str
    token_file: Path | None
    repository: RepoRef
    org: str | None = None

    def connect(self, token: str, log: Callable[[str], object], timeout_s: float) -> Service:
        """Return the service for a token; one of another CI system needs the repository's name."""
        is_given = bool(token) and token == ci.given_token(os.environ)
        named = f"{self.repository.host}/{self.repository.slug}" if is_given else ""
        return Service(self.url, token, log, timeout_s=timeout_s, repository=named)

    def organization_of(self, service: Service) -> str:
        """Return the organization's slug. Raises RequestFailed.

        An OIDC token may not ask for it; there it is the repository's owner.
        """
        own = self.repository.owner if ci.is_oidc(service.token) else ""
        return self.org or own or _organization_of(service)

    def find_token(self) -> str:
        """Return the API token, or the job's OIDC token where there is none: a given one first.

        Raises RequestFailed without either: a fork's job has no secrets, and must not fail.
        """
        try:
            return destination.find_token(self.token_file)
        except Failed as missing:
            has_own = self.token_file is not None or os.environ.get("HEADGATE_TOKEN", "").strip()
            token = "" if has_own else ci.given_token(os.environ)
            token = token if token or has_own else ci.fetch_token(os.environ, self.url)
            if not token:
                raise RequestFailed(missing.what) from missing
            return token


class FreshToken:
    """The token of a job, fetched again when it has grown old."""

    def __init__(self, job: JobService) -> None:
        self._job = job
        self._token = ""
        self._fetched_s = 0.0

    def get(self) -> str:
        """Return the token. Raises RequestFailed."""
        now_s = _CLOCK.monotonic_s()
        if not self._token or now_s - self._fetched_s > TOKEN_AGE_MAX_S:
            self._token, self._fetched_s = self._job.find_token(), now_s
        return self._token


def _organization_of(service: Service) -> str:
    """Return the organization that the token belongs to. Raises RequestFailed."""
    organization = service.send(Request("/tokens/self")).get("organization")
    if not isinstance(organization, dict):
        raise RequestFailed("the answer names no organization: is it Headgate")
    return str(organization.get("slug"))

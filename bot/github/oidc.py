"""GitHub's OIDC tokens of Actions jobs: verified with the issuer's published keys.

A job with `permissions: id-token: write` asks GitHub for a short-lived token that says which
repository, run, attempt, commit and ref it is of. Forks get none.
"""

import re
from urllib.parse import urlsplit

from bot.github.options import CLOUD_SUFFIX, PUBLIC_HOST, GitHubOptions
from bot.github.outcomes import CI_TRIGGERS
from bot.github.reading import Fields, Unreadable
from bot.oidc.issuer import Fetch, Issuer, fetched, refused
from service.clock import Clock
from service.provider.ci import CiTrigger, ProvedJob
from service.vocabulary import Sha

PUBLIC_ISSUER = "https://token.actions.githubusercontent.com"
KEYS_PATH = "/.well-known/jwks"

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

    def __init__(
        self, host: str, issuer: str, audience: str, clock: Clock, fetch: Fetch = fetched
    ) -> None:
        self.host = host
        self._issuer = Issuer(issuer, audience, clock, key_addresses_of(issuer), fetch)

    async def job_of(self, token: str) -> ProvedJob:
        """Return the job that a token proves. Raises Unauthenticated, Unavailable without keys."""
        claims = await self._issuer.claims_of(token)
        try:
            return _job_of(Fields(claims))
        except Unreadable as missing:
            raise refused(f"a claim is missing or odd ({missing})") from None


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
        begun_by=claims.id_or_none("actor_id") or "",
    )

"""CI systems beside the provider's own, by what their vendors document of their OIDC tokens.

A token proves a project of its CI and no repository: an admin binds the two by the test setting
`report_issuers`. Keys are fetched from issuers that such a setting names, never from an address
that a token names, and by the rules for outgoing webhooks (docs/design/security.md 5).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.oidc import issuer
from bot.oidc.issuer import Fetch, Issuer, refused
from service.clock import Clock
from service.provider.ci import CiTrigger, ProvedJob
from service.vocabulary import Sha

ISSUERS_MAX = 1_000
"""Issuers whose keys are kept; the one that was added first makes place."""

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,19}")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PROJECT = re.compile(r"[\w.-]+(?:/[\w.-]+)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class CiSystem:
    """The documented facts of one vendor; the audience is asked for by the job and is always ours.

    `keys` are paths below the issuer. `project` gives the claims that name the project, `branch`
    what the branch is, empty for a tag. `pages` gives the addresses at which the vendor shows the
    build and the job, which checks at the provider name. `sources` are the vendor's pages.
    """

    keys: tuple[str, ...]
    project: tuple[str, ...]
    commit: str
    branch: Callable[["Claims"], str]
    pages: Callable[["Claims", str, str], tuple[str, str]]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a verified token; one that is missing or odd refuses it."""

    said: Mapping[str, object]

    def text(self, name: str, form: re.Pattern[str] | None = None) -> str:
        """Return a claim as text. Raises Unauthenticated."""
        found = self.said.get(name)
        text = str(found) if isinstance(found, str | int) and found is not True else ""
        if not text or (form is not None and not form.fullmatch(text)):
            raise refused(f"its claim {name} is missing or odd")
        return text


def _pages_of_buildkite(claims: Claims, _: str, project: str) -> tuple[str, str]:
    build = f"https://buildkite.com/{project}/builds/{claims.text('build_number', _NUMBER)}"
    return build, f"{build}#{claims.text('job_id', _ID)}"


def _branch_of_buildkite(claims: Claims) -> str:
    return "" if claims.said.get("build_tag") else claims.text("build_branch")


def _pages_of_gitlab(claims: Claims, address: str, project: str) -> tuple[str, str]:
    pages = f"{address}/{project}/-"
    pipeline, job = claims.text("pipeline_id", _NUMBER), claims.text("job_id", _NUMBER)
    return f"{pages}/pipelines/{pipeline}", f"{pages}/jobs/{job}"


def _branch_of_gitlab(claims: Claims) -> str:
    return claims.text("ref") if claims.text("ref_type") == "branch" else ""


SYSTEMS: Mapping[str, CiSystem] = {
    "buildkite": CiSystem(
        keys=("/.well-known/jwks",),
        project=("organization_slug", "pipeline_slug"),
        commit="build_commit",
        branch=_branch_of_buildkite,
        pages=_pages_of_buildkite,
        sources=(
            "https://buildkite.com/docs/agent/cli/reference/oidc",
            "https://buildkite.com/docs/apis/rest-api/builds",
        ),
    ),
    "gitlab": CiSystem(
        keys=("/-/jwks", "/oauth/discovery/keys"),
        project=("project_path",),
        commit="sha",
        branch=_branch_of_gitlab,
        pages=_pages_of_gitlab,
        sources=(
            "https://docs.gitlab.com/ci/secrets/id_token_authentication",
            "https://docs.gitlab.com/ee/ci/examples/authenticating-with-hashicorp-vault/",
            "https://docs.gitlab.com/ee/api/jobs.html",
        ),
    ),
}
"""By the word in `report_issuers`. CircleCI is missing: its documented claims
(https://circleci.com/docs/guides/permissions-authentication/openid-connect-tokens/) name no
commit, build or job, so its token proves no report."""


class OtherCiTokens:
    """Verifies tokens of issuers that settings name; see `service.runtime.OtherCiTokens`."""

    def __init__(self, audience: str, clock: Clock, fetch: Fetch) -> None:
        self._audience = audience
        self._clock = clock
        self._fetch = fetch
        self._issuers: dict[tuple[str, str], Issuer] = {}

    async def job_of(self, token: str, accepted: Sequence[str], repository: str) -> ProvedJob:
        """Return the job that a token proves to a repository with these `report_issuers`.

        Raises Unauthenticated, and Unavailable without the issuer's keys.
        """
        said = issuer.said_by(token)
        named = [each.split(" ") for each in accepted]
        here = [(word, project) for word, address, project in named if address == said]
        if not said or not here:
            raise _unbound(f"its issuer {said or '(none)'}", repository)
        word = here[0][0]
        claims = Claims(await self._issuer_of(word, said).claims_of(token))
        system = SYSTEMS[word]
        project = "/".join(claims.text(each) for each in system.project)
        if not _PROJECT.fullmatch(project) or (word, project) not in here:
            raise _unbound(f"its project {project[: issuer.ISSUER_SHOWN_MAX]}", repository)
        build, job = system.pages(claims, said, project)
        return ProvedJob(
            repository_id="",
            run_id=build,
            run_attempt=1,
            trigger=CiTrigger.HEAD,
            sha=Sha(claims.text(system.commit, _SHA)),
            branch=system.branch(claims),
            pr_number=None,
            check_run_id=job,
            is_of_other_ci=True,
        )

    def _issuer_of(self, word: str, address: str) -> Issuer:
        known = self._issuers.get((word, address))
        if known is None:
            keys = [address + path for path in SYSTEMS[word].keys]
            known = Issuer(address, self._audience, self._clock, keys, self._fetch)
            if len(self._issuers) >= ISSUERS_MAX:
                del self._issuers[next(iter(self._issuers))]
            self._issuers[word, address] = known
        return known


def _unbound(what: str, repository: str) -> Exception:
    return refused(
        f"{what} is not among the `report_issuers` of {repository}; an admin adds"
        " `SYSTEM ISSUER PROJECT` to that test setting"
    )

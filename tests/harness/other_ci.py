"""Buildkite and GitLab CI as a world meets them: an issuer of tokens, and commit statuses.

The claims are those of the vendors' pages, which `bot/oidc/other_ci.py` names.
"""

import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from bot.sandbox import reports
from bot.sandbox.reports import NewStatus
from tests.harness import gates
from tests.harness.asking import HOST
from tests.harness.issuer import AUDIENCE, Issuer
from tests.harness.reporting_ci import Failing, a_report
from tests.harness.world import REPO, World

SETTINGS = {"webhook_ports": "1024-65535", "webhook_allow_networks": "127.0.0.0/8"}
CI = """\
triggers: {push: [main], pull_request: true}
checks:
  - name: unit
    kind: status
    seconds: 1
    rules:
      - {branch: "headgate/merge/**", conclusion: hang}
"""
PROJECT = "acme-inc/widgets"
JOB = "0184990a-477b-4fa8-9968-496074483cee"
OTHER_JOB = "0184990a-477b-4fa8-9968-496074483cef"


@dataclass(frozen=True, slots=True)
class Vendor:
    """One CI system: its word in settings, its claims, and what its pages are called."""

    word: str
    job: str
    other_job: str

    def claims(self, issuer: Issuer, now: float, sha: str, branch: str) -> dict[str, Any]:
        """What a token says of the job `job` of build 42."""
        times = {"iat": int(now), "nbf": int(now), "exp": int(now) + 300}
        about = {"iss": issuer.url, "aud": AUDIENCE, **times}
        if self.word == "gitlab":
            own = {"project_path": PROJECT, "pipeline_id": "42", "job_id": self.job}
            return {**about, **own, "ref": branch, "ref_type": "branch", "sha": sha}
        organization, _, pipeline = PROJECT.partition("/")
        return {
            **about,
            "organization_slug": organization,
            "pipeline_slug": pipeline,
            "build_number": 42,
            "build_branch": branch,
            "build_commit": sha,
            "step_key": None,
            "job_id": self.job,
        }

    def build_page(self, issuer: Issuer, build: int = 42) -> str:
        """Where a build is shown."""
        if self.word == "gitlab":
            return f"{issuer.url}/{PROJECT}/-/pipelines/{build}"
        return f"https://buildkite.com/{PROJECT}/builds/{build}"

    def job_page(self, issuer: Issuer, job: str = "") -> str:
        """Where a job of build 42 is shown."""
        if self.word == "gitlab":
            return f"{issuer.url}/{PROJECT}/-/jobs/{job or self.job}"
        return f"{self.build_page(issuer)}#{job or self.job}"


BUILDKITE = Vendor("buildkite", JOB, OTHER_JOB)
GITLAB = Vendor("gitlab", "302", "303")


def token(world: World, vendor: Vendor, issuer: Issuer, **more: Any) -> str:
    """A token of build 42 on the tip of `main`; `more` replaces claims, None leaves them out."""
    sha = more.pop("on", None) or str(world.repository.git.branch("main"))
    now = world.clock.now().timestamp()
    found = {**vendor.claims(issuer, now, sha, more.pop("branch", "main")), **more}
    return issuer.signed({name: each for name, each in found.items() if each is not None})


async def upload(
    world: World, by: str, tests: Failing, *, named: str = f"{HOST}/{REPO}", **meta: Any
) -> tuple[int, Any]:
    """Send a report with a token; status and answer."""
    owner, name = REPO.split("/")
    repo = {"host": HOST, "owner": owner, "name": name}
    form = aiohttp.FormData()
    form.add_field("metadata", json.dumps({"repo": repo, "org_url_slug": owner, **meta}))
    form.add_field("file", a_report(tests), filename="junit.xml")
    headers = {"Authorization": f"Bearer {by}", "x-headgate-repository": named}
    url = f"{world.url}/v1/flaky-tests/upload-test-results"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=form, headers=headers) as answer,
    ):
        is_json = "json" in answer.headers["Content-Type"]
        return answer.status, await answer.json() if is_json else {"detail": await answer.text()}


def accepted(vendor: Vendor, issuer: Issuer, project: str = PROJECT) -> str:
    """The setting that binds a project to the repository."""
    return f"{vendor.word} {issuer.url} {project}"


def ends(world: World, sha: str, state: str, page: str) -> None:
    """The CI reports how the job `unit` of a commit ended, with the address of a page."""
    pending = world.repository.statuses[sha][-1]
    new = NewStatus("unit", state, f"unit: {state}", page)
    reports.add_status(world.repository, sha, pending.creator, new)


async def under_test(world: World, number: int) -> Any:
    """The live run that tests a pull request, once CI has begun with it."""
    found: list[Any] = []

    async def is_there() -> bool:
        runs = (await world.value()).runs.values()
        found.extend(
            each for each in runs if each.prs == (number,) and each.sha in world.repository.statuses
        )
        return bool(found)

    await world.until(is_there, within_s=gates.SOON_S)
    return found[0]

"""OIDC tokens of CI jobs, and reports that jobs send with them, as Actions has both.

A job whose check has `sends` may ask for tokens, as with `permissions: id-token: write`. Pull
requests of forks get none. Rules: the provider's page "OpenID Connect reference".
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

import aiohttp
import jwt
from aiohttp import web

from bot.sandbox.auth import private_key
from bot.sandbox.records import HOST, CheckRun
from bot.sandbox.world import Repository, WorkflowRun, World

ISSUER = "/_services/token"
KEY_ID = "sandbox"
VALID = timedelta(minutes=5)
UPLOAD_PATH = "/v1/flaky-tests/upload-test-results"
UPLOAD_TIMEOUT_S = 30


def routes(world: World) -> list[web.RouteDef]:
    """Return the routes of the issuer: its public keys, and tokens for jobs that run."""

    async def keys(_: web.Request) -> web.Response:
        public = private_key().public_key()
        key = jwt.algorithms.RSAAlgorithm.to_jwk(public, as_dict=True)
        return web.json_response({"keys": [{**key, "kid": KEY_ID, "alg": "RS256", "use": "sig"}]})

    async def token(request: web.Request) -> web.Response:
        check_id = int(request.match_info["check"])
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        job = _job_of(world, check_id)
        if job is None or not hmac.compare_digest(bearer, _secret_of(world, check_id)):
            return web.Response(status=401)
        value = token_of(*job, request.query.get("audience", world.web))
        return web.json_response({"value": value, "count": len(value)})

    return [
        web.get(f"{ISSUER}/.well-known/jwks", keys),
        web.get(ISSUER + r"/jobs/{check:\d+}", token),
    ]


def environment_of(repository: Repository, run: WorkflowRun, check: CheckRun) -> dict[str, str]:
    """Return the variables by which a job asks for its token; none for a fork's."""
    if run.head_repo is not repository:
        return {}
    world = repository.world
    return {
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{world.web}{ISSUER}/jobs/{check.id}?api-version=2.0",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": _secret_of(world, check.id),
    }


def _secret_of(world: World, check_id: int) -> str:
    """Return the secret with which the job of a check asks for tokens."""
    return hashlib.sha256(f"{world.seed}:job:{check_id}".encode()).hexdigest()


def token_of(repository: Repository, run: WorkflowRun, check: CheckRun, audience: str) -> str:
    """Return a token of the job that a check is, in the attempt to which the check belongs."""
    return signed(repository, claims_of(run, check), audience)


def claims_of(run: WorkflowRun, check: CheckRun) -> dict[str, str]:
    """Return what a token says about the job that a check is."""
    is_of_pull = run.event == "pull_request"
    pull = run.pulls[0] if run.pulls else 0
    return {
        "run_id": str(run.id),
        "run_attempt": str(next(no for no, jobs in run.jobs.items() if check in jobs)),
        "check_run_id": str(check.id),
        "actor_id": str(run.actor.id),
        "event_name": run.event,
        "ref": f"refs/pull/{pull}/merge" if is_of_pull else f"refs/heads/{run.head_branch}",
        "sha": run.tested_sha,
        "head_ref": run.head_branch if is_of_pull else "",
    }


def signed(repository: Repository, claims: Mapping[str, str], audience: str) -> str:
    """Return a token of the repository with these claims of a job."""
    now = int(repository.world.timeline.callers_now().timestamp())
    about = {
        "iss": f"{repository.world.web}{ISSUER}",
        "aud": audience,
        "iat": now,
        "nbf": now,
        "exp": now + int(VALID.total_seconds()),
        "repository": repository.full_name,
        "repository_id": str(repository.id),
        "base_ref": "",
        **claims,
    }
    return jwt.encode(about, private_key(), algorithm="RS256", headers={"kid": KEY_ID})


async def send(
    repository: Repository, run: WorkflowRun, check: CheckRun, report: tuple[str, bytes]
) -> str:
    """Send the report of a job with its own token; return why that failed, else nothing."""
    if run.head_repo is not repository or repository.world.webhook_url is None:
        return "the job has no token, or Headgate's address is not known"
    parts = urlsplit(repository.world.webhook_url)
    root = f"{parts.scheme}://{parts.netloc}"
    token = token_of(repository, run, check, repository.world.audience or root)
    owner, _, name = repository.full_name.partition("/")
    about = {
        "repo": {"host": HOST, "owner": owner, "name": name},
        "org_url_slug": owner,
        "sha": run.head_sha,
        "job": check.name,
    }
    form = aiohttp.FormData()
    form.add_field("metadata", json.dumps(about), content_type="application/json")
    form.add_field("file", report[1], filename=report[0])
    headers = {"Authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(total=UPLOAD_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(root + UPLOAD_PATH, data=form, headers=headers) as answer,
        ):
            return "" if answer.ok else f"{answer.status}: {await answer.text()}"
    except (aiohttp.ClientError, TimeoutError) as failed:
        return type(failed).__name__


def _job_of(world: World, check_id: int) -> tuple[Repository, WorkflowRun, CheckRun] | None:
    """Return the job of a check that runs now."""
    return next(
        (
            (repository, run, check)
            for repository in world.repositories.values()
            for run in repository.workflow_runs
            for check in run.jobs.get(run.attempt, [])
            if check.id == check_id and check.status != "completed" and run.head_repo is repository
        ),
        None,
    )

"""Attacks by which a job of CI would send results as what it is not."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.testhealth.store import uploads as stored_uploads
from service.testhealth.store.uploads import Upload
from service.vocabulary import SYSTEM, Role
from tests.harness import issuer as issuers
from tests.harness.issuer import AUDIENCE, Issuer
from tests.harness.reporting_ci import a_report
from tests.harness.world import REPO, World, WorldOptions

CI = """\
triggers: {push: [main, "topic-*"], pull_request: true}
checks:
  - {name: unit, seconds: 1}
"""


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuers.issuing() as found:
        yield found


@pytest.fixture
def world_options(issuer: Issuer) -> WorldOptions:
    settings = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
    return WorldOptions(ci=CI, settings=settings)


async def ci_token(world: World, org: str = "octo") -> str:
    """What every job of the organization's own pull requests holds."""
    await world.settle()
    wish = TokenRequest("github.localhost", org, "ci", Role.CI)
    return (await tokens.create_token(world.runtime, wish, SYSTEM)).secret


async def send(
    world: World, token: str, tests: dict[str, str] | None = None, **meta: Any
) -> tuple[int, Any]:
    """An upload: status and answer."""
    slug = meta.pop("repo", REPO)
    owner, name = slug.split("/")
    repo = {"host": "github.localhost", "owner": owner, "name": name}
    about = {"repo": repo, "org_url_slug": owner, "sha": "a" * 40, **meta}
    form = aiohttp.FormData()
    form.add_field("metadata", json.dumps(about))
    form.add_field("file", a_report(tests or {"total": ""}), filename="junit.xml")
    is_oidc = token.startswith("eyJ")
    headers = {"Authorization": f"Bearer {token}"} if is_oidc else {"x-api-token": token}
    url = f"{world.url}/v1/flaky-tests/upload-test-results"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=form, headers=headers) as answer,
    ):
        is_json = "json" in answer.headers["Content-Type"]
        return answer.status, await (answer.json() if is_json else answer.text())


async def kept(world: World, answer: Any) -> Upload:
    """The upload as it is stored."""
    found = await world.runtime.store.read(stored_uploads.by_id, answer["upload_id"])
    assert found is not None
    return found.upload


def runs_of(world: World, event: str, branch: str) -> list[Any]:
    """CI runs of a branch, oldest first."""
    every = world.repository.workflow_runs
    return [one for one in every if (one.event, one.head_branch) == (event, branch)]


async def test_a_pull_requests_run_cannot_speak_for_main(world: World) -> None:
    """Hurts everybody who trusts the gate: its own flakes would make any test quarantined."""
    token = await ci_token(world)
    number = await world.open(files={"x.txt": "x\n"})
    await world.settle()
    pull = world.repository.issues[number].pull
    assert pull is not None
    (run,) = runs_of(world, "pull_request", pull.head_ref)
    tip = str(world.repository.git.branch("main"))
    for attempt in (1, 2, 3):
        tests = {"total": "boom" if attempt % 2 else ""}
        claim = {"sha": tip, "branch": "main", "run_id": str(run.id), "run_attempt": attempt}
        status, answer = await send(world, token, tests, **claim)
        upload = await kept(world, answer)
        assert (status, upload.kind, upload.branch) == (200, "pr", pull.head_ref)
        assert (upload.sha, upload.run_attempt) == (pull.head_sha, 1)
        assert any("branch was sent as main" in each for each in answer["warnings"])
    _, answer = await send(world, token, sha=tip, branch="main")
    assert (await kept(world, answer)).kind == "other"
    assert answer["warnings"][0].startswith("claim_unproved")
    _, answer = await send(world, token, sha=tip, branch="main", run_id="999999")
    assert (await kept(world, answer)).kind == "other"


async def test_a_pull_requests_run_cannot_report_for_another_pull_request(world: World) -> None:
    """Hurts an author: failures of others would be shown and counted under the author's change."""
    token = await ci_token(world)
    mine, theirs = await world.open(), await world.open()
    await world.settle()
    pull = world.repository.issues[mine].pull
    assert pull is not None
    (run,) = runs_of(world, "pull_request", pull.head_ref)
    claim = {"sha": pull.head_sha, "run_id": str(run.id), "pr_number": theirs}
    _, answer = await send(world, token, {"total": "boom"}, **claim)
    assert (await kept(world, answer)).prs == (mine,)
    assert any("pr_number was sent as" in each for each in answer["warnings"])


async def test_forged_oidc_tokens_upload_nothing(world: World, issuer: Issuer) -> None:
    """Hurts every organization: anybody could send results as anybody's main branch."""
    await world.settle()
    now = world.clock.now().timestamp()
    here = str(world.repository.id)
    good = issuer.claims(now, repository_id=here)
    other = issuers.a_key()
    pem = issuer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    forged = {
        "another audience": issuer.token(now, repository_id=here, aud="sts.amazonaws.com"),
        "no audience": issuer.token(now, repository_id=here, aud=None),
        "another issuer": issuer.token(now, repository_id=here, iss="https://evil.test"),
        "another key under a known name": issuer.signed(good, other),
        "a key that nobody published": issuer.signed(good, other, kid="two"),
        "expired": issuer.token(now, repository_id=here, exp=int(now) - 60),
        "not valid yet": issuer.token(now, repository_id=here, nbf=int(now) + 600),
        "from the future": issuer.token(now, repository_id=here, iat=int(now) + 600),
        "without an end": issuer.token(now, repository_id=here, exp=None),
        "alg none": joined({"alg": "none", "kid": "one"}, good, b""),
        "alg none in capitals": joined({"alg": "NONE", "kid": "one"}, good, b""),
        "signed by HMAC with the public key": by_hmac(good, pem),
        "claims changed after signing": spliced(issuer.token(now), good),
        "another repository": issuer.token(now, repository_id="424242"),
        "no repository": issuer.token(now, repository_id=None),
        "no run": issuer.token(now, repository_id=here, run_id=None),
        "an odd commit": issuer.token(now, repository_id=here, sha="HEAD"),
        "too long": issuer.token(now, repository_id=here, padding="x" * 4_000),
    }
    answers = {why: await send(world, token) for why, token in forged.items()}
    assert {why: found[0] for why, found in answers.items() if found[0] != 401} == {}
    assert AUDIENCE in answers["another audience"][1]
    status, _ = await send(world, issuer.token(now, repository_id=here))
    assert status == 200
    assert issuer.asked <= 2


def joined(head: dict[str, Any], claims: dict[str, Any], signature: bytes) -> str:
    parts = [json.dumps(head).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def by_hmac(claims: dict[str, Any], key: bytes) -> str:
    unsigned = joined({"alg": "HS256", "kid": "one", "typ": "JWT"}, claims, b"")
    digest = hmac.new(key, unsigned.rstrip(".").encode(), hashlib.sha256).digest()
    return joined({"alg": "HS256", "kid": "one", "typ": "JWT"}, claims, digest)


def spliced(token: str, claims: dict[str, Any]) -> str:
    head, _, signature = token.split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


async def test_an_oidc_token_says_what_it_is_and_nothing_else(world: World, issuer: Issuer) -> None:
    """Hurts everybody who trusts the gate: a body could turn a branch's run into main's."""
    await world.sandbox.seed(repositories=[{"full_name": "octo/gears", "files": {"a": "b"}}])
    await world.settle()
    now = world.clock.now().timestamp()
    here, tip = str(world.repository.id), "b" * 40
    ours = {"repository_id": here, "sha": tip}
    topic = issuer.token(now, **ours, ref="refs/heads/topic")
    for field, value in (
        ("branch", "main"),
        ("sha", "c" * 40),
        ("run_id", "78"),
        ("run_attempt", 2),
        ("pr_number", 1),
    ):
        meta: dict[str, Any] = {"sha": tip, field: value}
        status, answer = await send(world, topic, **meta)
        assert (status, answer["code"]) == (422, "conflicting_fields")
        assert f"/{field} is {value}" in answer["detail"]
    _, answer = await send(world, topic, sha=tip)
    assert (await kept(world, answer)).kind == "other"
    main = issuer.token(now, **ours)
    _, answer = await send(world, main, sha=tip, branch="main", job="main")
    upload = await kept(world, answer)
    assert (upload.kind, upload.run_id, upload.branch) == ("stable", "77", "main")
    tag = issuer.token(now, **ours, ref="refs/tags/main")
    _, answer = await send(world, tag, sha=tip, job="tag")
    assert (await kept(world, answer)).kind == "other"
    status, answer = await send(world, main, sha=tip, repo="octo/gears")
    assert (status, answer["code"]) == (404, "repository_not_found")
    missing = await send(world, main, sha=tip, repo="octo/nothing")
    assert missing[1]["detail"] == answer["detail"].replace("gears", "nothing")
    async with aiohttp.ClientSession() as session:
        for path in ("getQueue", "flaky-tests/get-upload", "tokens/list"):
            url, headers = f"{world.url}/v1/{path}", {"Authorization": f"Bearer {main}"}
            async with session.post(url, json={}, headers=headers) as response:
                assert response.status == 401
                assert "An OIDC token uploads test results" in await response.text()


async def test_an_oidc_token_of_a_pull_request_is_of_its_run(world: World, issuer: Issuer) -> None:
    """Hurts everybody who trusts the gate: a fork's code would speak with the token's trust."""
    await world.settle()
    own, fork = await world.open(), await world.open(by="dave", fork=True)
    await world.settle()
    here = str(world.repository.id)
    for number, kind, trusted in ((own, "pr", True), (fork, "untrusted", False)):
        now = world.clock.now().timestamp()
        pull = world.repository.issues[number].pull
        assert pull is not None
        (run,) = runs_of(world, "pull_request", pull.head_ref)
        token = issuer.token(
            now,
            repository_id=here,
            run_id=str(run.id),
            event_name="pull_request",
            ref=f"refs/pull/{number}/merge",
            sha=pull.test_merge,
            head_ref=pull.head_ref,
            base_ref="main",
        )
        status, answer = await send(world, token, sha=pull.head_sha, job=str(number))
        assert (status, answer["trusted"]) == (200, trusted)
        assert ((await kept(world, answer)).kind, answer["warnings"]) == (kind, [])
        status, _ = await send(world, token, sha=pull.head_sha, pr_number=number + 7)
        assert status == 422


async def test_a_token_of_another_organization_finds_nothing(world: World) -> None:
    """Hurts the organization next door: its test history could be filled by strangers."""
    foreign = await ci_token(world, org="initech")
    status, there = await send(world, foreign)
    assert status == 404
    _, missing = await send(world, foreign, repo="octo/nothing")
    assert {**there, "request_id": ""} == {**missing, "request_id": ""}

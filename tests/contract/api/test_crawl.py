"""Every endpoint by every kind of caller, each with a body that is valid for it.

A new endpoint without a row fails here. What an outsider is answered about a thing that exists
must be what is answered about a thing that does not.
"""

import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from service.http import callers
from service.http.route import Secured
from service.process.api.routes import ROUTES
from tests.contract.api.conftest import Answer, Client, Queue
from tests.contract.api.test_uploads import GOOD, KIND, NAME, SHA, a_form
from tests.harness.receiver import receiving

READ, CI, QUEUE, ADMIN = (
    {"read", "queue", "admin"},
    {"ci", "queue", "admin"},
    {"queue", "admin"},
    {"admin"},
)
ANY = {"read", "ci", "queue", "admin"}
JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJhIjoxfQ.c2ln"
UPLOAD = f"/v1/{NAME}"
DRY_TEST = "headgate/merge/dry-test/1800000000-00000000-0000-0000-0000-000000000000"

ROLES: dict[str, set[str]] = {
    "submitPullRequest": QUEUE,
    "restartTestsOnPullRequest": QUEUE,
    "setImpactedTargets": CI,
    "getSubmittedPullRequest": READ,
    "getSubmittedPullRequests": READ,
    "listPullRequests": READ,
    "getPullRequestTimeline": READ,
    "explainPullRequest": READ,
    "getNextStep": READ,
    "previewCancelPullRequest": READ,
    "previewPriority": READ,
    "findQueue": READ,
    "createQueue": ADMIN,
    "getQueue": READ,
    "updateQueue": ADMIN,
    "addQueueHold": ADMIN,
    "releaseQueueHold": ADMIN,
    "listQueues": READ,
    "listQueueEvents": READ,
    "getLandingEvidence": READ,
    "listLandingEvidence": READ,
    "streamQueueEvents": READ,
    "getMergeQueueTestingDetails": READ,
    "listMergeQueueTestingResults": READ,
    "getMergeQueueStatistics": READ,
    "getShadowReport": READ,
    "getTargetHealth": READ,
    "getConflicts": READ,
    "getMergeQueueMetrics": READ,
    "getProviderLimits": READ,
    "runDoctor": ADMIN,
    "startDryTest": ADMIN,
    "getDryTest": ADMIN,
    "endDryTest": ADMIN,
    "flaky-tests/list-unhealthy-tests": READ,
    "flaky-tests/list-failing-tests": READ,
    "flaky-tests/list-quarantined-tests": READ,
    "flaky-tests/list-tests": READ,
    "flaky-tests/get-test-details": READ,
    "flaky-tests/get-test-history": READ,
    "flaky-tests/check-quarantine": CI,
    "flaky-tests/link-ticket-to-test-case": QUEUE,
    "flaky-tests/set-quarantine-override": ADMIN,
    "flaky-tests/flag-test": QUEUE,
    "flaky-tests/get-settings": READ,
    "flaky-tests/update-settings": ADMIN,
    "flaky-tests/upload-test-results": CI,
    "flaky-tests/report-early-failure": CI,
    "flaky-tests/list-suspected-tests": CI,
    "flaky-tests/plan-repeats": CI,
    "flaky-tests/report-repeats": CI,
    "flaky-tests/list-slowest-tests": READ,
    "flaky-tests/plan-shards": CI,
    "flaky-tests/get-flake-costs": READ,
    "flaky-tests/list-bad-machines": READ,
    "flaky-tests/get-detection-quality": READ,
    "flaky-tests/preview-settings": QUEUE,
    "flaky-tests/get-upload": CI,
    "flaky-tests/delete-upload": ADMIN,
    "tokens/self": ANY,
    "tokens/create": ADMIN,
    "tokens/list": ADMIN,
    "tokens/rotate": ADMIN,
    "tokens/revoke": ADMIN,
    "webhooks/create-endpoint": ADMIN,
    "webhooks/list-endpoints": ADMIN,
    "webhooks/update-endpoint": ADMIN,
    "webhooks/rotate-secret": ADMIN,
    "webhooks/test-endpoint": ADMIN,
    "webhooks/list-deliveries": ADMIN,
    "webhooks/replay": ADMIN,
    "webhooks/delete-endpoint": ADMIN,
    "cancelPullRequest": QUEUE,
    "deleteQueue": ADMIN,
}
"""Endpoint → roles of tokens that it opens to; in this order each finds what it needs."""

OF_OWN = {
    "tokens/self",
    "tokens/create",
    "tokens/list",
    "webhooks/create-endpoint",
    "webhooks/list-endpoints",
    "getMergeQueueMetrics",
}
"""Endpoints that name no object: an outsider gets its own organization's answer."""


def test_every_endpoint_has_a_row():
    paths = {route.path for route in ROUTES if isinstance(route, Secured)}
    assert paths == {f"/v1/{name}" for name in ROLES}


def test_the_table_says_what_the_endpoints_ask_for():
    asked = {
        route.path.removeprefix("/v1/"): route.role
        for route in ROUTES
        if isinstance(route, Secured)
    }
    by_role = {"read": READ, "ci": CI, "queue": QUEUE, "admin": ADMIN}
    assert {
        name: ANY if role is None else by_role[role.value] for name, role in asked.items()
    } == ROLES


@dataclass
class Scene:
    """Something of every kind, and a valid body for every endpoint."""

    client: Client
    bodies: dict[str, dict[str, Any]]

    async def ask(self, name: str, body: dict[str, Any], token: str, **headers: str) -> Answer:
        """One request to an endpoint by its own method and form."""
        path = f"/v1/{name}"
        if name in ("tokens/self", "getMergeQueueMetrics"):
            return await self.client.ask("GET", path, token, headers=headers)
        if name == "flaky-tests/list-suspected-tests":
            named = urlencode({**body["repo"], "sha": body["sha"]})
            return await self.client.ask("GET", f"{path}?{named}", token, headers=headers)
        if name == "streamQueueEvents":
            return await self.begun(body, token, headers)
        if path == UPLOAD:
            form = a_form(body, ("junit.xml", GOOD))
            kinds = {"Content-Type": KIND, **headers}
            return await self.client.ask("POST", path, token, data=form, headers=kinds)
        return await self.client.ask("POST", path, token, json=body, headers=headers)

    async def begun(self, body: dict[str, Any], token: str, headers: dict[str, str]) -> Answer:
        """How a stream of events begins, or why it does not."""
        named = urlencode({**body["repo"], "targetBranch": body["targetBranch"]})
        url = f"{self.client.instance.url}/v1/streamQueueEvents?{named}"
        sent = {**headers, "x-api-token": token} if token else headers
        async with aiohttp.request("GET", url, headers=sent) as response:
            if response.status == 200:
                return Answer(200, response.headers, await response.content.readline(), None)
            text = await response.read()
            is_json = "json" in response.headers["Content-Type"]
            return Answer(
                response.status, response.headers, text, json.loads(text) if is_json else None
            )


async def of_queue(client: Client, world: Any, queue: Queue) -> dict[str, dict[str, Any]]:
    """Bodies about a queue of its own, a pull request in it, its run and a hold."""
    it = client.instance
    number = await queue.submitted()
    record = await queue.record(number)
    hold = await client.done("addQueueHold", queue.named(text="crawled"))
    about = queue.named(pr={"number": number, "sha": record["prSha"]})
    ends = ("PullRequest", "RequestTimeline", "NextStep")
    of_pull = [each for each in ROLES if each.endswith(ends)]
    return {
        **dict.fromkeys(ROLES, queue.named()),
        **dict.fromkeys(of_pull, queue.about(number)),
        "setImpactedTargets": {**about, "impactedTargets": ["//a"]},
        "getSubmittedPullRequests": queue.named(prNumbers=[number]),
        "createQueue": client.named(await world.new_branch(), requiredStatuses=["unit"]),
        "updateQueue": queue.named(concurrency=3),
        "addQueueHold": queue.named(text="crawled again"),
        "releaseQueueHold": queue.named(holdId=hold["hold"]["id"], text="done"),
        "getDryTest": {**queue.named(sha=SHA), "branch": DRY_TEST},
        "endDryTest": {**queue.named(), "branch": DRY_TEST},
        "getMergeQueueTestingDetails": queue.named(testRunId=record["testRunId"]),
        "previewPriority": queue.about(number, priority="urgent"),
        "findQueue": {"repo": about["repo"], "pr": {"number": number}},
        "listQueues": {"repo": {"host": it.host, "owner": it.owner, "name": it.repo}},
        "getProviderLimits": {"repo": about["repo"]},
    }


async def of_tests(client: Client, world: Any) -> dict[str, dict[str, Any]]:
    """Bodies about a test that has failed and an upload."""
    it = client.instance
    repo = {"host": it.host, "owner": it.owner, "name": it.repo}
    tests = {"repo": repo, "org_url_slug": it.owner}
    (test_id,) = await world.take_in(f"crawled {uuid.uuid4()}")
    form = a_form({**tests, "sha": SHA, "job": str(uuid.uuid4())}, ("junit.xml", GOOD))
    uploaded = await client.ask("POST", UPLOAD, data=form, headers={"Content-Type": KIND})
    upload = {**tests, "upload_id": uploaded.json["upload_id"]}
    now = world.world.clock.now()
    span = {"start_time": (now - timedelta(hours=1)).isoformat(), "end_time": now.isoformat()}
    page = {**tests, "page_query": {"page_size": 1}}
    one = {**tests, "test_id": test_id}
    link = {"test_case_id": test_id, "html_url": "https://example.org/1"}
    override = {"override": "NEVER_QUARANTINE", "reason": "crawled"}
    bodies = {
        "list-unhealthy-tests": {**page, "status": "FLAKY"},
        "list-failing-tests": {**page, **span},
        "list-quarantined-tests": page,
        "list-tests": page,
        "get-test-details": one,
        "get-test-history": one,
        "check-quarantine": {**tests, "tests": [{"test_id": test_id}]},
        "link-ticket-to-test-case": {**tests, **link},
        "set-quarantine-override": {**one, **override},
        "flag-test": {**one, "flag": "NONE"},
        "get-settings": tests,
        "update-settings": {**tests, "name_masks": []},
        "upload-test-results": {**tests, "sha": SHA, "dry_run": True},
        "report-early-failure": {**tests, "sha": SHA, "name": "crawled", "final": True},
        "list-suspected-tests": {**tests, "sha": SHA},
        "plan-repeats": {**tests, "sha": SHA, "upload_id": upload["upload_id"], "able": True},
        "report-repeats": {**tests, "sha": SHA, "plan_id": test_id, "seconds": 1, "tests": []},
        "list-slowest-tests": tests,
        "plan-shards": {**tests, "count": 2, "files": ["tests/a.py"]},
        "get-flake-costs": tests,
        "list-bad-machines": tests,
        "get-detection-quality": tests,
        "preview-settings": tests,
        "get-upload": upload,
        "delete-upload": upload,
    }
    return {f"flaky-tests/{name}": body for name, body in bodies.items()}


async def of_organization(client: Client, world: Any, url: str) -> dict[str, dict[str, Any]]:
    """Bodies about two tokens and a webhook endpoint."""
    spare = [await client.done("tokens/create", {"name": "x", "role": "read"}) for _ in range(2)]
    told = {"url": url, "events": ["Queue.*"], "description": "crawled"}
    endpoint = await client.done("webhooks/create-endpoint", told)
    chosen, now = {"id": endpoint["id"]}, world.world.clock.now()
    minutes = {
        "since": (now - timedelta(minutes=2)).isoformat(),
        "until": (now - timedelta(minutes=1)).isoformat(),
    }
    return {
        "tokens/create": {"name": "crawled", "role": "read"},
        "tokens/list": {},
        "tokens/rotate": {"id": spare[0]["id"]},
        "tokens/revoke": {"id": spare[1]["id"]},
        "webhooks/create-endpoint": told,
        "webhooks/list-endpoints": {},
        "webhooks/update-endpoint": {**chosen, "description": "crawled again"},
        "webhooks/rotate-secret": chosen,
        "webhooks/test-endpoint": chosen,
        "webhooks/list-deliveries": {"endpoint_id": endpoint["id"]},
        "webhooks/replay": {"endpoint_id": endpoint["id"], **minutes},
        "webhooks/delete-endpoint": chosen,
    }


@pytest.fixture
async def scene(client: Client, world: Any, queue: Queue) -> AsyncIterator[Scene]:
    async with receiving() as receiver:
        bodies = {
            **await of_queue(client, world, queue),
            **await of_tests(client, world),
            **await of_organization(client, world, receiver.url),
        }
        yield Scene(client, bodies)
        await client.post("deleteQueue", bodies["createQueue"])
        listed = await client.done("webhooks/list-endpoints", {"take": 100})
        for each in listed["endpoints"]:
            if each["description"] == "crawled":
                await client.post("webhooks/delete-endpoint", {"id": each["id"]})


def missing(body: dict[str, Any]) -> dict[str, Any]:
    """The same body about a thing that nobody has: another repository, or another id."""
    if "repo" in body:
        return {**body, "repo": {**body["repo"], "name": "nothing"}}
    ids = [name for name in ("id", "endpoint_id") if name in body]
    fresh = str(uuid.uuid4()) if len(body[ids[0]]) == 36 else "0" * len(body[ids[0]])
    return {**body, ids[0]: fresh}


def shown(answer: Answer, body: dict[str, Any]) -> Any:
    """What an answer tells, without what the request itself named."""
    text = answer.body.decode()
    values = [body["repo"]["name"]] if "repo" in body else []
    values += [body[name] for name in ("id", "endpoint_id") if name in body]
    for value in values:
        text = text.replace(value, "*")
    return {**json.loads(text), "request_id": "", "status": answer.status}


async def by_nobody(scene: Scene, name: str) -> list[Any]:
    """What is wrong with the answers to callers without a token of ours."""
    body = scene.bodies[name]
    found = []
    for headers in ({}, {"Authorization": f"Bearer {JWT}"}, {"x-forked-workflow-run-id": "42"}):
        answer = await scene.ask(name, body, "", **headers)
        says_why = headers or answer.body == callers.NO_TOKEN.encode()
        if answer.status != 401 or not says_why:
            found.append((name, headers, answer.status, answer.body[:200]))
    return found


async def by_outsiders(scene: Scene, name: str) -> list[Any]:
    """What is wrong with the answers to tokens of another organization and of another scope."""
    it, body = scene.client.instance, scene.bodies[name]
    found = []
    for who, token in (("foreign", it.foreign_token), ("narrow", it.narrow_token)):
        if name in OF_OWN or (who == "narrow" and "repo" not in body):
            continue
        there = await scene.ask(name, body, token)
        elsewhere = missing(body)
        gone = await scene.ask(name, elsewhere, token)
        if there.status != 404 or shown(there, body) != shown(gone, elsewhere):
            found.append((name, who, there.body[:300], gone.body[:300]))
    return found


async def by_roles(scene: Scene, name: str) -> list[Any]:
    """What is wrong with the answers to tokens of each role, the smaller roles first."""
    it, body, allowed = scene.client.instance, scene.bodies[name], ROLES[name]
    tokens = {
        "read": it.read_token,
        "ci": it.ci_token,
        "queue": it.queue_token,
        "admin": it.admin_token,
    }
    found = []
    for role in sorted(ANY - allowed):
        answer = await scene.ask(name, body, tokens[role])
        if (answer.status, answer.json.get("code")) != (403, "missing_role"):
            found.append((name, role, answer.status, answer.body[:200]))
    for order, role in enumerate(each for each in tokens if each in allowed):
        answer = await scene.ask(name, body, tokens[role])
        if role == "ci" and b"not_own_pull_request" in answer.body:
            continue  # a token does not say which pull request it is of
        if name == "flaky-tests/report-repeats" and b"plan_not_found" in answer.body:
            continue  # a plan needs an idle repository: tests/end_to_end/test_repeats.py
        is_refused = answer.status in (400, 401, 403) or answer.status >= 500
        if is_refused or (order == 0 and answer.status != 200):
            found.append((name, role, answer.status, answer.body[:300]))
    return found


async def test_every_endpoint_opens_to_its_roles_and_to_nobody_else(scene: Scene) -> None:
    found = []
    # Evidence is of something that landed: tests/end_to_end/test_landing_evidence.py.
    for name in (each for each in ROLES if each != "getLandingEvidence"):
        found += await by_nobody(scene, name)
        found += await by_outsiders(scene, name)
        found += await by_roles(scene, name)
    assert not found, "\n".join(map(str, found))


async def test_what_names_no_object_shows_an_outsider_nothing(client: Client, world: Any) -> None:
    it = client.instance
    for name in ("tokens/self", "getMergeQueueMetrics"):
        answer = await client.ask("GET", f"/v1/{name}", it.foreign_token)
        assert (answer.status, b"octo" in answer.body) == (200, False)
    bodies = {"tokens/create": {"name": "theirs", "role": "read"}}
    for name in ("tokens/create", "tokens/list", "webhooks/list-endpoints"):
        answer = await client.post(name, bodies.get(name, {}), it.foreign_token)
        assert (answer.status, b"octo" in answer.body) == (200, False)
    about = {"url": "http://127.0.0.1:9999/x", "events": ["Queue.*"]}
    repo = {"host": it.host, "owner": it.owner, "name": it.repo}
    for name, body in (
        ("tokens/create", {"name": "theirs", "role": "read", "repositories": [repo]}),
        ("webhooks/create-endpoint", {**about, "repositories": [repo]}),
    ):
        answer = await client.post(name, body, it.foreign_token)
        gone = {**body, "repositories": [{**repo, "name": "nothing"}]}
        same = await client.post(name, gone, it.foreign_token)
        said = answer.json["detail"].replace(it.repo, "nothing")
        assert (answer.status, said) == (404, same.json["detail"])

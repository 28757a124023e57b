"""A bare client of the sandbox's API, as the App or as a person, and a receiver of webhooks."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jwt
from aiohttp import web

from bot.sandbox.app import Sandbox
from bot.sandbox.auth import private_key

REPO = "octo/widgets"

FACTS = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    id
    pullRequest(number: $number) {
      number title body state isDraft merged mergeable mergeStateStatus reviewDecision
      headRefName headRefOid baseRefName baseRefOid isCrossRepository url
      author { __typename login ... on User { databaseId } ... on Bot { databaseId } }
      labels(first: 100) { nodes { name } }
      headRepository { databaseId nameWithOwner }
      mergeCommit { oid tree { oid } parents(first: 10) { nodes { oid } } }
      baseRef { target { oid } }
      reviewThreads(first: 100) { nodes { isResolved } pageInfo { hasNextPage endCursor } }
      statusCheckRollup { state contexts(first: 100) { nodes {
        __typename
        ... on CheckRun {
          name conclusion startedAt completedAt isRequired(pullRequestNumber: $number)
        }
        ... on StatusContext { context state isRequired(pullRequestNumber: $number) }
      } } }
    }
  }
}
"""

UPDATE_REFS = """
mutation($repository: ID!, $updates: [RefUpdate!]!) {
  updateRefs(input: {repositoryId: $repository, refUpdates: $updates}) { clientMutationId }
}
"""


@dataclass(frozen=True)
class Answer:
    """Status, decoded body and headers."""

    status: int
    body: Any
    headers: Any


class Client:
    """Calls of one credential; paths are below `/api/v3`."""

    def __init__(self, sandbox: Sandbox, http: aiohttp.ClientSession, token: str | None) -> None:
        self.sandbox = sandbox
        self.token = token
        self._http = http

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One call; a whole address is taken as it is."""
        if not path.startswith("http"):
            path = f"{self.sandbox.url}/api/v3{path}"
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        raw = None if body is None else json.dumps(body)
        sent = self._http.request(method, path, data=raw, headers=headers, allow_redirects=False)
        async with sent as answer:
            content = await answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            shown = json.loads(content) if is_json and content else content
            return Answer(answer.status, shown, answer.headers)

    async def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        answer = await self.call("GET", path)
        assert answer.status == 200, answer
        return answer.body

    async def graphql(self, document: str, **variables: Any) -> Any:
        """The whole answer to a GraphQL document."""
        body = {"query": document, "variables": variables}
        answer = await self.call("POST", f"{self.sandbox.url}/api/graphql", body)
        assert answer.status == 200, answer
        return answer.body

    async def facts(self, number: int, repo: str = REPO) -> Any:
        """The facts of a pull request."""
        owner, name = repo.split("/")
        answer = await self.graphql(FACTS, owner=owner, name=name, number=number)
        assert "errors" not in answer, answer
        return answer["data"]["repository"]["pullRequest"]

    async def update_refs(self, *updates: dict[str, Any], repo: str = REPO) -> Any:
        """The answer to one atomic update of refs."""
        repository = (await self.get(f"/repos/{repo}"))["node_id"]
        return await self.graphql(UPDATE_REFS, repository=repository, updates=list(updates))


def app_token(sandbox: Sandbox, *, issued: float = -60, expires: float = 540) -> str:
    """A JWT of the App; times in seconds from now by the wall's clock."""
    now = int(time.time())
    claims = {"iat": int(now + issued), "exp": int(now + expires), "iss": str(sandbox.app_id)}
    # Reading the key from its file checks it anew, which takes longer than most tests here.
    return jwt.encode(claims, private_key(), algorithm="RS256")


async def as_app(sandbox: Sandbox, http: aiohttp.ClientSession, **narrowed: Any) -> Client:
    """A client with a fresh installation token for the repository's owner."""
    signed = Client(sandbox, http, app_token(sandbox))
    installation = await signed.get(f"/repos/{REPO}/installation")
    path = f"/app/installations/{installation['id']}/access_tokens"
    answer = await signed.call("POST", path, narrowed)
    assert answer.status == 201, answer
    return Client(sandbox, http, answer.body["token"])


@dataclass
class Receiver:
    """A receiver of webhooks that keeps what came; `status` is what it answers."""

    status: int = 202
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        """Keep one delivery."""
        self.received.append((dict(request.headers), await request.read()))
        return web.Response(status=self.status)

    def events(self) -> list[str]:
        """What came, as `event.action`, in order."""
        shown = []
        for headers, body in self.received:
            action = json.loads(body).get("action")
            shown.append(headers["X-GitHub-Event"] + (f".{action}" if action else ""))
        return shown

    def payloads(self, event: str) -> list[Any]:
        """The payloads of one event, in order."""
        return [
            json.loads(body)
            for headers, body in self.received
            if headers["X-GitHub-Event"] == event
        ]

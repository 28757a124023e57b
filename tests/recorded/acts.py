"""What the recorded merge queue and its people did, done to the stand-in, and what that sent.

The result has the form of a recording, so that both are compared by the same functions.
"""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from bot.sandbox.app import PERMISSIONS, SandboxOptions, running
from bot.sandbox.faces import Face
from tests.recorded.recordings import Call, Recording, Sent
from tests.sandbox.client import REPO, Client, Receiver, as_app

RIGHTS = {
    **PERMISSIONS,
    **dict.fromkeys(("statuses", "administration", "issues"), "write"),
}
FILES = {"README.md": "w\n", "app.py": "1\n2\n"}
CI = "continuous-integration"


@dataclass
class Actors:
    """The stand-in with a client of our App, and what was kept of it so far."""

    sandbox: Any
    app: Client
    received: Receiver
    case: str
    entries: list[Call | Sent] = field(default_factory=list)
    _seen: int = 0

    async def call(self, method: str, path: str, request: Any = None) -> Any:
        """Send one call of our App below the repository; its answer."""
        answer = await self.app.call(method, f"/repos/{REPO}{path}", request)
        address = urlsplit(path)
        content = answer.body or None
        self.entries.append(
            Call(
                case=self.case,
                order=len(self.entries),
                method=method,
                path=address.path,
                query=address.query,
                request=request,
                status=answer.status,
                answer=content,
            )
        )
        await self.settle()
        return content

    async def act(self, name: str, *, by: str = "alice", **fields: Any) -> Any:
        """Let a person act."""
        found = await self.sandbox.act(name, by, REPO, **fields)
        await self.settle()
        return found

    async def settle(self) -> None:
        """Keep what was delivered meanwhile."""
        await self.sandbox.settle()
        new, self._seen = self.received.received[self._seen :], len(self.received.received)
        for headers, body in new:
            event, payload = headers["X-GitHub-Event"], json.loads(body)
            self.entries.append(Sent(self.case, len(self.entries), event, payload))


async def perform(face: Face) -> Recording:
    """Do all acts in a new stand-in of this face; what it answered and sent."""
    options = SandboxOptions(is_manual=True, face=face)
    async with running(options) as sandbox, aiohttp.ClientSession() as http:
        await sandbox.seed(repositories=[{"full_name": REPO, "files": FILES}])
        received = Receiver()
        application = web.Application()
        application.router.add_post("/hook", received.receive)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        sandbox.world.webhook_url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        await sandbox.act("permissions", "alice", REPO, permissions=RIGHTS)
        actors = Actors(sandbox, await as_app(sandbox, http), received, f"face-{face.seed}")
        await actors.settle()
        actors.entries.clear()
        for part in (branches, checks, conversation, merges, reads):
            await part(actors)
        await runner.cleanup()
        return Recording(str(sandbox.app_id), sandbox.app.slug, tuple(actors.entries))


async def opened(actors: Actors, **more: Any) -> Any:
    """A pull request that a person opens."""
    name = f"file-{len(actors.entries)}.txt"
    return await actors.act("open", files={name: "x\n"}, **more)


async def branches(actors: Actors) -> None:
    """Test branches are made, merged into, opened as drafts, and deleted."""
    first, second, third = [await opened(actors) for _ in range(3)]
    tip = (await actors.call("GET", "/branches/main"))["commit"]["sha"]
    made = {"ref": "refs/heads/tmp/q", "sha": tip}
    await actors.call("POST", "/git/refs", made)
    await actors.call("POST", "/git/refs", made)
    await actors.call("POST", "/merges", {"base": "tmp/q", "head": first["head"]})
    await actors.call("POST", "/merges", {"base": "tmp/q", "head": second["head"]})
    pull = f"refs/pull/{third['number']}/head"
    await actors.call("POST", "/merges", {"base": "tmp/q", "head": pull, "commit_message": "m"})
    one, other = [await actors.act("open", files={"app.py": f"{each}\n"}) for each in "ab"]
    await actors.call("POST", "/merges", {"base": "tmp/q", "head": one["head"]})
    await actors.call("POST", "/merges", {"base": "tmp/q", "head": other["head"]})
    draft = {"head": "tmp/q", "base": "main", "title": "t", "body": "b", "draft": True}
    number = (await actors.call("POST", "/pulls", draft))["number"]
    await actors.call("GET", f"/pulls/{number}")
    await actors.call("GET", "/git/matching-refs/heads/tmp")
    await actors.call("GET", "/compare/main...tmp/q")
    await actors.call("PUT", "/git/refs/heads/tmp/q", {"sha": first["head"], "force": True})
    await actors.call("DELETE", "/git/refs/heads/tmp/q")
    await actors.call("PUT", f"/pulls/{second['number']}/update-branch", {})
    await actors.act("push", branch=await _branch_of(actors, third["number"]), files={"n": "1"})
    await actors.act("default_branch", branch=await _branch_of(actors, first["number"]))
    await actors.act("default_branch", branch="main")


async def _branch_of(actors: Actors, number: int) -> str:
    pull = await actors.call("GET", f"/pulls/{number}")
    return str(pull["head"]["ref"])


async def checks(actors: Actors) -> None:
    """Check runs begin, end and end otherwise; statuses are set."""
    head = (await opened(actors))["head"]
    begun = {"name": "Q", "head_sha": head, "status": "in_progress"}
    text = {"output": {"title": "t", "summary": "s"}}
    number = (await actors.call("POST", "/check-runs", {**begun, **text}))["id"]
    path = f"/check-runs/{number}"
    await actors.call("PATCH", path, {"status": "in_progress", **text})
    await actors.call("GET", f"/commits/{head}/check-runs")
    for conclusion in ("cancelled", "neutral", "neutral"):
        await actors.call("PATCH", path, {"status": "completed", "conclusion": conclusion, **text})
    over = {"name": "S", "head_sha": head, "status": "completed", **text}
    for conclusion in ("success", "failure", "action_required"):
        await actors.call("POST", "/check-runs", {**over, "conclusion": conclusion})
    for state in ("pending", "success", "failure", "error"):
        status = {"context": f"{CI}/{state}", "state": state, "description": "d"}
        await actors.call("POST", f"/statuses/{head}", status)
    await actors.call("GET", f"/commits/{head}/check-runs")
    await actors.call("GET", f"/commits/{head}/status")


async def conversation(actors: Actors) -> None:
    """People and the App label, comment, review and edit."""
    pull = await opened(actors, body="b")
    number = pull["number"]
    await actors.call("POST", f"/issues/{number}/labels", {"labels": ["merge"]})
    await actors.call("GET", f"/pulls/{number}")
    await actors.act("label", number=number, label="other")
    await actors.act("unlabel", number=number, label="other")
    await actors.call("DELETE", f"/issues/{number}/labels")
    await actors.call("POST", f"/issues/{number}/comments", {"body": "c"})
    await actors.act("comment", number=number, body="c")
    await actors.call("PATCH", f"/pulls/{number}", {"title": "other"})
    await actors.call("PATCH", f"/pulls/{number}", {"body": "other"})
    reviews = f"/pulls/{number}/reviews"
    for event in ("APPROVE", "REQUEST_CHANGES", "COMMENT"):
        await actors.call("POST", reviews, {"body": "b", "event": event})
    comment = (await actors.act("comment", by="bob", number=number, body="c"))["comment"]
    await actors.act("edit", by="bob", number=number, comment=comment, body="d")
    await actors.act("approve", by="bob", number=number)
    await actors.act("request_changes", by="bob", number=number, body="b")
    await actors.act("discuss", number=number, body="d")
    await actors.call("GET", reviews)
    await actors.call("GET", f"/issues/{number}/comments")
    await actors.call("PATCH", f"/pulls/{number}", {"state": "closed"})
    await actors.act("comment", number=number, body="c")


async def merges(actors: Actors) -> None:
    """Pull requests are merged by each method, their branches deleted, one by its branch."""
    for method in ("merge", "squash", "rebase"):
        pull = await opened(actors)
        number = pull["number"]
        branch = await _branch_of(actors, number)
        await actors.call("GET", f"/pulls/{number}/merge")
        await actors.call("PUT", f"/pulls/{number}/merge", {"merge_method": method})
        await actors.call("GET", f"/pulls/{number}/merge")
        await actors.call("GET", f"/pulls/{number}")
        await actors.act("comment", number=number, body="c")
        await actors.call("DELETE", f"/git/refs/heads/{branch}")
    pull = await opened(actors)
    await actors.call("DELETE", f"/git/refs/heads/{await _branch_of(actors, pull['number'])}")


async def reads(actors: Actors) -> None:
    """What the recorded merge queue read, also where there is nothing."""
    pull = await opened(actors)
    number = pull["number"]
    for tail in ("", "/commits", "/files"):
        await actors.call("GET", f"/pulls/{number}{tail}")
    await actors.call("GET", f"/commits/{pull['head']}/pulls")
    await actors.call("GET", f"/commits/{pull['head']}")
    await actors.call("GET", "/pulls?per_page=100")
    await actors.call("GET", "/pulls/424242")
    await actors.call("GET", "/branches/nope")
    await actors.call("GET", "/branches/main/protection")
    await actors.call("GET", "/collaborators/alice/permission")
    pin = {"context": "unit", "app_id": actors.sandbox.app_id}
    await actors.sandbox.control.rules(
        {"repo": REPO, "protection": {"main": {"checks": ["lint", pin]}}}
    )
    await actors.call("GET", "/branches/main/protection")
    await actors.call("GET", "/branches/main")

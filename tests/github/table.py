"""A GitHub that answers from a table: for what the sandbox's GitHub would never say.

`says` fills the table by call: `GET /branches/main` stands below the repository, `graphql Name`
is an operation. A call that is not in it is answered by 404. Answers have ETags.
"""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.github.client import GitHubClient, RepositoryClient
from bot.github.options import GitHubOptions, addresses_of
from bot.github.pacing import Priority
from service.vocabulary import RepoRef
from tests.provider.stage import HOST, START, SharedClock

APP_ID = "4711"
REPO = RepoRef(HOST, "octo", "widgets")
BELOW = f"/api/v3/repos/{REPO.slug}"
OPERATION = re.compile(r"(?:query|mutation) (\w+)")


@cache
def a_key() -> rsa.RSAPrivateKey:
    """A private key; making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Table:
    """What it answers, and the calls that came: all, and those with an ETag.

    `slow` names calls whose answer takes so many seconds; `held` those whose next one is answered
    when a test has met it twice; `bodies` are the last of each call.
    """

    def __init__(self, clock):
        self.clock = clock
        self.answers = {}
        self.slow = {}
        self.held: dict[str, asyncio.Barrier] = {}
        self.permissions = {"contents": "write", "pull_requests": "write"}
        self.calls: Counter[str] = Counter()
        self.asked_again: Counter[str] = Counter()
        self.bodies = {}
        place = {"full_name": REPO.slug, "default_branch": "main"}
        self.says("GET ", {"id": 1, "owner": {"id": 2, "login": "octo"}, **place})
        self.says("GET /installation", {"id": 7, "app_slug": "headgate"})

    def says(self, call, *contents, status=200, **headers):
        """Answer a call with these contents, one after the other, the last one for good."""
        self.answers[call] = [(status, content, headers) for content in contents or (None,)]

    def denies(self, call, status, message=None):
        """Answer a call with an error; None: without a body."""
        self.says(call, None if message is None else {"message": message}, status=status)

    async def answer(self, request):
        """Answer one request."""
        body = await request.json() if request.can_read_body else {}
        if request.path.endswith("/access_tokens"):
            return self._token()
        call = f"{request.method} {request.path.removeprefix(BELOW)}"
        if request.path.endswith("/graphql"):
            call = "graphql " + OPERATION.findall(body["query"])[0]
        self.calls[call] += 1
        self.bodies[call] = body
        self.clock.advance(self.slow.get(call, 0.0))
        answers = self.answers.get(call, [(404, {"message": "Not Found"}, {})])
        status, content, headers = answers.pop(0) if len(answers) > 1 else answers[0]
        if call in self.held:
            meeting = self.held.pop(call)
            await meeting.wait()
            await meeting.wait()
        text = "" if content is None else json.dumps(content)
        etag = f'"{hashlib.sha256(text.encode()).hexdigest()}"'
        if "If-None-Match" in request.headers:
            self.asked_again[call] += 1
            if request.headers["If-None-Match"] == etag and status == 200:
                return web.Response(status=304)
        return web.Response(
            status=status,
            text=text,
            content_type="application/json",
            charset="utf-8",
            headers={"ETag": etag, **headers},
        )

    def _token(self):
        ends = (START + timedelta(days=1)).isoformat()
        token = {"token": "t", "expires_at": ends, "permissions": self.permissions}
        return web.json_response(token, status=201)


@asynccontextmanager
async def on_table() -> AsyncIterator[tuple[Table, RepositoryClient]]:
    """A table, and a client of the repository octo/widgets there."""
    clock = SharedClock(START)
    table = Table(clock)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", table.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    addresses = addresses_of(HOST, f"http://127.0.0.1:{runner.addresses[0][1]}")
    options = GitHubOptions(HOST, addresses, APP_ID, (a_key(),), (), write_spacing_ms=0)
    github = GitHubClient(options, clock)
    try:
        yield table, RepositoryClient(github, REPO, Priority.VERDICT)
    finally:
        await github.close()
        await runner.cleanup()

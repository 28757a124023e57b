"""A receiver of webhooks on loopback: keeps what it got, answers as it is told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import standardwebhooks
import svix
from aiohttp import web


@dataclass(frozen=True, slots=True)
class Got:
    """One attempt as it arrived."""

    id: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)


@dataclass(slots=True)
class Receiver:
    """Its address, what arrived, and its next answers: statuses, the last one for ever."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answers: list[int] = field(default_factory=lambda: [200])
    headers: dict[str, str] = field(default_factory=dict)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, request: web.Request) -> web.Response:
        """Keep one and answer."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.got.append(Got(headers.get("webhook-id", ""), headers, await request.read()))
        self.arrived.set()
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.Response(status=status, headers=self.headers, text="x" * 10)

    def types(self) -> list[str]:
        """The types of what arrived, in order."""
        return [each.json["type"] for each in self.got]


def verified(got: Got, secret: str) -> Any:
    """What an attempt says, if its signatures are good under the time that it names.

    The libraries compare that time with the machine's clock, so the signature is also made
    anew by them for worlds whose time runs by itself.
    """
    text = got.body.decode()
    for library, family in ((standardwebhooks, "webhook"), (svix, "svix")):
        at = datetime.fromtimestamp(int(got.headers[f"{family}-timestamp"]), UTC)
        own = library.Webhook(secret).sign(got.headers[f"{family}-id"], at, text)
        assert own in got.headers[f"{family}-signature"].split(" ")
    return got.json


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver until the block ends."""
    receiver = Receiver()
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", receiver.receive)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/hook?key=1"
    try:
        yield receiver
    finally:
        await runner.cleanup()

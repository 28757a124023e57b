"""The process under test of `uploads.py`: the service's door over an empty repository.

Prints one line of JSON, its port and a token; then obeys lines of its standard input: `watch`
lets another writer write again and again, `waited` prints how many milliseconds it waited at
most since then.
"""

import asyncio
import json
import sys

import uvloop

from bot import telemetry
from service.accounts import tokens
from service.accounts.store import access
from service.accounts.tokens import TokenRequest
from service.clock import SystemClock
from service.database.database import Tx
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Role
from tests.bench import door
from tests.bench.door import REPO


class Writer:
    """Somebody else who writes, as a queue's turn does: what he waits is what he is kept from."""

    EVERY_S = 0.02

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.waited_ms = 0.0

    async def write(self) -> None:
        """Write until cancelled."""
        clock = self._runtime.clock
        while True:
            began = clock.monotonic_s()
            await self._runtime.store.run(touch)
            self.waited_ms = max(self.waited_ms, (clock.monotonic_s() - began) * 1000)
            await clock.sleep(self.EVERY_S)


def touch(session: Tx) -> None:
    """A transaction of another organization."""
    access.ensure_organization(session, REPO.host, "2", "others")


async def serve(url: str) -> None:
    """Take uploads in until the standard input ends."""
    telemetry.start("json", "warning", SystemClock())
    runtime = await door.runtime_at(url)
    await runtime.store.run(door.met)
    wish = TokenRequest(REPO.host, REPO.owner, "bench", Role.QUEUE)
    secret = (await tokens.create_token(runtime, wish, SYSTEM)).secret
    runner, port = await door.opened(door.application(runtime))
    say({"port": port, "token": secret})
    await obey(Writer(runtime))
    await runner.cleanup()
    await runtime.store.close()


async def obey(writer: Writer) -> None:
    """Do what the standard input says, line by line, until it ends."""
    writing: asyncio.Task[None] | None = None
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        if line == "watch":
            writer.waited_ms = 0.0
            writing = asyncio.create_task(writer.write())
            say({})
        elif line == "waited" and writing is not None:
            writing.cancel()
            say(writer.waited_ms)


def say(value: object) -> None:
    """One line of JSON on the standard output."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))

"""A running service with a world around it, for tests that know nothing but HTTP.

It lives on a thread with a loop of its own, so that one instance serves all tests of a folder
in a worker, whatever loops they run on. Another one, anywhere, is named by HEADGATE_CONTRACT_URL
and HEADGATE_CONTRACT_TOKEN; tests that need more than those are skipped then.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from service.accounts import tokens
from service.accounts.store import access
from service.accounts.tokens import TokenRequest
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store.cases import Place
from service.vocabulary import SYSTEM, RepoRef, Role
from tests.harness.evidence import Ledger, Ran
from tests.harness.world import REPO, World, WorldOptions, living

T = TypeVar("T")

HOST = "github.localhost"
UP_WITHIN_S = 200
CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 1
    rules:
      - {exists: [broken.txt], conclusion: failure}
"""

RECEIVERS = {"webhook_ports": "1024-65535", "webhook_allow_networks": "127.0.0.0/8"}
"""Settings under which receivers on this machine may be told."""

OPTIONS = WorldOptions(required=(), ci=CI, settings=RECEIVERS)


@dataclass(frozen=True)
class Instance:
    """Where it is, and what a test may ask of the world around it."""

    url: str
    admin_token: str
    queue_token: str = ""
    ci_token: str = ""
    read_token: str = ""
    foreign_token: str = ""
    narrow_token: str = ""
    host: str = HOST
    owner: str = "octo"
    repo: str = "widgets"
    world: World | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> datetime:
        """The present of the instance."""
        return self._world().clock.now()

    async def open_pull_request(self, base: str = "main", **more: Any) -> int:
        """A new pull request onto a branch; its number."""
        world = self._world()
        return await self._there(world.open(base=base, **more))

    async def new_branch(self) -> str:
        """A branch that nobody else uses."""
        world = self._world()
        name = f"line-{world.sandbox.world.new_id()}"
        await self._there(world.act("push", branch=name, files={f"{name}.txt": "x\n"}))
        return name

    async def settle(self) -> None:
        """Return once nothing is left to do on either side."""
        await self._there(self._world().settle())

    async def act(self, name: str, *, by: str = "bob", repo: str = REPO, **fields: Any) -> None:
        """What a person does at the provider."""
        await self._there(self._world().sandbox.act(name, by, repo, **fields))

    async def break_down(self, document: str) -> None:
        """The provider fails each GraphQL query that contains a text from now on."""
        fault = {"match": {"graphql": document}, "fault": {"kind": "fail_before", "status": 503}}
        await self._there(self._world().sandbox.control.add_fault(fault))

    async def failed_requests(self) -> int:
        """Return how many requests the provider has failed since it broke down; it works again."""
        control = self._world().sandbox.control
        faults = (await self._there(control.list_faults({})))["faults"]
        await self._there(control.clear_faults({}))
        return sum(each["matched"] for each in faults)

    async def seed(self, **value: Any) -> None:
        """Add to the provider's world."""
        await self._there(self._world().sandbox.seed(**value))

    async def take_in(self, *names: str) -> list[str]:
        """Tests that have failed in the repository; their ids."""
        world = self._world()
        ref = RepoRef(self.host, self.owner, self.repo)
        found = await self._there(world.runtime.store.read(access.repository_by_ref, None, ref))
        assert found is not None
        key = RepositoryKey(self.owner, f"{self.host}/{ref.slug}")
        now = world.clock.now()
        ledger = Ledger(Place(found.org_id, found.id), key, now)
        ran = Ran(now, dict.fromkeys(names, "f"), prs=(3,))
        await self._there(world.runtime.store.run(ledger.take_in, ran))
        return [ledger.id_of(name) for name in names]

    def _world(self) -> World:
        assert self.world is not None
        return self.world

    async def _there(self, doing: Coroutine[Any, Any, T]) -> T:
        assert self.loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(doing, self.loop))


def named_by_environment() -> Instance | None:
    """The instance somebody else runs, if one is named."""
    url = os.environ.get("HEADGATE_CONTRACT_URL")
    if not url:
        return None
    return Instance(url.rstrip("/"), os.environ["HEADGATE_CONTRACT_TOKEN"])


@contextmanager
def started(folder: Path, options: WorldOptions = OPTIONS) -> Iterator[Instance]:
    """An instance of our own, until the block ends."""
    up: Future[tuple[Instance, asyncio.Event]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_live(folder, options, up)))
    thread.start()
    try:
        instance, over = up.result(timeout=UP_WITHIN_S)
        try:
            yield instance
        finally:
            assert instance.loop is not None
            instance.loop.call_soon_threadsafe(over.set)
    finally:
        thread.join()


async def _live(
    folder: Path, options: WorldOptions, up: Future[tuple[Instance, asyncio.Event]]
) -> None:
    over = asyncio.Event()
    async with AsyncExitStack() as stack:
        try:
            world = await stack.enter_async_context(living(folder, options))
            up.set_result((await _instance(world), over))
        except BaseException as failed:
            up.set_exception(failed)
            raise
        await over.wait()


async def _instance(world: World) -> Instance:
    await world.sandbox.seed(
        repositories=[{"full_name": "octo/gears", "files": {"README.md": "# Gears\n"}}]
    )
    narrow = (RepoRef(HOST, "octo", "gears"),)
    await world.settle()
    return Instance(
        url=world.url,
        admin_token=await _token(world, Role.ADMIN),
        queue_token=await _token(world, Role.QUEUE),
        ci_token=await _token(world, Role.CI),
        read_token=await _token(world, Role.READ),
        foreign_token=await _token(world, Role.ADMIN, org="initech"),
        narrow_token=await _token(world, Role.ADMIN, only=narrow),
        repo=REPO.partition("/")[2],
        world=world,
        loop=asyncio.get_running_loop(),
    )


async def _token(
    world: World, role: Role, org: str = "octo", only: tuple[RepoRef, ...] | None = None
) -> str:
    wish = TokenRequest(HOST, org, f"{role.value} of {org}", role, repositories=only)
    return (await tokens.create_token(world.runtime, wish, SYSTEM)).secret

"""The service's own door as a benchmark's process opens it: no provider, no worker, no limit."""

import asyncio
import json
import sys

from aiohttp import web

from service.accounts import repositories, tokens
from service.accounts.tenants import RepositoryRecord
from service.accounts.tokens import TokenRequest
from service.clock import RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database.database import Tx, open_store
from service.http import connections
from service.http.health import Readiness
from service.limits import Rate
from service.process.api import app
from service.provider.values import Repository
from service.runtime import Options, Rates, Runtime
from service.vocabulary import SYSTEM, MergeMethod, RepoId, RepoRef, Role
from tests.harness.runtimes import a_runtime

# Counted as always, refused never.
PLENTY = Rate(1_000_000, 1_000_000)
RATES = Rates(PLENTY, PLENTY, PLENTY, PLENTY, PLENTY)

REPO = RepoRef("github.com", "octo", "widgets")


async def runtime_at(url: str) -> Runtime:
    """What the door needs, over the database there."""
    clock = SystemClock()
    return a_runtime(
        await open_store(url, clock=clock, ids=RandomIds(), crash_points=NoCrashes()),
        clock,
        options=Options(version="bench", public_url="https://queue.example.org", rates=RATES),
    )


def met(session: Tx, ref: RepoRef = REPO, number: int = 2) -> RepositoryRecord:
    """Enter a repository and its organization; `number` is the repository's id at its host."""
    seen = Repository(
        ref=ref,
        id=RepoId(ref.host, str(number)),
        owner_id="1",
        default_branch="main",
        merge_methods=frozenset(MergeMethod),
        archived=False,
        url=f"https://{ref.host}/{ref.slug}",
    )
    return repositories.upsert(session, seen)


async def reader_of(runtime: Runtime, repo: RepoRef) -> str:
    """A token that reads the repository's organization, which has to be there."""
    return await token_of(runtime, repo, Role.READ)


async def token_of(runtime: Runtime, repo: RepoRef, role: Role) -> str:
    """A token of this role for the repository's organization, which has to be there."""
    wish = TokenRequest(repo.host, repo.owner, f"bench {role.value}", role)
    return (await tokens.create_token(runtime, wish, SYSTEM)).secret


def application(runtime: Runtime) -> web.Application:
    """The service's application, as after its start."""
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    return app.build_app(runtime, readiness)


async def opened(served: web.Application) -> tuple[web.AppRunner, int]:
    """The application behind the service's own connections, and its port."""
    runner = connections.runner(served, drain_s=1)
    return runner, await listen(runner)


async def opened_plainly(served: web.Application) -> tuple[web.AppRunner, int]:
    """A plain application as aiohttp serves it, and its port."""
    runner = web.AppRunner(served, access_log=None, shutdown_timeout=1)
    return runner, await listen(runner)


async def listen(runner: web.AppRunner) -> int:
    """Serve on a free port of this machine."""
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port: int = runner.addresses[0][1]
    return port


async def stay(about: dict[str, object], runtime: Runtime, *runners: web.AppRunner) -> None:
    """Tell whoever measures, in a line of JSON; serve until the standard input ends."""
    sys.stdout.write(json.dumps(about) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    for runner in runners:
        await runner.cleanup()
    await runtime.store.close()

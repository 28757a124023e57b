"""A repository with tests, and a service that answers about them, over either database."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from service.accounts import access as operations_access
from service.accounts import tokens
from service.accounts.store import access, audit
from service.accounts.tokens import TokenRequest
from service.database.database import Store, Tx
from service.http import connections
from service.http.callers import Caller
from service.http.health import Readiness
from service.notifications.sender import HttpSender
from service.notifications.store import notifications
from service.process.api import app
from service.provider.values import Repository
from service.runtime import Options, Rates, Runtime
from service.testhealth.operations import sweeps
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import cases, uploads
from service.testhealth.store.cases import Place
from service.vocabulary import SYSTEM, Health, MergeMethod, RepoId, RepoRef, Role
from tests.contract.api.conftest import Answer, Client
from tests.contract.instance import Instance
from tests.harness.databases import SetClock
from tests.harness.evidence import Ledger, Ran
from tests.harness.runtimes import a_runtime
from tests.operations.message_stage import LOOPBACK

HOST = "github.test"
FREELY = Rates(None, None, None, None, None)
PUBLIC_URL = "https://queue.example.org"
HOUR = timedelta(hours=1)


@dataclass
class Tested:
    """The service, its repository `octo/widgets`, and what CI has reported there."""

    client: Client
    runtime: Runtime
    clock: SetClock
    ledger: Ledger

    @property
    def now(self) -> datetime:
        """The present."""
        return self.clock.present

    async def ran(self, hours_ago: float = 1, **given: Any) -> None:
        """CI reported so long ago what each test did: `ran(test_total="fp")`."""
        more = {name: given.pop(name) for name in ("prs", "is_trusted", "headlines", "variant")
                if name in given}  # fmt: skip
        ran = Ran(self.now - hours_ago * HOUR, given, **more)
        await self.runtime.store.run(self._now_ledger().take_in, ran)

    async def taken_out(self, hours_ago: float) -> None:
        """The upload that ran so long ago is removed."""
        await self.runtime.store.run(_take_out, self.ledger.place, self.now - hours_ago * HOUR)

    async def judged(
        self, name: str, value: str, hours_ago: float = 1, reason: str = "Because."
    ) -> None:
        """The detector found so long ago that a test is like this."""
        since = self.now - hours_ago * HOUR
        await self.runtime.store.run(self._now_ledger().judge, name, Health(value), since, reason)

    def _now_ledger(self) -> Ledger:
        return replace(self.ledger, now=self.now)

    def id_of(self, name: str, variant: str = "") -> str:
        """The id of the test of this name."""
        return self.ledger.id_of(name, variant)

    def about(self, **more: Any) -> dict[str, Any]:
        """A request about the repository's tests."""
        repo = {"host": HOST, "owner": "octo", "name": "widgets"}
        return {"repo": repo, "org_url_slug": "octo", **more}

    async def done(self, name: str, token: str | None = None, **more: Any) -> Any:
        """What an endpoint answers, which must be a success."""
        return await self.client.done(f"flaky-tests/{name}", self.about(**more), token)

    async def post(self, name: str, token: str | None = None, **more: Any) -> Answer:
        """Any answer of an endpoint."""
        return await self.client.post(f"flaky-tests/{name}", self.about(**more), token)

    async def unhealthy(self, status: str = "FLAKY", size: int = 100, token: str = "") -> Any:
        """A page of the unhealthy tests."""
        query = {"page_size": size, "page_token": token}
        return await self.done("list-unhealthy-tests", status=status, page_query=query)

    async def failing(self, hours: float = 24, size: int = 100, token: str = "") -> Any:
        """A page of the tests that failed in the last hours."""
        query = {"page_size": size, "page_token": token}
        span = {"start_time": stamp(self.now - hours * HOUR), "end_time": stamp(self.now)}
        return await self.done("list-failing-tests", **span, page_query=query)

    async def quarantined(self, size: int = 100, token: str = "") -> Any:
        """A page of the quarantined tests."""
        query = {"page_size": size, "page_token": token}
        return await self.done("list-quarantined-tests", page_query=query)

    async def settings(self, **values: Any) -> Any:
        """Change settings."""
        return await self.done("update-settings", **values)

    async def swept(self) -> None:
        """What runs once a minute has run."""
        await sweeps.expire(self.runtime)

    async def asked_elsewhere(self, name: str, **more: Any) -> Answer:
        """Any answer of an endpoint about another repository of the organization, `gadgets`."""
        await self.runtime.store.run(_place, "gadgets", "102")
        repo = {"host": HOST, "owner": "octo", "name": "gadgets"}
        return await self.client.post(f"flaky-tests/{name}", self.about(**more) | {"repo": repo})

    async def caller(self) -> Caller:
        """The admin, as operations know him."""
        return await operations_access.look_up(self.runtime, self.client.instance.admin_token)

    async def messages(self) -> list[Any]:
        """What endpoints are told, oldest first."""
        rows = await self.runtime.store.run(notifications.claim, "me", self.now, 50)
        return [orjson.loads(row.body) for row in sorted(rows, key=lambda row: row.id)]

    async def audited(self) -> list[Mapping[str, Any]]:
        """What the audit log says, newest first: action, subject, reason, data."""
        return await self.runtime.store.read(_tail, self.ledger.place.org_id)


def stamp(at: datetime) -> str:
    """A time as the API writes it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def names_of(answer: Any, field: str = "tests") -> list[str]:
    """The names of the tests of a page."""
    return [each["name"] for each in answer[field]]


def _take_out(session: Tx, place: Place, at: datetime) -> None:
    for upload_id in uploads.eligible(session, place.repository_id, at):
        found = uploads.by_id(session, upload_id)
        if found is not None and found.upload.ran_at == at:
            uploads.remove(session, upload_id)
    cases.note_removal(session, place.repository_id)


def _tail(session: Tx, org_id: int) -> list[Mapping[str, Any]]:
    from_log = audit.newest(session, org_id, 50)
    return [
        {"action": row.action, "subject": row.subject, "reason": row.reason, "data": row.data,
         "actor": row.actor.login, "request_id": row.request_id}
        for row in from_log
    ]  # fmt: skip


def _place(session: Tx, name: str = "widgets", number: str = "101") -> Place:
    org = access.ensure_organization(session, HOST, "7", "octo")
    seen = Repository(
        ref=RepoRef(HOST, "octo", name),
        id=RepoId(HOST, number),
        owner_id="7",
        default_branch="main",
        merge_methods=frozenset(MergeMethod),
        archived=False,
        url=f"https://{HOST}/octo/{name}",
    )
    return Place(org.id, access.upsert_repository(session, org.id, seen).id)


@asynccontextmanager
async def serving(store: Store, start: datetime) -> AsyncIterator[Tested]:
    """The service over this store, at this time, until the block ends."""
    clock = SetClock(start)
    runtime = a_runtime(
        store,
        clock,
        sender=HttpSender(LOOPBACK),
        options=Options(version="0.0.7", public_url=PUBLIC_URL, rates=FREELY),
    )
    place = await store.run(_place)
    await store.run(_place, "gears", "102")
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    runner = connections.runner(app.build_app(runtime, readiness), drain_s=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession() as session:
            instance = await _instance(runtime, f"http://{host}:{port}")
            key = RepositoryKey("octo", f"{HOST}/octo/widgets")
            ledger = Ledger(place, key, start)
            yield Tested(Client(session, instance), runtime, clock, ledger)
    finally:
        await runner.cleanup()


async def _instance(runtime: Runtime, url: str) -> Instance:
    async def token(role: Role, org: str = "octo", *only: RepoRef) -> str:
        wish = TokenRequest(HOST, org, f"{role.value} of {org}", role, repositories=only or None)
        return (await tokens.create_token(runtime, wish, SYSTEM)).secret

    return Instance(
        url=url,
        admin_token=await token(Role.ADMIN),
        queue_token=await token(Role.QUEUE),
        ci_token=await token(Role.CI),
        read_token=await token(Role.READ),
        foreign_token=await token(Role.ADMIN, "initech"),
        narrow_token=await token(Role.ADMIN, "octo", RepoRef(HOST, "octo", "gears")),
        host=HOST,
    )

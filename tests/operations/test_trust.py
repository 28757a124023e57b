"""What stays true when callers go away, repositories move and hosts do not know us."""

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from service.accounts import installations, repositories
from service.accounts.store import access
from service.accounts.store.tables_access import AuditRow
from service.database.database import Tx
from service.errors import ServiceError
from service.mergequeue.engine import inputs
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import queues as stored_queues
from service.process import signals
from service.provider.errors import Gone, GoneKind
from service.provider.signals import AccessChanged
from service.provider.values import Repository
from service.runtime import Runtime
from service.tracing import Span, Traces
from service.troubles import TroubleName
from service.vocabulary import SYSTEM, QueueRef, RepoRef
from tests.harness.database_faults import Fault, put_between
from tests.harness.values import ValuesProvider


class Stranger(ValuesProvider):
    """A host that has never heard of our App."""

    async def repositories(self) -> Sequence[Repository]:
        raise Gone("Integration not found", GoneKind.INSTALLATION)


async def test_a_caller_that_goes_away_leaves_memory_and_database_alike(
    runtime: Runtime, queue: QueueRef
):
    running = queues.set_state(runtime, queue, QueueState.RUNNING, "go", Requester(SYSTEM))
    asked = asyncio.create_task(running)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await queues.set_state(runtime, queue, QueueState.DRAINING, "then", Requester(SYSTEM))
    _, stored = await runtime.store.run(turn.newest, runtime, queue.id)
    assert await turn.value(runtime, queue.id) == stored
    assert stored.state is QueueState.DRAINING


async def test_a_turn_that_fails_when_its_caller_has_gone_is_logged_and_no_error_is_left(
    runtime: Runtime, queue: QueueRef
):
    left: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: left.append(context["message"]))
    put_between(runtime.store).plan[1] = Fault.FAILS
    others = asyncio.all_tasks()
    with capture_logs() as logs:
        asked = asyncio.create_task(turn.take(runtime, queue.id, [inputs.TimePassed()]))
        await asyncio.sleep(0)
        begun = asyncio.all_tasks() - others - {asked}
        asked.cancel()
        await asyncio.wait({asked, *begun})
        await asyncio.sleep(0)
    assert [line["event"] for line in logs] == ["turn_unheard"]
    del begun
    gc.collect()
    assert left == []


async def test_a_repository_that_moves_to_another_owner_takes_its_queues_along(
    runtime: Runtime, provider: ValuesProvider, queue: QueueRef
):
    before = await runtime.store.read(access.repository, queue.repository_id)
    fresh = await provider.repository(provider.ref)
    elsewhere = RepoRef(provider.ref.host, "other", provider.ref.name)
    await runtime.store.run(repositories.upsert, replace(fresh, ref=elsewhere, owner_id="77"))
    after = await runtime.store.read(access.repository, queue.repository_id)
    assert after.org_id != before.org_id
    found = await runtime.store.read(stored_queues.queue_ref, after.org_id, after.id, "main")
    assert found is not None
    assert found.id == queue.id


async def test_a_host_that_does_not_know_our_app_is_remembered_until_it_does(
    runtime: Runtime, provider: ValuesProvider
):
    host = provider.ref.host
    await installations.read_all(replace(runtime, providers={host: Stranger()}))
    (trouble,) = runtime.troubles.all()
    assert (trouble.name, trouble.host) == (TroubleName.CREDENTIALS_REFUSED, host)
    await installations.read_all(runtime)
    assert runtime.troubles.all() == ()


def decisions(session: Tx) -> list[tuple[str, str]]:
    """What was asked and how it was decided."""
    table = AuditRow.__table__
    chosen = select(table.c.action, table.c.decision).order_by(table.c.id)
    return [tuple(row) for row in session.execute(chosen)]


async def test_what_was_refused_is_audited_as_denied(runtime: Runtime, queue: QueueRef):
    before = await runtime.store.read(decisions)
    with pytest.raises(ServiceError):
        await pull_requests.cancel(runtime, queue, 99, SYSTEM)
    after = await runtime.store.read(decisions)
    assert [decision for _, decision in after[len(before) :]] == ["denied"]


class Asked(ValuesProvider):
    """Remembers which repositories were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[RepoRef] = []

    async def repository(self, ref: RepoRef) -> Repository:
        self.read.append(ref)
        return await super().repository(ref)


async def test_news_of_one_owner_reads_no_repository_of_another(
    runtime: Runtime, provider: ValuesProvider, queue: QueueRef
):
    asked = Asked()
    host = provider.ref.host
    watched = replace(runtime, providers={host: asked})
    for owner, read in (("2", []), ("1", [provider.ref])):
        signal = AccessChanged(host, owner, suspended=False)
        await signals.receive(watched, signal, runtime.clock.now())
        assert asked.read == read


async def test_rows_that_come_with_a_command_are_kept_only_if_the_queue_takes_it(
    runtime: Runtime, queue: QueueRef
):
    kept: list[str] = []
    by = Requester(SYSTEM, lambda _: kept.append("row"))
    step = await pull_requests.request_cancel(runtime, queue, 99, by, "")
    assert step.refusal is not None
    assert kept == []
    await queues.set_state(runtime, queue, QueueState.RUNNING, "go", by)
    assert kept == ["row"]


async def test_a_turn_is_traced_by_its_inputs_where_traces_are_on(
    runtime: Runtime, queue: QueueRef
):
    spans: list[Span] = []

    class Keeper:
        record = staticmethod(spans.append)

    traced = replace(runtime, traces=Traces(Keeper(), runtime.clock.now, "one"))
    await pull_requests.submit(traced, queue, 7, SubmitOptions(), SYSTEM)
    assert "turn" in {span.name for span in spans}


async def test_a_queue_that_is_deleted_is_named_to_who_asks_for_it(
    runtime: Runtime, queue: QueueRef
):
    await queues.delete(runtime, queue, SYSTEM)
    with pytest.raises(QueueGone, match='branch "main"'):
        await runtime.store.read(turn.newest, runtime, queue.id)

"""What was found before a wait is looked at again: queues that are deleted meanwhile, and more."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from service.accounts import repositories
from service.accounts.store import access
from service.database.database import Tx
from service.database.outbox import OutboxState
from service.database.paging import PageSelection
from service.database.tables_deliveries import OutboxRow
from service.errors import Conflict, NotFound
from service.memory import Memory
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import (
    comments,
    impacted_targets,
    lists,
    lost_branches,
    pull_requests,
    queue_views,
    queues,
    reconcile,
    renamed_branches,
    repository_files,
    turn,
)
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.operations.lists import PullRequestFilter
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.mergequeue.operations.turn import QueueGone
from service.mergequeue.store import queues as stored
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provenance import ProviderTime
from service.provider.labels import LabelChange
from service.provider.signals import (
    Ask,
    AskDrain,
    Asked,
    AskRetry,
    AskSource,
    AskSubmit,
    LabelChanged,
    Where,
)
from service.provider.values import BuildRequest, BuildResult, PullRequest, VehicleRef
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, ActorKind, MergeMethod, QueueRef, RepoId, RepoRef
from tests.harness.databases import opened_at
from tests.harness.values import ValuesProvider, sha_of

pytestmark = pytest.mark.each_database

ZOE = Actor(ActorKind.PERSON, "zoe", "77")
NUMBER = 7
SUBMITTERS = 3

Meanwhile = Callable[[], Awaitable[object]]


class Slow(ValuesProvider):
    """While it answers one call, something else happens, once."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: dict[str, Meanwhile] = {}
        self.discarded: list[str] = []
        self.branches: list[VehicleRef] = []
        self.label: LabelChange | None = None
        self.labels: tuple[str, ...] = ()

    async def _answer(self, call: str) -> None:
        act = self.meanwhile.pop(call, None)
        if act is not None:
            await act()

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        await self._answer("pull_request")
        pull = await super().pull_request(repo, number, awaits_mergeability=awaits_mergeability)
        return replace(pull, labels=self.labels)

    async def label_change(self, repo, number, label):
        return self.label

    async def required(self, repo, branch, **options):
        await self._answer("required")
        return await super().required(repo, branch, **options)

    async def tip(self, repo, branch):
        await self._answer("tip")
        return await super().tip(repo, branch)

    async def access(self, repo, actor):
        await self._answer("access")
        return await super().access(repo, actor)

    async def build(self, request: BuildRequest) -> BuildResult:
        await self._answer("build")
        return await super().build(request)

    async def discard(self, repo: RepoRef, branch: str) -> None:
        self.discarded.append(branch)

    async def vehicles(self, repo: RepoRef):
        return self.branches

    async def new_name(self, repo: RepoRef, branch: str) -> str | None:
        await self._answer("new_name")
        return "trunk" if branch == "main" else None


@pytest.fixture
def provider() -> Slow:
    """Instead of the provider that answers at once."""
    return Slow()


def deletion(runtime: Runtime, queue: QueueRef) -> Meanwhile:
    """Somebody deletes the queue."""
    return lambda: queues.delete(runtime, queue, SYSTEM)


async def made(runtime: Runtime, queue: QueueRef, state: QueueState) -> QueueRef:
    """Another queue for the same branch."""
    record = await runtime.store.read(access.repository, queue.repository_id)
    request = QueueRequest({}, state, "release freeze")
    return (await queues.create(runtime, record, queue.branch, request, SYSTEM)).queue


async def submitted(runtime: Runtime, queue: QueueRef, number: int = NUMBER) -> str:
    """What a submission is answered."""
    options = SubmitOptions()
    return (await pull_requests.submit(runtime, queue, number, options, SYSTEM)).result


async def is_empty(runtime: Runtime, queue: QueueRef) -> bool:
    """Whether a queue holds neither pull requests nor test runs."""
    value = await runtime.store.read(stored.load, queue.id)
    return not value.entries and not value.runs


def refused() -> "pytest.RaisesExc[NotFound]":
    """A refusal because there is no such queue."""
    return pytest.raises(NotFound, match='The queue of branch "main" has been deleted')


async def test_a_submission_in_flight_does_not_enter_a_queue_that_is_deleted(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    provider.meanwhile["required"] = deletion(runtime, queue)
    with refused() as gone:
        await submitted(runtime, queue)
    assert gone.value.code == "queue_not_found"
    assert await is_empty(runtime, queue)


async def test_a_submission_in_flight_does_not_pass_by_a_new_queue_that_is_paused(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    after: list[QueueRef] = []

    async def replaced() -> None:
        await queues.delete(runtime, queue, SYSTEM)
        after.append(await made(runtime, queue, QueueState.PAUSED))

    provider.meanwhile["pull_request"] = replaced
    with refused():
        await submitted(runtime, queue)
    assert await is_empty(runtime, queue)
    assert await is_empty(runtime, after[0])
    assert await submitted(runtime, after[0]) == "created"
    assert (await queue_views.queue_view(runtime, after[0])).value.state is QueueState.PAUSED


@pytest.mark.parametrize("place", range(SUBMITTERS + 1))
async def test_a_queue_is_deleted_or_takes_submissions_that_come_with_the_deletion(
    runtime: Runtime, queue: QueueRef, place: int
):
    asked = [submitted(runtime, queue, number + 1) for number in range(SUBMITTERS)]
    asked.insert(place, queues.delete(runtime, queue, SYSTEM))  # type: ignore[arg-type]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    deleted = answers.pop(place)
    if deleted is None:
        assert {type(one) for one in answers} == {QueueGone}
        assert await is_empty(runtime, queue)
    else:
        assert isinstance(deleted, Conflict)
        assert answers == ["created"] * SUBMITTERS
        assert len((await queue_views.queue_view(runtime, queue)).entries) == SUBMITTERS


async def test_an_instance_refuses_a_submission_in_flight_when_another_deletes_the_queue(
    postgres_url: str, runtime: Runtime, provider: Slow
):
    here = replace(runtime, store=await opened_at(postgres_url))
    there = replace(runtime, store=await opened_at(postgres_url), memory=Memory(), instance="b")
    try:
        record = await here.store.run(repositories.upsert, await provider.repository(provider.ref))
        request = QueueRequest({}, QueueState.PAUSED)
        queue = (await queues.create(here, record, "main", request, SYSTEM)).queue
        provider.meanwhile["required"] = deletion(there, queue)
        with refused():
            await submitted(here, queue)
        assert await is_empty(there, queue)
        with refused():
            await queue_views.queue_view(here, queue)
    finally:
        await here.store.close()
        await there.store.close()


CHANGE: dict[str, ConfigValue] = {"merge_method": MergeMethod.REBASE}

COMMANDS: dict[str, Callable[[Runtime, QueueRef], Awaitable[object]]] = {
    "hold": lambda runtime, queue: queues.add_hold(runtime, queue, HoldRequest("x"), SYSTEM),
    "release": lambda runtime, queue: queues.release_hold(runtime, queue, "h", "x", SYSTEM),
    "update": lambda runtime, queue: queues.update(runtime, queue, QueueRequest(CHANGE), SYSTEM),
    "pause": lambda runtime, queue: queues.set_state(
        runtime, queue, QueueState.PAUSED, None, Requester(SYSTEM)
    ),
    "delete": lambda runtime, queue: queues.delete(runtime, queue, SYSTEM),
    "cancel": lambda runtime, queue: pull_requests.cancel(runtime, queue, NUMBER, SYSTEM),
    "restart": lambda runtime, queue: pull_requests.restart(runtime, queue, NUMBER, SYSTEM),
    "read": queue_views.queue_view,
    "record": lambda runtime, queue: pull_requests.status(runtime, queue, NUMBER),
    "list": lambda runtime, queue: lists.list_pull_requests(
        runtime, queue, PullRequestFilter(), PageSelection(10)
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_no_command_reaches_a_queue_that_was_deleted_after_it_was_found(
    runtime: Runtime, queue: QueueRef, name: str
):
    await submitted(runtime, queue)
    await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
    await queues.delete(runtime, queue, SYSTEM)
    before = await runtime.store.read(stored.load, queue.id)
    with refused():
        await COMMANDS[name](runtime, queue)
    assert await runtime.store.read(stored.load, queue.id) == before


async def test_a_change_of_settings_in_flight_does_not_reach_a_deleted_queue(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    provider.meanwhile["required"] = deletion(runtime, queue)
    with refused():
        await queues.update(runtime, queue, QueueRequest(CHANGE), SYSTEM)


async def test_targets_that_were_stored_are_answered_although_a_queue_is_deleted(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    provider.meanwhile["pull_request"] = deletion(runtime, queue)
    upload = Upload(NUMBER, None, Targets(frozenset({"//a"})))
    assert (await impacted_targets.set_targets(runtime, queue, upload, SYSTEM)).count == 1


def said(runtime: Runtime, queue: QueueRef, ask: Ask) -> Asked:
    """A comment on the pull request."""
    where = Where(RepoId(queue.repo.host, "1"), queue.repo)
    source = runtime.ids.uuid()
    at = ProviderTime(runtime.clock.now())
    return Asked(where, NUMBER, ZOE, ask, AskSource.COMMENT, source, at)


@pytest.mark.parametrize("ask", [AskSubmit(), AskRetry(), AskDrain("x")])
async def test_a_comment_whose_queue_is_deleted_meanwhile_is_read_again(
    runtime: Runtime, queue: QueueRef, provider: Slow, ask: Ask
):
    provider.meanwhile["access"] = deletion(runtime, queue)
    record = await runtime.store.read(access.repository, queue.repository_id)
    asked = said(runtime, queue, ask)
    with refused():
        await comments.answer_comment(runtime, record, asked)
    assert await is_empty(runtime, queue)
    after = await made(runtime, queue, QueueState.PAUSED)
    await comments.answer_comment(runtime, record, asked)
    entries = (await turn.value(runtime, after.id)).entries
    assert set(entries) == ({NUMBER} if isinstance(ask, AskSubmit) else set())


async def test_a_label_whose_queue_is_deleted_meanwhile_submits_nothing(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    config = (await turn.value(runtime, queue.id)).config
    provider.meanwhile["access"] = deletion(runtime, queue)
    record = await runtime.store.read(access.repository, queue.repository_id)
    where = Where(RepoId(queue.repo.host, "1"), queue.repo)
    provider.labels = (config.enqueueing_label,)
    provider.label = LabelChange("1", True, ZOE, ProviderTime(runtime.clock.now()))
    changed = LabelChanged(where, NUMBER, config.enqueueing_label)
    with refused():
        await comments.answer_label(runtime, record, changed)
    assert await is_empty(runtime, queue)


def effects(session: Tx) -> dict[str, str]:
    """The state of each effect, by its kind."""
    table = OutboxRow.__table__
    return {row.kind: row.state for row in session.execute(select(table.c.kind, table.c.state))}


async def test_a_build_in_flight_ends_and_its_test_branch_is_deleted(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    async def gone() -> None:
        await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
        await queues.delete(runtime, queue, SYSTEM)

    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await submitted(runtime, queue)
    provider.meanwhile["build"] = gone
    await Flow(runtime, flows.CONTROL).drain()
    found = await runtime.store.read(effects)
    assert (found["build"], found["retire"]) == (OutboxState.DONE, OutboxState.DONE)
    assert len(provider.discarded) == 2
    assert await is_empty(runtime, queue)


async def test_the_end_of_a_submission_is_written_although_its_queue_is_deleted(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    await submitted(runtime, queue)
    await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
    await queues.delete(runtime, queue, SYSTEM)
    await runtime.clock.sleep(turn.NOTICE_DELAY.total_seconds())
    await Flow(runtime, flows.NOTICES).drain()
    assert (await runtime.store.read(effects))["tell"] == OutboxState.DONE
    assert provider.said


READS: dict[str, Callable[[Runtime, QueueRef], Awaitable[object]]] = {
    "target": reconcile.read_target,
    "whole": reconcile.read_queue,
    "file": lambda runtime, queue: repository_files.look(runtime, queue, is_touched=True),
}


@pytest.mark.parametrize("name", READS)
async def test_what_was_read_for_a_deleted_queue_changes_nothing(
    runtime: Runtime, queue: QueueRef, provider: Slow, name: str
):
    provider.main = replace(provider.main, sha=sha_of("moved"))
    provider.files = {".github/headgate.yml": b"concurrency: 4\n"}
    provider.meanwhile["tip"] = deletion(runtime, queue)
    before = await turn.value(runtime, queue.id)
    with refused():
        await READS[name](runtime, queue)
    after = await runtime.store.read(stored.load, queue.id)
    assert (after.tip, after.file) == (before.tip, before.file)


async def test_a_sweep_leaves_out_a_queue_that_is_deleted_meanwhile(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    provider.main = replace(provider.main, sha=sha_of("moved"))
    provider.meanwhile["tip"] = deletion(runtime, queue)
    await reconcile.read_all_queues(runtime)
    assert await runtime.store.read(stored.all_queues) == ()


async def test_the_test_branches_of_a_queue_that_an_older_version_deleted_in_use_are_removed(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await submitted(runtime, queue)
    await Flow(runtime, flows.CONTROL).drain()
    (run,) = (await turn.value(runtime, queue.id)).runs.values()
    assert run.branch is not None
    await runtime.store.run(stored.mark_deleted, queue.id, runtime.clock.now())
    runtime.store.caches.clear()
    provider.branches = [VehicleRef(run.branch, sha_of("tested"))]
    await reconcile.read_live_queues(runtime)
    await reconcile.read_running_checks(runtime)
    await lost_branches.restore_branches(runtime)
    assert provider.discarded == [run.branch]


async def test_a_deleted_queue_follows_no_renamed_branch(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    provider.meanwhile["new_name"] = deletion(runtime, queue)
    moved = await renamed_branches.follow(runtime, queue, "trunk", was_default=True, base=None)
    assert moved is None
    left = await runtime.store.read(stored.ref_by_id, queue.id)
    assert left is not None
    assert left.branch == "main"


async def test_a_reason_alone_leaves_a_state_that_was_changed_meanwhile(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    async def resumed() -> None:
        await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))

    provider.meanwhile["required"] = resumed
    request = QueueRequest(CHANGE, reason="a release")
    view = await queues.update(runtime, queue, request, SYSTEM)
    assert view.value.state is QueueState.RUNNING


async def test_a_change_of_options_brings_no_pull_request_back_that_has_left(
    runtime: Runtime, queue: QueueRef, provider: Slow
):
    async def left() -> None:
        await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)

    await submitted(runtime, queue)
    entry = (await pull_requests.status(runtime, queue, NUMBER)).entry.id
    provider.meanwhile["required"] = left
    options = SubmitOptions(priority=50, entry=entry)
    with pytest.raises(NotFound) as missing:
        await pull_requests.submit(runtime, queue, NUMBER, options, SYSTEM)
    assert missing.value.code == "not_in_queue"
    assert await is_empty(runtime, queue)
    assert await submitted(runtime, queue) == "created"
    with pytest.raises(NotFound):
        await pull_requests.submit(runtime, queue, NUMBER, options, SYSTEM)


class Between:
    """A database beside which something happens before its next read."""

    def __init__(self, inner: Any, act: Meanwhile) -> None:
        self.inner = inner
        self.act: Meanwhile | None = act

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def read(self, call: Any) -> Any:
        act, self.act = self.act, None
        if act is not None:
            await act()
        return await self.inner.read(call)


async def test_a_record_is_known_although_it_is_submitted_again_while_it_is_read(
    runtime: Runtime, queue: QueueRef
):
    await submitted(runtime, queue)
    await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
    runtime.store.runner = Between(runtime.store.runner, lambda: submitted(runtime, queue))
    view = await pull_requests.status(runtime, queue, NUMBER)
    assert view.entry.state is EntryState.CANCELLED
    assert not await is_empty(runtime, queue)


async def test_a_cancellation_is_answered_for_its_submission_although_another_has_come(
    runtime: Runtime, queue: QueueRef
):
    await submitted(runtime, queue)
    runtime.store.runner = Between(runtime.store.runner, lambda: submitted(runtime, queue))
    view = await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
    assert view.entry.state is EntryState.CANCELLED
    assert not await is_empty(runtime, queue)


async def test_a_cancellation_is_answered_although_its_queue_is_deleted_after_it(
    runtime: Runtime, queue: QueueRef
):
    await submitted(runtime, queue)
    runtime.store.runner = Between(runtime.store.runner, deletion(runtime, queue))
    view = await pull_requests.cancel(runtime, queue, NUMBER, SYSTEM)
    assert view.entry.state is EntryState.CANCELLED
    assert await runtime.store.read(stored.all_queues) == ()

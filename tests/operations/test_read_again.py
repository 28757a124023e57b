"""What a queue reads again: other reporters, new names, an archived repository, a chain."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, queues, reconcile, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.store import queues as stored
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.provider.values import Known, PullRequest, Repository, Required
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef, RequiredName
from tests.harness.values import ValuesProvider


class Changed(ValuesProvider):
    """A provider of which a test says what is different; `asked` are numbers that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.reporter = "7"
        self.reads_of_rules = 0
        self.bases: dict[int, str] = {}
        self.names: dict[str, str] = {}
        self.is_archived = False
        self.asked: list[int] = []

    async def required(self, repo: RepoRef, branch: str, *, is_beside: bool = False) -> Required:
        self.reads_of_rules += 1
        return Known((RequiredName("unit", self.reporter),), None, ())

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        self.asked.append(number)
        pull = await super().pull_request(repo, number)
        return replace(pull, base_branch=self.bases.get(number, "main"))

    async def new_name(self, repo: RepoRef, branch: str) -> str | None:
        return self.names.get(branch)

    async def repository(self, ref: RepoRef) -> Repository:
        return replace(await super().repository(ref), archived=self.is_archived)


@pytest.fixture
def provider() -> Changed:
    """Instead of the provider that stays as it is."""
    return Changed()


async def submit(runtime: Runtime, queue: QueueRef, *numbers: int) -> None:
    for number in numbers:
        await pull_requests.submit(runtime, queue, number, SubmitOptions(), SYSTEM)


@pytest.mark.parametrize(("reporter", "is_read"), [("8", True), ("7", False)])
async def test_the_rules_are_read_again_if_another_app_reports_a_required_status(
    runtime: Runtime, queue: QueueRef, provider: Changed, reporter: str, is_read: bool
):
    provider.reporter = reporter
    await reconcile.read_requirements(runtime, queue)
    await submit(runtime, queue, 1)
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    await Flow(runtime, flows.CONTROL).drain()
    (run,) = (await turn.value(runtime, queue.id)).runs
    provider.reads_of_rules, provider.reporter = 0, "7"
    await reconcile.read_checks(runtime, queue, {run})
    assert provider.reads_of_rules == is_read
    required = (await turn.value(runtime, queue.id)).required
    assert required is not None
    assert [name.source_id for name in required.names] == ["7"]


async def test_a_new_base_of_a_pull_request_shows_the_new_name_of_the_branch(
    runtime: Runtime, queue: QueueRef, provider: Changed
):
    await submit(runtime, queue, 1, 2)
    provider.bases, provider.names = {1: "trunk", 2: "trunk"}, {"main": "trunk"}
    await reconcile.read_pull_request(runtime, queue, 1)
    renamed = await runtime.store.read(stored.ref_by_id, queue.id)
    assert renamed is not None
    assert renamed.branch == "trunk"
    entries = (await turn.value(runtime, queue.id)).entries
    assert {entry.facts.base for entry in entries.values()} == {"trunk"}
    assert not any(entry.unmet for entry in entries.values())


async def test_a_new_base_alone_is_no_new_name(
    runtime: Runtime, queue: QueueRef, provider: Changed
):
    await submit(runtime, queue, 1)
    provider.bases = {1: "release"}
    await reconcile.read_pull_request(runtime, queue, 1)
    unchanged = await runtime.store.read(stored.ref_by_id, queue.id)
    assert unchanged is not None
    assert unchanged.branch == "main"
    view = await pull_requests.status(runtime, queue, 1)
    assert view.entry.reason is Reason.BASE_CHANGED


async def test_an_archived_repository_holds_its_queue_once_until_it_is_back(
    runtime: Runtime, queue: QueueRef, provider: Changed
):
    held: list[list[HoldReason]] = []
    versions: list[int] = []
    for provider.is_archived in (False, True, True, False, False):
        await reconcile.read_repository(runtime, queue.repository_id)
        value = await turn.value(runtime, queue.id)
        held.append([hold.reason for hold in value.holds])
        versions.append(value.version)
    gone = [HoldReason.REPOSITORY_UNAVAILABLE]
    assert held == [[], gone, gone, [], []]
    assert [version - versions[0] for version in versions] == [0, 1, 1, 2, 2]


async def test_after_a_change_of_a_base_those_are_read_that_are_based_on_its_branch(
    runtime: Runtime, queue: QueueRef, provider: Changed
):
    provider.bases = {2: "topic-1", 3: "release"}
    await submit(runtime, queue, 1, 2, 3)
    provider.asked.clear()
    await reconcile.read_chain(runtime, queue, 1)
    assert provider.asked[0] == 1
    assert set(provider.asked) == {1, 2}

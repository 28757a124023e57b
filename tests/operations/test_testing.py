"""Details of runs that test several pull requests on several others."""

from dataclasses import replace

import pytest

from service.mergequeue.api import testing as answers
from service.mergequeue.engine import targets
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import testing, turn
from service.mergequeue.operations.views import TestingView
from service.mergequeue.store import pull_requests
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.mergequeue.store.pull_requests import PullRequestHead
from service.runtime import Runtime
from service.vocabulary import QueueRef
from tests.operations.test_building import a_live_run, members
from tests.store.builders import NOW, an_entry

WEB = "https://values.test/octo/widgets"


@pytest.fixture
async def batch(runtime: Runtime, queue: QueueRef) -> QueueRef:
    """A queue in which run r2 tests 3 and 4 on top of 1 and 2."""
    before = await turn.value(runtime, queue.id)
    found = (a_live_run("r1", [1, 2]), a_live_run("r2", [3, 4], base=[1, 2]))
    entries = {
        member.pr: an_entry(
            member.pr, id=member.entry, head=member.head, state=EntryState.TESTING, run=run.id
        )
        for run in found
        for member in run.entries
    }
    after = replace(before, entries=entries, runs={run.id: run for run in found})
    await runtime.store.run(
        lambda session: stored_queues.save(session, before, Step(after, (), (), None, None))
    )
    runtime.store.caches.of(QueueCache).drop(queue.id)
    return queue


async def upload(runtime: Runtime, queue: QueueRef, pr: int, what: Targets) -> None:
    (member,) = members(pr)
    place = PullRequestHead(queue.repository_id, pr, member.head)
    await runtime.store.run(pull_requests.put_targets, place, what, NOW)


async def test_all_tested_pull_requests_are_named_and_those_they_stand_on(runtime, batch):
    answer = answers.test_run(await testing.details(runtime, batch, "r2")).model_dump(mode="json")
    assert answer["testedPullRequests"] == [
        {"prNumber": pr, "prUrl": f"{WEB}/pull/{pr}", "title": f"Change {pr}"} for pr in (3, 4)
    ]
    assert answer["dependentPrs"] == [1, 2]
    assert answer["waitingOn"] == [1, 2]


async def test_targets_are_those_of_the_batch_and_with_those_it_stands_on(runtime, batch):
    answer = answers.test_run(await testing.details(runtime, batch, "r2")).model_dump(mode="json")
    assert not {"impactedTargets", "impactedTargetsForTestedPrs"} & answer.keys()
    await upload(runtime, batch, 1, targets.of(["//z", "//a"]))
    answer = answers.test_run(await testing.details(runtime, batch, "r2")).model_dump(mode="json")
    assert answer["impactedTargets"] == ["//a", "//z"]
    assert "impactedTargetsForTestedPrs" not in answer
    await upload(runtime, batch, 3, targets.of(["//b"]))
    await upload(runtime, batch, 4, targets.of(["//b", "//c"]))
    answer = answers.test_run(await testing.details(runtime, batch, "r2")).model_dump(mode="json")
    assert answer["impactedTargets"] == ["//a", "//b", "//c", "//z"]
    assert answer["impactedTargetsForTestedPrs"] == ["//b", "//c"]
    await upload(runtime, batch, 2, targets.ALL)
    answer = answers.test_run(await testing.details(runtime, batch, "r2")).model_dump(mode="json")
    assert answer["impactedTargets"] == ["ALL"]
    assert answer["impactedTargetsForTestedPrs"] == ["//b", "//c"]


@pytest.mark.parametrize("kind", list(RunKind))
def test_only_probes_and_confirmations_are_a_bisection(kind):
    run = a_live_run("r9", [1, 2], kind=kind, status=RunStatus.IN_PROGRESS)
    is_search = kind in {RunKind.PROBE, RunKind.CONFIRMATION}
    view = TestingView(
        run=run,
        status=run.status,
        tested=(),
        suites=(),
        vehicle_number=None,
        commit_url="",
        impacted=None,
        impacted_tested=None,
        waiting_on=(),
        missing=(),
        failed=(),
        failed_tests=(),
    )
    answer = answers.test_run(view).model_dump(mode="json")
    assert (answer["kind"], answer["isBisection"]) == (kind.value, is_search)

"""Which failed tests of a run are named on its pull requests, by what CI sent for its commit."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.evidence import run_failures
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.wording.failed_tests import NONE, Standing
from service.testhealth.reports.results import Attempt, Outcome
from service.vocabulary import SYSTEM, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.test_result_waits import keep, queue_of
from tests.operations.upload_stage import HOST, NOW, Stage, a_case, a_file
from tests.store.builders import a_run

RED = Sha("d" * 40)
RUN = a_run("r1", sha=RED, created_at=NOW - timedelta(minutes=1))


@pytest.fixture
async def stage(store) -> Stage:
    """A repository with a paused queue, whose run CI uploads for."""
    staged = await upload_stage.staged(store)
    staged.runtime = replace(staged.runtime, providers={HOST: ValuesProvider(HOST)})
    request = QueueRequest({}, QueueState.PAUSED)
    await queues.create(staged.runtime, staged.repository, "main", request, SYSTEM)
    await keep(staged, RUN)
    return staged


async def named(stage: Stage, run: Run = RUN):
    read = stage.runtime.store.read
    return await read(run_failures.named_in, stage.runtime, await queue_of(stage), run)


async def listed(stage: Stage, run: Run = RUN):
    return await stage.runtime.store.read(run_failures.listed_in, await queue_of(stage), run)


async def test_the_failed_tests_of_a_run_are_named_once_it_has_a_commit(stage):
    await stage.ran({"total": "F", "mail": "P"}, sha=RED, run_id="77")
    found = await named(stage)
    assert [(each.name, each.log) for each in found.shown] == [("tests/total.py::total", "")]
    assert [each.name for each in await listed(stage)] == ["total"]
    unbuilt = replace(RUN, sha=None)
    assert (await named(stage, unbuilt), await listed(stage, unbuilt)) == (NONE, ())


async def test_a_failed_test_names_the_log_of_its_job(stage):
    await stage.ran({"total": "F"}, sha=RED, run_id="77", run_url="https://ci.test/77")
    assert [each.log for each in (await named(stage)).shown] == ["https://ci.test/77"]


async def failed_before(stage: Stage) -> None:
    """`total` failed two days ago on another pull request."""
    stage.clock.present = NOW - timedelta(days=2)
    await stage.ran({"total": "F"}, sha=Sha("b" * 40), run_id="1", pr_number=99)
    stage.clock.present = NOW


@pytest.mark.parametrize(
    ("stack", "is_new"), [("AssertionError: 10.0 != 10.01", False), ("KeyError: 'x'", True)]
)
async def test_a_test_that_failed_before_fails_in_a_new_way_if_its_text_is_another(
    stage, stack, is_new
):
    await failed_before(stage)
    case = a_case("total", "F", explicit_attempts=(Attempt(Outcome.FAILED, 0.5, stack),))
    await stage.send([replace(a_file({"total": "F"}), cases=(case,))], sha=RED, run_id="77")
    (found,) = (await named(stage)).shown
    assert (found.standing, found.is_new_text) == (Standing.SEEN, is_new)


async def test_the_first_failure_of_a_test_is_new_as_a_whole(stage):
    await stage.ran({"total": "F"}, sha=RED, run_id="77")
    (found,) = (await named(stage)).shown
    assert (found.standing, found.is_new_text) == (Standing.NEW, False)


async def test_a_test_that_is_not_quarantined_is_not_excused_whatever_else_was(stage):
    await stage.ran({"total": "F", "mail": "F"}, sha=RED, run_id="77")
    total = (await stage.case("total")).id
    excusing = replace(RUN, excused=("unit",), evidence=Evidence(1, {}, new_texts=(total,)))
    found = [(each.name, each.excused, each.is_new_text) for each in await listed(stage, excusing)]
    assert sorted(found) == [("mail", False, False), ("total", False, True)]


async def test_tests_are_named_by_their_ids_as_far_as_they_are_known(stage):
    await stage.ran({"total": "F", "mail": "P"}, sha=RED, run_id="77")
    total = (await stage.case("total")).id
    ids = (total, "06cb6db5-f807-5198-b072-af67a0636f8a")
    found = await stage.runtime.store.read(run_failures.names_of, await queue_of(stage), ids)
    assert found == {total: "tests/total.py::total"}

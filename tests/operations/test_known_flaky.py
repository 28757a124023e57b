"""Whether the tests that failed on a commit of a branch are all known as flaky."""

import pytest

from service.evidence import run_failures
from service.testhealth.operations import flags
from service.testhealth.operations.flags import FlagRequest
from service.vocabulary import SYSTEM, Flag, Sha
from tests.operations import upload_stage
from tests.operations.upload_stage import Stage

RED = Sha("d" * 40)


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


async def are_known(stage: Stage) -> bool:
    repository = stage.repository.id
    return await stage.runtime.store.read(run_failures.are_known_flaky, repository, RED)


async def flag(stage: Stage, name: str) -> None:
    wish = FlagRequest((await stage.case(name)).id, Flag.FLAKY, "waits on the clock")
    await flags.put(stage.runtime, stage.repository, wish, SYSTEM)


async def test_all_of_them_must_be_known(stage: Stage) -> None:
    assert not await are_known(stage)
    await stage.ran({"total": "F", "mail": "F", "cart": "P"}, sha=RED, run_id="7", branch="main")
    assert not await are_known(stage)
    await flag(stage, "total")
    assert not await are_known(stage)
    await flag(stage, "mail")
    assert await are_known(stage)


async def test_results_of_a_pull_request_say_nothing_of_the_branch(stage: Stage) -> None:
    await stage.ran({"total": "F"}, sha=RED, run_id="7", pr_number=5)
    await flag(stage, "total")
    assert not await are_known(stage)

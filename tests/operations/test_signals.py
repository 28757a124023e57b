"""What a signal is about while several pull requests of one run land one after the other."""

import pytest

from service.database.database import Store
from service.mergequeue.engine.model import LandMode
from service.mergequeue.store import pull_requests
from service.process import signals
from service.provenance import ProviderTime
from service.provider.signals import PullRequestChanged, ShownPullRequest, Where
from service.runtime import Runtime
from service.vocabulary import RepoId, Sha
from tests.operations.landing_stage import Unit, a_unit, runtime_of, three
from tests.provider.stage import Stage, on_sandbox


@pytest.fixture
async def stage():
    async with on_sandbox() as made:
        yield made


@pytest.fixture
def runtime(stage: Stage, store: Store) -> Runtime:
    return runtime_of(stage, store)


async def reads_after_a_change_of(unit: Unit, position: int) -> int:
    """Questions to the provider that news of a pull request of the run causes."""
    fresh = await unit.stage.provider.repository(unit.stage.repo)
    step = unit.run.steps[position - 1]
    where = Where(RepoId(fresh.id.host, fresh.id.id), fresh.ref)
    before = len(unit.stage.calls())
    signal = PullRequestChanged(where, step.pr, step.head)
    await signals.receive(unit.runtime, signal, unit.runtime.clock.now())
    return len(unit.stage.calls()) - before


async def test_only_what_lands_now_is_left_to_its_landing(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), base=1)
    await unit.land([2], LandMode.CALL)
    assert await reads_after_a_change_of(unit, 2) == 0
    assert await reads_after_a_change_of(unit, 1) > 0
    assert await reads_after_a_change_of(unit, 3) > 0


async def test_a_head_pushed_while_it_lands_is_remembered(stage, runtime):
    assert await numbers_shown(stage, runtime) == (2,)


async def test_what_another_repository_of_the_same_name_says_is_not_believed(stage, runtime):
    assert await numbers_shown(stage, runtime, repository_id="77") == ()


async def numbers_shown(
    stage: Stage, runtime: Runtime, repository_id: str | None = None
) -> tuple[int, ...]:
    """The pull requests known to have a head that a delivery shows of the second one."""
    unit = await a_unit(runtime, stage, await three(stage), base=1)
    await unit.land([2], LandMode.CALL)
    fresh = await stage.provider.repository(stage.repo)
    number, pushed = unit.run.steps[1].pr, Sha("f" * 40)
    at = ProviderTime(runtime.clock.now())
    shown = ShownPullRequest("main", is_fork=False, is_closed=False, at=at)
    where = Where(RepoId(fresh.id.host, repository_id or fresh.id.id), fresh.ref)
    signal = PullRequestChanged(where, number, pushed, shown=shown)
    await signals.receive(runtime, signal, runtime.clock.now())
    here = unit.queue.repository_id
    return await runtime.store.read(pull_requests.with_head, here, pushed)

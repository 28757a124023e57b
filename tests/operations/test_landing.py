"""Landings of several pull requests: at once or one by one, again after a kill, or not at all."""

from collections import Counter

import pytest

from service.database.database import Store
from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import LandMode, Proof
from service.mergequeue.landing_records import LandingState
from service.mergequeue.operations import landing
from service.mergequeue.store import figures
from service.metrics.queue_families import Kind
from service.runtime import Runtime
from service.vocabulary import MergeMethod
from tests.operations.landing_stage import Unit, a_unit, runtime_of, three
from tests.provider.stage import Stage

LANDING = Kind.LANDING.value
MERGES = MergeMethod.MERGE_COMMIT


class Struck(Exception):
    """The process ends here."""


class Strikes:
    """A crash point at which the process ends, the first time."""

    def __init__(self) -> None:
        self.at = ""
        self.passed: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        self.passed[name] += 1
        if name == self.at:
            self.at = ""
            raise Struck(name)


@pytest.fixture
def strikes() -> Strikes:
    return Strikes()


@pytest.fixture
def runtime(stage: Stage, store: Store, strikes: Strikes) -> Runtime:
    return runtime_of(stage, store, strikes)


async def states(unit: Unit) -> list[LandingState]:
    return [record.state for record in await unit.records()]


async def counted(unit: Unit) -> dict[str, int]:
    """Attempts to land by their results, as the metrics have them."""
    now = unit.runtime.clock.now()
    found = await unit.runtime.store.read(figures.of_queues, [unit.queue.id], now)
    sums = found[unit.queue.id].ever
    return {labels[0]: each.count for (kind, labels, _), each in sums.items() if kind == LANDING}


async def test_a_unit_lands_by_one_move_with_every_position_recorded(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), merge_method=MERGES)
    await landing.land(runtime, unit.queue, await unit.land([1, 2, 3], LandMode.CAS))
    assert stage.tip() == unit.run.sha
    records = await unit.records()
    assert [record.state for record in records] == [LandingState.LANDED] * 3
    assert [(one.landed_sha, one.landed_tree) for one in records] == [
        (step.commit, step.tree) for step in unit.run.steps
    ]
    assert [one.expected_parent for one in records[1:]] == [
        step.commit for step in unit.run.steps[:-1]
    ]


async def test_a_landing_reads_the_rules_anew_but_not_whose_queue_owns_the_branch(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), merge_method=MERGES)
    await stage.provider.required(stage.repo, "main")
    calls = stage.sandbox.world.calls
    calls.clear()
    await landing.land(runtime, unit.queue, await unit.land([1, 2, 3], LandMode.CAS))
    assert [call for call in calls if "/rules/branches/" in call["path"]]
    assert not [call for call in calls if "mergeQueue(" in str(call["body"])]


async def test_one_position_after_the_other_lands_by_calls(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage))
    for position in (1, 2, 3):
        await landing.land(runtime, unit.queue, await unit.land([position], LandMode.CALL))
        assert stage.tree(stage.tip()) == unit.run.steps[position - 1].tree
    assert await states(unit) == [LandingState.LANDED] * 3


@pytest.mark.parametrize(
    "moment", ["act.land.before_send", "act.land.after_send", "landing.before_proof"]
)
async def test_a_series_of_calls_goes_on_where_the_process_was_killed(
    stage, runtime, strikes, moment
):
    unit = await a_unit(runtime, stage, await three(stage))
    await landing.land(runtime, unit.queue, await unit.land([1], LandMode.CALL))
    second = await unit.land([2], LandMode.CALL)
    strikes.at = moment
    with pytest.raises(Struck):
        await landing.land(runtime, unit.queue, second)
    await landing.land(runtime, unit.queue, second)
    assert stage.tree(stage.tip()) == unit.run.steps[1].tree
    assert stage.called("PUT", "/merge") == 2
    await landing.land(runtime, unit.queue, await unit.land([3], LandMode.CALL))
    assert await states(unit) == [LandingState.LANDED] * 3


async def test_a_unit_that_moved_before_the_kill_is_read_back_whole(stage, runtime, strikes):
    unit = await a_unit(runtime, stage, await three(stage), merge_method=MERGES)
    action = await unit.land([1, 2, 3], LandMode.CAS)
    strikes.at = "act.land.after_send"
    with pytest.raises(Struck):
        await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.PERMITTED] * 3
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.LANDED] * 3


async def test_a_push_to_one_member_keeps_the_whole_unit_from_landing(stage, runtime):
    pulls = await three(stage)
    unit = await a_unit(runtime, stage, pulls, merge_method=MERGES)
    action = await unit.land([1, 2, 3], LandMode.CAS)
    await stage.act("push", number=pulls[2][0], files={"late.txt": "x\n"})
    await stage.settle()
    before = stage.tip()
    await landing.land(runtime, unit.queue, action)
    assert stage.tip() == before
    assert await states(unit) == [LandingState.REFUSED] * 3
    assert await counted(unit) == {}


async def test_what_the_provider_refuses_is_a_rejected_attempt(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage))
    await landing.land(runtime, unit.queue, await unit.land([1], LandMode.CALL))
    second = await unit.land([2], LandMode.CALL)
    await stage.fault("fail_before", method="PUT", path="*/merge", status=422)
    await landing.land(runtime, unit.queue, second)
    assert await states(unit) == [LandingState.LANDED, LandingState.REFUSED]
    assert await counted(unit) == {"landed": 1, "rejected": 1}


async def test_another_change_than_was_tested_is_a_mismatch(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), mode=Mode.PARALLEL)
    await stage.act("push", branch="main", files={"lane/other.txt": "x\n"})
    await stage.settle()
    action = await unit.land([1], LandMode.CALL, Proof.SAME_CHANGE)
    await stage.fault("other_tree", method="PUT", path="*/merge")
    await landing.land(runtime, unit.queue, action)
    (record,) = await unit.records()
    assert record.state is LandingState.MISMATCH
    assert (record.evidence or "").startswith("other_change: ")


async def test_trees_that_are_too_large_to_compare_prove_nothing(stage, runtime):
    unit = await a_unit(runtime, stage, await three(stage), mode=Mode.PARALLEL)
    await stage.act("push", branch="main", files={"lane/other.txt": "x\n"})
    await stage.settle()
    action = await unit.land([1], LandMode.CALL, Proof.SAME_CHANGE)
    await stage.fault("fail_before", method="GET", path="*/git/trees/*", nth=None, status=404)
    before = stage.tip()
    await landing.land(runtime, unit.queue, action)
    assert stage.tip() == before
    assert await states(unit) == [LandingState.REFUSED]
    (record,) = await unit.records()
    assert "is not known to be apart from what landed beside it" in (record.evidence or "")


async def test_one_that_is_gone_when_its_call_is_read_back_does_not_keep_the_queue_waiting(
    stage, runtime, strikes
):
    number, head = await stage.open({"a.txt": "a\n"})
    unit = await a_unit(runtime, stage, [(number, head)], merge_method=MergeMethod.SQUASH)
    action = await unit.land([1], LandMode.CALL)
    strikes.at = "act.land.before_send"
    with pytest.raises(Struck):
        await landing.land(runtime, unit.queue, action)
    del stage.world.issues[number]
    stage.clock.advance(landing.PERMIT_FOR.total_seconds())
    await landing.land(runtime, unit.queue, action)
    assert await states(unit) == [LandingState.REFUSED]
    assert (await unit.value()).landing is None
    assert stage.called("PUT", "/merge") == 0

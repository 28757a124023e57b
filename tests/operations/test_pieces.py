"""Large uploads in parts: any order, repetition and death of the process ends the same."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.memory import Memory
from service.process import retention
from service.testhealth.filters import TimeOrder
from service.testhealth.operations import count_days, judge, noting, remove, slow_tests, sweeps
from service.testhealth.store import cases, day_counts, days, uploads
from service.testhealth.store import retention as test_retention
from service.testhealth.store.index_cache import IndexCache
from service.vocabulary import SYSTEM
from tests.operations import upload_stage
from tests.operations.test_judging import compared, drawn, eager, figures_of, sent, sent_as

MANY = {f"test_{no}": "S" if no % 3 == 0 else "P" for no in range(9)}


class Died(Exception):
    """The process ended."""


class Mortal:
    """A store whose process dies before the write after so many."""

    def __init__(self, store, writes):
        self._store = store
        self._writes = writes

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def run(self, fn, *args, **kwargs):
        """As the store's; raises Died when its time has come."""
        if self._writes == 0:
            raise Died
        self._writes -= 1
        return await self._store.run(fn, *args, **kwargs)


def mortal(stage, writes):
    """The stage in a process that dies after so many writes."""
    runtime = replace(stage.runtime, store=Mortal(stage.runtime.store, writes))
    return replace(stage, runtime=runtime)


def begin_anew(stage):
    """Forget what only the process knew."""
    stage.runtime.store.caches.of(IndexCache).take(stage.repository.id)


async def told_by_the_trusted(stage):
    """What lists show, but for whom a fork hit: that hangs on what was known when it sent."""
    found = await figures_of(stage)
    return {name: (*figures[:4], *figures[5:]) for name, figures in found.items()}


@pytest.fixture
def small_pieces(monkeypatch):
    """Two tests are noted or counted at once, one is judged; days are counted without a pause."""
    monkeypatch.setattr(noting, "TESTS_AT_ONCE", 2)
    monkeypatch.setattr(day_counts, "TESTS_AT_ONCE", 2)
    monkeypatch.setattr(judge, "JUDGED_MAX", 1)
    monkeypatch.setattr(days, "QUIET_FOR", timedelta())


async def test_an_upload_is_answered_when_all_of_its_tests_are_noted(store, small_pieces):
    stage = await upload_stage.staged(store)
    await stage.ran(MANY)
    assert (await stage.cases()).keys() == MANY.keys()
    assert await store.read(uploads.unnoted) == ()


@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, 3))]
)
async def test_pieces_end_in_the_same_states_whenever_the_process_dies(
    store, small_pieces, monkeypatch, seed
):
    chance = random.Random(seed)
    stage = await eager(store, "widgets")
    given = drawn(chance)
    arriving = [*given, *given[:4]]
    chance.shuffle(arriving)
    told = []
    for each in arriving:
        try:
            await sent_as(mortal(stage, chance.randint(0, 12)), each)
        except Died:
            begin_anew(stage)
        if chance.random() < 0.2:
            await sweeps.expire(stage.runtime)
        told.append(await sent(stage, each))
    await sweeps.expire(stage.runtime)
    await compared(stage, told)
    monkeypatch.undo()
    whole = await eager(store, "gears")
    for each in given:
        await sent(whole, each)
    assert await told_by_the_trusted(stage) == await told_by_the_trusted(whole)


async def test_what_a_crash_left_to_be_noted_is_noted_by_the_sweep(store, small_pieces):
    stage = await upload_stage.staged(store)
    for writes in range(30):
        try:
            await mortal(stage, writes).ran(MANY)
            break
        except Died:
            begin_anew(stage)
            if await store.read(uploads.unnoted):
                break
    assert (await stage.cases()).keys() != MANY.keys()
    await sweeps.expire(stage.runtime)
    assert (await stage.cases()).keys() == MANY.keys()
    assert await store.read(uploads.unnoted) == ()


async def test_failures_that_a_crash_left_to_be_noted_are_judged_and_count_once(
    store, small_pieces
):
    stage, untouched = await upload_stage.staged(store), await upload_stage.staged(store, "gears")
    failing = {f"test_{no}": "FP" for no in range(5)}
    told = {"run_id": "1", "pr_number": 7}
    await untouched.ran(failing, **told)
    left: tuple[str, ...] = ()
    for writes in range(20):
        try:
            await mortal(stage, writes).ran(failing, **told)
        except Died:
            begin_anew(stage)
        left = await store.read(uploads.unnoted)
        if left:
            break
    assert len(left) == 1
    assert len(await stage.states()) == 1
    assert await figures_of(stage) != await figures_of(untouched)
    for _ in range(2):
        await stage.ran(failing, **told)
        await sweeps.expire(stage.runtime)
    assert await figures_of(stage) == await figures_of(untouched)


async def test_what_a_crash_left_to_be_noted_is_noted_before_its_upload_is_too_old(
    store, small_pieces
):
    stage = await upload_stage.staged(store)
    for writes in range(30):
        with suppress(Died):
            await mortal(stage, writes).ran(MANY)
        begin_anew(stage)
        if await store.read(uploads.unnoted):
            break
    assert (await stage.cases()).keys() != MANY.keys()
    stage.clock.present += timedelta(days=46)
    await retention.prune(stage.runtime)
    assert (await stage.cases()).keys() == MANY.keys()


async def test_an_upload_removed_before_its_tests_are_noted_leaves_nothing(store, small_pieces):
    stage, untouched = await upload_stage.staged(store), await upload_stage.staged(store, "gears")
    await stage.ran(MANY, run_id="1")
    await untouched.ran(MANY, run_id="1")
    more = {**MANY, **{f"more_{no}": "P" for no in range(9)}}
    found: tuple[str, ...] = ()
    for writes in range(30):
        try:
            await mortal(stage, writes).ran(more, run_id="2")
        except Died:
            begin_anew(stage)
        found = await store.read(uploads.unnoted)
        if found:
            break
    (upload_id,) = found
    await remove.remove(stage.runtime, stage.repository, upload_id, SYSTEM)
    await sweeps.expire(stage.runtime)
    assert await figures_of(stage) == await figures_of(untouched)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.soak), 1, 2])
async def test_uploads_removed_while_their_days_are_counted_leave_nothing(
    store, small_pieces, seed
):
    chance = random.Random(seed)
    stage, bare = await eager(store, "widgets"), await eager(store, "gears")
    told, ids = [], []
    for each in drawn(chance):
        told.append(each)
        ids.append((await sent_as(stage, each))[1])
        with suppress(Died):
            await count_days.count_due(mortal(stage, chance.randint(0, 4)).runtime)
        if chance.random() < 0.4:
            gone = chance.randrange(len(told))
            del told[gone]
            await remove.remove(stage.runtime, stage.repository, ids.pop(gone), SYSTEM)
    for each in told:
        await sent(bare, each)
    for _ in range(2):
        assert await told_by_the_trusted(stage) == await told_by_the_trusted(bare)
        await sweeps.expire(stage.runtime)


async def test_tests_are_judged_before_days_are_counted(store, monkeypatch):
    monkeypatch.setattr(judge, "JUDGED_MAX", 3)
    stage = await upload_stage.staged(store)
    await stage.ran({f"test_{no}": "F" if no % 2 else "P" for no in range(16)})
    stage.clock.present += timedelta(days=2)

    class Stopped(Mortal):
        """A store whose process dies when a day is counted."""

        async def run(self, fn, *args, **kwargs):
            if fn is day_counts.write:
                raise Died
            return await self._store.run(fn, *args, **kwargs)

    stopped: Any = Stopped(stage.runtime.store, 0)
    with pytest.raises(Died):
        await sweeps.expire(replace(stage.runtime, store=stopped))
    assert len(await stage.states()) == 8


@pytest.mark.parametrize("broken", ["first", "second"])
async def test_a_repository_whose_days_cannot_be_counted_stops_no_other(store, broken):
    stages = {
        name: await upload_stage.staged(store, repository)
        for name, repository in (("first", "widgets"), ("second", "gears"))
    }
    for stage in stages.values():
        await stage.ran({"total": "P", "cart": "F"})
        stage.clock.present += timedelta(days=2)
    bad = stages[broken].repository.id

    class Stopped(Mortal):
        """A store in which one repository has days that cannot be written."""

        async def run(self, fn, *args, **kwargs):
            if fn is day_counts.write and args[0].day.place.repository_id == bad:
                raise Died
            return await self._store.run(fn, *args, **kwargs)

    stopped: Any = Stopped(store, 0)
    with pytest.raises(Died):
        await sweeps.expire(replace(stages["first"].runtime, store=stopped))
    for name, stage in stages.items():
        found = await slow_tests.slowest(stage.runtime, stage.repository, TimeOrder.TOTAL, "", 9)
        assert len(found.tests) == (0 if name == broken else 2)


class Overtaken(Mortal):
    """A store before whose first write, which enters a test, something else is done."""

    def __init__(self, store, deed):
        super().__init__(store, 0)
        self._deed = deed

    async def run(self, fn, *args, **kwargs):
        """As the store's."""
        if self._writes == 0:
            await self._deed()
        self._writes += 1
        return await self._store.run(fn, *args, **kwargs)


async def ran_overtaken(stage, tests, deed, **told):
    """Upload tests one of which is new, while something else is done."""
    store = Overtaken(stage.runtime.store, deed)
    await replace(stage, runtime=replace(stage.runtime, store=store)).ran(tests, **told)


@pytest.mark.each_database
async def test_what_is_taken_out_while_an_upload_is_on_its_way_is_looked_up_anew(store):
    stage, untouched = await upload_stage.staged(store), await upload_stage.staged(store, "gears")
    first: Any = await stage.ran(MANY, run_id="1")
    more = {**MANY, "more": "P"}

    async def take_out():
        elsewhere = replace(stage.runtime, memory=Memory())
        await remove.remove(elsewhere, stage.repository, first.upload_id, SYSTEM)

    await ran_overtaken(stage, more, take_out, run_id="2")
    await untouched.ran(more, run_id="2")
    assert (await stage.cases()).keys() == more.keys()
    assert await figures_of(stage) == await figures_of(untouched)


@pytest.mark.each_database
async def test_a_test_that_is_forgotten_while_an_upload_is_on_its_way_is_entered_anew(store):
    stage = await upload_stage.staged(store)
    await stage.ran(MANY, caller=replace(stage.caller, token_id=""))
    more = {**MANY, "more": "P"}
    later = stage.clock.now() + timedelta(days=400)

    async def forget():
        assert await store.run(test_retention.forget_strangers, later) == len(MANY)

    await ran_overtaken(stage, more, forget, run_id="2")
    assert (await stage.cases()).keys() == more.keys()


async def test_who_is_not_judged_with_the_upload_is_judged_within_a_minute(store, monkeypatch):
    monkeypatch.setattr(judge, "JUDGED_MAX", 3)
    stage = await upload_stage.staged(store)
    failing = {f"test_{no}": "F" if no % 2 else "P" for no in range(16)}
    await stage.ran(failing)
    assert len(await stage.states()) == 3
    await sweeps.expire(stage.runtime)
    assert len(await stage.states()) == 8


async def said(stage):
    """What is said of each test, and since when."""
    return {
        name: (state.value, state.reason, state.since, [each.at for each in changes])
        for name, (state, changes) in (await stage.states()).items()
    }


@pytest.mark.parametrize("is_cold", [False, True])
async def test_old_evidence_is_settled_a_piece_at_a_time(store, monkeypatch, is_cold):
    stage, whole = await eager(store, "widgets"), await eager(store, "gears")
    start = stage.clock.present

    async def ran_on(day, letters, stages=(stage, whole)):
        for each in stages:
            each.clock.present = start + timedelta(days=day)
            tests = dict.fromkeys(("total", "sum", "rest"), letters)
            told = {"branch": "main", "run_id": f"{day}-{letters}"}
            await each.ran(tests, ran_at=each.clock.present, **told)

    for day in (0, 4, 35, 38, 41):
        await ran_on(day, "FP")
    await ran_on(50, "P", [whole])
    await sweeps.expire(whole.runtime)
    monkeypatch.setattr(judge, "JUDGED_MAX", 1)
    await ran_on(50, "P", [stage])
    settled = [state for state, _ in (await stage.states()).values() if state.settled is not None]
    assert len(settled) < 3
    if is_cold:
        begin_anew(stage)
    await ran_on(51, "FP", [stage])
    await sweeps.expire(stage.runtime)
    monkeypatch.undo()
    await ran_on(51, "FP", [whole])
    assert await said(stage) == await said(whole)


@pytest.mark.each_database
async def test_what_is_taken_out_while_it_is_settled_leaves_nothing_to_do(store, monkeypatch):
    monkeypatch.setattr(judge, "JUDGED_MAX", 1)
    stage = await upload_stage.staged(store)
    failing = dict.fromkeys(("total", "sum", "rest"), "F")
    old = await stage.ran(failing, ran_at=stage.clock.present)
    await sweeps.expire(stage.runtime)
    stage.clock.present += timedelta(days=50)
    await stage.ran(failing, ran_at=stage.clock.present, run_id="2")
    assert old.upload_id is not None
    await remove.remove(stage.runtime, stage.repository, old.upload_id, SYSTEM)
    async with asyncio.timeout(60):
        await sweeps.expire(stage.runtime)
    assert await store.read(cases.repositories_behind) == ()


@pytest.mark.each_database
async def test_who_begins_anew_reads_and_forgets_before_anybody_is_kept_from_writing(store):
    stage, standings = await upload_stage.staged(store), store.caches.of(IndexCache)
    here = stage.repository.id
    for day in (0, 50):
        stage.clock.present += timedelta(days=day)
        await stage.ran({"total": "F"}, ran_at=stage.clock.present, run_id=f"{day}")
    begin_anew(stage)
    with suppress(Died):
        await mortal(stage, 0).ran({"total": "F"}, run_id="51")
    ready = standings.take(here)
    assert len(ready.index.evidence.uploads.ids()) == 2
    standings.put(here, ready)
    await stage.ran({"total": "F"}, run_id="51")
    with suppress(Died):
        await mortal(stage, 0).ran({"total": "F"}, run_id="52")
    assert len(standings.take(here).index.evidence.uploads.ids()) == 2


@pytest.mark.each_database
async def test_tests_left_to_be_judged_are_judged_by_another_process(store, monkeypatch):
    monkeypatch.setattr(judge, "JUDGED_MAX", 3)
    stage = await upload_stage.staged(store)
    await stage.ran({f"test_{no}": "F" if no % 2 else "P" for no in range(16)})
    begin_anew(stage)
    await sweeps.expire(stage.runtime)
    assert len(await stage.states()) == 8

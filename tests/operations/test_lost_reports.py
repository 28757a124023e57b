"""Reports of CI runs of which no delivery ever told (docs/design/reports.md 10)."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from service.accounts.store import access
from service.database import outbox
from service.database.outbox import Lane
from service.evidence import lost_reports
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import naming, queues, turn
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.provider.ci import CiRun, CiTrigger
from service.provider.errors import Unavailable
from service.testhealth.operations import collected
from service.testhealth.reports.collecting import CollectReports
from service.testhealth.settings import TestSettings
from service.testhealth.store import quarantine
from service.testhealth.store.cases import Place
from service.testhealth.store.quarantine import Since
from service.vocabulary import SYSTEM, CheckOutcome, Explanation, Sha
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST, NOW
from tests.store.builders import a_check, an_entry
from tests.store.builders import a_run as an_unfinished_run


def a_run(run_id, attempt=1):
    return CiRun(
        id=str(run_id),
        attempt=attempt,
        trigger=CiTrigger.HEAD,
        head_sha=Sha("a" * 40),
        head_branch="main",
        of_fork=False,
        pull_requests=(),
        is_running=False,
        outcome=CheckOutcome.PASSED,
        started_at=datetime(2026, 3, 22, tzinfo=UTC),
        url="",
    )


class Ci(ValuesProvider):
    """Runs of CI, newest first; `asked` are the days since when they were asked for."""

    def __init__(self):
        super().__init__(HOST)
        self.ended = [a_run(2), a_run(1)]
        self.asked = []
        self.is_away = False

    async def ci_runs(self, repo, since, *, is_awaited=False):
        self.asked.append(since)
        if self.is_away:
            raise Unavailable("away", NOW)
        return self.ended


class Yard:
    """A repository whose CI runs; `found` are those asked for by a sweep, in order."""

    def __init__(self, stage, ci):
        self.stage, self.ci = stage, ci
        self.runtime, self.repository = stage.runtime, stage.repository

    async def swept(self):
        await lost_reports.look_everywhere(self.runtime)
        return await self.found()

    async def found(self):
        rows = await self.runtime.store.read(
            outbox.claim, self.runtime.clock.now(), 1000, (Lane.COLLECT,)
        )
        return [(row.effect.run_id, row.effect.attempt) for row in rows]


@pytest.fixture
async def yard(store):
    made = await upload_stage.staged(store)
    ci = Ci()
    made.runtime = replace(made.runtime, providers={HOST: ci})
    await made.ran({"total": "P"})
    return Yard(made, ci)


async def test_runs_that_nobody_told_of_are_asked_for_once(yard):
    assert await yard.swept() == [("2", 1), ("1", 1)]
    yard.ci.ended.insert(0, a_run(3))
    assert sorted(await yard.swept()) == [("1", 1), ("2", 1), ("3", 1)]
    assert yard.ci.asked == [date(2026, 3, 21)] * 2


async def test_a_run_whose_news_came_is_not_asked_for_again(yard):
    await collected.ask_for(yard.runtime, yard.repository, [CollectReports("2", 1)])
    assert sorted(await yard.swept()) == [("1", 1), ("2", 1)]


async def test_the_newest_attempts_of_a_run_are_asked_for(yard):
    yard.ci.ended = [a_run(1, attempt=5)]
    assert await yard.swept() == [("1", 5), ("1", 4), ("1", 3)]


async def test_of_many_some_are_asked_for_at_a_time_the_newest_first(yard):
    yard.ci.ended = [a_run(n) for n in range(150, 0, -1)]
    assert [int(run) for run, _ in await yard.swept()] == list(range(150, 50, -1))
    assert len(await yard.swept()) == 150


async def test_a_provider_that_is_away_is_asked_by_the_next_sweep(yard):
    yard.ci.is_away = True
    assert await yard.swept() == []
    yard.ci.is_away = False
    assert len(await yard.swept()) == 2


async def test_where_nothing_is_collected_nothing_is_asked(yard):
    place = Place(yard.repository.org_id, yard.repository.id)
    settings = TestSettings(collect_artifacts=False)
    await yard.runtime.store.run(quarantine.put_settings, place, settings, Since())
    assert await yard.swept() == []
    assert yard.ci.asked == []


async def test_a_repository_out_of_reach_is_not_asked_of(yard):
    await yard.runtime.store.run(access.set_repository_available, yard.repository.id, False)
    assert await yard.swept() == []
    assert yard.ci.asked == []


async def test_a_repository_without_tests_is_asked_of_once_it_has_a_queue(yard):
    other = await upload_stage.staged(yard.runtime.store, "gadgets")
    await yard.swept()
    assert len(yard.ci.asked) == 1
    wish = QueueRequest({}, QueueState.PAUSED)
    await queues.create(yard.runtime, other.repository, "main", wish, SYSTEM)
    await yard.swept()
    assert len(yard.ci.asked) == 3


async def test_where_a_queue_waits_only_reports_of_test_branches_are_asked_for(yard):
    branch = f"headgate/merge/pr-3/{yard.runtime.ids.uuid()}"
    own = replace(a_run(1), head_branch=branch, head_repo=yard.repository.provider_id)
    yard.ci.ended = [a_run(2), own]
    await collected.look_for_lost(yard.runtime, yard.repository, 9, naming.run_id_of)
    lanes = (Lane.REPORTS, Lane.COLLECT)
    rows = await yard.runtime.store.read(outbox.claim, yard.runtime.clock.now(), 9, lanes)
    assert [row.effect for row in rows] == [CollectReports("1", 1, is_awaited=True)]
    assert await yard.swept() == [("2", 1)]


async def test_a_fork_s_branch_that_is_named_like_a_test_branch_is_none(yard):
    branch = f"headgate/merge/pr-3/{yard.runtime.ids.uuid()}"
    yard.ci.ended = [
        replace(a_run(2), head_branch=branch, head_repo="99"),
        replace(a_run(1), head_branch=branch, head_repo=""),
    ]
    await collected.look_for_lost(yard.runtime, yard.repository, 9, naming.run_id_of)
    lanes = (Lane.REPORTS, Lane.COLLECT)
    assert await yard.runtime.store.read(outbox.claim, yard.runtime.clock.now(), 9, lanes) == ()
    assert await yard.swept() == [("2", 1), ("1", 1)]


async def test_while_no_queue_waits_for_results_nothing_is_asked(yard):
    await lost_reports.look_where_awaited(yard.runtime)
    assert yard.ci.asked == []


@pytest.mark.parametrize(
    ("asked_at", "evidence", "is_asked"),
    [
        (None, None, False),
        (NOW, None, True),
        (NOW, Evidence(1, {"unit": Explanation.UNEXPLAINED}), False),
    ],
)
async def test_a_failed_run_that_waits_for_its_results_is_asked_for(
    yard, asked_at, evidence, is_asked
):
    wish = QueueRequest({}, QueueState.PAUSED)
    await queues.create(yard.runtime, yard.repository, "main", wish, SYSTEM)
    (queue,) = await yard.runtime.store.read(stored_queues.all_queues)
    before = await turn.value(yard.runtime, queue.id)
    failed = (a_check("unit", CheckOutcome.FAILED),)
    run = an_unfinished_run("r1", checks=failed, asked_evidence=asked_at, evidence=evidence)
    after = replace(before, runs={"r1": run}, entries={3: an_entry(3, seq=1, rank=1)})
    step = Step(after, (), (), None, None)
    await yard.runtime.store.run(stored_queues.save, before, step)
    yard.runtime.store.caches.of(QueueCache).drop(queue.id)
    await lost_reports.look_where_awaited(yard.runtime)
    assert bool(yard.ci.asked) is is_asked


async def test_a_sweep_that_has_asked_enough_leaves_the_next_repository_to_the_next_sweep(yard):
    other = await upload_stage.staged(yard.runtime.store, "gadgets")
    await other.ran({"total": "P"})
    yard.ci.ended = [a_run(number) for number in range(100, 0, -1)]
    assert len(await yard.swept()) == 100
    assert len(yard.ci.asked) == 1
    await yard.swept()
    assert len(yard.ci.asked) == 3

"""What is said of tests hangs on the uploads that are there, and on nothing else."""

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from service.testhealth.detector import history
from service.testhealth.operations import (
    flags,
    judge,
    records,
    remove,
)
from service.testhealth.operations import (
    settings as test_settings,
)
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.settings import TestSettings
from service.testhealth.store import cases as test_cases
from service.testhealth.store import figures, quarantine
from service.testhealth.store import uploads as stored_uploads
from service.testhealth.store.cases import Place
from service.testhealth.store.index_cache import IndexCache
from service.testhealth.store.quarantine import Since
from service.testhealth.store.states import ChangeKind
from service.vocabulary import SYSTEM, Flag, Health, Sensitivity, Sha
from tests.bench.flaky.ledger import OTHER, PR, STABLE, UNTRUSTED, Ledger, Upload, bits
from tests.flaky.histories import START
from tests.flaky.test_order import LETTERS
from tests.harness.values import ValuesProvider
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW

TESTS = range(6)
THRESHOLD = 30


def drawn(chance):
    """Uploads of a small repository; commits, runs and times often meet."""
    found = []
    for number in range(chance.randint(10, 28)):
        letters = {no: chance.choice(LETTERS) for no in TESTS}
        kind = chance.choice((STABLE, STABLE, STABLE, PR, OTHER, UNTRUSTED))
        shared = chance.randint(0, 12)
        found.append(
            Upload(
                digest=f"{number:03}",
                at=START + timedelta(hours=chance.randint(0, 480)),
                kind=kind,
                job=chance.choice("ab"),
                code=f"sha:{shared if chance.random() < 0.5 else 100 + number}",
                run=chance.choice(("", f"r{number}", "r1", "r2")),
                passed=bits(no for no, each in letters.items() if each == "P"),
                attempts={no: each for no, each in letters.items() if each not in ("", "P")},
                machine=chance.choice(("", "", "", "m1", "m2")),
                branch="main" if kind == STABLE else chance.choice("xy"),
                pr=chance.randint(1, 3) if kind in (PR, UNTRUSTED) else None,
            )
        )
    return found


class Numbered(ValuesProvider):
    """A provider of a branch whose newest commit has the smallest number."""

    async def position(self, repo, sha):
        return 1000 - int(sha) if sha.isdecimal() else None


class Counting(Numbered):
    """The same, which counts how often it is asked."""

    asked = 0

    async def position(self, repo, sha):
        self.asked += 1
        return await super().position(repo, sha)


async def test_the_provider_is_asked_once_where_a_commit_is(store):
    stage = numbered(await upload_stage.staged(store), Counting)
    counting = stage.runtime.providers[stage.repository.ref.host]
    for number, job in ((5, "unit"), (5, "e2e"), (6, "unit"), (5, "lint")):
        await stage.ran({"total": "P"}, sha=Sha(f"{number:040}"), job=job, branch="main")
    assert counting.asked == 2


def numbered(stage, kind=Numbered):
    """The stage, whose provider knows the positions of commits."""
    stage.runtime.providers[stage.repository.ref.host] = kind()
    return stage


async def sent(stage, upload):
    """Take an upload of the ledger in; the upload with the digest that it has in the store."""
    return (await sent_as(stage, upload))[0]


async def figures_of(stage):
    """What lists show of each test that is known."""
    now = stage.clock.now()
    cases = await stage.cases()

    def read(session):
        context = records.context_of(session, stage.runtime, stage.repository, now)
        nos = [case.no for case in cases.values()]
        rates = figures.rates(session, context.sets, stage.repository.id, nos, now)
        pasts = test_cases.pasts_of(session, stage.repository.id, nos)
        last_runs = {each.no: records.last_run(session, context, each) for each in cases.values()}
        return rates, last_runs, pasts

    rates, last_runs, pasts = await stage.runtime.store.read(read)
    return {
        name: (*pasts[case.no], last_runs[case.no], case.last_failed_at, case.impact,
               rates[case.no])
        for name, case in cases.items()
    }  # fmt: skip


async def sent_as(stage, upload):
    """The same, and the id that it has there."""
    tests = {f"test_{no}": upload.letters(no) for no in TESTS}
    caller = stage.caller
    if upload.kind == UNTRUSTED:
        caller = replace(caller, token_id="")
    answer = await stage.ran(
        tests,
        caller=caller,
        sha=Sha(upload.code.partition(":")[2]),
        job=upload.job,
        run_id=upload.run or None,
        machine=upload.machine or None,
        branch=upload.branch,
        pr_number=upload.pr,
        ran_at=upload.at,
    )
    found = await stage.runtime.store.read(stored_uploads.by_id, answer.upload_id)
    told = replace(upload, digest=found.upload.digest, position=found.upload.position)
    return told, answer.upload_id


async def compared(stage, uploads):
    """What is stored against what the ledger says of the same uploads."""
    stored = await stage.states()
    if not any(each.kind != UNTRUSTED for each in uploads):
        return
    ledger = Ledger(uploads, threshold=THRESHOLD)
    for no in ledger.failed:
        wanted = ledger.judge(no)
        state, changes = stored[f"test_{no}"]
        assert state.value.value == wanted.value.value
        assert (state.reason, state.since) == (wanted.reason, wanted.since)
        assert state.is_stale == wanted.is_stale
        assert state.numbers == wanted.numbers
        entries = [each.change for each in changes]
        standing = [(each.at, each.value) for each in history.effective(entries)]
        assert standing == [(each.at, each.value) for each in wanted.history]


async def eager(store, name):
    """A repository that calls tests flaky soon."""
    stage = numbered(await upload_stage.staged(store, name))
    place = Place(stage.repository.org_id, stage.repository.id)
    settings = TestSettings(sensitivity=Sensitivity.EAGER)
    await store.run(quarantine.put_settings, place, settings, Since())
    return stage


class Watched(IndexCache):
    """Remembers how often nothing was there for whoever came to judge."""

    def __init__(self):
        super().__init__()
        self.lacking = 0

    def take(self, repository_id):
        found = super().take(repository_id)
        self.lacking += found is None
        return found


@pytest.mark.each_database
async def test_uploads_that_come_together_read_all_evidence_once(store):
    store.caches.of(IndexCache, Watched)
    stage = await upload_stage.staged(store)
    runs = ({"test_0": "F" if n % 2 else "P", "test_1": "P"} for n in range(8))
    await asyncio.gather(*(stage.ran(tests, run_id=f"r{n}") for n, tests in enumerate(runs)))
    assert store.caches.of(IndexCache).lacking == 1


@pytest.mark.each_database
async def test_whatever_judges_beside_an_upload_goes_on_from_what_that_has_kept(store, monkeypatch):
    store.caches.of(IndexCache, Watched)
    monkeypatch.setattr(judge, "JUDGED_MAX", 1)
    stage = await upload_stage.staged(store)
    tests = {"test_0": "F", "test_1": "F"}
    first = await stage.ran(tests, run_id="first")
    assert first.upload_id is not None
    case = await stage.case("test_0")
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.FLAKY, "x"), SYSTEM)
    runtime, here = stage.runtime, stage.repository
    await asyncio.gather(
        stage.ran(tests, run_id="second"),
        flags.put(runtime, here, FlagRequest(case.id, Flag.NONE), SYSTEM),
        test_settings.update(runtime, here, {"sensitivity": Sensitivity.EAGER}, SYSTEM),
        remove.remove(runtime, here, first.upload_id, SYSTEM),
        judge.catch_up(runtime),
        stage.ran(tests, run_id="third"),
    )
    assert store.caches.of(IndexCache).lacking == 1


async def test_another_sensitivity_reads_no_evidence_anew(store):
    stage = await eager(store, "widgets")
    await stage.ran({"total": "FP"})
    before = store.caches.of(IndexCache).take(stage.repository.id)
    store.caches.of(IndexCache).put(stage.repository.id, before)
    changes = {"sensitivity": Sensitivity.STRICT}
    await test_settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    assert store.caches.of(IndexCache).take(stage.repository.id).index is before.index


@pytest.mark.parametrize(
    "seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, 4, 5))]
)
async def test_any_order_and_repetition_of_uploads_ends_in_the_same_states(store, seed):
    chance = random.Random(seed)
    stage = await eager(store, f"widgets-{seed}")
    given = drawn(chance)
    arriving = [*given, *given[:4]]
    chance.shuffle(arriving)
    told = [await sent(stage, each) for each in arriving]
    await compared(stage, told)
    first = await stage.states()
    again = await eager(store, f"gears-{seed}")
    for each in given:
        await sent(again, each)
    ended = await again.states()
    assert {name: (s.value, s.since) for name, (s, _) in first.items()} == {
        name: (s.value, s.since) for name, (s, _) in ended.items()
    }


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.soak)])
async def test_uploads_that_were_taken_out_leave_nothing_behind(store, seed):
    chance = random.Random(seed)
    stage = await eager(store, "widgets")
    given = drawn(chance)
    told, ids = [], []
    for each in given:
        upload, upload_id = await sent_as(stage, each)
        told.append(upload)
        ids.append(upload_id)
        if chance.random() < 0.3:
            gone = chance.randrange(len(told))
            del told[gone]
            await remove.remove(stage.runtime, stage.repository, ids.pop(gone), SYSTEM)
    await compared(stage, told)
    bare = await eager(store, "gears")
    for each in told:
        await sent(bare, each)
    assert await figures_of(stage) == await figures_of(bare)


async def test_a_process_that_begins_anew_goes_on_where_the_other_ended(store):
    chance = random.Random(99)
    stage = await eager(store, "widgets")
    told = []
    for number, each in enumerate(drawn(chance)):
        if number % 5 == 4:
            stage.runtime.store.caches.of(IndexCache).take(stage.repository.id)
        told.append(await sent(stage, each))
    await compared(stage, told)


async def test_a_test_that_is_flaky_for_long_stays_so_since_then(store):
    stage = await eager(store, "widgets")
    start = stage.clock.present
    since = None
    for day in range(0, 80, 2):
        stage.clock.present = start + timedelta(days=day)
        for number, letters in enumerate(("FP" if day % 6 == 0 else "P", "P")):
            await stage.ran(
                {"total": letters, "other": "P"},
                branch="main",
                run_id=f"{day}-{number}",
                ran_at=stage.clock.present - timedelta(hours=2 - number),
            )
        state, changes = (await stage.states())["total"]
        assert state.value is Health.FLAKY
        since = since or state.since
        assert state.since == since
        assert [each.kind for each in changes] == [ChangeKind.CHANGED]
        if day % 20 == 18:
            stage.runtime.store.caches.of(IndexCache).take(stage.repository.id)


async def clock_of(stage):
    shared = await stage.runtime.store.read(test_cases.shared_by, stage.repository.id)
    return shared.clock


async def test_the_evidence_clock_goes_back_when_the_newest_upload_is_taken_out(store):
    stage = await upload_stage.staged(store)
    sent_at = [NOW - timedelta(hours=hours) for hours in (3, 1)]
    answers = [await stage.ran({"total": "P"}, ran_at=at) for at in sent_at]
    assert await clock_of(stage) == sent_at[1]
    for answer, left in zip(reversed(answers), (sent_at[0], None), strict=True):
        assert answer.upload_id is not None
        await remove.remove(stage.runtime, stage.repository, answer.upload_id, SYSTEM)
        assert await clock_of(stage) == left


async def ran_on(stage, day, letters):
    """The test `total` in a run of main on that day from the beginning on."""
    stage.clock.present = NOW + timedelta(days=day)
    told = {"branch": "main", "run_id": f"{day}"}
    await stage.ran({"total": letters}, ran_at=stage.clock.present, **told)


@pytest.mark.parametrize("is_cold", [False, True])
async def test_what_a_pause_lets_grow_old_is_settled_before_it_is_forgotten(store, is_cold):
    stage = await eager(store, "widgets")
    for day in (*range(0, 40, 2), 41):
        await ran_on(stage, day, "FP")
    (before, _) = (await stage.states())["total"]
    if is_cold:
        stage.runtime.store.caches.of(IndexCache).take(stage.repository.id)
    else:
        settings = TestSettings(sensitivity=Sensitivity.EAGER, collect_artifacts=False)
        place = Place(stage.repository.org_id, stage.repository.id)
        await store.run(quarantine.put_settings, place, settings, Since())
    await ran_on(stage, 50, "P")
    state, changes = (await stage.states())["total"]
    assert (state.value, state.since) == (Health.FLAKY, before.since)
    assert [each.kind for each in changes] == [ChangeKind.CHANGED]


async def test_what_taking_a_flag_back_settles_is_kept(store):
    stage = await eager(store, "widgets")
    for day in (*range(0, 40, 2), 41):
        await ran_on(stage, day, "FP")
    (before, _) = (await stage.states())["total"]
    case = await stage.case("total")
    for flag, day in ((Flag.FLAKY, 42), (Flag.NONE, 50)):
        stage.clock.present = NOW + timedelta(days=day)
        request = FlagRequest(case.id, flag, "no clock")
        await flags.put(stage.runtime, stage.repository, request, SYSTEM)
    await ran_on(stage, 50, "P")
    state, _ = (await stage.states())["total"]
    assert (state.value, state.since) == (Health.FLAKY, before.since)


async def test_what_is_settled_in_a_long_pause_ends_after_it(store):
    stage = await eager(store, "widgets")
    for day in (24, 26, 28, 30):
        await ran_on(stage, day, "FP")
    await ran_on(stage, 40, "P")
    stage.clock.present = NOW + timedelta(days=80)
    changes = {"sensitivity": Sensitivity.NORMAL}
    await test_settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    (state, _) = (await stage.states())["total"]
    assert state.value is Health.FLAKY
    await ran_on(stage, 82, "P")
    (state, _) = (await stage.states())["total"]
    assert state.value is Health.HEALTHY


async def test_a_flag_taken_back_leaves_what_the_evidence_says(store):
    stage = await eager(store, "widgets")
    start = stage.clock.present
    await stage.ran({"total": "FP", "other": "P"}, ran_at=start - timedelta(hours=1))
    case = await stage.case("total")
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.FLAKY, "x"), SYSTEM)
    for day in range(1, 18):
        stage.clock.present = start + timedelta(days=day)
        tests = {"total": "P", "other": "P"} if day == 1 else {"other": "P"}
        await stage.ran(tests, ran_at=stage.clock.present, run_id=f"{day}")
    taken = await flags.put(
        stage.runtime, stage.repository, FlagRequest(case.id, Flag.NONE), SYSTEM
    )
    assert taken.status is Health.HEALTHY
    state, _ = (await stage.states())["total"]
    assert state.reason.startswith("Flag removed by")


async def test_a_changed_sensitivity_judges_at_once(store):
    stage = await eager(store, "widgets")
    await stage.ran({"total": "P"}, ran_at=NOW - timedelta(hours=3))
    for number in range(20):
        letters = "FP" if number == 19 else "P"
        at = NOW - timedelta(minutes=100 - number)
        await stage.ran({"total": letters}, ran_at=at, run_id=f"{number}")
    found = []
    for word in (Sensitivity.EAGER, Sensitivity.STRICT, Sensitivity.EAGER):
        changes = {"sensitivity": word}
        await test_settings.update(stage.runtime, stage.repository, changes, SYSTEM)
        found.append((await stage.states())["total"][0].value)
    assert found == [Health.FLAKY, Health.HEALTHY, Health.FLAKY]


async def test_a_test_that_is_broken_for_long_stays_so_since_then(store):
    stage = await eager(store, "widgets")
    start = stage.clock.present
    since = None
    for day in (*range(14), *range(14, 70, 4)):
        stage.clock.present = start + timedelta(days=day)
        letter = "P" if day < 10 else "F"
        for number in range(3):
            await stage.ran(
                {"total": letter, "other": "P"},
                branch="main",
                run_id=f"{day}-{number}",
                sha=Sha(f"{day}-{number}"),
                ran_at=stage.clock.present - timedelta(hours=4 - number),
            )
        if day > 12:
            state, changes = (await stage.states())["total"]
            assert state.value is Health.BROKEN
            since = since or state.since
            assert state.since == since
            assert len(changes) == 1
        if day % 20 == 18:
            stage.runtime.store.caches.of(IndexCache).take(stage.repository.id)


async def test_a_persons_word_stands_while_uploads_come(store):
    stage = await eager(store, "widgets")
    await stage.ran({"total": "F"}, ran_at=NOW - timedelta(hours=5), branch="topic")
    case = await stage.case("total")
    for flag, value in ((Flag.BROKEN, Health.BROKEN), (Flag.NONE, Health.HEALTHY)):
        request = FlagRequest(case.id, flag, "no clock")
        await flags.put(stage.runtime, stage.repository, request, SYSTEM)
        stage.clock.present += timedelta(minutes=10)
        told = {"sha": Sha(flag.value), "ran_at": stage.clock.present, "branch": "other"}
        await stage.ran({"total": "P"}, **told)
        state, changes = (await stage.states())["total"]
        assert state.value is value
    kinds = [each.kind for each in changes]
    assert kinds == [ChangeKind.FLAGGED, ChangeKind.UNFLAGGED]


async def test_a_flagged_test_that_never_failed_is_healthy_when_nothing_runs_it_for_30_days(store):
    stage = await eager(store, "widgets")
    await ran_on(stage, 0, "P")
    case = await stage.case("total")
    flag = FlagRequest(case.id, Flag.FLAKY, "waits on the real clock")
    await flags.put(stage.runtime, stage.repository, flag, SYSTEM)
    stage.clock.present = NOW + timedelta(days=31)
    await stage.ran({"other": "P"}, ran_at=stage.clock.present)
    (state, _) = (await stage.states())["total"]
    assert (state.value, state.is_stale) == (Health.HEALTHY, True)
    stage.clock.present = NOW + timedelta(days=32)
    await stage.ran({"total": "P"}, ran_at=stage.clock.present)
    (state, _) = (await stage.states())["total"]
    assert (state.value, state.is_stale) == (Health.FLAKY, False)


@pytest.mark.parametrize("is_cold", [False, True])
async def test_a_test_that_runs_again_after_its_flag_was_removed_is_not_stale(store, is_cold):
    stage = await eager(store, "widgets")
    await ran_on(stage, 0, "P")
    case = await stage.case("total")
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.FLAKY, "x"), SYSTEM)
    stage.clock.present = NOW + timedelta(days=31)
    await stage.ran({"other": "P"}, ran_at=stage.clock.present)
    await flags.put(stage.runtime, stage.repository, FlagRequest(case.id, Flag.NONE), SYSTEM)
    if is_cold:
        stage.runtime.store.caches.of(IndexCache).take(stage.repository.id)
    await ran_on(stage, 32, "P")
    (state, _) = (await stage.states())["total"]
    assert (state.value, state.is_stale) == (Health.HEALTHY, False)
    assert state.reason.startswith("Flag removed by")

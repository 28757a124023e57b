"""How an effect ends, or when it is tried again, after each kind of trouble.

See docs/design/transactions.md 5.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs

from service.database import outbox
from service.database.database import Tx
from service.database.outbox import ClaimedEffect, Lane, OutboxItem, OutboxState
from service.database.tables_deliveries import OutboxRow
from service.errors import DatabaseUnavailable
from service.mergequeue.engine.inputs import Cancel, Configure
from service.mergequeue.engine.model import Landing, LandMode, Proof, Tip
from service.mergequeue.engine.outputs import (
    BuildTestBranch,
    Land,
    LandStep,
    RerunChecks,
    Step,
    Tell,
)
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import notices, pull_requests, queues, turn
from service.mergequeue.operations.breaks import MindBreak
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.store import landings
from service.mergequeue.store import notices as stored_notices
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.cache import QueueCache
from service.process import effects
from service.provenance import ProviderTime
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    OutcomeUnknown,
    ProviderError,
    Suspended,
    Throttled,
    Unavailable,
)
from service.provider.labels import LabelChange, LabelRemoval
from service.provider.values import (
    BuildRequest,
    BuildResult,
    CheckReport,
    Notice,
    NotPossible,
    PullRequest,
    Reply,
    StatusComment,
)
from service.runtime import Runtime
from service.telemetry import Silent
from service.vocabulary import SYSTEM, MergeMethod, QueueRef, RepoRef, Sha
from tests.harness.values import ValuesProvider, sha_of
from tests.operations.conftest import WaitingClock

READBACK_S = 10
TIP = Tip(Sha("a" * 40), Sha("b" * 40))
LAND = Land(1, "r1", LandMode.CALL, MergeMethod.SQUASH, TIP, (), Proof.EXACT_TREE)
AT = datetime(2026, 3, 2, tzinfo=UTC)
MISTAKE = KeyError("a mistake of ours")
AWAY = DatabaseUnavailable("The database is away.", retry_after_s=1)
EFFECTS = OutboxRow.__table__


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing of this depends on the kind of database."""
    return sqlite_url


class TroubledProvider(ValuesProvider):
    """Refuses texts and builds with its trouble, while it has one."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: ProviderError | None = None
        self.asked: list[Notice] = []
        self.rerun_on: list[Sha] = []
        self.is_rerun_possible = True
        self.is_removed = False

    async def say(self, repo: RepoRef, notice: Notice) -> str | None:
        self.asked.append(notice)
        if self.trouble is not None:
            raise self.trouble
        self.is_removed = isinstance(notice, LabelRemoval)
        return await super().say(repo, notice)

    def firsts(self) -> list[bool]:
        """Of each text that was asked for, whether no earlier one was looked for."""
        return [each.first for each in self.asked if isinstance(each, Reply)]

    async def build(self, request: BuildRequest) -> BuildResult:
        if self.trouble is not None:
            raise self.trouble
        return await super().build(request)

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        if self.trouble is not None:
            raise self.trouble
        return await super().pull_request(repo, number)

    async def label_change(self, repo: RepoRef, number: int, label: str) -> LabelChange | None:
        return LabelChange("4", True, SYSTEM, ProviderTime(AT), undone=self.is_removed)

    async def rerun(self, repo: RepoRef, sha: Sha, names: Sequence[str]) -> NotPossible | None:
        self.rerun_on.append(sha)
        return None if self.is_rerun_possible else NotPossible("no CI here")


@pytest.fixture
def provider() -> TroubledProvider:
    return TroubledProvider()


@dataclass
class Counts(Silent):
    """Counts of what ended, by kind and outcome."""

    counted: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def count(self, name: str, *labels: str) -> None:
        if name == "headgate_actions_total":
            self.counted[labels] += 1


@dataclass
class Effect:
    """One stored effect, and what becomes of it."""

    runtime: Runtime
    clock: WaitingClock
    queue: QueueRef
    counts: Counts = field(default_factory=Counts)
    lane: Lane = Lane.CONTROL

    def __post_init__(self) -> None:
        self.runtime = replace(self.runtime, telemetry=self.counts)

    async def store(self, effect: object, lane: Lane, *, is_of_queue: bool = True) -> None:
        """Store it, due now; a text of a submission replaces the one that waits."""
        self.lane = lane
        kind = outbox.LAND if isinstance(effect, Land) else "reply"
        item = OutboxItem(lane, "e", kind, effect, self.clock.now())
        if isinstance(effect, Tell):
            spot = turn.place_of_texts(self.queue, effect.pr)
            item = replace(item, supersede_key=spot)
        place = (self.queue.repository_id, self.queue.id if is_of_queue else None, 1)
        await self.runtime.store.run(outbox.append, *place, [item])

    async def claimed(self) -> ClaimedEffect:
        """Claim it, when it is due."""
        due = await self.runtime.store.read(outbox.next_due, (self.lane,))
        assert due is not None
        await self.clock.sleep(max((due - self.clock.now()).total_seconds(), 0))
        (row,) = (await effects.claim(self.runtime, 9, lanes=(self.lane,))).rows
        return row

    async def tried(self, *, times: int = 1) -> list[float]:
        """Carry it out so often, while it is open; the seconds until each next try."""
        waits: list[float] = []
        while len(waits) < times and await self.is_open():
            await effects.carry_out(self.runtime, await self.claimed())
            waits.append(await self.pause_s())
        return waits

    async def broken_off(self, error: Exception, *, times: int = 1) -> list[float]:
        """The same, while its work ends by this error, which nobody expects."""
        waits: list[float] = []
        while len(waits) < times and await self.is_open():
            await effects.interrupted(self.runtime, await self.claimed(), error)
            waits.append(await self.pause_s())
        return waits

    async def pause_s(self) -> float:
        due = await self.runtime.store.read(outbox.next_due, (self.lane,))
        return 0 if due is None else (due - self.clock.now()).total_seconds()

    async def is_open(self) -> bool:
        return await self.state() not in (OutboxState.DONE, OutboxState.FAILED)

    async def state(self) -> OutboxState:
        return OutboxState((await self._row())[0])

    async def note(self) -> str | None:
        return (await self._row())[1]

    async def _row(self) -> tuple[str, str | None]:
        return await self.runtime.store.read(_row)

    async def holds(self) -> list[tuple[HoldReason, str]]:
        """The holds of its queue."""
        value = await turn.value(self.runtime, self.queue.id)
        return [(each.reason, each.text) for each in value.holds]


def _row(session: Tx) -> tuple[str, str | None]:
    found = select(EFFECTS.c.state, EFFECTS.c.note).where(EFFECTS.c.idem_key == "e")
    return tuple(session.execute(found).one())


@pytest.fixture
def effect(runtime: Runtime, clock: WaitingClock, queue: QueueRef) -> Effect:
    return Effect(runtime, clock, queue)


@pytest.fixture
async def in_flight(effect: Effect, provider: TroubledProvider) -> Effect:
    """A landing for which its queue waits."""
    runtime, queue = effect.runtime, effect.queue
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    provider.green.add(sha_of("head", 7))
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    value = await turn.value(runtime, queue.id)
    (run,) = value.runs
    flight = Landing(LAND.number, run, (1,), LAND.mode, TIP, effect.clock.now())
    step = Step(replace(value, landing=flight), (), (), None, None)
    await runtime.store.run(stored_queues.save, value, step)
    runtime.store.caches.of(QueueCache).drop(queue.id)
    await effect.store(replace(LAND, run=run), Lane.LANDING)
    return effect


async def begun(effect: Effect) -> Tell:
    """Submit a pull request; what its texts begin with."""
    await pull_requests.submit(effect.runtime, effect.queue, 7, SubmitOptions(), SYSTEM)
    entry = (await turn.value(effect.runtime, effect.queue.id)).entries[7]
    return Tell(7, entry.id, entry.state, entry.reason)


def text() -> Reply:
    return Reply(7, "e", "text")


async def test_an_effect_that_always_breaks_is_given_up_after_growing_pauses(effect: Effect):
    await effect.store(text(), Lane.CONTROL)
    waits = await effect.broken_off(MISTAKE, times=99)
    assert waits == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 0]
    assert await effect.state() is OutboxState.FAILED
    assert await effect.note() == "A mistake of ours; the log has it."
    assert effect.counts.counted == {("reply", "retried"): 12, ("reply", "failed"): 1}


@pytest.mark.fault(
    "a landing breaks by a mistake of ours, each time",
    holds="it is never given up, and the queue is held by name",
    within="-",
)
async def test_a_landing_that_always_breaks_is_never_given_up(in_flight: Effect):
    waits = await in_flight.broken_off(MISTAKE, times=20)
    assert waits[12:] == [900] * 8
    assert await in_flight.state() is OutboxState.READY
    assert await in_flight.holds() == [
        (HoldReason.LANDING_UNRESOLVED, "A mistake of ours; the log has it.")
    ]


@pytest.mark.fault(
    "the database goes away while an effect is performed",
    holds="it is read back before it is sent again",
    within="-",
)
async def test_an_effect_that_the_database_broke_off_is_read_back_before_it_is_sent_again(
    effect: Effect,
):
    await effect.store(text(), Lane.CONTROL)
    await effect.broken_off(AWAY)
    assert (await effect.claimed()).state is OutboxState.UNKNOWN
    assert effect.counts.counted == {("reply", "unknown"): 1}


async def test_an_unknown_effect_stays_unknown_until_a_read_back_succeeds(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    await effect.broken_off(AWAY)
    await effect.broken_off(MISTAKE)
    assert await effect.state() is OutboxState.UNKNOWN
    provider.trouble = Unavailable("The provider is away.", effect.clock.now())
    await effect.tried()
    assert await effect.state() is OutboxState.UNKNOWN
    provider.trouble = None
    await effect.tried()
    assert await effect.state() is OutboxState.DONE
    assert provider.firsts() == [False, False]


async def test_an_unknown_effect_is_read_back_often_at_first_and_then_seldom(effect: Effect):
    await effect.store(text(), Lane.CONTROL)
    waits = await effect.broken_off(AWAY, times=9)
    assert waits == [1, 1, 2, 4, 8, READBACK_S, 32, 64, 128]


async def test_a_text_without_an_answer_is_written_again_when_its_call_is_over(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.NOTICE)
    provider.trouble = OutcomeUnknown("No answer.")
    assert await effect.tried() == [63]
    assert await effect.broken_off(AWAY) == [63]


async def test_an_unknown_effect_waits_for_the_read_back_and_not_for_the_provider_at_first(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    await effect.broken_off(AWAY)
    at = effect.clock.now() + timedelta(hours=1)
    provider.trouble = Unavailable("The provider is away.", at)
    assert await effect.tried() == [READBACK_S]


async def test_the_time_that_the_provider_names_is_waited_for(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    provider.trouble = Unavailable("Maintenance.", effect.clock.now() + timedelta(hours=2))
    assert await effect.tried() == [2 * 3600]
    assert await effect.state() is OutboxState.READY


async def test_a_time_of_the_provider_that_is_past_shortens_no_pause(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    provider.trouble = Unavailable("Maintenance.", effect.clock.now())
    assert await effect.tried(times=5) == [1, 1, 2, 4, 8]


@pytest.mark.fault("the provider is away for a day", holds="no control effect is lost", within="-")
async def test_a_control_effect_waits_for_a_provider_that_is_away_however_long(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    provider.trouble = Unavailable("The provider is away.", effect.clock.now())
    assert len(await effect.tried(times=110)) == 110
    assert await effect.state() is OutboxState.READY
    provider.trouble = None
    await effect.tried()
    assert await effect.state() is OutboxState.DONE


@pytest.mark.parametrize("is_unknown", [False, True])
async def test_a_notice_is_given_up_when_the_provider_was_away_for_a_day(
    effect: Effect, provider: TroubledProvider, is_unknown: bool
):
    await effect.store(text(), Lane.NOTICE)
    provider.trouble = Unavailable("The provider is away.", effect.clock.now())
    if is_unknown:
        provider.trouble = OutcomeUnknown("No answer.")
    assert len(await effect.tried(times=110)) == 101
    assert await effect.state() is OutboxState.FAILED


async def test_after_a_text_that_was_given_up_unread_the_next_one_looks_for_it(
    effect: Effect, provider: TroubledProvider
):
    """It may be there, although no row says so."""
    tell = await begun(effect)
    await effect.store(tell, Lane.NOTICE)
    provider.trouble = OutcomeUnknown("No answer.")
    assert len(await effect.tried(times=110)) == 101
    assert await effect.state() is OutboxState.FAILED
    provider.trouble = None
    provider.asked.clear()
    for _ in range(2):
        posted = await notices.tell(effect.runtime, effect.queue, tell, first=True)
        await effect.runtime.store.run(stored_notices.record_all, posted)
    searched = [(type(one), getattr(one, "first", None)) for one in provider.asked]
    assert searched == [(CheckReport, False), (StatusComment, False)]


@pytest.mark.fault(
    "what was said is not recorded, and a new submission comes before it is read back",
    holds="the text of the new one takes the place of that of the old one",
    within="-",
)
async def test_the_text_of_a_new_submission_looks_for_one_of_the_old_one_that_was_not_recorded(
    effect: Effect, provider: TroubledProvider
):
    """The old one has no comment to write any more, by which it would be found."""
    runtime, queue = effect.runtime, effect.queue
    old = await begun(effect)
    await effect.store(old, Lane.NOTICE)
    await effect.broken_off(AWAY)
    await turn.ask(runtime, queue, Cancel(7, Reason.USER_REQUESTED, SYSTEM))
    new = await begun(effect)
    await effect.tried()
    assert await effect.state() is OutboxState.DONE
    provider.asked.clear()
    await notices.tell(runtime, queue, new, first=True)
    (comment,) = (one for one in provider.asked if isinstance(one, StatusComment))
    assert not comment.first


async def test_a_notice_that_is_refused_is_given_up_after_twelve_tries(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.NOTICE)
    provider.trouble = ProviderError("No such pull request.")
    with capture_logs() as logs:
        assert len(await effect.tried(times=110)) == 13
    assert {line["log_level"] for line in logs if line["event"] == "effect_failed"} == {"warning"}
    assert (await effect.state(), await effect.note()) == (
        OutboxState.FAILED,
        "No such pull request.",
    )


HOLDS = {
    "the App lacks a right": (NotPermitted("Denied."), 1, HoldReason.PERMISSION_LOST),
    "the App is suspended": (Suspended("Out."), 1, HoldReason.PERMISSION_LOST),
    "no repository": (Gone("Gone.", GoneKind.REPOSITORY), 1, HoldReason.REPOSITORY_UNAVAILABLE),
    "no installation": (Gone("Gone.", GoneKind.INSTALLATION), 1, HoldReason.REPOSITORY_UNAVAILABLE),
    "no branch": (Gone("Gone.", GoneKind.BRANCH), 9, None),
    "refused": (ProviderError("No."), 11, None),
    "nine tries without an answer": (OutcomeUnknown("No answer."), 9, None),
    "ten tries without an answer": (
        OutcomeUnknown("No answer."),
        10,
        HoldReason.PROVIDER_UNAVAILABLE,
    ),
}


@pytest.mark.parametrize(("trouble", "times", "reason"), HOLDS.values(), ids=list(HOLDS))
async def test_trouble_of_a_control_effect_holds_its_queue_by_name(
    effect: Effect,
    provider: TroubledProvider,
    trouble: ProviderError,
    times: int,
    reason: HoldReason | None,
):
    await effect.store(text(), Lane.CONTROL)
    provider.trouble = trouble
    await effect.tried(times=times)
    assert await effect.holds() == ([] if reason is None else [(reason, trouble.message)])


@pytest.mark.parametrize("lane", outbox.REPLACED)
async def test_trouble_of_a_notice_or_a_question_holds_no_queue(
    effect: Effect, provider: TroubledProvider, lane: Lane
):
    await effect.store(text(), lane)
    provider.trouble = NotPermitted("Denied.")
    await effect.tried()
    assert await effect.holds() == []


async def test_trouble_of_an_effect_without_a_queue_holds_none(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL, is_of_queue=False)
    provider.trouble = NotPermitted("Denied.")
    await effect.tried(times=99)
    assert await effect.holds() == []
    assert await effect.state() is OutboxState.FAILED


async def test_an_effect_that_long_waits_for_a_limit_holds_no_queue(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    provider.trouble = Throttled("Limited.", effect.clock.now())
    with capture_logs() as logs:
        await effect.tried(times=11)
    assert await effect.holds() == []
    assert await effect.note() == "throttled: Limited."
    assert {line["log_level"] for line in logs if line["event"] == "effect_failed"} == {"info"}


async def test_a_landing_that_long_waits_for_a_limit_holds_no_queue(
    effect: Effect, provider: TroubledProvider
):
    head, tree = Sha("c" * 40), Sha("d" * 40)
    land = replace(LAND, steps=(LandStep(1, 7, "e7", head, TIP.tree, tree, head),))
    await effect.store(land, Lane.LANDING)
    await effect.runtime.store.run(landings.intend, effect.queue.id, land)
    provider.trouble = Throttled("Limited.", effect.clock.now())
    assert len(await effect.tried(times=11)) == 11
    assert await effect.note() == "throttled: Limited."
    assert await effect.holds() == []


async def test_a_landing_without_an_answer_holds_its_queue_after_ten_tries(in_flight: Effect):
    await in_flight.broken_off(AWAY, times=9)
    assert await in_flight.holds() == []
    await in_flight.broken_off(AWAY)
    ((reason, _),) = await in_flight.holds()
    assert reason is HoldReason.LANDING_UNRESOLVED


@pytest.mark.fault(
    "the answer to the end of a landing is lost after ten tries",
    holds="no hold outlives the landing",
    within="-",
)
async def test_a_landing_that_has_ended_is_not_held_for_trouble_that_is_told_late(effect: Effect):
    await effect.store(LAND, Lane.LANDING)
    await effect.broken_off(AWAY, times=11)
    assert await effect.holds() == []


async def test_only_the_first_try_of_a_text_looks_for_no_earlier_one(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.NOTICE)
    provider.trouble = ProviderError("No.")
    await effect.tried()
    provider.trouble = None
    await effect.tried()
    assert provider.firsts() == [True, False]


async def test_an_effect_of_a_queue_that_is_deleted_ends_without_a_report(effect: Effect):
    await effect.store(LAND, Lane.LANDING)
    await queues.delete(effect.runtime, effect.queue, SYSTEM)
    await effect.tried()
    assert await effect.state() is OutboxState.DONE


@pytest.mark.fault(
    "the answer to a claim of effects is lost", holds="they are read back", within="-"
)
async def test_what_this_process_sent_and_no_task_owns_is_read_back(effect: Effect):
    await effect.store(text(), Lane.CONTROL)
    row = await effect.claimed()
    lanes = (Lane.CONTROL,)
    assert (await effects.claim(effect.runtime, 9, lanes=lanes)).rows == ()
    owned = await effects.claim(effect.runtime, 9, {row.id}, lanes=lanes)
    assert (owned.rows, owned.given_back) == ((), 0)
    lost = await effects.claim(effect.runtime, 9, (), lanes=lanes)
    assert lost.given_back == 1
    assert [(each.id, each.state) for each in lost.rows] == [(row.id, OutboxState.UNKNOWN)]


@pytest.fixture
async def submitted(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef, provider: TroubledProvider
) -> Effect:
    """The test branch of a pull request in a running queue, which is to be built."""
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    provider.green.add(sha_of("head", 7))
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    await runtime.store.run(_name_build)
    return Effect(runtime, clock, queue)


def _name_build(session: Tx) -> None:
    is_build = EFFECTS.c.effect_type == BuildTestBranch.__name__
    assert session.execute(update(EFFECTS).where(is_build).values(idem_key="e")).rowcount == 1


async def test_a_build_that_a_limit_delays_holds_the_queue_until_then(
    submitted: Effect, provider: TroubledProvider
):
    provider.trouble = Throttled("Limited.", submitted.clock.now() + timedelta(minutes=5))
    assert await submitted.tried() == [300]
    assert await submitted.holds() == [(HoldReason.PROVIDER_LIMIT, "Limited.")]


async def test_a_build_that_always_breaks_is_given_up_and_built_anew_for_nobodys_fault(
    submitted: Effect,
):
    (before,) = (await turn.value(submitted.runtime, submitted.queue.id)).runs
    waits = await submitted.broken_off(MISTAKE, times=99)
    assert len(waits) == 13
    value = await turn.value(submitted.runtime, submitted.queue.id)
    assert value.runs.keys() != {before}
    assert value.entries[7].reason is Reason.BUILD_RETRY


async def test_a_search_that_always_breaks_is_given_up(effect: Effect):
    await effect.store(MindBreak("no such search"), Lane.CONTROL)
    assert len(await effect.broken_off(MISTAKE, times=99)) == 13
    assert await effect.state() is OutboxState.FAILED


async def test_an_action_without_a_queue_ends(effect: Effect):
    await effect.store(LAND, Lane.LANDING, is_of_queue=False)
    await effect.tried()
    assert await effect.state() is OutboxState.DONE


async def test_a_hold_that_is_there_already_stays_as_it_is(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.CONTROL)
    provider.trouble = NotPermitted("Denied.")
    await effect.tried()
    (before,) = (await turn.value(effect.runtime, effect.queue.id)).holds
    await effect.tried(times=3)
    assert (await turn.value(effect.runtime, effect.queue.id)).holds == (before,)


REMOVAL = LabelRemoval(7, "merge", "4")


@pytest.mark.parametrize(("answer", "is_sent"), [(text(), False), (REMOVAL, False)])
async def test_an_answer_is_not_sent_for_a_queue_that_went_into_shadow(
    effect: Effect, provider: TroubledProvider, answer: Reply | LabelRemoval, is_sent: bool
):
    await effect.store(answer, Lane.NOTICE)
    await go_into_shadow(effect)
    await effect.tried()
    assert bool(provider.asked) is is_sent
    assert await effect.state() is OutboxState.DONE


async def test_a_label_whose_removal_was_begun_is_looked_after_in_shadow(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(REMOVAL, Lane.NOTICE)
    provider.trouble = OutcomeUnknown("No answer.")
    await effect.tried()
    await go_into_shadow(effect)
    provider.trouble = None
    await effect.tried()
    assert provider.asked == [REMOVAL, REMOVAL]


async def test_a_text_that_was_begun_is_not_sent_in_shadow(
    effect: Effect, provider: TroubledProvider
):
    await effect.store(text(), Lane.NOTICE)
    await effect.broken_off(AWAY)
    await go_into_shadow(effect)
    await effect.tried()
    assert provider.asked == []


async def go_into_shadow(effect: Effect) -> None:
    change = Configure({"shadow": True}, SYSTEM)
    await turn.take(effect.runtime, effect.queue.id, [change])


async def test_checks_of_a_run_are_started_again_once_it_is_built(
    submitted: Effect, provider: TroubledProvider
):
    async def rerun(run: str, attempt: int) -> None:
        submitted.lane = Lane.EVIDENCE
        key = f"{run}/{attempt}"
        ask = RerunChecks(run, ("unit",), attempt)
        item = OutboxItem(Lane.EVIDENCE, key, "rerun", ask, submitted.clock.now())
        place = (submitted.queue.repository_id, submitted.queue.id, 1)
        await submitted.runtime.store.run(outbox.append, *place, [item])
        await effects.carry_out(submitted.runtime, await submitted.claimed())

    (run,) = (await turn.value(submitted.runtime, submitted.queue.id)).runs
    await rerun(run, 2)
    assert provider.rerun_on == []
    submitted.lane = Lane.CONTROL
    await submitted.tried()
    value = await turn.value(submitted.runtime, submitted.queue.id)
    await rerun("no such run", 2)
    assert provider.rerun_on == []
    awaited = replace(value.runs[run], rerun_at=submitted.clock.now())
    after = replace(value, runs={run: awaited})
    await submitted.runtime.store.run(stored_queues.save, value, Step(after, (), (), None, None))
    submitted.runtime.store.caches.of(QueueCache).drop(submitted.queue.id)
    await rerun(run, 3)
    assert provider.rerun_on == [awaited.sha]
    assert run in (await turn.value(submitted.runtime, submitted.queue.id)).runs
    provider.is_rerun_possible = False
    await rerun(run, 4)
    assert run not in (await turn.value(submitted.runtime, submitted.queue.id)).runs

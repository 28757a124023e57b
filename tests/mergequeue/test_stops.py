"""No refusal of one landing stops those behind it: each is bounded, or names the whole branch."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import LandingStopCode
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import CheckHistory
from service.mergequeue.engine.states import EntryState, RunStatus
from service.vocabulary import Blocker, BlockerCode, CheckOutcome, MergeMethod, RequiredName
from tests.mergequeue.stage import ALICE, REQUIRED, Stage, a_check

STEP = timedelta(seconds=10)
WITHIN = timedelta(minutes=10)
OFFENDER, BEHIND = 1, 2
OF_THE_BRANCH = {
    LandingStopCode.RULE_DENIED: HoldReason.RULE_DENIED,
    LandingStopCode.METHOD_DENIED: HoldReason.METHOD_DENIED,
    LandingStopCode.STRICT: HoldReason.STRICT_CHECKS,
    LandingStopCode.PROVIDER_QUEUE: HoldReason.PROVIDER_QUEUE,
    LandingStopCode.NOT_PERMITTED: HoldReason.PERMISSION_LOST,
    LandingStopCode.UNAVAILABLE: HoldReason.PROVIDER_UNAVAILABLE,
}
OF_ONE = [code for code in LandingStopCode if code not in OF_THE_BRANCH]
QUEUES = [
    QueueConfig(merge_method=MergeMethod.SQUASH, concurrency=3),
    QueueConfig(merge_method=MergeMethod.MERGE_COMMIT, concurrency=3),
]


class Line:
    """A queue whose tests always pass, and a provider that refuses some pull requests."""

    def __init__(self, config: QueueConfig) -> None:
        self.stage = Stage(config, manual_land=True)
        self.words: dict[int, tuple[LandingStopCode, str]] = {}
        self.landed: list[int] = []
        self.skips: tuple[str, ...] = ()

    def skip(self, name: str) -> None:
        """Require a check that CI skips on test branches, though it ran on what landed."""
        names = (*REQUIRED.names, RequiredName(name))
        ran = CheckHistory({name: self.stage.now})
        self.stage.queue = replace(self.stage.queue, check_history=ran)
        self.skips = (name,)
        self.stage.tell(inputs.RequiredChanged(replace(REQUIRED, names=names)))

    def refuse(self, pr: int, code: LandingStopCode, text: str = "no") -> None:
        """Refuse this pull request from now on."""
        self.words[pr] = (code, text)

    def goes_on(self, span: timedelta) -> None:
        """Let tests pass and landings be answered while so much time goes by."""
        end = self.stage.now + span
        while self.stage.now < end:
            for run in list(self.stage.queue.runs.values()):
                self.passes(run)
            for run_id, action in list(self.stage.lands.items()):
                self._answers(run_id, action.steps[0].pr, action.steps[0].position)
            self.stage.passes(STEP)

    def passes(self, run: Run) -> None:
        """Let the tests of a run pass."""
        if run.status is RunStatus.IN_PROGRESS and run.sha is not None:
            checks = (
                a_check("unit", CheckOutcome.PASSED),
                *(a_check(name, CheckOutcome.SKIPPED) for name in self.skips),
            )
            self.stage.tell(inputs.ChecksReported(run.id, run.sha, checks, complete=True))

    def _answers(self, run_id: str, pr: int, position: int) -> None:
        if pr not in self.words:
            self.stage.land(run_id)
            self.landed.append(pr)
            return
        code, text = self.words[pr]
        self.stage.lands.pop(run_id)
        self.stage.tell(inputs.LandingStopped(run_id, position, code, text))


@pytest.mark.parametrize("config", QUEUES, ids=["call", "cas"])
@pytest.mark.parametrize("code", OF_ONE)
def test_a_stop_that_comes_again_and_again_at_the_head_does_not_stop_the_next(code, config):
    line = Line(config)
    line.refuse(OFFENDER, code)
    for pr in (OFFENDER, BEHIND):
        line.stage.tell(line.stage.submit(pr))
    line.goes_on(WITHIN)
    assert line.landed == [BEHIND]
    assert not line.stage.queue.holds


def test_missing_checks_are_bounded_although_the_run_skipped_one_as_its_head_did():
    line = Line(QUEUES[0])
    line.skip("lint")
    line.refuse(OFFENDER, LandingStopCode.CHECKS_MISSING)
    for pr in (OFFENDER, BEHIND):
        asked = line.stage.submit(pr)
        line.stage.tell(replace(asked, facts=replace(asked.facts, own_skipped=("lint",))))
    line.goes_on(WITHIN)
    assert line.landed == [BEHIND]


@pytest.mark.parametrize("code", OF_ONE)
def test_an_entry_that_is_refused_for_ever_leaves_in_the_end(code):
    line = Line(QUEUES[0])
    line.refuse(OFFENDER, code)
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(hours=4))
    left = OFFENDER not in line.stage.queue.entries
    is_barred = code is LandingStopCode.WORKFLOWS  # until rules or permissions change
    assert left or is_barred
    assert line.landed == []


@pytest.mark.parametrize("code", OF_THE_BRANCH)
def test_what_excludes_every_landing_holds_the_queue_by_its_own_name(code):
    line = Line(QUEUES[0])
    line.refuse(OFFENDER, code)
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(STEP)
    assert [hold.reason for hold in line.stage.queue.holds] == [OF_THE_BRANCH[code]]
    assert line.stage.queue.entries[OFFENDER].state is EntryState.TESTS_PASSED


def test_one_unexplained_refusal_holds_nothing_and_two_in_a_row_hold_the_queue():
    line = Line(QUEUES[0])
    line.refuse(1, LandingStopCode.OTHER, 'Rule "a1" forbids #1.')
    line.refuse(2, LandingStopCode.OTHER, 'Rule "b2" forbids #2.')
    line.stage.tell(line.stage.submit(1))
    line.goes_on(timedelta(minutes=2))
    assert not line.stage.queue.holds
    line.stage.tell(line.stage.submit(2))
    line.stage.tell(line.stage.submit(3))
    line.goes_on(timedelta(minutes=2))
    assert [hold.reason for hold in line.stage.queue.holds] == [HoldReason.RULE_DENIED]
    line.goes_on(timedelta(minutes=15))
    assert line.landed == [3]


def test_two_different_unexplained_refusals_hold_nothing():
    line = Line(QUEUES[0])
    line.refuse(1, LandingStopCode.OTHER, "the moon is full")
    line.refuse(2, LandingStopCode.OTHER, "the moon is new")
    for pr in (1, 2, 3):
        line.stage.tell(line.stage.submit(pr))
    line.goes_on(timedelta(minutes=4))
    assert line.landed == [3]
    assert not line.stage.queue.holds


def test_a_landing_in_between_forgets_an_unexplained_refusal():
    line = Line(QUEUES[0])
    for pr in (1, 3):
        line.refuse(pr, LandingStopCode.OTHER, "the moon is full")
    for pr in (1, 2, 3, 4):
        line.stage.tell(line.stage.submit(pr))
    line.goes_on(timedelta(minutes=4))
    assert line.landed == [2, 4]
    assert not line.stage.queue.holds


def test_a_refused_entry_is_tried_again_once_its_facts_change():
    line = Line(QUEUES[0])
    line.refuse(OFFENDER, LandingStopCode.PR_REFUSED, "a code owner must look")
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(minutes=1))
    entry = line.stage.queue.entries[OFFENDER]
    assert (entry.state, entry.reason) == (EntryState.NOT_READY, Reason.MERGE_REFUSED)
    line.words.clear()
    approved = (Blocker(BlockerCode.CHECK_MISSING, "lint"),)
    facts = line.stage.submit(OFFENDER).facts
    line.stage.tell(inputs.FactsChanged(_with(facts, approved)))
    line.stage.tell(inputs.FactsChanged(facts))
    line.goes_on(timedelta(minutes=1))
    assert line.landed == [OFFENDER]


def test_a_person_who_asks_again_ends_the_wait_of_a_refused_entry():
    line = Line(QUEUES[0])
    line.refuse(OFFENDER, LandingStopCode.OTHER)
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(minutes=1))
    assert line.stage.queue.entries[OFFENDER].state is EntryState.NOT_READY
    line.words.clear()
    line.stage.tell(inputs.Restart(OFFENDER, ALICE))
    line.goes_on(timedelta(minutes=1))
    assert line.landed == [OFFENDER]


def test_a_refusal_names_its_cause_although_readiness_does_not_know_it():
    line = Line(QUEUES[1])
    line.stage.tell(line.stage.submit(OFFENDER))
    for run in list(line.stage.queue.runs.values()):
        line.passes(run)
    [(run_id, action)] = line.stage.lands.items()
    missing = (Blocker(BlockerCode.CHECK_MISSING, "lint"),)
    stop = inputs.LandingStopped(
        run_id, action.steps[0].position, LandingStopCode.CHECKS_MISSING, "expected", missing
    )
    line.stage.tell(stop)
    entry = line.stage.queue.entries[OFFENDER]
    assert (entry.reason, entry.unmet) == (Reason.CHECK_MISSING, (Reason.CHECK_MISSING,))
    assert entry.refusal is not None
    assert entry.refusal.name == "lint"


def _with(facts, blockers):
    return replace(facts, blockers=blockers)


@pytest.mark.parametrize("config", QUEUES, ids=["call", "cas"])
def test_a_provider_that_is_away_for_half_a_day_ends_no_submission(config):
    line = Line(config)
    line.refuse(OFFENDER, LandingStopCode.UNAVAILABLE, "too slow")
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(hours=12))
    entry = line.stage.queue.entries[OFFENDER]
    assert entry.refusals == 0
    line.words.clear()
    line.goes_on(timedelta(hours=1, minutes=1))
    assert line.landed == [OFFENDER]
    line.goes_on(timedelta(minutes=15))
    assert not line.stage.queue.holds


def test_a_landing_for_which_the_provider_is_always_too_slow_lets_others_by():
    line = Line(QUEUES[0])
    line.refuse(OFFENDER, LandingStopCode.UNAVAILABLE, "too slow")
    for pr in (OFFENDER, BEHIND):
        line.stage.tell(line.stage.submit(pr))
    line.goes_on(timedelta(minutes=25))
    assert line.landed == []
    line.goes_on(timedelta(minutes=15))
    assert line.landed == [BEHIND]
    entry = line.stage.queue.entries[OFFENDER]
    assert (entry.reason, entry.refusals) == (Reason.MERGE_REFUSED, 0)


@pytest.mark.parametrize(("hours", "stays", "leaves"), [(0.75, 1, 1.5), (3, 3, 5)])
def test_a_landing_without_an_answer_ends_after_the_hours_for_what_is_not_ready(
    hours, stays, leaves
):
    line = Line(replace(QUEUES[0], not_ready_timeout_hours=hours))
    line.refuse(OFFENDER, LandingStopCode.UNAVAILABLE, "too slow")
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(hours=stays))
    assert OFFENDER in line.stage.queue.entries
    line.goes_on(timedelta(hours=leaves - stays))
    finals = [one for _, step in line.stage.steps for one in step.finished_entries]
    assert [(one.state, one.reason, one.detail.text) for one in finals] == [
        (EntryState.FAILED, Reason.MERGE_REFUSED, "too slow")
    ]


def test_a_landing_without_an_answer_waits_for_ever_where_nothing_limits_the_wait():
    line = Line(replace(QUEUES[0], not_ready_timeout_hours=0))
    line.refuse(OFFENDER, LandingStopCode.UNAVAILABLE, "too slow")
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(hours=30))
    assert OFFENDER in line.stage.queue.entries


@pytest.mark.parametrize(
    ("text", "shown"), [("too slow", "too slow"), ("", LandingStopCode.UNAVAILABLE.value)]
)
def test_a_landing_that_waits_shows_the_text_of_the_provider_or_else_the_code(text, shown):
    line = Line(QUEUES[0])
    line.refuse(OFFENDER, LandingStopCode.UNAVAILABLE, text)
    line.stage.tell(line.stage.submit(OFFENDER))
    line.goes_on(timedelta(minutes=2))
    assert [hold.text for hold in line.stage.queue.holds] == [shown]
    line.goes_on(timedelta(minutes=40))
    refusal = line.stage.queue.entries[OFFENDER].refusal
    assert refusal is not None
    assert refusal.name == shown

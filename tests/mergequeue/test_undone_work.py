"""Random courses in which pull requests take back one another, and what must never happen.

The examples are in `scenarios/undone`, the stories in tests/end_to_end/test_undone_work.py.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from service.landed_work import Declaration, LandedWork, WorkJudged
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import FactsChanged, Input, LandedWorkJudged, Submit
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state import undone
from service.mergequeue.engine.states import EntryState, RunPhase, RunStatus
from service.vocabulary import Blocker, BlockerCode, Sha
from tests.mergequeue import playing
from tests.mergequeue.stage import Stage, a_work

PULLS = (1, 2, 3, 4, 5)
SEEDS = range(150)
STEPS = 40


class Course:
    """One course: who takes back whom, what was declared, and what has landed in which order."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        batch = self.chance.random() < 0.5
        config = QueueConfig(
            concurrency=self.chance.randrange(1, 4), batch=batch, batching_min_size=2
        )
        self.stage = Stage(config, manual_build=True, manual_land=True)
        self.declared: set[int] = set()
        for pr in PULLS:
            other = self.chance.choice([0, 0, *PULLS])
            if other not in (0, pr):
                self.stage.undoing[pr] = other

    def play(self) -> None:
        """Play at random, then let everything end that can."""
        acts: list[Callable[[], None]] = [self.submit, self.build, self.report, self.land]
        for _ in range(STEPS):
            self.chance.choice([*acts, self.cancel])()
            self.check()
        for pr in PULLS:
            self.submit(pr)
        for _ in range(STEPS):
            for act in (self.build, self.report, self.land, self.judge, self.wait):
                act()
                self.check()
        left = [one for one in self.stage.queue.entries.values() if not self.waits(one)]
        assert not left, f"left in the queue: {left}"

    def waits(self, entry: Entry) -> bool:
        """Whether it waits for its author, because of what has landed."""
        other = self.stage.undoing.get(entry.pr)
        is_held = Reason.UNDOES_LANDED_WORK in entry.unmet
        return is_held and entry.pr not in self.declared and other in self.landed()

    def submit(self, pr: int = 0) -> None:
        pr = pr or self.chance.choice(PULLS)
        if pr in self.landed():
            return
        words = [str(pr)]
        if self.chance.random() < 0.2 and pr in self.stage.undoing:
            self.declared.add(pr)
            words.append(f"declares={self.stage.undoing[pr]}")
        elif pr not in self.stage.queue.entries:
            self.declared.discard(pr)
        playing.VERBS["submit"](self.stage, words)

    def wait(self) -> None:
        """Let a batch go that waited for company."""
        self.stage.passes(timedelta(minutes=6))

    def cancel(self) -> None:
        pr = self.chance.choice(PULLS)
        if pr in self.stage.queue.entries and self.chance.random() < 0.3:
            playing.VERBS["cancel"](self.stage, [str(pr)])

    def build(self) -> None:
        if self.stage.builds:
            self.stage.build(self.chance.choice(sorted(self.stage.builds)))

    def report(self) -> None:
        runs = [one for one in self.stage.queue.runs.values() if _is_tested(one)]
        if runs:
            run = self.chance.choice(runs)
            playing.VERBS["pass"](self.stage, [f"r{run.number}"])

    def land(self) -> None:
        if self.stage.lands:
            self.stage.land(self.chance.choice(sorted(self.stage.lands)))

    def judge(self) -> None:
        tip = self.stage.target.tip.sha
        for pr, entry in self.stage.queue.entries.items():
            work = self.stage.judged(pr, tip, self.stage.target.tree)
            if Reason.UNDOES_LANDED_WORK in entry.unmet and work is not None:
                self.stage.tell(LandedWorkJudged(pr, work))

    def landed(self) -> list[int]:
        """Pull requests in the order in which they landed."""
        ends = [one for _, step in self.stage.steps for one in step.finished_entries]
        return [one.pr for one in ends if one.state is EntryState.MERGED]

    def check(self) -> None:
        """Nothing has landed that takes back what had landed before, unless it says so."""
        landed = self.landed()
        for place, pr in enumerate(landed):
            other = self.stage.undoing.get(pr)
            is_undone = other in landed[:place] and pr not in self.declared
            assert not is_undone, f"{pr} took back {other}: {landed}"


def _is_tested(run: Run) -> bool:
    return run.phase is RunPhase.TESTING and run.status is RunStatus.IN_PROGRESS


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_taken_back_and_nothing_waits_for_ever(seed: int) -> None:
    Course(seed).play()


def _never(*_: object) -> bool:
    return False


def _nobody(*_: object) -> tuple[int, ...]:
    return ()


FAULTS: dict[str, object] = {"waits": _never, "ahead_of": _nobody}
"""Faults that a course must show, by the function that has them."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undone, name, FAULTS[name])
    found = 0
    for seed in SEEDS:
        try:
            Course(seed).play()
        except AssertionError:
            found += 1
    assert found


def test_work_that_landed_long_ago_ends_without_a_landing_to_name() -> None:
    stage = Stage(QueueConfig())
    work = WorkJudged(stage.head(1), stage.target.tip.sha, has_landed=True)
    stage.tell(stage.submit(1, work=work))
    (ended,) = stage.steps[-1][1].finished_entries
    assert (ended.reason, ended.detail.prs) == (Reason.SUPERSEDED, ())


def test_a_judgement_of_another_tip_or_head_says_nothing() -> None:
    stage = Stage(QueueConfig())
    tip = stage.target.tip.sha
    for head, on in ((stage.head(2), tip), (stage.head(1), Sha("0" * 40))):
        work = WorkJudged(head, on, (a_work(7),), has_landed=True)
        stage.tell(stage.submit(1, work=work))
        stage.tell(LandedWorkJudged(1, work))
    stage.tell(LandedWorkJudged(9, work))
    assert stage.queue.entries[1].work is None


def test_a_command_may_name_a_landing_by_the_beginning_of_its_commit() -> None:
    stage = Stage(QueueConfig())
    works = (a_work(7),)
    work = WorkJudged(stage.head(1), stage.target.tip.sha, works)
    stage.tell(stage.submit(1, work=work))
    assert Reason.UNDOES_LANDED_WORK in stage.queue.entries[1].unmet
    stage.tell(stage.submit(1, undoes=(works[0].commit[:10],)))
    assert stage.queue.entries[1].unmet == ()


def _held(*works: LandedWork) -> Stage:
    stage = Stage(QueueConfig())
    work = WorkJudged(stage.head(1), stage.target.tip.sha, works)
    stage.tell(stage.submit(1, work=work))
    assert Reason.UNDOES_LANDED_WORK in stage.queue.entries[1].unmet
    return stage


def test_a_judgement_that_failed_frees_nobody() -> None:
    stage = _held(a_work(7))
    failed = WorkJudged(stage.head(1), stage.target.tip.sha, trouble="it took longer than 5 s")
    stage.tell(stage.submit(1, work=failed))
    stage.tell(LandedWorkJudged(1, failed))
    assert Reason.UNDOES_LANDED_WORK in stage.queue.entries[1].unmet


@pytest.mark.parametrize("number", [1, 7], ids=["itself", "another one"])
def test_a_landing_whose_message_names_a_queued_pull_request_counts(number: int) -> None:
    stage = Stage(QueueConfig(concurrency=2))
    playing.VERBS["submit"](stage, ["7"])
    work = WorkJudged(stage.head(1), stage.target.tip.sha, (a_work(number),))
    stage.tell(stage.submit(1, work=work))
    assert Reason.UNDOES_LANDED_WORK in stage.queue.entries[1].unmet


LESS: dict[str, Callable[[Stage], Input]] = {
    "a command": lambda stage: stage.submit(1, work=None, undoes=("#8",)),
    "its text": lambda stage: FactsChanged(
        replace(stage.facts[1], declared=Declaration(frozenset({8})))
    ),
    "another tip": lambda stage: LandedWorkJudged(
        1, WorkJudged(stage.head(1), stage.target.tip.sha, (a_work(7),))
    ),
}
"""What leaves one landing of two that it would take back."""


@pytest.mark.parametrize("change", LESS.values(), ids=LESS)
def test_its_author_is_told_of_other_landings(change: Callable[[Stage], Input]) -> None:
    stage = _held(a_work(8), a_work(7))
    told = len(stage.told)
    stage.tell(change(stage))
    assert [type(one) for one in stage.told[told:]] == [Tell]
    assert undone.names_of(stage.queue.entries[1]) == "#7"


@pytest.mark.parametrize("setting", ["OFF", "WARN"])
def test_those_ahead_keep_nobody_out_once_the_setting_changes(setting: str) -> None:
    stage = Stage(QueueConfig(concurrency=2))
    stage.undoing[2] = 1
    for pr in "12":
        playing.VERBS["submit"](stage, [pr])
    assert stage.queue.entries[2].reason is Reason.UNDOES_AHEAD
    playing.VERBS["configure"](stage, [f"undone_work={setting}"])
    assert stage.queue.entries[2].state is EntryState.TESTING


def _landed_already(stage: Stage, pr: int, **facts: object) -> Submit:
    work = WorkJudged(stage.head(pr), stage.target.tip.sha, has_landed=True)
    plain = stage.submit(pr, work=work)
    return replace(plain, facts=replace(plain.facts, **facts))  # type: ignore[arg-type]


def test_by_the_label_it_lands_although_its_work_has_landed() -> None:
    """A release branch that is merged back brings its history."""
    stage = Stage(QueueConfig())
    stage.tell(_landed_already(stage, 1, declared=Declaration(covers_all=True)))
    assert stage.queue.entries[1].state is EntryState.TESTING


@pytest.mark.parametrize("code", [BlockerCode.STACKED, BlockerCode.DEPENDS_ON])
def test_one_for_whose_merge_others_wait_lands_although_its_work_has_landed(
    code: BlockerCode,
) -> None:
    stage = Stage(QueueConfig())
    upper = stage.submit(2)
    upper = replace(upper, facts=replace(upper.facts, blockers=(Blocker(code, "1"),)))
    stage.tell(replace(upper, below=(_landed_already(stage, 1),)))
    assert set(stage.queue.entries) == {1, 2}
    playing.VERBS["cancel"](stage, ["2"])
    stage.tell(_landed_already(stage, 1))
    assert not stage.queue.entries

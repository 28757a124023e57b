"""Faults planted into the blame: each lets a true cause off, or blames beyond what is known.

Made up failed runs have known causes: each broken change breaks a test of its own, one pair breaks
a test together, and some tests are flaky.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from service.mergequeue.engine import blame
from service.mergequeue.engine.policy.belief import Belief
from service.mergequeue.engine.records import FailedTest, Record, Suspect
from service.mergequeue.engine.reported import Rates
from tests.planted.planting import Fault, Patch, replaced

HISTORIES, RUNS = 400, 8
CHECKS = ("unit", "lint")
PAIR = FailedTest("unit", "pair")
FLAKES = (FailedTest("unit", "flaky 1"), FailedTest("unit", "flaky 2"))


@dataclass
class History:
    """Failed runs and what is true: what each broken entry breaks, and the pair that fails."""

    is_whole: bool
    breaks: Mapping[str, FailedTest]
    pair: frozenset[str]
    records: list[Record] = field(default_factory=list)

    def fails(self, chance: random.Random, members: list[str]) -> set[FailedTest]:
        """The tests that fail in a run of these; a check that tests a part may run no such test."""
        found = {self.breaks[one] for one in members if one in self.breaks}
        if self.pair <= set(members):
            found.add(PAIR)
        if not self.is_whole:
            found = {one for one in found if chance.random() < 0.5}
        if chance.random() < 0.2:
            found.add(chance.choice(FLAKES))
        return found


def _made_up(chance: random.Random) -> History:
    letters = list("abcdef")
    chance.shuffle(letters)
    pair, others = letters[:2], letters[2:]
    breaks = {
        one: FailedTest(chance.choice(CHECKS), f"breaks {one}")
        for one in others
        if chance.random() < 0.5
    }
    history = History(chance.random() < 0.7, breaks, frozenset(pair))
    for number in range(RUNS):
        members = chance.sample(letters, chance.randint(1, 4))
        failed = history.fails(chance, members)
        if failed:
            history.records.append(_record(chance, number, members, failed, history))
    return history


def _record(
    chance: random.Random,
    number: int,
    members: list[str],
    failed: set[FailedTest],
    history: History,
) -> Record:
    tests: dict[str, tuple[str, ...]] = {}
    for check in CHECKS:
        names = tuple(sorted(one.test for one in failed if one.check == check))
        is_known = not names or chance.random() < 0.7
        tests[check] = names if is_known else ("",)
    unexplained = tuple(FailedTest(check, test) for check in CHECKS for test in tests[check])
    suspects = tuple(Suspect(one, ord(one), 0.06, is_tested=True) for one in members)
    return Record(f"run {number}", suspects, CHECKS, tests, unexplained, history.is_whole)


def _judge(history: History) -> None:
    """What must hold of every history."""
    records = tuple(history.records)
    causes = blame.causes(records)
    believed = Belief(records, Rates())
    for record in records:
        members = {one.entry for one in record.suspects}
        assert any(record.run in believed.records_of(one) for one in members)
        for failed, cause in causes[record.run].items():
            true = {one for one in members if history.breaks.get(one) == failed}
            assert true <= cause.suspects
            if failed == PAIR:
                assert history.pair <= cause.partners
            if not failed.test and history.is_whole:
                assert _breaking(history, failed.check) & members <= cause.suspects
        if record.unexplained == (PAIR,):
            # A run that fails by a pair is no failure alone of anybody in it.
            alone = {one for one in history.pair if record in believed.failures_alone(one)}
            assert not alone
    for culprit in history.breaks:
        _judge_explained(history, culprit)


def _breaking(history: History, check: str) -> set[str]:
    return {one for one, failed in history.breaks.items() if failed.check == check}


def _judge_explained(history: History, culprit: str) -> None:
    """A culprit leaves the tests of others that passed in a run with it."""
    records = tuple(history.records)
    left = {record.run: record.unexplained for record in blame.explained(records, [culprit])}
    for record in records:
        for other, failed in history.breaks.items():
            is_named = failed in record.unexplained and other != culprit
            if is_named and _passed_with(records, culprit, failed):
                assert failed in left.get(record.run, ())


def _passed_with(records: tuple[Record, ...], entry: str, failed: FailedTest) -> bool:
    return any(
        record.is_whole
        and any(one.entry == entry for one in record.suspects)
        and failed.test not in record.tests[failed.check]
        and record.tests[failed.check] != ("",)
        for record in records
    )


def _without_partners(self: blame._Seen, record: Record, failed: FailedTest) -> blame.Cause:
    suspects = _cause_of(self, record, failed).suspects
    return blame.Cause(suspects, suspects)


def _nobody(self: blame._Seen, record: Record, failed: FailedTest) -> blame.Cause:
    together = self.failing[failed.check][failed.test]
    having = [one for one in record.suspects if not together & ~self.having[one.entry]]
    return _cause_of(self, record, failed) if having else blame.Cause(frozenset(), frozenset())


_cause_of = blame._Seen.cause_of


def _unknown_passes(
    self: blame._Seen, record: Record, check: str, tests: tuple[str, ...], run: int
) -> None:
    _note(self, record, check, () if "" in tests else tests, run)


def _part_is_whole(
    self: blame._Seen, record: Record, check: str, tests: tuple[str, ...], run: int
) -> None:
    _note(self, replace(record, is_whole=True), check, tests, run)


_note = blame._Seen._note


def _one_cause_by_name(self: blame._Seen, record: Record, failed: FailedTest) -> blame.Cause:
    """A check that is known by its name alone is taken for a test."""
    known = _cause_of(self, record, failed)
    if failed.test:
        return known
    together = self.failing[failed.check][failed.test]
    both = frozenset(one for one in known.suspects if not together & ~self.having[one])
    return blame.Cause(both, both) if both else known


def _explains_all(
    record: Record, known: Mapping[FailedTest, blame.Cause], bad: set[str]
) -> Record | None:
    return None if any(one.entry in bad for one in record.suspects) else record


def _in_cause(name: str, new: object) -> Fault:
    return Fault(lambda patch: _plant(patch, name, new))


def _plant(patch: Patch, name: str, new: object) -> None:
    patch.setattr(blame._Seen, name, new)


FAULTS: Mapping[str, Fault] = {
    "one that is cleared by one test is no partner either": _in_cause(
        "cause_of", _without_partners
    ),
    "a test that failed in two runs with nobody in common clears all": _in_cause(
        "cause_of", _nobody
    ),
    "a check of which nothing is known counts as passed": _in_cause("_note", _unknown_passes),
    "a check that tests a part clears of the tests that it left out": _in_cause(
        "_note", _part_is_whole
    ),
    "a check known by its name alone has one cause": _in_cause("cause_of", _one_cause_by_name),
    "a culprit explains tests that it cannot have broken": replaced(
        blame, "_left_of", _explains_all
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_blame_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name].plant(monkeypatch)
    with pytest.raises(AssertionError):
        _judge_all()


def test_the_blame_as_it_is_lets_no_true_cause_off() -> None:
    _judge_all()


def _judge_all() -> None:
    for seed in range(HISTORIES):
        _judge(_made_up(random.Random(seed)))

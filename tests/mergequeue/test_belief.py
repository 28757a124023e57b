"""What is believed of a pull request after failed runs (engine/policy/belief.py)."""

import itertools

import pytest

from service.mergequeue.engine import blame
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.policy.belief import Belief
from service.mergequeue.engine.records import (
    RECORDS_MAX,
    Record,
    Suspect,
    cleared,
    live,
    merged,
    with_failure,
    without,
)
from service.mergequeue.engine.reported import Rates

PRIOR = 0.06


def a_record(run: str, tested: str, base: str = "", chance: float = PRIOR) -> Record:
    """A failed run of the entries with these letters, on those of a base."""
    beneath = tuple(Suspect(one, ord(one), chance, is_tested=False) for one in base)
    own = tuple(Suspect(one, ord(one), chance, is_tested=True) for one in tested)
    return Record(run, (*beneath, *own), ("unit",))


def by_enumeration(record: Record, rates: Rates) -> dict[str, float]:
    """The posterior of each suspect, from all ways in which they may be good or bad."""
    names = [one.entry for one in record.suspects]
    whole, of = 0.0, dict.fromkeys(names, 0.0)
    for bad in itertools.product((False, True), repeat=len(names)):
        chance = 1.0 if any(bad) else rates.flake
        for one, is_bad in zip(record.suspects, bad, strict=True):
            chance *= one.chance if is_bad else 1.0 - one.chance
        whole += chance
        for name, is_bad in zip(names, bad, strict=True):
            of[name] += chance if is_bad else 0.0
    return {name: chance / whole for name, chance in of.items()}


@pytest.mark.parametrize("flake", [0.01, 0.02, 0.1])
def test_one_failure_gives_the_posterior_of_bayes(flake: float) -> None:
    rates = Rates(flake=flake)
    suspects = tuple(
        Suspect(name, 1, chance, is_tested=True)
        for name, chance in (("a", 0.03), ("b", 0.3), ("c", 0.06))
    )
    record = Record("r1", suspects, ())
    believed = Belief((record,), rates)
    for one in suspects:
        exact = by_enumeration(record, rates)[one.entry]
        assert believed.failing(one.entry, one.chance) == pytest.approx(exact)


@pytest.mark.parametrize(
    ("flake", "p_fail", "failures"), [(0.02, 0.03, 2), (0.05, 0.03, 3), (0.02, 0.6, 1)]
)
def test_failures_alone_that_convict(flake: float, p_fail: float, failures: int) -> None:
    rates = Rates(flake=flake)
    records: tuple[Record, ...] = ()
    for count in range(1, failures + 1):
        records = with_failure(records, a_record(f"r{count}", "a"))
        convicts = Belief(records, rates).is_convicted("a", p_fail, has_passed=False)
        assert convicts == (count == failures)


@pytest.mark.parametrize(("p_fail", "is_convicted"), [(0.003, False), (0.1, True)])
def test_a_failure_with_others_may_be_a_conflict(p_fail: float, is_convicted: bool) -> None:
    # Those ahead have passed: alone the first failure says that it is broken or in conflict.
    records = cleared((a_record("r1", "c", base="ab"),), ["a", "b"])
    believed = Belief((*records, a_record("r2", "c")), Rates())
    assert believed.failing("c", PRIOR) >= constants.CONVICTED_MIN
    assert believed.is_convicted("c", p_fail, has_passed=False) == is_convicted


def test_a_failure_on_what_has_merged_since_counts_in_full() -> None:
    records = (a_record("r1", "c", base="ab"), a_record("r2", "c"))
    one_left = cleared(merged(records, ["a"]), ["b"])
    assert not Belief(one_left, Rates()).is_convicted("c", 0.003, has_passed=False)
    believed = Belief(merged(one_left, ["b"]), Rates())
    assert believed.is_convicted("c", 0.003, has_passed=False)


def test_no_failure_with_others_convicts() -> None:
    records = (a_record("r1", "ab"), a_record("r2", "ab"))
    assert not Belief(records, Rates()).is_convicted("a", 0.97, has_passed=False)


def test_a_run_that_failed_counts_once() -> None:
    records = with_failure((), a_record("r1", "a"))
    assert with_failure(records, a_record("r1", "a")) == records


def test_a_landing_sharpens_what_is_believed_of_the_others() -> None:
    records = (a_record("r1", "c", base="ab"),)
    before = Belief(records, Rates()).failing("c", PRIOR)
    after = Belief(cleared(records, ["a", "b"]), Rates()).failing("c", PRIOR)
    assert before < 0.4
    assert after > 0.7


def test_one_that_is_cleared_is_believed_as_before() -> None:
    records = cleared((a_record("r1", "ab"), a_record("r2", "a")), ["a"])
    assert Belief(records, Rates()).failing("a", PRIOR) == PRIOR
    assert not Belief(records, Rates()).is_suspect("a")


def test_a_culprit_explains_its_failures_and_no_others() -> None:
    records = (a_record("r1", "ab"), a_record("r2", "bc"), a_record("r3", "c"))
    assert blame.explained(records, ["a"]) == records[1:]


def test_only_what_a_run_tested_is_suspected() -> None:
    believed = Belief((a_record("r1", "c", base="ab"),), Rates())
    assert [believed.is_suspect(one) for one in "abc"] == [False, False, True]
    assert believed.failing("a", PRIOR) > PRIOR


def test_a_batch_that_failed_is_remembered_after_its_members_are_cleared() -> None:
    records = cleared((a_record("r1", "ab"),), ["a", "b"])
    records = live(records, lambda one: True)
    assert Belief(records, Rates()).failed_together("a") == [frozenset("ab")]
    assert live(records, lambda one: one.entry == "a") == ()


def test_a_flake_rate_of_zero_and_of_one_are_not_believed() -> None:
    records = (a_record("r1", "a"),)
    assert not Belief(records, Rates(flake=0.0)).is_convicted("a", 0.03, has_passed=False)
    many = tuple(a_record(f"r{count}", "a") for count in range(5))
    assert Belief(many, Rates(flake=1.0)).is_convicted("a", 0.03, has_passed=False)


def test_one_that_cannot_fail_is_rejected_in_the_end() -> None:
    rates = Rates(conflict=0.0)
    many = tuple(a_record(f"r{count}", "a") for count in range(3))
    assert Belief(many, rates).is_convicted("a", 0.0, has_passed=True)


def test_records_are_bounded() -> None:
    records: tuple[Record, ...] = ()
    for count in range(RECORDS_MAX + 5):
        records = with_failure(records, a_record(f"r{count}", "a"))
    assert len(records) == RECORDS_MAX
    assert records[-1].run == f"r{RECORDS_MAX + 4}"


def test_a_run_that_passes_after_all_is_forgotten() -> None:
    records = (a_record("r1", "a"), a_record("r2", "a"))
    assert without(records, {"r1"}) == records[1:]

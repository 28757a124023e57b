"""A machine that fails tests which pass elsewhere is a finding of its own."""

from datetime import timedelta

import pytest

from service.testhealth.detector import machines
from service.testhealth.detector.machines import Ran
from tests.bench.worlds.bad_machines import days_called_bad
from tests.flaky.histories import at, in_an_old_repository

BAD = "runner 1"
SMALL = {"tests": 300, "pushes": 14, "main": 5}


def test_a_machine_is_called_bad_within_days_and_until_it_is_mended():
    found = days_called_bad("BadMachineNamed", 1, days=40, **SMALL)
    assert found.keys() == {BAD}
    first, *_, last = found[BAD]
    assert 9 <= first <= 12
    assert 29 <= last <= 36
    assert found[BAD] == list(range(first, last + 1))


def test_a_machine_that_is_too_slow_for_some_tests_is_called_bad_all_the_time():
    found = days_called_bad("SlowMachine", 1, days=20, **SMALL)
    assert found.keys() == {BAD}
    assert found[BAD] == list(range(found[BAD][0], 21))
    assert found[BAD][0] <= 6


@pytest.mark.parametrize("name", ["Base", "InfraOutages"])
def test_machines_that_are_alike_are_not_called_bad(name):
    assert days_called_bad(name, 1, days=24, **SMALL) == {}


def found_in(story):
    """The machines that are bad at the end of a story about `T` and some others."""
    ledger = story.ledger()
    events = {no: ledger.events_of(no) for no in ledger.suspects}
    ran = [(each.at, Ran(each.machine, each.job, each.code)) for each in ledger.uploads]
    return machines.found(events, ran, ledger.clock)


def fleet(bad_tests, *, times=12, shares=8):
    """Machines in turn run many pushes; the first of them fails these tests each time."""
    story = in_an_old_repository()
    for number in range(times * shares):
        machine, when = f"runner {number % shares}", at(1, 90 * number)
        first = story.ran(when, failing=bad_tests if number % shares == 0 else (), machine=machine)
        story.again(first, minutes=30)
    return story


def test_a_finding_names_the_tests_since_when_and_how_much_others_fail():
    (bad,) = found_in(fleet({3, 4, 5}))
    assert (bad.machine, bad.count, bad.tests) == ("runner 0", 3, (3, 4, 5))
    assert (bad.failing, bad.runs, bad.others_failing) == (12, 12, 0)
    assert bad.since - at(1) <= timedelta(hours=2)


@pytest.mark.parametrize(
    ("tests", "times", "shares"),
    [({3, 4}, 12, 8), ({3, 4, 5}, 3, 8), ({3, 4, 5}, 12, 2)],
    ids=["two tests", "a few runs", "two machines"],
)
def test_little_is_no_finding(tests, times, shares):
    assert found_in(fleet(tests, times=times, shares=shares)) == ()


def test_runs_from_before_that_are_contradicted_now_do_not_count():
    story = in_an_old_repository()
    before = [
        story.ran(at(0.5, 30 * number), failing=failing, machine=machine)
        for number in range(8)
        for machine, failing in (("runner 1", {3, 4, 5}), ("runner 2", {6}), ("runner 3", ()))
    ]
    for each in before:
        story.ran(at(13.9), code=each.code, kind=each.kind, pr=each.pr)
    for machine in (*["runner 1"] * 10, "runner 2"):
        story.ran(at(14.8), machine=machine)
    assert found_in(story) == ()

"""A machine that fails tests which pass elsewhere does not make them flaky."""

import pytest

from service.vocabulary import Health as Status
from tests.flaky.histories import T, at, in_an_old_repository


def judged(machines):
    """T fails and passes again three times a day for five days, on these machines in turn."""
    story = in_an_old_repository()
    for number in range(8):
        story.ran(at(0, number), machine=f"runner {number}")
    for number in range(15):
        when = at(1 + number // 3, 60 * (number % 3))
        story.flipped(when, machine=machines[number % len(machines)])
    story.passes(at(0), 200, at(6) - at(0), machine="runner 9")
    return story.ledger().judge(T)


def test_one_machine_alone_makes_no_test_flaky():
    found = judged(["runner 7"])
    assert found.value is Status.HEALTHY
    assert "15 of these 15 on machine runner 7" in found.reason


@pytest.mark.parametrize("machines", [["runner 1", "runner 2", "runner 3"], [""]])
def test_several_machines_or_unknown_ones_do(machines):
    assert judged(machines).value is Status.FLAKY


def test_the_only_machine_of_a_job_is_not_to_blame():
    story = in_an_old_repository()
    for number in range(6):
        story.flipped(at(1, 60 * number), machine="runner 7")
    assert story.ledger().judge(T).value is Status.FLAKY

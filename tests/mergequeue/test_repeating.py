"""The share of a test that its failed checks take when they run again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.mergequeue.engine.planning import repeating
from service.vocabulary import Check, CheckKind, CheckOutcome
from tests.mergequeue.stage import START

Minutes = tuple[int, int]


def ran(name: str, minutes: Minutes | None) -> Check:
    """A check that ran between these minutes; None: its times are unknown."""
    check = Check(CheckKind.SUITE_RUN, name, "1", "9", name, CheckOutcome.FAILED, "failure", "")
    if minutes is None:
        return check
    begun, ended = (START + timedelta(minutes=at) for at in minutes)
    return replace(check, started_at=begun, completed_at=ended)


@pytest.mark.parametrize(
    ("failed", "share"),
    [
        ({"leg": (0, 30)}, 0.3),
        ({"leg": (0, 30), "gate": (90, 100)}, 0.4),
        ({"leg": (0, 30), "other leg": (0, 50), "gate": (90, 100)}, 0.6),
        ({"leg": (10, 40), "slow start": (20, 60)}, 0.5),
        ({"leg": (0, 100)}, 1.0),
        ({"leg": (0, 30), "skipped": None}, 0.3),
        ({"skipped": (50, 50)}, 1.0),
        ({"leg": None}, 1.0),
    ],
)
def test_checks_beside_each_other_count_once_and_what_waited_in_addition(
    failed: dict[str, Minutes | None], share: float
) -> None:
    repeated = [ran(name, minutes) for name, minutes in failed.items()]
    every = [*repeated, ran("build", (0, 90)), ran("publish", (5, 100))]
    assert repeating.share_of(every, repeated) == pytest.approx(share)


def test_without_any_times_a_second_look_counts_as_a_whole_test() -> None:
    leg = ran("leg", None)
    assert repeating.share_of([leg], [leg]) == 1.0

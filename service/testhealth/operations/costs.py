"""The CI time that failed tests lose (docs/design/detector.md 14)."""

from collections.abc import Sequence, Set
from dataclasses import replace

from service.testhealth.reports.results import Outcome
from service.testhealth.store.attempts import StoredAttempt


def with_costs(
    attempts: Sequence[StoredAttempt], blamed: Set[int], test_time_ms: int
) -> list[StoredAttempt]:
    """Return the attempts of one upload with what each cost.

    `blamed` are the tests for which the upload failed, by number. They share the time of all its
    tests equally; the first failed attempt of each has the share. A failed attempt of another
    test, which passed on a retry or was excused, costs its own time.
    """
    share = test_time_ms // len(blamed) if blamed else 0
    charged: set[int] = set()
    priced: list[StoredAttempt] = []
    for each in attempts:
        cost = 0
        if each.outcome is Outcome.FAILED and each.no not in blamed:
            cost = each.duration_ms or 0
        elif each.outcome is Outcome.FAILED and each.no not in charged:
            charged.add(each.no)
            cost = share
        priced.append(replace(each, cost_ms=cost) if cost else each)
    return priced

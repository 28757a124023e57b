"""Jobs of a world repeat what those of the service do (docs/design/active-evidence.md 2)."""

from dataclasses import replace

import pytest

from service.testhealth.repeats import FAILED_MAX, FLAKY_RESTS, RepeatedBecause
from tests.bench.worlds import ci
from tests.bench.worlds.catalogue import TINY
from tests.bench.worlds.repeating import Repeating


@pytest.mark.parametrize(("failed", "repeated"), [(FAILED_MAX, FAILED_MAX), (FAILED_MAX + 1, 0)])
def test_tests_that_failed_are_repeated_unless_the_code_broke_them(
    failed: int, repeated: int
) -> None:
    world = ci.ci_of(TINY, 1, "TinyTeam")
    first = next(iter(world.uploads()))
    upload = replace(first, passed=0, attempts=dict.fromkeys(range(failed), "F"))
    found = list(Repeating(world, 1)._candidates(upload))
    assert [each.because for each in found] == [RepeatedBecause.FAILED] * repeated


def test_a_flaky_test_rests_after_it_failed_when_it_was_repeated() -> None:
    world = ci.ci_of(TINY, 1, "TinyTeam")
    upload = next(iter(world.uploads()))
    played = Repeating(world, 1)
    played.flaky = frozenset({0, 1})
    played.failed_at = {0: upload.at - FLAKY_RESTS / 2, 1: upload.at - FLAKY_RESTS}
    assert [each.no for each in played._candidates(replace(upload, attempts={}))] == [1]

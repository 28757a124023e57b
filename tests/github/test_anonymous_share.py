"""The share of the rate limit that callers without a token have."""

from collections.abc import Callable
from functools import partial

import pytest

from bot.github.pacing import AnonymousShare
from service.provider.errors import Throttled
from tests.harness.clock import FastClock


class Held(FastClock):
    """Time that moves by hand."""

    at_s = 0.0

    def monotonic_s(self) -> float:
        return self.at_s


@pytest.fixture
async def clock() -> Held:
    return Held(1.0)


def taken(take: Callable[[], None]) -> int:
    """How many calls are allowed until one is refused, at most 1,000."""
    for count in range(1_000):
        try:
            take()
        except Throttled:
            return count
    return 1_000


def test_one_repository_has_two_percent_and_an_installation_five(clock):
    strangers = AnonymousShare(clock)
    takes = [partial(strangers.take, "7", repo, 5_000) for repo in ("o/a", "o/b", "o/c")]
    counts = [taken(take) for take in takes]
    assert counts == [100, 100, 50]
    assert taken(lambda: strangers.take("8", "o/a", 5_000)) == 100


def test_a_share_is_of_what_is_left_and_nothing_of_nothing(clock):
    strangers = AnonymousShare(clock)
    assert taken(lambda: strangers.take("7", "o/a", 500)) == 10
    assert taken(lambda: strangers.take("8", "o/a", 0)) == 0


def test_a_refusal_says_when_the_oldest_call_is_an_hour_old(clock):
    strangers = AnonymousShare(clock)
    for second in range(100):
        clock.at_s = float(second)
        strangers.take("7", "O/A", None)
    with pytest.raises(Throttled) as refused:
        strangers.take("7", "o/a", None)
    wait_s = (refused.value.retry_at - clock.now()).total_seconds()
    assert wait_s == pytest.approx(3_600 - 99, abs=2)
    clock.at_s = 3_600.5
    strangers.take("7", "o/a", None)

"""What the installation's keys sign is within the time for which they are told to sign."""

from datetime import timedelta

import pytest

from service.accounts import signing_keys
from service.runtime import Runtime


@pytest.mark.fault(
    "the clock was ahead when the signing key was made, and is set right",
    holds="what the key signs from then on counts as signed by it",
    within="at once",
)
async def test_a_key_made_while_the_clock_was_ahead_signs_after_it_is_set_right(runtime: Runtime):
    right = runtime.clock.now()
    ahead = right + timedelta(hours=1)
    await runtime.store.run(signing_keys.sign, runtime, b"early", ahead)
    await runtime.store.run(signing_keys.sign, runtime, b"late", right)
    (key,) = await signing_keys.all_keys(runtime)
    assert (key.since, key.until) == (right, None)


async def test_a_key_keeps_its_beginning_while_time_goes_on(runtime: Runtime):
    begun = runtime.clock.now()
    for minutes in (0, 5, 10):
        at = begun + timedelta(minutes=minutes)
        await runtime.store.run(signing_keys.sign, runtime, b"said", at)
    (key,) = await signing_keys.all_keys(runtime)
    assert key.since == begun

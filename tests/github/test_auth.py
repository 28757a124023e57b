"""Keys and clocks of the App, before the sandbox (docs/design/provider.md 4)."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.github.limits import READ_TRIES
from bot.github.options import GitHubOptions, addresses_of, parse_private_key
from bot.github.provider import GitHubProvider
from service.provider.errors import Gone, NotPermitted, Unavailable
from service.vocabulary import RepoRef
from tests.github.table import a_key
from tests.provider.stage import HOST, on_sandbox


@pytest.fixture
async def stage():
    # HTTP's own header `Date` is this machine's.
    async with on_sandbox(datetime.now(UTC)) as made:
        yield made


@pytest.fixture
async def provider_with(stage):
    """A provider for the same App with other options, or another clock."""
    made = []

    def make(clock=None, **changed):
        options = GitHubOptions(
            host=HOST,
            addresses=addresses_of(HOST, stage.sandbox.url),
            app_id=str(stage.sandbox.app_id),
            private_keys=(parse_private_key(str(stage.sandbox.key_path)),),
            webhook_secrets=(stage.sandbox.webhook_secret,),
            write_spacing_ms=0,
        )
        made.append(GitHubProvider(replace(options, **changed), clock or stage.clock))
        return made[-1]

    yield make
    for each in made:
        await each.close()


class SkewedClock:
    """Somebody else's time, some seconds off."""

    def __init__(self, clock, seconds):
        self._clock = clock
        self._off = timedelta(seconds=seconds)

    def now(self):
        return self._clock.now() + self._off

    def monotonic_s(self):
        return self._clock.monotonic_s()

    async def sleep(self, seconds):
        await self._clock.sleep(seconds)


async def test_the_previous_key_is_tried_when_the_first_is_refused(stage, provider_with):
    ours = parse_private_key(str(stage.sandbox.key_path))
    provider = provider_with(private_keys=(a_key(), ours))
    assert len(await provider.repositories()) == 1
    await stage.clock.sleep(3600)
    assert len(await provider.repositories()) == 1


async def test_a_foreign_key_is_named_as_the_cause(stage, provider_with):
    provider = provider_with(private_keys=(a_key(), a_key()))
    with pytest.raises(NotPermitted, match="refuses the App's key"):
        await provider.repositories()


async def test_a_wrong_clock_is_named_as_the_cause(stage, provider_with):
    provider = provider_with(SkewedClock(stage.clock, 1200))
    with pytest.raises(NotPermitted, match=r"clock is off by 1[12]\d\d s"):
        await provider.repositories()


@pytest.mark.parametrize("seconds", [-50, 50])
async def test_a_clock_that_is_a_little_off_does_not_matter(stage, provider_with, seconds):
    provider = provider_with(SkewedClock(stage.clock, seconds))
    assert len(await provider.repositories()) == 1


async def test_a_token_is_minted_once_for_many_calls_at_once(stage, provider_with):
    provider = provider_with()
    for _ in range(10):
        await provider.tip(stage.repo, "main")
    assert stage.called("POST", "/access_tokens") <= 3


async def test_calls_that_wait_for_a_token_share_the_failure_of_one_attempt(stage, provider_with):
    provider = provider_with()
    await stage.fault("fail_before", method="POST", path="*/access_tokens", nth=None, status=503)
    waits = [provider.tip(stage.repo, "main") for _ in range(8)]
    found = await asyncio.gather(*waits, return_exceptions=True)
    assert {type(each) for each in found} == {Unavailable}
    assert stage.called("POST", "/access_tokens") == READ_TRIES
    stage.clear_faults()
    assert await provider.tip(stage.repo, "main") is not None


async def test_a_call_after_a_failed_attempt_makes_its_own(stage, provider_with):
    provider = provider_with()
    await stage.fault("fail_before", method="POST", path="*/access_tokens", nth=None, status=503)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await provider.tip(stage.repo, "main")
        await stage.clock.sleep(3600)
    assert stage.called("POST", "/access_tokens") == 2 * READ_TRIES


async def test_a_token_is_narrowed_to_its_repository(stage, provider_with):
    provider = provider_with()
    await provider.tip(stage.repo, "main")
    minted = [
        call["body"]
        for call in stage.sandbox.world.calls
        if call["path"].endswith("/access_tokens")
    ]
    number = int((await provider.repository(stage.repo)).id.id)
    assert "repository_ids" in str(minted[-1])
    assert str(number) in str(minted[-1])


async def test_a_token_is_renewed_before_it_ends(stage, provider_with):
    provider = provider_with()
    await provider.tip(stage.repo, "main")
    minted = stage.called("POST", "/access_tokens")
    await stage.clock.sleep(54 * 60)
    await provider.tip(stage.repo, "main")
    assert stage.called("POST", "/access_tokens") == minted
    await stage.clock.sleep(2 * 60)
    await provider.tip(stage.repo, "main")
    assert stage.called("POST", "/access_tokens") == minted + 1


async def test_where_the_app_is_not_installed_everything_is_gone(stage, provider_with):
    provider = provider_with()
    with pytest.raises(Gone):
        await provider.tip(RepoRef(HOST, "nobody", "widgets"), "main")

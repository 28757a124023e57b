"""Keys and clocks of the App, before the sandbox (docs/design/provider.md 4)."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from bot.github.auth import LOOKUP_KEPT_S
from bot.github.limits import READ_TRIES
from bot.github.options import GitHubOptions, addresses_of, parse_private_key
from bot.github.provider import GitHubProvider
from bot.sandbox import auth as sandbox_auth
from service.provider.errors import Gone, NotPermitted, Throttled, Unavailable
from service.vocabulary import RepoRef
from tests.github.table import a_key, on_table
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


def minted(stage):
    return stage.called("POST", "/access_tokens")


def kill_tokens(stage):
    """End every token that was given out, long before its told end."""
    for secret in list(stage.sandbox.credentials._tokens):
        stage.sandbox.credentials.revoke(secret)


class SkewedClock:
    """Somebody else's time, some seconds off."""

    def __init__(self, clock, seconds):
        self._clock = clock
        self._off = timedelta(seconds=seconds)

    def set_off(self, seconds):
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


@pytest.mark.fault(
    "the machine's clock is an hour ahead or behind",
    holds="tokens are made by GitHub's clock, as many as with a right one",
    within="-",
)
@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_wrong_clock_mints_no_more_than_a_right_one(stage, provider_with, hours):
    provider = provider_with(SkewedClock(stage.clock, hours * 3600))
    for _ in range(20):
        await provider.repositories()
        await provider.tip(stage.repo, "main")
        await stage.clock.sleep(100)
    assert minted(stage) == 2


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_set_while_a_token_lasts_mints_no_other(stage, provider_with, hours):
    clock = SkewedClock(stage.clock, 0)
    provider = provider_with(clock)
    await provider.tip(stage.repo, "main")
    before = minted(stage)
    clock.set_off(hours * 3600)
    for _ in range(20):
        await provider.tip(stage.repo, "main")
        await stage.clock.sleep(60)
    assert minted(stage) == before
    await stage.clock.sleep(3600)
    await provider.repositories()
    await provider.tip(stage.repo, "main")
    assert minted(stage) == before + 2


async def test_a_wrong_clock_is_named_in_the_log_once(stage, provider_with):
    provider = provider_with(SkewedClock(stage.clock, 3600))
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            await provider.repositories()
            await stage.clock.sleep(400)
    named = [line for line in lines if line["event"] == "clock_differs"]
    assert [(line["log_level"], line["ahead_s"] // 10) for line in named] == [("warning", 360)]


@pytest.mark.fault(
    "GitHub ends a token before its told end",
    holds="it is dropped wherever it is kept, and one other is asked for",
    within="the next call",
)
@pytest.mark.parametrize("call", ["repositories", "tip"])
async def test_a_token_that_dies_early_is_replaced_once(stage, provider_with, call):
    provider = provider_with()

    async def ask():
        await (
            provider.repositories() if call == "repositories" else provider.tip(stage.repo, "main")
        )

    await ask()
    before = minted(stage)
    kill_tokens(stage)
    await asyncio.gather(*(ask() for _ in range(8)))
    assert minted(stage) - before == 1
    await ask()
    assert minted(stage) - before == 1


async def test_a_dead_token_of_the_installation_keeps_no_new_repository_out(stage, provider_with):
    provider = provider_with()
    await provider.repositories()
    kill_tokens(stage)
    await stage.sandbox.seed(repositories=[{"full_name": "octo/other"}])
    assert await provider.tip(RepoRef(HOST, "octo", "other"), "main") is not None


async def test_a_token_that_is_told_to_be_over_is_kept_for_a_minute(
    stage, provider_with, monkeypatch
):
    provider = provider_with()
    monkeypatch.setattr(sandbox_auth, "TOKEN_LIFETIME", timedelta(seconds=200))
    for _ in range(4):
        await provider.repositories()
        await stage.clock.sleep(20)
    assert minted(stage) == 2


@pytest.mark.parametrize("seconds", [-50, 50])
async def test_a_clock_that_is_a_little_off_does_not_matter(stage, provider_with, seconds):
    provider = provider_with(SkewedClock(stage.clock, seconds))
    assert len(await provider.repositories()) == 1


async def test_a_token_is_minted_once_for_many_calls_at_once(stage, provider_with):
    provider = provider_with()
    for _ in range(10):
        await provider.tip(stage.repo, "main")
    assert stage.called("POST", "/access_tokens") <= 3


@pytest.mark.parametrize("repositories", [1, 8])
async def test_calls_that_wait_for_a_token_share_the_failure_of_one_attempt(
    stage, provider_with, repositories
):
    provider = provider_with()
    others = [RepoRef(HOST, "octo", f"other-{number}") for number in range(1, repositories)]
    await stage.sandbox.seed(repositories=[{"full_name": other.slug} for other in others])
    await stage.fault("fail_before", method="POST", path="*/access_tokens", nth=None, status=503)
    waits = [provider.tip(repo, "main") for repo in (stage.repo, *others) for _ in range(8)]
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


async def test_a_new_name_of_our_app_is_known_within_an_hour():
    async with on_table() as (table, client):
        await client.get("")
        assert await client.github.slug() == "headgate"
        table.says("GET /installation", {"id": 7, "app_slug": "gate-two"})
        await client.clock.sleep(LOOKUP_KEPT_S)
        await client.get("")
        assert await client.github.slug() == "gate-two"


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


LIMITED = ["*/installation", "*/access_tokens", "*/hook/deliveries"]
"""Calls of the App itself, each with its limits."""
LIMITED_TOO = ["/repos/octo/widgets", "/installation/repositories"]
"""Calls of an installation outside of its line of calls: its number, its repositories."""


async def asked_all(stage, provider):
    """Ask for everything that has such calls; how many of the questions were throttled."""
    questions = (
        lambda: provider.failed_deliveries(stage.clock.now()),
        lambda: provider.tip(stage.repo, "main"),
        provider.repositories,
    )
    throttled = []
    for question in questions:
        try:
            await question()
        except Throttled as trouble:
            throttled.append((trouble.retry_at - stage.clock.now()).total_seconds())
    return throttled


@pytest.mark.fault(
    "GitHub limits the App itself, or a call for a token",
    holds="no call that the limit is for is sent before its end",
    within="at once",
)
@pytest.mark.parametrize("path", LIMITED + LIMITED_TOO)
async def test_a_limit_outside_of_the_line_of_calls_is_obeyed(stage, provider_with, path):
    provider = provider_with()
    await stage.fault("secondary_limit", path=path, retry_after=600)
    assert await asked_all(stage, provider)
    said = len(stage.sandbox.world.calls)
    throttled = await asked_all(stage, provider)
    assert throttled
    assert {round(each) for each in throttled} == {600}
    later = [str(one["path"]) for one in list(stage.sandbox.world.calls)[said:]]
    is_app = ["/app/" in one or one.endswith("widgets/installation") for one in later]
    assert (path in LIMITED) not in is_app
    await stage.clock.sleep(600)
    assert await asked_all(stage, provider) == []


@pytest.mark.fault(
    "this machine's clock is wrong by ten minutes",
    holds="a rate limit that is used up is waited for until its reset by GitHub's clock",
    within="at once",
)
@pytest.mark.parametrize("off_s", [-600, 600])
async def test_a_reset_is_a_time_of_githubs_clock(stage, provider_with, off_s):
    provider = provider_with(SkewedClock(stage.clock, off_s))
    await provider.tip(stage.repo, "main")
    await stage.fault("primary_limit", s=1800)
    with pytest.raises(Throttled):
        await provider.tip(stage.repo, "main")
    await stage.clock.sleep(1700)
    with pytest.raises(Throttled):
        await provider.tip(stage.repo, "main")
    await stage.clock.sleep(110)
    assert await provider.tip(stage.repo, "main")
    assert stage.called("GET", "/commits/heads/main") == 3

"""Keys of the OIDC issuer: fetched when needed, within bounds, and kept while it is away."""

from collections.abc import AsyncIterator

import pytest

from bot import settings
from bot.github import oidc
from bot.github.oidc import OidcTokens
from bot.github.options import GitHubOptions, addresses_of
from service.errors import Unauthenticated
from service.provider.ci import CiTrigger
from service.provider.errors import Unavailable
from tests.harness import issuer as issuers
from tests.harness.clock import FastClock
from tests.harness.issuer import AUDIENCE, Issuer


class HeldClock(FastClock):
    """Time of the system whose steps are counted by hand."""

    at_s = 0.0

    def monotonic_s(self) -> float:
        return self.at_s


@pytest.fixture
async def clock() -> HeldClock:
    return HeldClock(1.0)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuers.issuing() as found:
        yield found


@pytest.fixture
def tokens(issuer: Issuer, clock: HeldClock) -> OidcTokens:
    return OidcTokens("github.com", issuer.url, AUDIENCE, clock)


def signed(issuer: Issuer, clock: HeldClock, kid: str = "one", **more: object) -> str:
    return issuer.signed(issuer.claims(clock.now().timestamp(), **more), kid=kid)


async def test_a_push_proves_its_branch_commit_and_attempt(tokens, issuer, clock):
    job = await tokens.job_of(signed(issuer, clock, run_attempt="3"))
    assert (job.trigger, job.branch, job.run_id, job.run_attempt) == (
        CiTrigger.HEAD,
        "main",
        "77",
        3,
    )


async def test_a_pull_request_has_its_head_branch(tokens, issuer, clock):
    claims = {"event_name": "pull_request", "ref": "refs/pull/12/merge", "head_ref": "topic"}
    job = await tokens.job_of(signed(issuer, clock, **claims))
    assert (job.trigger, job.branch, job.pr_number) == (CiTrigger.PULL_REQUEST, "topic", 12)


@pytest.mark.parametrize(("claims", "account"), [({"actor_id": "501"}, "501"), ({}, "")])
async def test_a_token_names_the_account_that_began_the_run(tokens, issuer, clock, claims, account):
    assert (await tokens.job_of(signed(issuer, clock, **claims))).begun_by == account


@pytest.mark.parametrize("event", ["workflow_run", "pull_request_target"])
async def test_an_event_that_may_run_anything_proves_no_trigger(tokens, issuer, clock, event):
    job = await tokens.job_of(signed(issuer, clock, event_name=event, head_ref="topic"))
    assert job.trigger is CiTrigger.UNKNOWN


async def test_keys_are_fetched_once_and_a_new_key_at_most_once_a_minute(tokens, issuer, clock):
    for _ in range(3):
        await tokens.job_of(signed(issuer, clock))
    assert issuer.asked == 1
    issuer.published["two"] = issuer.key
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            await tokens.job_of(signed(issuer, clock, kid="two"))
    assert issuer.asked == 1
    clock.at_s = 61.0
    await tokens.job_of(signed(issuer, clock, kid="two"))
    assert issuer.asked == 2


async def test_a_key_that_was_taken_back_ends_within_the_hour(tokens, issuer, clock):
    await tokens.job_of(signed(issuer, clock))
    issuer.published = {"two": issuers.a_key()}
    clock.at_s = 3_601.0
    with pytest.raises(Unauthenticated):
        await tokens.job_of(signed(issuer, clock))


@pytest.mark.parametrize("trouble", [{"status": 500}, {"padding": "x" * 200_000}])
async def test_without_keys_the_caller_may_come_again(tokens, issuer, clock, trouble):
    for name, value in trouble.items():
        setattr(issuer, name, value)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await tokens.job_of(signed(issuer, clock))
    assert issuer.asked == 1
    issuer.status, issuer.padding = 200, ""
    clock.at_s = 61.0
    await tokens.job_of(signed(issuer, clock))


async def test_known_keys_are_used_for_a_day_while_the_issuer_is_away(tokens, issuer, clock):
    await tokens.job_of(signed(issuer, clock))
    issuer.status = 500
    clock.at_s = 3_700.0
    await tokens.job_of(signed(issuer, clock))
    clock.at_s = 86_500.0
    with pytest.raises(Unavailable):
        await tokens.job_of(signed(issuer, clock))


@pytest.mark.parametrize(
    ("host", "issuer"),
    [
        ("github.com", "https://token.actions.githubusercontent.com"),
        ("octo.ghe.com", "https://token.actions.octo.ghe.com"),
        ("github.example.com", "https://github.example.com/_services/token"),
    ],
)
def test_each_kind_of_host_has_its_issuer(host, issuer):
    options = GitHubOptions(host, addresses_of(host), "1", (), ("secret",))
    assert oidc.issuer_of(options) == issuer


@pytest.mark.parametrize(
    ("issuer", "addresses"),
    [
        (
            "https://token.actions.githubusercontent.com",
            ("https://token.actions.githubusercontent.com/.well-known/jwks",),
        ),
        (
            "https://token.actions.githubusercontent.com/octo-inc",
            (
                "https://token.actions.githubusercontent.com/octo-inc/.well-known/jwks",
                "https://token.actions.githubusercontent.com/.well-known/jwks",
            ),
        ),
        (
            "https://github.example.com/_services/token",
            (
                "https://github.example.com/_services/token/.well-known/jwks",
                "https://github.example.com/.well-known/jwks",
            ),
        ),
    ],
)
def test_keys_are_asked_for_at_the_issuer_and_then_at_its_host(issuer, addresses):
    assert oidc.key_addresses_of(issuer) == addresses
    assert settings.parse_issuer(issuer) == issuer


async def test_the_issuer_of_one_enterprise_has_the_keys_of_its_host(issuer, clock):
    own = f"{issuer.url}/octo-inc"
    tokens = OidcTokens("github.com", own, AUDIENCE, clock)
    job = await tokens.job_of(signed(issuer, clock, iss=own))
    assert job.run_id == "77"
    for other in (issuer.url, f"{issuer.url}/initech", f"{own}/"):
        with pytest.raises(Unauthenticated, match=f"its issuer is {other}, not {own}"):
            await tokens.job_of(signed(issuer, clock, iss=other))


async def test_a_token_of_an_enterprise_says_which_setting_accepts_it(tokens, issuer, clock):
    own = f"{issuer.url}/octo-inc"
    said = f"its issuer is {own}, not {issuer.url}; .* sets HEADGATE_OIDC_ISSUER to it"
    with pytest.raises(Unauthenticated, match=said):
        await tokens.job_of(signed(issuer, clock, iss=own))

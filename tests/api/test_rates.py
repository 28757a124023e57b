"""How often may be asked, and when the next request is heard (docs/design/limits.md 3)."""

import json
from dataclasses import replace
from ipaddress import ip_network

import pytest

from service.accounts import access, tokens
from service.accounts.tokens import TokenRequest
from service.http.callers import Call
from service.http.models.common import Request
from service.http.rates import RateClass
from service.http.route import Fetched, Posted
from service.limits import Buckets, Rate
from service.process.api import routes
from service.runtime import Rates
from service.vocabulary import SYSTEM, Role
from tests.api.wire import answer, serving

UNKNOWN = "hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjl"
BAD_CHECKSUM = UNKNOWN[:-1] + "m"


def test_a_bucket_gives_its_burst_at_once_and_then_so_many_a_second():
    buckets = Buckets(Rate(2, 3))
    assert [buckets.take("a", 100.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("a", 100.4) == pytest.approx(0.1)
    assert buckets.take("a", 100.5) == 0
    assert buckets.take("a", 100.5) == 0.5
    assert [buckets.take("a", 200.0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_refusal_takes_nothing():
    buckets = Buckets(Rate(1, 1))
    assert buckets.take("a", 0.0) == 0
    for _ in range(5):
        assert buckets.take("a", 0.0) == 1
    assert buckets.take("a", 1.0) == 0


def test_each_key_has_a_bucket_of_its_own():
    buckets = Buckets(Rate(1, 1))
    assert [buckets.take(key, 0.0) for key in ("a", "b", "a")] == [0, 0, 1]


def test_without_a_rate_nobody_waits():
    buckets = Buckets(None)
    assert {buckets.take("a", 0.0) for _ in range(5_000)} == {0}


def test_too_many_keys_forget_those_that_are_nearest_to_full(monkeypatch):
    monkeypatch.setattr(Buckets, "KEYS_MAX", 4)
    buckets = Buckets(Rate(1, 2))
    for key in "aabcd":
        buckets.take(key, 0.0)
    assert buckets.take("e", 0.0) == 0
    assert buckets.wait_s("a", 0.0) == 1


@pytest.fixture
def limited(runtime):
    """One read and two writes at once, and two unknown tokens."""
    rates = Rates(read=Rate(0.5, 1), write=Rate(1, 2), auth_failure=Rate(1, 2))
    return replace(runtime, options=replace(runtime.options, rates=rates))


async def done(*_: object) -> bytes:
    return b"{}"


READ = Posted("/read", Role.ADMIN, Request, done, writes=False)
WRITE = Posted("/write", Role.ADMIN, Request, done, writes=True, rate=RateClass.WRITE)


async def test_a_request_too_many_is_told_when_to_come_back(limited, readiness, admin, clock):
    own = f"x-api-token: {admin}"
    async with serving(limited, readiness, READ, WRITE) as client:
        assert (await answer(client, "/read", own)).status == 200
        refused = await answer(client, "/read", own, body=b"not json")
        body = json.loads(refused.body)
        assert (refused.status, body["code"], body["retry_after"]) == (429, "rate_limited", 2)
        assert refused.headers["retry-after"] == "2"
        assert body["detail"] == (
            "A token may send 0.5 reads a second, 1 at once; this one came too early. "
            "Send it again in 2 s."
        )
        assert [(await answer(client, "/write", own)).status for _ in range(3)] == [200, 200, 429]
        clock.advance(2)
        assert (await answer(client, "/read", own)).status == 200


async def test_the_rate_is_looked_at_after_the_token_and_before_the_role(limited, readiness):
    wish = TokenRequest("github.com", "octo", "runner", Role.CI)
    small = (await tokens.create_token(limited, wish, SYSTEM)).secret
    async with serving(limited, readiness, READ) as client:
        own = f"x-api-token: {small}"
        assert [(await answer(client, "/read", own)).status for _ in range(2)] == [403, 429]
        assert (await answer(client, "/read")).status == 401


async def test_another_token_does_not_wait(limited, readiness, admin):
    wish = TokenRequest("github.com", "octo", "second", Role.ADMIN)
    other = (await tokens.create_token(limited, wish, SYSTEM)).secret
    async with serving(limited, readiness, READ) as client:
        statuses = [
            (await answer(client, "/read", f"x-api-token: {token}")).status
            for token in (admin, admin, other)
        ]
    assert statuses == [200, 429, 200]


async def test_unknown_tokens_are_counted_by_address_and_then_not_looked_up(
    limited, readiness, admin, clock
):
    known, unknown = f"x-api-token: {admin}", f"x-api-token: {UNKNOWN}"
    async with serving(limited, readiness, WRITE) as client:
        assert (await answer(client, "/write", known)).status == 200
        statuses = [(await answer(client, "/write", unknown)).status for _ in range(3)]
        assert statuses == [401, 401, 429]
        # What the process knows already passes: no guess of it could be wrong.
        assert (await answer(client, "/write", known)).status == 200
        clock.advance(1)
        assert (await answer(client, "/write", unknown)).status == 401


async def test_no_token_and_a_bad_checksum_are_never_counted(limited, readiness):
    async with serving(limited, readiness, WRITE) as client:
        for lines in ([], [f"x-api-token: {BAD_CHECKSUM}"], ["x-api-token: x"]) * 3:
            assert (await answer(client, "/write", *lines)).status == 401
        assert (await answer(client, "/write", f"x-api-token: {UNKNOWN}")).status == 401


async def test_behind_a_trusted_proxy_the_client_is_counted(limited, readiness):
    proxies = (ip_network("127.0.0.0/8"),)
    behind = replace(limited, options=replace(limited.options, trusted_proxies=proxies))
    unknown = f"x-api-token: {UNKNOWN}"
    async with serving(behind, readiness, WRITE) as client:
        for last, status in ((1, 401), (1, 401), (1, 429), (2, 401)):
            told = await answer(client, "/write", unknown, f"X-Forwarded-For: 192.0.2.{last}")
            assert told.status == status


async def test_a_token_that_ends_is_counted_as_unknown(limited, readiness, admin):
    made = await access.look_up(limited, admin)
    await tokens.revoke_token(limited, made.token_id, SYSTEM)
    async with serving(limited, readiness, WRITE) as client:
        statuses = [
            (await answer(client, "/write", f"x-api-token: {admin}")).status for _ in range(3)
        ]
    assert statuses == [401, 401, 429]


async def test_without_limits_nothing_is_refused(runtime, readiness, admin):
    free = Rates(read=None, write=None, upload=None, metrics=None, auth_failure=None)
    runtime = replace(runtime, options=replace(runtime.options, rates=free))

    async def figures(_: Call) -> bytes:
        return b"{}"

    endpoint = Fetched("/figures", None, figures, rate=RateClass.METRICS)
    async with serving(runtime, readiness, endpoint) as client:
        for _ in range(30):
            told = await answer(client, "/figures", f"x-api-token: {admin}", method="GET")
            assert told.status == 200


def test_what_ci_asks_for_in_every_job_is_a_class_of_its_own():
    uploads = {
        route.path
        for route in routes.ROUTES
        if isinstance(route, Posted) and route.rate is RateClass.UPLOAD
    }
    assert uploads == {
        "/v1/setImpactedTargets",
        "/v1/flaky-tests/check-quarantine",
        "/v1/flaky-tests/plan-repeats",
        "/v1/flaky-tests/report-early-failure",
        "/v1/flaky-tests/report-repeats",
        "/v1/flaky-tests/upload-test-results",
    }


def test_whatever_writes_or_asks_the_provider_counts_as_a_write_or_an_upload():
    for route in routes.ROUTES:
        if isinstance(route, Posted) and route.rate is not RateClass.UPLOAD:
            is_dear = route.writes or route.path == "/v1/findQueue"
            assert (route.rate is RateClass.READ) is not is_dear

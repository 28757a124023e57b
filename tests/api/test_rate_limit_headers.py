"""What answers say of the rate limit of their token (docs/design/limits.md 3)."""

from dataclasses import replace

from service.http.models.common import Request
from service.http.route import Posted
from service.limits import Buckets, Rate
from service.runtime import Rates
from service.vocabulary import Role
from tests.api.wire import answer, serving


async def done(*_: object) -> bytes:
    return b"{}"


READ = Posted("/read", Role.ADMIN, Request, done, writes=False)


def test_a_bucket_says_what_is_left_and_when_it_is_full():
    buckets = Buckets(Rate(2, 3))
    assert buckets.left("a", 100.0) == (3, 0.0)
    buckets.take("a", 100.0)
    buckets.take("a", 100.0)
    assert buckets.left("a", 100.0) == (1, 1.0)
    assert buckets.left("a", 100.5) == (2, 0.5)
    for _ in range(5):
        buckets.take("a", 100.5)
    assert buckets.left("a", 100.5)[0] == 0


async def test_an_answer_tells_its_token_the_limit_and_what_is_left(
    runtime, readiness, admin, clock
):
    rates = Rates(read=Rate(0.5, 2), write=None)
    limited = replace(runtime, options=replace(runtime.options, rates=rates))
    own = f"x-api-token: {admin}"
    async with serving(limited, readiness, READ) as client:
        first, second, refused = [await answer(client, "/read", own) for _ in range(3)]
        assert [each.status for each in (first, second, refused)] == [200, 200, 429]
        policies = {each.headers["ratelimit-policy"] for each in (first, second, refused)}
        assert policies == {'"reads";q=2;w=4'}
        left = [each.headers["ratelimit"] for each in (first, second, refused)]
        assert left == ['"reads";r=1;t=2', '"reads";r=0;t=4', '"reads";r=0;t=4']
        stranger = await answer(client, "/read", "x-api-token: unknown")
        assert stranger.status == 401
        assert "ratelimit" not in stranger.headers


async def test_a_class_without_a_limit_has_no_headers(runtime, readiness, admin):
    free = replace(runtime, options=replace(runtime.options, rates=Rates(read=None)))
    async with serving(free, readiness, READ) as client:
        answered = await answer(client, "/read", f"x-api-token: {admin}")
        assert answered.status == 200
        assert "ratelimit" not in answered.headers

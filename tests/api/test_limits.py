"""Bodies that are large, slow, many or broken, over real connections.

See docs/design/limits.md 1, 2.
"""

import asyncio

import pytest
from aiohttp import StreamReader, web
from aiohttp.test_utils import make_mocked_request

from service.body_budget import BodyBudget
from service.errors import Overloaded
from service.http import connections, limits
from service.http.errors import HttpRefused
from tests.api import wire
from tests.api.wire import HandClock, connected, head, served

EXACTLY = limits.BODY_BYTES_MAX


class Counting:
    """A server that says how long a body is, and keeps it until it is told to go on."""

    def __init__(self, clock: HandClock) -> None:
        self.bodies = limits.Bodies(clock, BodyBudget())
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.app = web.Application()
        self.app.router.add_post("/{token}", self.count, expect_handler=self.later)
        self.app[connections.BROKEN] = self.broken

    def broken(self, *_: object) -> web.Response:
        answer = web.Response(status=400, text="broken")
        answer.force_close()
        return answer

    async def later(self, _: web.Request) -> None:
        """Leave `Expect` to the reading of the body."""

    async def count(self, request: web.Request) -> web.Response:
        try:
            async with self.bodies.arriving(request, request.match_info["token"]) as body:
                await self.go_on.wait()
                return web.Response(text=str(len(body)))
        except HttpRefused as refused:
            answer = web.Response(status=refused.status, text=refused.code)
            if refused.closes:
                answer.force_close()
            return answer
        except Overloaded as full:
            return web.Response(status=503, text=f"{full.code} {full.retry_after_s}")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def server(clock):
    return Counting(clock)


@pytest.fixture
async def port(server):
    async with served(server.app) as port:
        yield port


def sized(length: int) -> bytes:
    return head("/t", f"Content-Length: {length}")


CHUNKED = head("/t", "Transfer-Encoding: chunked")


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


async def test_exactly_the_limit_passes(port):
    async with connected(port) as client:
        await client.send(sized(EXACTLY), bytes(EXACTLY))
        assert (await client.reply()).body == b"20971520"


async def test_exactly_the_limit_passes_in_chunks(port):
    async with connected(port) as client:
        await client.send(CHUNKED)
        for _ in range(20):
            await client.send(chunk(bytes(1024 * 1024)))
        await client.send(b"0\r\n\r\n")
        assert (await client.reply()).body == b"20971520"


async def test_one_byte_more_is_refused_without_reading_it_and_closes(port):
    async with connected(port) as client:
        await client.send(sized(EXACTLY + 1))
        reply = await client.reply()
        assert (reply.status, reply.body) == (413, b"body_too_large")
        assert reply.headers["connection"] == "close"


async def test_one_byte_more_in_chunks_is_refused_and_closes(port):
    async with connected(port) as client:
        await client.send(CHUNKED)
        for _ in range(20):
            await client.send(chunk(bytes(1024 * 1024)))
        await client.send(chunk(b"x"))
        reply = await client.reply()
        assert (reply.status, reply.body) == (413, b"body_too_large")
        assert reply.headers["connection"] == "close"


async def test_who_waits_for_the_go_ahead_gets_it_when_the_body_is_wanted(port):
    async with connected(port) as client:
        await client.send(head("/t", "Content-Length: 3", "Expect: 100-continue"))
        assert (await client.reply()).status == 100
        await client.send(b"abc")
        assert (await client.reply()).body == b"3"


async def test_who_waits_for_the_go_ahead_with_too_much_is_refused_instead(port):
    async with connected(port) as client:
        too_much = f"Content-Length: {EXACTLY + 1}"
        await client.send(head("/t", too_much, "Expect: 100-continue"))
        assert (await client.reply()).status == 413


async def test_a_body_that_does_not_come_is_given_up_after_ten_seconds(port, clock):
    async with connected(port) as client:
        await client.send(sized(4))
        await clock.slept(1)
        clock.advance(10)
        reply = await client.reply()
        assert (reply.status, reply.body) == (408, b"request_timeout")
        assert reply.headers["connection"] == "close"


@pytest.fixture
async def arriving(clock):
    """A body that the test feeds; the whole length, or the refusal."""
    protocol = make_mocked_request("POST", "/").protocol
    content = StreamReader(protocol, 2**24, loop=asyncio.get_running_loop())

    async def length() -> int | str:
        request = make_mocked_request("POST", "/", payload=content)
        try:
            async with limits.Bodies(clock, BodyBudget()).arriving(request, "t") as body:
                return len(body)
        except HttpRefused as refused:
            return refused.code

    return content, asyncio.ensure_future(length())


async def test_a_body_may_rest_for_less_than_ten_seconds_in_all(arriving, clock):
    content, length = arriving
    await clock.slept(1)
    clock.advance(5)
    content.feed_data(b"ab")
    await clock.slept(2)
    clock.advance(4.9)
    content.feed_data(b"cd")
    content.feed_eof()
    assert await length == 4


async def test_resting_twice_for_ten_seconds_in_all_is_too_slow(arriving, clock):
    content, length = arriving
    await clock.slept(1)
    clock.advance(5)
    content.feed_data(b"ab")
    await clock.slept(2)
    clock.advance(5)
    assert await length == "request_timeout"


async def test_fifty_kilobytes_buy_a_second(arriving, clock):
    content, length = arriving
    content.feed_data(bytes(1_000_000))
    await clock.slept(2)
    clock.advance(19.9)
    content.feed_data(bytes(50_000))
    await clock.slept(3)
    clock.advance(1)
    content.feed_data(b"x")
    content.feed_eof()
    assert await length == 1_050_001


async def test_less_than_fifty_kilobytes_a_second_is_too_slow(arriving, clock):
    content, length = arriving
    content.feed_data(bytes(1_000_000))
    await clock.slept(2)
    clock.advance(20)
    assert await length == "request_timeout"


async def test_no_body_takes_longer_than_five_minutes(arriving, clock):
    content, length = arriving
    content.feed_data(bytes(16_000_000))
    await clock.slept(2)
    clock.advance(299)
    content.feed_data(b"x")
    await clock.slept(3)
    clock.advance(1)
    assert await length == "request_timeout"


@pytest.mark.parametrize("broken", [b"zz\r\nabc\r\n", b"-1\r\n\r\n", b"3\r\nabcdef\r\n"])
async def test_chunks_that_are_none_are_a_bad_request(port, broken):
    async with connected(port) as client:
        await client.send(CHUNKED, broken)
        reply = await client.reply()
        assert reply.status == 400
        assert await client.is_closed()


@pytest.mark.parametrize("broken", [b"zz\r\nabc\r\n", b"-1\r\n\r\n", b"3\r\nabcdef\r\n"])
async def test_chunks_that_stop_being_chunks_are_a_bad_request(port, clock, broken):
    async with connected(port) as client:
        await client.send(CHUNKED, chunk(b"abc"))
        await clock.slept(2)
        await client.send(broken)
        reply = await client.reply()
        assert reply.status == 400
        assert await client.is_closed()


@pytest.mark.parametrize(
    "start",
    [
        b"no http at all\r\n\r\n",
        head("/t", "Content-Length: abc"),
        head("/t", "Content-Length: 3", "Content-Length: 4"),
        head("/t", "Content-Length: -1"),
        head("/t", "X: " + "x" * 9000),
        head("/t", *[f"X-{n}: 1" for n in range(70)]),
    ],
    ids=["garbage", "length-word", "two-lengths", "negative", "long-line", "many-headers"],
)
async def test_a_broken_head_is_a_bad_request_in_our_own_form(port, start):
    async with connected(port) as client:
        await client.send(start)
        reply = await client.reply()
        assert (reply.status, reply.body) == (400, b"broken")


LARGE = limits.LARGE_BYTES + 1


async def ask(client: wire.Wire, token: str, length: int = LARGE) -> None:
    await client.send(head(f"/{token}", f"Content-Length: {length}"), bytes(length))


async def test_four_large_bodies_at_once_and_the_fifth_waits_its_turn(server, port, clock):
    server.go_on.clear()
    async with (
        connected(port) as a,
        connected(port) as b,
        connected(port) as c,
        connected(port) as d,
        connected(port) as e,
    ):
        for client, token in ((a, "1"), (b, "1"), (c, "2"), (d, "2")):
            await ask(client, token)
        await e.send(head("/3", f"Content-Length: {LARGE}"))
        await clock.waited_on_for(30)
        server.go_on.set()
        assert (await a.reply()).status == 200
        await e.send(bytes(LARGE))
        assert (await e.reply()).status == 200
        for client in (b, c, d):
            assert (await client.reply()).status == 200


async def test_a_token_has_two_places_and_waits_thirty_seconds_for_a_third(server, port, clock):
    server.go_on.clear()
    async with connected(port) as a, connected(port) as b, connected(port) as c:
        await ask(a, "1")
        await ask(b, "1")
        await c.send(head("/1", f"Content-Length: {LARGE}"))
        await clock.waited_on_for(30)
        clock.advance(30)
        reply = await c.reply()
        assert (reply.status, reply.body) == (503, b"overloaded 5")
        server.go_on.set()
        assert (await a.reply()).status == (await b.reply()).status == 200


async def test_another_tokens_small_body_never_waits(server, port):
    server.go_on.clear()
    async with connected(port) as a, connected(port) as b, connected(port) as c:
        await ask(a, "1")
        await ask(b, "1")
        await ask(c, "1", length=limits.LARGE_BYTES)
        server.go_on.set()
        assert (await c.reply()).status == 200


async def test_places_are_handed_on_in_order_to_whoever_may_have_them(clock):
    places = limits.LargeBodySlots(clock)
    for token in ("1", "1", "2", "2"):
        await places.take(token)
    first = asyncio.ensure_future(places.take("1"))
    second = asyncio.ensure_future(places.take("3"))
    await clock.slept(2)
    places.leave("2")
    await second
    assert not first.done()
    places.leave("1")
    await first


async def test_who_gave_up_waiting_holds_no_place(clock):
    places = limits.LargeBodySlots(clock)
    for token in ("1", "1", "2", "2"):
        await places.take(token)
    waiting = asyncio.ensure_future(places.take("3"))
    await clock.waited_on_for(30)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    places.leave("2")
    await places.take("3")


async def test_pipelined_requests_are_answered_in_order(port):
    async with connected(port) as client:
        await client.send(sized(1), b"a", sized(2), b"ab", sized(0))
        assert [(await client.reply()).body for _ in range(3)] == [b"1", b"2", b"0"]

"""The way of a request through the application, where no queue is needed to see it."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
import structlog
from aiohttp import web

from service.accounts import access, tokens
from service.accounts.store import audit
from service.accounts.tokens import TokenRequest
from service.errors import DatabaseUnavailable, FieldError, Malformed
from service.http import connections, health
from service.http.callers import Call
from service.http.health import Readiness
from service.http.models.common import Request, SnakeRequest
from service.http.route import Fetched, Page, Posted
from service.process.api import app, routes
from service.troubles import Part, Trouble, TroubleName
from service.vocabulary import SYSTEM, Role
from tests.api.wire import answer, connected, head, served, serving


async def raw(request: web.Request) -> web.Response:
    """A route of others, with rules of its own."""
    if request.headers.get("X-Break"):
        raise ZeroDivisionError("of ours")
    return web.Response(status=202, body=await request.read())


@pytest.fixture
async def client(runtime, readiness):
    extra = (web.post("/webhooks/github", raw),)
    async with (
        served(app.build_app(runtime, readiness, extra)) as port,
        connected(port) as wire,
    ):
        yield wire


async def test_until_the_recovery_is_over_only_the_status_is_told(client, readiness, admin):
    readiness.mark("recovery", "running")
    for path, method in (("/v1/getQueue", "POST"), ("/v1/tokens/self", "GET")):
        refused = await answer(client, path, f"x-api-token: {admin}", method=method)
        assert (refused.status, json.loads(refused.body)["code"]) == (503, "recovering")
        assert refused.headers["retry-after"] == "5"
    for path in ("/v1/status", "/healthz"):
        assert (await answer(client, path, method="GET")).status == 200
    ready = await answer(client, "/readyz", method="GET")
    assert (ready.status, json.loads(ready.body)) == (
        503,
        {
            "status": "not_ready",
            "checks": {
                "database": "ok",
                "schema": "ok",
                "recovery": "running",
                "workers": "ok",
                "provider": "ok",
            },
            "troubles": [],
        },
    )


async def test_deliveries_come_in_while_the_recovery_runs(client, readiness):
    readiness.mark("recovery", "running")
    taken = await answer(client, "/webhooks/github", "Content-Type: text/x", body=b"not json")
    assert (taken.status, taken.body) == (202, b"not json")


async def test_a_mistake_of_ours_is_a_problem_without_a_word_about_the_inside(client):
    failed = await answer(client, "/webhooks/github", "X-Break: 1", "X-Request-Id: find-me")
    body = json.loads(failed.body)
    assert (failed.status, body["code"], body["request_id"]) == (500, "internal_error", "find-me")
    assert "ZeroDivision" not in failed.body.decode()
    assert failed.headers["connection"] == "close"


async def test_a_database_that_fails_is_named_with_when_to_come_back(runtime, readiness, admin):
    async def fails(*_: object) -> bytes:
        raise DatabaseUnavailable("The disk is full.", retry_after_s=30)

    door = app.Door(runtime, readiness)
    route = Posted("/v1/x", Role.ADMIN, Request, fails, writes=True)
    made = web.Application()
    made.router.add_route("*", route.path, door.handler(route))
    made[connections.BROKEN] = door.broken
    async with served(made) as port, connected(port) as client:
        refused = await answer(client, "/v1/x", f"x-api-token: {admin}")
    assert (refused.status, refused.headers["retry-after"]) == (503, "30")
    assert json.loads(refused.body)["code"] == "database_unavailable"


async def test_a_write_passes_the_boundary_before_its_answer(runtime, readiness, admin):
    seen: list[list[str]] = []

    async def act(*_: object) -> bytes:
        seen.append(list(runtime.crash_points.reached))
        return b"{}"

    door = app.Door(runtime, readiness)
    made = web.Application()
    for path, writes in (("/write", True), ("/read", False)):
        route = Posted(path, Role.ADMIN, Request, act, writes=writes)
        made.router.add_route("*", path, door.handler(route))
    made[connections.BROKEN] = door.broken
    async with served(made) as port, connected(port) as client:
        for path in ("/read", "/write"):
            assert (await answer(client, path, f"x-api-token: {admin}")).status == 200
    assert "api.before_answer" not in seen[1]
    assert runtime.crash_points.reached.count("api.before_answer") == 1


async def test_the_id_of_a_write_is_gone_from_the_log_with_its_answer(runtime, readiness, admin):
    seen: list[dict[str, Any]] = []

    async def act(*_: object) -> bytes:
        seen.append(structlog.contextvars.get_contextvars())
        return b"{}"

    endpoints = [
        Posted(path, Role.ADMIN, Request, act, writes=writes)
        for path, writes in (("/write", True), ("/read", False))
    ]
    async with serving(runtime, readiness, *endpoints) as client:
        for path in ("/write", "/read"):
            await answer(client, path, f"x-api-token: {admin}", "X-Request-Id: one")
    assert seen == [{"request_id": "one"}, {}]


async def test_a_page_has_a_content_type_of_its_own(runtime, readiness, admin):
    async def figures(_: Call) -> Page:
        return Page("text/plain; version=0.0.4", b"up 1\n")

    async with serving(runtime, readiness, Fetched("/figures", Role.READ, figures)) as client:
        told = await answer(client, "/figures", f"x-api-token: {admin}", method="GET")
    assert (told.status, told.body) == (200, b"up 1\n")
    assert told.headers["content-type"] == "text/plain; version=0.0.4"


async def test_a_role_that_is_too_small_is_refused_and_written_down(runtime, readiness):
    made = await tokens.create_token(
        runtime, TokenRequest("github.com", "octo", "runner", Role.CI), SYSTEM
    )
    caller = await access.look_up(runtime, made.secret)

    async def never(_: Call) -> bytes:
        raise AssertionError("the role does not suffice")

    async with serving(runtime, readiness, Fetched("/own", Role.READ, never)) as client:
        own = f"x-api-token: {made.secret}"
        refused = await answer(client, "/own", own, "X-Request-Id: one", method="GET")
    assert (refused.status, json.loads(refused.body)["code"]) == (403, "missing_role")
    (row,) = await runtime.store.read(audit.newest, caller.org_id, 1)
    assert (row.actor.id, row.action, row.subject) == (made.view.id, "api.call", "/own")
    assert (row.decision, row.reason, row.request_id) == ("denied", "has role ci", "one")


class Rotate(SnakeRequest):
    """A request in snake_case."""

    overlap_hours: int


async def test_a_faulty_field_is_named_as_its_endpoint_names_it(runtime, readiness, admin):
    async def refuse(*_: object) -> bytes:
        fault = FieldError("/overlap_hours", "range", "must be at most 24")
        raise Malformed("d", errors=(fault,))

    endpoint = Posted("/rotate", Role.ADMIN, Rotate, refuse, writes=True)
    async with serving(runtime, readiness, endpoint) as client:
        for body in (b"{}", b'{"overlap_hours": 99}'):
            refused = await answer(client, "/rotate", f"x-api-token: {admin}", body=body)
            assert [each["field"] for each in json.loads(refused.body)["errors"]] == [
                "/overlap_hours"
            ]


async def test_a_token_ends_with_its_time(client, admin, clock):
    def own():
        return answer(client, "/v1/tokens/self", f"x-api-token: {admin}", method="GET")

    assert (await own()).status == 200
    clock.advance(timedelta(days=90).total_seconds())
    assert (await own()).status == 401


async def test_a_connection_serves_one_request_after_the_other(client, admin):
    for _ in range(3):
        told = await answer(client, "/v1/tokens/self", f"x-api-token: {admin}", method="GET")
        assert (told.status, json.loads(told.body)["name"]) == (200, "ops")
        assert "connection" not in told.headers


async def test_a_client_that_wants_to_leave_is_let_go(client):
    told = await answer(client, "/healthz", "Connection: close", method="GET")
    assert told.headers["connection"] == "close"
    assert await client.is_closed()


async def test_an_old_client_that_wants_to_stay_is_told_that_it_may(client):
    await client.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert (await client.reply()).headers["connection"] == "keep-alive"
    await client.send(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert "connection" not in (await client.reply()).headers
    assert await client.is_closed()


async def test_the_status_says_what_limps_and_what_stands(readiness):
    async def said(*troubled: str, **words: str) -> tuple[str, str | None, dict[str, str]]:
        ready = Readiness()
        for host in troubled:
            ready.troubles.report(
                Trouble(TroubleName.PROVIDER_AWAY, ready.troubles.clock.now(), host=host)
            )
        for check, word in {"recovery": "ok", **words}.items():
            ready.mark(check, word)
        body: Any = (await health.status(ready, "1"))[1].model_dump()
        services = {each["name"]: each["status"] for each in body["services"]}
        return body["overallStatus"], body["severity"], services

    up = {"api": "up", "engine": "up", "provider": "up", "webhooks": "up"}
    assert await said() == ("up", None, up)
    assert await said("github.com") == ("impacted", "yellow", {**up, "provider": "impacted"})
    for check in ("database", "workers", "recovery"):
        assert await said(**{check: "failed"}) == (
            "impacted",
            "red",
            {**up, "engine": "impacted", "webhooks": "impacted"},
        )


async def test_the_status_says_that_a_queue_stands_still():
    readiness = Readiness(stalled=lambda: {7: "build"})
    readiness.mark("recovery", "ok")
    body: Any = (await health.status(readiness, "1"))[1].model_dump()
    services = {each["name"]: each["status"] for each in body["services"]}
    assert (body["severity"], services["engine"]) == ("yellow", "impacted")
    assert readiness.is_ready


@pytest.mark.parametrize("check", health.OURS)
def test_trouble_of_our_own_ends_readiness(readiness, check):
    assert readiness.is_ready
    readiness.mark(check, "degraded")
    assert not readiness.is_ready


def test_a_host_that_cannot_be_read_is_told_without_ending_the_service():
    readiness = Readiness()
    readiness.mark("recovery", "ok")
    now = readiness.troubles.clock.now()
    readiness.troubles.report(Trouble(TroubleName.PROVIDER_AWAY, now, host="github.com"))
    assert readiness.checks()[health.Check.PROVIDER] is health.Word.DEGRADED
    assert readiness.is_ready
    readiness.troubles.end(Part.PROVIDER, "github.com")
    assert readiness.checks()[health.Check.PROVIDER] is health.Word.OK


def test_every_path_stands_once_and_every_endpoint_under_its_version():
    paths = [route.path for route in routes.ROUTES]
    assert len(set(paths)) == len(paths)
    assert {path for path in paths if not path.startswith("/v1/")} == {
        *("/healthz", "/readyz", "/openapi.json", "/docs", "/docs/api", "/docs/errors/{code}"),
        *("/schemas/headgate.json", "/llms.txt", "/docs/skill", "/docs/security"),
        "/.well-known/security.txt",
        *("/docs/errors", "/docs/errors/"),
        "/static/{digest}/{name:.+}",
    }


async def test_one_connection_too_many_is_closed(runtime, readiness, monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 2)
    async with served(app.build_app(runtime, readiness)) as port:
        async with connected(port) as first, connected(port) as second:
            for client in (first, second):
                assert (await answer(client, "/healthz", method="GET")).status == 200
            async with connected(port) as third:
                assert await third.is_closed()
            assert (await answer(first, "/healthz", method="GET")).status == 200
        async with connected(port) as again:
            assert (await answer(again, "/healthz", method="GET")).status == 200


async def test_an_address_has_its_share_of_connections_and_loopback_is_exempt(
    runtime, readiness, monkeypatch
):
    monkeypatch.setattr(connections, "CONNECTIONS_AN_ADDRESS", 1)
    async with served(app.build_app(runtime, readiness)) as port:
        async with connected(port), connected(port) as second:
            assert (await answer(second, "/healthz", method="GET")).status == 200
        monkeypatch.setattr(connections, "_is_loopback", lambda _: False)
        async with connected(port) as first:
            assert (await answer(first, "/healthz", method="GET")).status == 200
            async with connected(port) as second:
                assert await second.is_closed()


async def test_many_clients_are_answered_at_the_same_time(runtime, readiness, admin):
    async def ask(port: int) -> int:
        async with connected(port) as client:
            own = "/v1/tokens/self"
            return (await answer(client, own, f"x-api-token: {admin}", method="GET")).status

    async with served(app.build_app(runtime, readiness)) as port:
        assert await asyncio.gather(*(ask(port) for _ in range(20))) == [200] * 20


async def test_a_database_that_takes_no_writes_refuses_no_read(runtime, readiness, admin):
    await runtime.store.run(lambda session: session.exec_driver_sql("PRAGMA query_only = ON"))
    async with (
        served(app.build_app(runtime, readiness)) as port,
        connected(port) as client,
    ):
        for _ in range(2):
            own = await answer(client, "/v1/tokens/self", f"x-api-token: {admin}", method="GET")
            assert own.status == 200
            body = b'{"name": "x", "role": "read"}'
            made = await answer(client, "/v1/tokens/create", f"x-api-token: {admin}", body=body)
            assert json.loads(made.body)["code"] == "database_unavailable"


async def test_a_token_is_ended_for_what_was_sent_along_with_its_end(runtime, readiness, admin):
    token_id = (await access.look_up(runtime, admin)).token_id
    ended = json.dumps({"id": token_id}).encode()
    token = f"x-api-token: {admin}"
    end = head("/v1/tokens/revoke", token, f"Content-Length: {len(ended)}") + ended
    async with served(app.build_app(runtime, readiness)) as port, connected(port) as client:
        await client.send(end + head("/v1/tokens/self", token, method="GET"))
        assert [(await client.reply()).status for _ in range(2)] == [200, 401]

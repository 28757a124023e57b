"""The path of every API call: rights, errors as JSON, faults, limits, headers, paging, the log."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from aiohttp import web

from bot.sandbox import faults
from bot.sandbox.acts import actions_by_people, pull_states
from bot.sandbox.auth import Credentials, InstallationToken
from bot.sandbox.faults import Fault
from bot.sandbox.records import Account, App, Json
from bot.sandbox.refusal import Refusal, not_found, refused, say
from bot.sandbox.rest import call as calls
from bot.sandbox.rest.call import Answer, Call, Reply, Route
from bot.sandbox.timeline import stamp
from bot.sandbox.world import World

PREFIX = "/api/v3"
API_VERSIONS = ("2022-11-28", "2026-03-10")
"""The first is the one of a request that names none ("API Versions")."""
REMOVED = frozenset(
    {"assignee", "has_downloads", "master_branch", "merge_commit_sha"}
    | {"use_squash_pr_title_as_default"}
)
"""Fields that the newer version no longer has ("Breaking changes", version 2026-03-10)."""
LIMIT_PER_HOUR = 5000
MEDIA_TYPE = "github.v3; format=json"
REQUEST_ID = web.RequestKey("request_id", str)
JSON_BODY = web.RequestKey("json_body", dict[str, Any])

_HTML = "<!DOCTYPE html><html><body><h1>Unicorn!</h1></body></html>"
# The calls that the published description marks as creating content, of those imitated here.
_CONTENT = (
    ("POST", re.compile(r"/repos/[^/]+/[^/]+/issues(/\d+/comments)?")),
    ("POST", re.compile(r"/repos/[^/]+/[^/]+/pulls")),
    ("PUT", re.compile(r"/repos/[^/]+/[^/]+/pulls/\d+/merge")),
)
_TRUNCATED_TO = 2  # the answer's length divided by this


@dataclass(slots=True)
class Door:
    """The API of one world; `used` counts the calls of each credential by the hour."""

    world: World
    credentials: Credentials
    used: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    async def answer(self, request: web.Request, route: Route) -> web.Response:
        """The whole answer to one call of a route."""
        secret = _bearer_of(request)
        try:
            reply = await self._reply(request, route, secret)
        except Refusal as refused:
            reply = Reply(refused.body(), refused.status)
        return self.respond(request, reply, secret)

    async def _reply(self, request: web.Request, route: Route, secret: str | None) -> Reply:
        version = _version_of(request)
        if version not in API_VERSIONS:
            raise refused("version.unknown", version)
        caller = self.credentials.caller_of(secret)
        body = await _body_of(request)
        params, query = dict(request.match_info), dict(request.query)
        call = Call(self.world, self.credentials, caller, params, query, body)
        if "owner" in call.params and "repo" in call.params:
            name = f"{call.params['owner']}/{call.params['repo']}"
            call.target = calls.repository_of(self.world, caller, name)
            if call.target.full_name.lower() != name.lower():
                return self._moved(request, call, name)
        if "app" not in route.needs:
            calls.check_rights(call, route.needs, route.role)
        if request.method == "GET" or call.target is None:
            return self._paged(request, call, await route.handler(call))
        async with call.target.lock:
            return self._paged(request, call, await route.handler(call))

    def _moved(self, request: web.Request, call: Call, name: str) -> Reply:
        tail = request.rel_url.raw_path.removeprefix(f"{PREFIX}/repos/{name}")
        url = f"{self.world.web}{PREFIX}/repos/{call.repository.full_name}{tail}"
        if request.query_string:
            url += f"?{request.query_string}"
        status = 301 if request.method in ("GET", "HEAD") else 307
        text = "Moved Permanently" if status == 301 else "Temporary Redirect"
        return Reply({"message": text, "url": url}, status, {"Location": url})

    def _paged(self, request: web.Request, call: Call, answer: Answer) -> Reply:
        if isinstance(answer, Reply):
            return answer
        page, size = call.page()
        last = max(1, -(-len(answer.items) // size))
        part = answer.items[(page - 1) * size : page * size]
        shown: Any = [answer.shape(one) for one in part]
        if answer.key is not None:
            shown = {"total_count": len(answer.items), **answer.extra, answer.key: shown}
        return Reply(shown, 200, self._link(request, page, last))

    def _link(self, request: web.Request, page: int, last: int) -> dict[str, str]:
        wanted = {}
        if page < last:
            wanted = {"next": page + 1, "last": last}
        if page > 1:
            wanted |= {"first": 1, "prev": min(page - 1, last)}
        links = [
            f'<{self.world.web}{request.rel_url.update_query(page=str(number))}>; rel="{word}"'
            for word, number in wanted.items()
        ]
        return {"Link": ", ".join(links)} if links else {}

    def respond(self, request: web.Request, reply: Reply, secret: str | None) -> web.Response:
        """The HTTP form of a reply, with the headers that every answer has."""
        version = _version_of(request)
        version = version if version in API_VERSIONS else API_VERSIONS[0]
        headers = {
            "X-GitHub-Media-Type": MEDIA_TYPE,
            "X-GitHub-Api-Version-Selected": version,
            "X-GitHub-Request-Id": request[REQUEST_ID],
            **reply.headers,
        }
        shown = reply.body if version == API_VERSIONS[0] else newer(reply.body)
        raw = b"" if shown is None else json.dumps(shown).encode()
        status = reply.status
        if request.method == "GET" and status == 200:
            tag = f'W/"{hashlib.sha256(raw).hexdigest()}"'
            headers["ETag"] = tag
            headers["Cache-Control"] = "private, max-age=60, s-maxage=60"
            if request.headers.get("If-None-Match") == tag:
                status, raw = 304, b""
        counts = status != 304 and secret is not None
        headers.update(self._limits(request, secret or "", counts=counts))
        if not raw:
            return web.Response(status=status, headers=headers)
        headers["Content-Type"] = "application/json; charset=utf-8"
        return web.Response(status=status, body=raw, headers=headers)

    def _limits(self, request: web.Request, secret: str, *, counts: bool) -> dict[str, str]:
        if self.world.is_ghes:
            return {}
        resource = "graphql" if request.path.endswith("/graphql") else "core"
        now = self.world.timeline.callers_now()
        hour = int(now.timestamp()) // 3600
        key = (resource, secret, hour)
        if counts:
            self.used[key] += 1
        reset = int((now + timedelta(hours=1)).timestamp()) // 3600 * 3600
        used = self.used[key] + int(self.world.knobs.calls_of_others)
        return {
            "X-RateLimit-Limit": str(LIMIT_PER_HOUR),
            "X-RateLimit-Remaining": str(max(0, LIMIT_PER_HOUR - used)),
            "X-RateLimit-Used": str(used),
            "X-RateLimit-Reset": str(reset),
            "X-RateLimit-Resource": resource,
        }

    def note(self, request: web.Request, status: int, faults: list[str]) -> None:
        """Write a call into the log that `GET /_sandbox/calls` shows."""
        self.world.note_call(
            {
                "at": stamp(self.world.now()),
                "method": request.method,
                "path": request.rel_url.raw_path,
                "query": request.query_string,
                "status": status,
                "by": self._name_of(request),
                "body": request.get(JSON_BODY),
                "faults": faults,
                "request_id": request[REQUEST_ID],
            },
            request.content_length or 0,
        )

    def _name_of(self, request: web.Request) -> str:
        try:
            caller = self.credentials.caller_of(_bearer_of(request))
        except Refusal:
            return "unknown"
        match caller:
            case InstallationToken(installation=installation):
                return installation.app.bot.login
            case Account(login=login):
                return login
            case App():
                return "app"
            case None:
                return "anonymous"


def _bearer_of(request: web.Request) -> str | None:
    """The secret of the Authorization header; None without one."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    return secret.strip() if kind.lower() in ("bearer", "token") and secret else None


async def _body_of(request: web.Request) -> Json:
    """The JSON object of the body, empty without one. Raises Refusal(400)."""
    raw = await request.read()
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        raise refused("body.json") from None
    if not isinstance(value, dict):
        raise refused("body.object")
    request[JSON_BODY] = value
    return value


async def not_imitated(_: web.Request) -> web.Response:
    """The answer for everything the sandbox lacks."""
    headers = {"X-Sandbox": "not-imitated"}
    return web.json_response(not_found().body(), status=404, headers=headers)


def _version_of(request: web.Request) -> str:
    """The version of the REST API that a request asks for."""
    return request.headers.get("X-GitHub-Api-Version", API_VERSIONS[0])


def newer(value: Any) -> Any:
    """An answer without the fields that the newer version has removed."""
    if isinstance(value, list):
        return [newer(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: newer(each) for name, each in value.items() if name not in REMOVED}


async def before(served: Door, request: web.Request, fault: Fault) -> web.StreamResponse | None:
    """Apply a fault ahead of the call; an answer replaces that of the call."""
    value, world = fault.fault, served.world
    wait_s = float(value.get("s", 60))
    match fault.kind:
        case "before":
            await actions_by_people.act(world, value["act"])
        case "hang" | "late":
            await _delay(world, request, wait_s, is_cut=fault.kind == "late")
        case "mergeable_null":
            for repository in world.repositories.values():
                for pull in repository.open_pulls():
                    pull_states.recompute_mergeability(pull, delay_s=wait_s)
        case "other_tree":
            faults.lands_other_tree.set(True)
        case "reset_before":
            return _reset(request)
        case "token_expired":
            served.credentials.revoke(_bearer_of(request) or "")
            return _refused(401, "Bad credentials")
        case "primary_limit":
            return _primary_limit(world, fault, wait_s)
        case _:
            return _instead(fault)
    return None


async def _delay(world: World, request: web.Request, wait_s: float, *, is_cut: bool) -> None:
    """Serve a call later, also if its connection is cut meanwhile."""
    if is_cut:
        await request.read()
        _reset(request)
    await world.timeline.sleep(wait_s)


def _instead(fault: Fault) -> web.Response | None:
    """Return the answer that replaces a call; None for a fault that strikes after it."""
    value = fault.fault
    match fault.kind:
        case "fail_before":
            return _failed(fault)
        case "html":
            status = int(value.get("status", 200))
            return web.Response(status=status, text=_HTML, content_type="text/html")
        case "permission_409":
            return _refused(409, value.get("message", say("perm.integration")))
        case "refuse":
            return _refused(int(value["status"]), value["message"])
        case "secondary_limit":
            after = value.get("retry_after")
            headers = {"Retry-After": str(after)} if after else {}
            return _refused(403, say("limit.secondary"), headers)
        case _:
            return None


def _primary_limit(world: World, fault: Fault, wait_s: float) -> web.Response:
    reset_at = world.timeline.callers_now().timestamp() + wait_s
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(reset_at) + 1)}
    if "graphql" not in fault.match:
        return _refused(403, say("limit.primary", 1), headers)
    error = {"type": "RATE_LIMIT", "code": "graphql_rate_limit"}
    error["message"] = say("limit.primary_gql", 1)
    return web.json_response({"errors": [error]}, headers=headers)


def beyond_limits(world: World, method: str, path: str) -> web.Response | None:
    """Refuse a call that would create too much content; count any other."""
    if not any(method == verb and form.fullmatch(path) for verb, form in _CONTENT):
        return None
    now = world.timeline.now()
    spans = ((60.0, world.knobs.content_minute_max), (3600.0, world.knobs.content_hour_max))
    for seconds, most in spans:
        made = sum((now - at).total_seconds() < seconds for at in world.content)
        if most and made >= most:
            return _refused(403, say("limit.content"), {"Retry-After": str(int(seconds))})
    world.content.append(now)
    return None


async def after(
    request: web.Request, fault: Fault, answer: web.StreamResponse
) -> web.StreamResponse:
    """Apply a fault to the answer of a call that was served."""
    match fault.kind:
        case "fail_after":
            return _failed(fault)
        case "reset_after":
            return _reset(request)
        case "truncate" if isinstance(answer, web.Response):
            return await _truncated(request, answer)
        case "graphql_partial" if isinstance(answer, web.Response):
            return _partial(answer)
        case _:
            return answer


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(Refusal(status, message).body(), status=status, headers=headers)


def _failed(fault: Fault) -> web.Response:
    """A failure of GitHub itself."""
    status = int(fault.fault.get("status", 502))
    return _refused(status, HTTPStatus(status).phrase)


def _reset(request: web.Request) -> web.Response:
    """Cut the connection; the answer is not sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


async def _truncated(request: web.Request, answer: web.Response) -> web.StreamResponse:
    raw = answer.body if isinstance(answer.body, bytes) else b""
    cut = web.StreamResponse(status=answer.status, headers=answer.headers)
    cut.content_length = len(raw)
    await cut.prepare(request)
    await cut.write(raw[: len(raw) // _TRUNCATED_TO])
    _reset(request)
    return cut


def _partial(answer: web.Response) -> web.Response:
    data = json.loads(answer.text or "{}").get("data") or {}
    last = list(data)[-1:]
    data.update(dict.fromkeys(last))
    message = "Something went wrong while executing your query."
    return web.json_response({"data": data, "errors": [{"message": message, "path": last}]})

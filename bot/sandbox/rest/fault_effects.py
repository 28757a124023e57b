"""The effects of faults and of content limits on calls of the API."""

import json
import re
from http import HTTPStatus

from aiohttp import web

from bot.sandbox import faults
from bot.sandbox.acts import actions_by_people, pull_states
from bot.sandbox.faults import Fault
from bot.sandbox.refusal import Refusal, say
from bot.sandbox.rest import door
from bot.sandbox.rest.door import Door
from bot.sandbox.world import World

HTML = "<!DOCTYPE html><html><body><h1>Unicorn!</h1></body></html>"
# The calls that the published description marks as creating content, of those imitated here.
CONTENT = (
    ("POST", re.compile(r"/repos/[^/]+/[^/]+/issues(/\d+/comments)?")),
    ("POST", re.compile(r"/repos/[^/]+/[^/]+/pulls")),
    ("PUT", re.compile(r"/repos/[^/]+/[^/]+/pulls/\d+/merge")),
)
TRUNCATED_TO = 2  # the answer's length divided by this


async def before(served: Door, request: web.Request, fault: Fault) -> web.StreamResponse | None:
    """Apply a fault ahead of the call; an answer replaces that of the call."""
    value, world = fault.fault, served.world
    wait_s = float(value.get("s", 60))
    match fault.kind:
        case "before":
            await actions_by_people.act(world, value["act"])
        case "hang":
            await world.timeline.sleep(wait_s)
        case "mergeable_null":
            for repository in world.repositories.values():
                for pull in repository.open_pulls():
                    pull_states.recompute_mergeability(pull, delay_s=wait_s)
        case "other_tree":
            faults.lands_other_tree.set(True)
        case "reset_before":
            return _reset(request)
        case "token_expired":
            served.credentials.revoke(door.bearer_of(request) or "")
            return _refused(401, "Bad credentials")
        case "primary_limit":
            return _primary_limit(world, fault, wait_s)
        case _:
            return _instead(fault)
    return None


def _instead(fault: Fault) -> web.Response | None:
    """Return the answer that replaces a call; None for a fault that strikes after it."""
    value = fault.fault
    match fault.kind:
        case "fail_before":
            return _failed(fault)
        case "html":
            status = int(value.get("status", 200))
            return web.Response(status=status, text=HTML, content_type="text/html")
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
    if not any(method == verb and form.fullmatch(path) for verb, form in CONTENT):
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
    await cut.write(raw[: len(raw) // TRUNCATED_TO])
    _reset(request)
    return cut


def _partial(answer: web.Response) -> web.Response:
    data = json.loads(answer.text or "{}").get("data") or {}
    last = list(data)[-1:]
    data.update(dict.fromkeys(last))
    message = "Something went wrong while executing your query."
    return web.json_response({"data": data, "errors": [{"message": message, "path": last}]})

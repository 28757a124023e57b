"""The effects of faults and of content limits on calls of the API."""

import json
import re
from http import HTTPStatus

from aiohttp import web

from bot.sandbox import faults
from bot.sandbox.acts import actions_by_people, pull_states
from bot.sandbox.faults import Fault
from bot.sandbox.records import Json
from bot.sandbox.refusal import DOCUMENTATION, say
from bot.sandbox.rest import door
from bot.sandbox.rest.door import Door
from bot.sandbox.world import World

HTML = "<!DOCTYPE html><html><body><h1>Unicorn!</h1></body></html>"
# The calls that the published description marks as creating content, of those imitated here.
CONTENT = (
    ("POST", re.compile(r"/repos/[^/]+/[^/]+/issues(/\d+/comments)?")),
    ("POST", re.compile(r"/repos/[^/]+/[^/]+/pulls(/\d+/reviews)?")),
    ("PUT", re.compile(r"/repos/[^/]+/[^/]+/pulls/\d+/merge")),
)
TRUNCATED_TO = 2  # the answer's length divided by this


async def before(served: Door, request: web.Request, fault: Fault) -> web.StreamResponse | None:
    """Apply a fault ahead of the call; an answer takes the place of the call."""
    value, world = fault.fault, served.world
    wait_s = float(value.get("s", 60))
    match fault.kind:
        case "before":
            await actions_by_people.act(world, value["act"])
        case "hang":
            await world.timeline.sleep(wait_s)
        case "mergeable_null":
            for repository in world.repositories.values():
                for issue, _ in repository.open_pulls():
                    pull_states.look_again(repository, issue, delay_s=wait_s)
        case "other_tree":
            faults.lands_other_tree.set(True)
        case "reset_before":
            return reset(request)
        case "token_expired":
            served.credentials.revoke(door.bearer_of(request) or "")
            return refused(401, "Bad credentials")
        case "primary_limit":
            return _primary_limit(world, fault, wait_s)
        case _:
            return _instead(value)
    return None


def _instead(value: Json) -> web.Response | None:
    """Return the answer in place of a call; None for a fault that strikes after it."""
    match value["kind"]:
        case "fail_before":
            return failed(int(value.get("status", 502)))
        case "html":
            status = int(value.get("status", 200))
            return web.Response(status=status, text=HTML, content_type="text/html")
        case "permission_409":
            return refused(409, value.get("message", say("perm.integration")))
        case "refuse":
            return refused(int(value["status"]), value["message"])
        case "suspended":
            return refused(403, say("token.suspended"))
        case "secondary_limit":
            after = value.get("retry_after")
            headers = {"Retry-After": str(after)} if after else {}
            return refused(403, say("limit.secondary"), headers)
        case _:
            return None


def _primary_limit(world: World, fault: Fault, wait_s: float) -> web.Response:
    reset_at = world.timeline.callers_now().timestamp() + wait_s
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(reset_at) + 1)}
    if "graphql" not in fault.match:
        return refused(403, say("limit.primary", 1), headers)
    error = {"type": "RATE_LIMITED", "message": say("limit.primary_gql", 1)}
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
            return refused(403, say("limit.content"), {"Retry-After": str(int(seconds))})
    world.content.append(now)
    return None


async def after(
    request: web.Request, fault: Fault, answer: web.StreamResponse
) -> web.StreamResponse:
    """Apply a fault to the answer of a call that was served."""
    match fault.kind:
        case "fail_after":
            return failed(int(fault.fault.get("status", 502)))
        case "reset_after":
            return reset(request)
        case "truncate" if isinstance(answer, web.Response):
            return await _truncated(request, answer)
        case "graphql_partial" if isinstance(answer, web.Response):
            return _partial(answer)
        case _:
            return answer


def refused(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal in the provider's form."""
    body = {"message": message, "documentation_url": DOCUMENTATION, "status": str(status)}
    return web.json_response(body, status=status, headers=headers)


def failed(status: int) -> web.Response:
    """A failure of the provider itself."""
    return refused(status, HTTPStatus(status).phrase)


def reset(request: web.Request) -> web.Response:
    """Cut the connection; whatever is answered goes nowhere."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


async def _truncated(request: web.Request, answer: web.Response) -> web.StreamResponse:
    raw = answer.body if isinstance(answer.body, bytes) else b""
    cut = web.StreamResponse(status=answer.status, headers=answer.headers)
    cut.content_length = len(raw)
    await cut.prepare(request)
    await cut.write(raw[: len(raw) // TRUNCATED_TO])
    reset(request)
    return cut


def _partial(answer: web.Response) -> web.Response:
    value = json.loads(answer.text or "{}")
    found = value.get("data") or {}
    for name in list(found)[-1:]:
        found[name] = None
    said = "Something went wrong while executing your query."
    errors = [{"message": said, "path": list(found)[-1:]}]
    return web.json_response({"data": found, "errors": errors})

"""A client of the service's HTTP API, for every command that does not run the service itself."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import orjson

from bot.cli.exits import Exit, Failed
from bot.program import VERSION
from bot.uploader import transport
from bot.uploader.transport import (
    Clock,
    Json,
    Request,
    RequestFailed,
    Response,
    Retries,
    Transient,
)

# Five attempts.
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
# Cancel and restart wait up to 20 s for an open landing.
REQUEST_TIMEOUT_S = 40.0
# An earlier attempt has arrived, and its answer is not ready yet.
FIRST_ATTEMPT_RUNS = "idempotency_in_progress"

EXITS = {
    400: Exit.REFUSED,
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    404: Exit.NOT_FOUND,
}

# How the command line names what the API calls otherwise.
OPTIONS_BY_FIELD = {
    "pr/number": "the pull request's number",
    "pr/sha": "--sha",
    "priority": "--priority",
    "reason": "--reason",
    "text": "--reason",
    "stateReason": "--reason",
    "targetBranch": "--branch",
    "until": "--until",
    "expires_at": "--until",
    "expectedVersion": "--expected-version",
    "repo": "--repo",
    "repo/host": "--repo",
    "repo/owner": "--repo",
    "repo/name": "--repo",
    "repositories": "--repo",
    "scope": "--scope",
    "events": "--event",
    "event": "--event",
    "description": "--description",
    "url": "the address of the endpoint",
    "id": "the endpoint's id",
    "endpoint_id": "the endpoint's id",
    "overlap_hours": "--overlap-hours",
    "message_id": "--message",
    "since": "--since",
    "include_delivered": "--delivered",
    "holdId": "the hold's id",
    "noBatch": "--no-batch",
    "undoes": "--undoes",
    "again": "--again",
    "timeoutMinutes": "--timeout",
    "test_id": "the test's id",
    "upload_id": "the upload's id",
    "owner": "--owner",
    "search": "--search",
    "order_by": "--sort",
}

NEXT_STEPS = {
    "queue_not_found": "Make one: headgate queue create --branch BRANCH",
}


class Answer(Json):
    """The service's answer; a missing member means that the service is another, or older."""

    def __missing__(self, name: str) -> object:
        """Raise Failed(UNREACHABLE)."""
        raise Failed(
            Exit.UNREACHABLE,
            f"the service answered without {name!r}",
            "Is it Headgate, and as new as this program?",
        )


class Refusal(Failed):
    """The service refused a request; `problem` is the body of its answer."""

    def __init__(self, status: int, problem: Json) -> None:
        self.status = status
        self.problem = problem
        self.problem_code = str(problem.get("code", ""))
        detail = str(problem.get("detail") or problem.get("title") or f"answered {status}")
        errors = problem.get("errors")
        if isinstance(errors, list) and errors:
            detail = "; ".join(error_text(error) for error in errors)
        role = problem.get("required_role")
        todo = f"Make one with `headgate token create --role {role}`" if role else ""
        todo = todo or NEXT_STEPS.get(self.problem_code, "")
        super().__init__(EXITS.get(status, Exit.REFUSED), detail, todo)


@dataclass(frozen=True, slots=True)
class Client:
    """One service and one token; `log` receives a line for each retry."""

    url: str
    token: str
    log: Callable[[str], object]
    clock: Clock = Clock()  # noqa: RUF009 - a tuple of functions

    def post(self, path: str, body: Json) -> Json:
        """Return the answer to `POST /v1{path}`; repeated attempts act once.

        Raises Refusal, and Failed(UNREACHABLE) after five attempts.
        """
        headers = {
            "Content-Type": "application/json",
            # It tells the service that a second attempt is the same request.
            "Idempotency-Key": transport.unique_id(),
        }
        return self._send(Request(path, headers, orjson.dumps(body)))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return the answer to `GET /v1{path}`. Raises as `post`."""
        return self._send(Request(f"{path}?{urlencode(query)}" if query else path))

    def _send(self, request: Request) -> Json:
        own = {"User-Agent": f"headgate-cli/{VERSION}", "x-api-token": self.token}
        prepared = request._replace(headers={**own, **request.headers})

        retries = Retries(
            PAUSES_S, REQUEST_TIMEOUT_S, self.log, self.clock.sleep, after_timeout=True
        )
        try:
            return transport.send(self.url, prepared, retries, parse_response)
        except RequestFailed as failed:
            raise Failed(Exit.UNREACHABLE, f"{self.url}: {failed.reason}", advice(failed)) from None


def advice(failed: RequestFailed) -> str:
    """Return what to do about a service that cannot be used; empty where it says so itself."""
    if AGAIN in failed.reason:
        return ""
    if failed.wait_s > transport.PAUSE_MAX_S:
        return "Try again later"
    if failed.code == transport.TLS:
        return "Give its address with --url or HEADGATE_URL"
    if failed.code == NOT_HEADGATE:
        return "Is it Headgate? Give its address with --url or HEADGATE_URL"
    if failed.code:
        return "Try again later"
    return "Start `headgate serve` there, or give another --url"


NOT_HEADGATE = "not_headgate"

AGAIN = "Try again in"
"""How a service says when it can be used again."""


def parse_response(response: Response) -> Json:
    """Return the object of a success.

    Raises Transient, Refusal, Failed(NOT_ALLOWED) and RequestFailed.
    """
    if 300 <= response.status < 400 and (moved := response.headers.get("Location")):
        reason = f"redirects to {moved[: transport.REASON_MAX]!r}"
        raise RequestFailed(reason, code=NOT_HEADGATE)
    if not response.is_whole:
        raise Transient("the answer breaks off")
    transport.raise_if_transient(response, (FIRST_ATTEMPT_RUNS,))
    if response.status == 401:
        raise Failed(
            Exit.NOT_ALLOWED,
            "the token is unknown, expired or revoked",
            "Make one with `headgate token create` and set HEADGATE_TOKEN",
        )
    content = transport.json_object(response.body)
    if content is None:
        reason = f"answered {response.status} without a JSON object"
        raise RequestFailed(reason, code=NOT_HEADGATE)
    if response.status != 200:
        raise Refusal(response.status, content)
    return Answer(content)


def error_text(error: object) -> str:
    """Return `concurrency is out of range; did you mean …?` for one error of a refusal."""
    if not isinstance(error, dict):
        return str(error)
    near = error.get("did_you_mean")
    field = str(error.get("field", "")).strip("/")
    # The option of a list names all of its items, and each item whole.
    option = OPTIONS_BY_FIELD.get(re.sub(r"/\d+(/\w+)?$", "", field), field)
    text = f"{option} {error.get('message', '')}".strip()
    return f"{text}; did you mean {near}?" if near else text

"""A client of our own HTTP interface: what every command but the server's own speaks.

Knows addresses, the token and patience; what an answer means to a command is the command's.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import orjson
from pydantic import JsonValue

from bot.cli.exits import Exit, Failed
from bot.uploader import sending
from bot.uploader.sending import WHY_MAX, Unsent
from bot.settings import VERSION
from service.clock import Clock, Ids, RandomIds

Json = dict[str, JsonValue]

# UX.md 5: unreachable after five tries.
TRIES = 5
FIRST_PAUSE_S = 1.0
# A service that asks for more patience than this is not waited for.
PAUSE_MAX_S = 60.0
# Cancel and restart wait up to 20 s for an open landing (API.md 4.2).
REQUEST_TIMEOUT_S = 40.0
TRY_AGAIN = frozenset({429, 500, 502, 503, 504})
# An earlier try arrived after all, and is not answered yet.
FIRST_TRY_RUNS = "idempotency_in_progress"

EXITS = {
    400: Exit.REFUSED,
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    404: Exit.NOT_FOUND,
}


class Answer(Json):
    """What the service answers; what it does not name is not Headgate's, or not of our version."""

    def __missing__(self, name: str) -> JsonValue:
        """Raises Failed(UNREACHABLE)."""
        raise Failed(
            Exit.UNREACHABLE,
            f"the service answered without {name!r}",
            "Is it Headgate, and as new as this program?",
        )


class Refusal(Failed):
    """The service said no; `problem` is its body, `status` and `code` as API.md 3 has them."""

    def __init__(self, status: int, problem: Json) -> None:
        self.status = status
        self.problem = problem
        self.code_of_problem = str(problem.get("code", ""))
        detail = str(problem.get("detail") or problem.get("title") or f"answered {status}")
        faults = problem.get("errors")
        if isinstance(faults, list) and faults:
            detail = "; ".join(fault_text(fault) for fault in faults)
        super().__init__(EXITS.get(status, Exit.REFUSED), detail, mend_of(problem))


@dataclass(frozen=True, slots=True)
class Client:
    """One service and one token. `told` hears why a request is sent once more."""

    url: str
    token: str
    clock: Clock
    ids: Ids
    session: aiohttp.ClientSession
    told: Callable[[str], None]

    async def post(self, path: str, body: Json) -> Json:
        """The answer to `POST /v1{path}`; sent again while the service is away.

        Each has an `Idempotency-Key` of its own, so that what an earlier try has done is not
        done twice (API.md 1.5). Raises Refusal for a no, Failed(UNREACHABLE) after five tries.
        """
        key = {"Idempotency-Key": self.ids.uuid()}
        return await self._answer(Sent("POST", path, headers=key, body=orjson.dumps(body)))

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """The answer to `GET /v1{path}`; as `post`."""
        return await self._answer(Sent("GET", path, query=query or {}))

    async def _answer(self, sent: "Sent") -> Json:
        pause_s = FIRST_PAUSE_S
        for tries_left in range(TRIES - 1, -1, -1):
            trouble = await self._once(sent)
            if isinstance(trouble, dict):
                return trouble
            if not trouble.may_pass:
                raise Failed(
                    Exit.UNREACHABLE,
                    f"{self.url} {trouble.what}",
                    "Is it Headgate? Give its address with --url or HEADGATE_URL",
                )
            if not tries_left:
                raise Failed(
                    Exit.UNREACHABLE,
                    f"{self.url} {trouble.what}",
                    "Start `headgate serve` there, or give another --url",
                )
            pause_s = max(pause_s, trouble.retry_after_s)
            if pause_s > PAUSE_MAX_S:
                raise Failed(Exit.UNREACHABLE, f"{self.url} {trouble.what}", "Try again later")
            self.told(f"{self.url} {trouble.what}; trying again in {pause_s:.0f} s")
            await self.clock.sleep(pause_s)
            pause_s *= 2
        raise AssertionError("a loop over a constant ends by return or raise")

    async def _once(self, sent: "Sent") -> "Json | Trouble":
        """One try. Raises Refusal; trouble that may pass is a value."""
        try:
            asked = self.session.request(
                sent.method,
                f"{self.url}/v1{sent.path}",
                params=sent.query,
                headers=sent.headers,
                data=sent.body,
                # A POST would become a GET, and the token go to strangers.
                allow_redirects=False,
            )
            async with asked as answer:
                if 300 <= answer.status < 400 and (moved := answer.headers.get("Location")):
                    return Trouble(f"leads to {moved[:WHY_MAX]!r}", may_pass=False)
                retry_after = answer.headers.get("Retry-After")
                return read_answer(answer.status, retry_after, await answer.read())
        except aiohttp.ClientConnectorError as failed:
            reason = failed.os_error.strerror or str(failed.os_error)
            return Trouble(f"cannot be reached ({reason.lower()})")
        except ValueError as odd:
            # A name that no host can have, or a port.
            return Trouble(f"cannot be asked ({odd})", may_pass=False)
        except (aiohttp.ClientError, TimeoutError) as failed:
            text = " ".join(str(failed).split()) or type(failed).__name__
            return Trouble(f"did not answer ({text[:WHY_MAX]})")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, the same in every try."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong in one try; `may_pass` false: another would get the same answer."""

    what: str
    retry_after_s: float = 0.0
    may_pass: bool = True


@asynccontextmanager
async def connected(
    url: str, token: str, clock: Clock, told: Callable[[str], None]
) -> AsyncIterator[Client]:
    """A client of the service at `url`, the web root with or without `/v1`.

    It goes the same way as uploads do. Raises Failed(USAGE) where that leads nowhere.
    """
    headers = {
        "x-api-token": token,
        "Content-Type": "application/json",
        "User-Agent": f"headgate-cli/{VERSION}",
    }
    root = url.rstrip("/").removesuffix("/v1")
    try:
        proxy = sending.proxy_of(root)
    except Unsent as odd:
        raise Failed(Exit.USAGE, odd.why, "Name the proxy as http://HOST:PORT") from odd
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, proxy=proxy) as session:
        yield Client(root, token, clock, RandomIds(), session, told)


def read_answer(status: int, retry_after: str | None, body: bytes) -> Json | Trouble:
    """The object of a success, or trouble. Raises Refusal for a lasting no."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    code = value.get("code") if isinstance(value, dict) else None
    if status in TRY_AGAIN or code == FIRST_TRY_RUNS:
        seconds = sending.seconds_of(retry_after)
        return Trouble(f"answered {status}" + (f" ({code})" if code else ""), seconds)
    if status == 401:
        raise Failed(
            Exit.NOT_ALLOWED,
            "the token is unknown, expired or revoked",
            "Make one with `headgate token create` and set HEADGATE_TOKEN",
        )
    if not isinstance(value, dict):
        what = f"answered {status} with something that is no JSON object"
        return Trouble(what, may_pass=False)
    if status != 200:
        raise Refusal(status, value)
    return Answer(value)


def mend_of(problem: Json) -> str:
    """What to do about a refusal, where its detail cannot say it in terms of commands."""
    role = problem.get("required_role")
    return f"Make one with `headgate token create --role {role}`" if role else ""


def fault_text(fault: JsonValue) -> str:
    """`concurrency is out of range; did you mean …?` of one member of `errors`."""
    if not isinstance(fault, dict):
        return str(fault)
    near = fault.get("did_you_mean")
    text = f"{str(fault.get('field', '')).strip('/')} {fault.get('message', '')}".strip()
    return f"{text}; did you mean {near}?" if near else text

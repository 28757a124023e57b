"""Clone, fetch and push over HTTP: `/{owner}/{repo}.git/…`.

Reading is `git http-backend` itself. A push is parsed here, because the rules must be checked
and the refs moved by acts/refs.py like any other move: the pack goes through
`git unpack-objects`, the answer is written in the protocol's own lines.
"""

import base64
from dataclasses import dataclass
from urllib.parse import quote

from aiohttp import web

from bot.sandbox import auth, command
from bot.sandbox.acts import refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.auth import Caller, Credentials, InstallationToken
from bot.sandbox.git import ZERO
from bot.sandbox.records import ROLES, Account, Actor
from bot.sandbox.refusal import Refusal, refused, say
from bot.sandbox.rest.call import repository_of
from bot.sandbox.rules import Broken, RuleRefusal
from bot.sandbox.world import Repository, World

FLUSH = b"0000"
MINUTE_S = 60.0
BAND = 65_515  # the most that one line of a side band carries
RESULTS_BAND, WORDS_BAND = b"\x01", b"\x02"


@dataclass(frozen=True, slots=True)
class RefResult:
    """The result of one ref of a push: why it was refused, and what git shows beside that.

    `reason` is empty for a ref that was moved. `words` are lines for people.
    """

    ref: str
    reason: str = ""
    words: tuple[str, ...] = ()

    @property
    def line(self) -> bytes:
        """The line of the protocol."""
        return (
            f"ng {self.ref} {self.reason}\n".encode()
            if self.reason
            else f"ok {self.ref}\n".encode()
        )


@dataclass(frozen=True, slots=True)
class SmartHttp:
    """The git endpoints of one world."""

    world: World
    credentials: Credentials

    def routes(self) -> list[web.RouteDef]:
        """The three routes."""
        base = "/{owner}/{repo}.git"
        return [
            web.get(f"{base}/info/refs", self.advertise),
            web.post(f"{base}/git-upload-pack", self.upload_pack),
            web.post(f"{base}/git-receive-pack", self.receive_pack),
        ]

    async def advertise(self, request: web.Request) -> web.StreamResponse:
        """`info/refs` of either service."""
        service = request.query.get("service", "")
        if service not in ("git-upload-pack", "git-receive-pack"):
            return web.Response(status=403, text="dumb HTTP is not imitated\n")
        repository, _ = self._admit(request, is_write=service == "git-receive-pack")
        return await _backend(request, repository, "/info/refs")

    async def upload_pack(self, request: web.Request) -> web.StreamResponse:
        """Send objects."""
        repository, _ = self._admit(request, is_write=False)
        return await _backend(request, repository, "/git-upload-pack")

    async def receive_pack(self, request: web.Request) -> web.StreamResponse:
        """Store objects and move refs."""
        repository, caller = self._admit(request, is_write=True)
        actor = auth.actor_of(caller)
        if actor is None:
            raise _challenge()
        commands, capabilities, pack = _read_commands(await request.read())
        async with repository.lock:
            unpacked, results = await _receive(repository, actor, commands, pack)
        listed = (f"unpack {unpacked}\n".encode(), *(one.line for one in results))
        lines = b"".join(_packet(line) for line in listed) + FLUSH
        if "side-band-64k" in capabilities:
            words = "".join(f"{word}\n" for one in results for word in one.words).encode()
            lines = _banded(WORDS_BAND, words) + _banded(RESULTS_BAND, lines) + FLUSH
        headers = {
            "Content-Type": "application/x-git-receive-pack-result",
            "Cache-Control": "no-cache",
        }
        return web.Response(body=lines, headers=headers)

    def _admit(self, request: web.Request, *, is_write: bool) -> tuple[Repository, Caller]:
        """The repository and the caller, if the caller may read or write it."""
        name = f"{request.match_info['owner']}/{request.match_info['repo']}"
        try:
            caller = self.credentials.caller_of(_secret_of(request))
            repository = repository_of(self.world, caller, name)
        except Refusal as refusal:
            raise _challenge() if refusal.status == 401 else web.HTTPNotFound() from None
        if is_write and caller is None:
            raise _challenge()
        if is_write and not _may_push(caller, repository):
            raise web.HTTPForbidden(text=f"{_denied(caller, repository)}\n")
        if isinstance(caller, InstallationToken) and caller.installation.suspended_at is not None:
            raise web.HTTPForbidden(text=f"{say('token.suspended')}\n")
        return repository, caller


def _is_beyond_limit(repository: Repository) -> bool:
    """Return whether a push is one too many within a minute; count it otherwise."""
    world = repository.world
    now, most = world.timeline.now(), world.knobs.pushes_minute_max
    recent = sum((now - at).total_seconds() < MINUTE_S for at in repository.pushes)
    if most and recent >= most:
        return True
    repository.pushes.append(now)
    return False


def _denied(caller: Caller, repository: Repository) -> str:
    owner, name = repository.owner.login, repository.name
    if isinstance(caller, Account):
        said = say("push.denied/person", owner, name, caller.login)
    elif isinstance(caller, InstallationToken):
        said = say("push.denied", owner, name, caller.installation.app.slug)
    else:
        raise _challenge()
    return _without_prefix(said)


def _beyond_policy(repository: Repository, one: Move) -> RefResult:
    """Refuse a ref of a push that changes too many: GitHub moves none of them, and says so of each.

    The push policy: https://github.com/ejoffe/spr/issues/422 has the whole output.
    """
    sentence = say("push.count", int(repository.world.knobs.push_refs_max))
    return _by_rulesets(repository, one, (sentence,))


def _by_rules(repository: Repository, one: Move, broken: Broken) -> RefResult:
    if broken.rulesets:
        return _by_rulesets(repository, one, broken.rulesets)
    first = _without_prefix(say("push.gh006", one.ref.removeprefix(refs.BRANCH)))
    said = (first, *(f"- {sentence}" for sentence in broken.classic))
    return RefResult(one.ref, say("push.gh006/line"), said)


def _by_rulesets(repository: Repository, one: Move, sentences: tuple[str, ...]) -> RefResult:
    page = say("push.gh013/page", repository.page, quote(one.ref, safe=""))
    blocks = [line for sentence in sentences for line in (f"- {sentence}", "")]
    first = _without_prefix(say("push.gh013", one.ref))
    return RefResult(one.ref, say("push.gh013/line"), (first, page, "", *blocks))


def _without_prefix(said: str) -> str:
    """Return what the server sends; git itself puts `remote:` before each line."""
    return said.removeprefix("remote: ")


def _banded(band: bytes, content: bytes) -> bytes:
    parts = (content[at : at + BAND] for at in range(0, len(content), BAND))
    return b"".join(_packet(band + part) for part in parts)


async def _receive(
    repository: Repository, actor: Actor, commands: list[Move], pack: bytes
) -> tuple[str, list[RefResult]]:
    """Return whether the objects could be stored, as the protocol says it, and each result."""
    if _is_beyond_limit(repository):
        # GitHub names no limit: each ref fails without a reason.
        return "ok", [RefResult(one.ref, say("push.failed/line")) for one in commands]
    if 0 < repository.world.knobs.push_refs_max < len(commands):
        return "ok", [_beyond_policy(repository, one) for one in commands]
    if pack:
        try:
            await command.run("unpack-objects", "-q", cwd=repository.git.folder, feed=pack)
        except command.GitFailed as failed:
            return str(failed), [RefResult(one.ref, "unpack failed") for one in commands]
    return "ok", [await _moved(repository, actor, one) for one in commands]


async def _moved(repository: Repository, actor: Actor, one: Move) -> RefResult:
    try:
        await _move(repository, actor, one)
    except RuleRefusal as refusal:
        return _by_rules(repository, one, refusal.broken)
    except Refusal as refusal:
        return RefResult(one.ref, " ".join(refusal.message.split()))
    return RefResult(one.ref)


async def _move(repository: Repository, actor: Actor, one: Move) -> None:
    if one.ref.startswith("refs/pull/"):
        raise refused("push.hidden")
    if one.after != ZERO:
        # A new branch is compared with the default branch, by reports of people who met it.
        compared = repository.git.branch(repository.default_branch)
        before = one.before if one.before not in (None, ZERO) else compared
        if before is not None:
            await refs.refuse_workflow_files(repository, actor, before, one.after)
    await refs.move(repository, actor, [one], How("git push"))


def _may_push(caller: Caller, repository: Repository) -> bool:
    match caller:
        case Account():
            is_writer = ROLES.index(repository.role_of(caller)) >= ROLES.index("write")
        case InstallationToken():
            is_granted = caller.effective().get("contents") == "write"
            is_writer = caller.sees(repository) and is_granted
        case _:
            is_writer = False
    return is_writer and not repository.archived


async def _backend(request: web.Request, repository: Repository, path: str) -> web.StreamResponse:
    body = await request.read()
    # aiohttp has undone a content encoding already, so git must not see it.
    environment = {
        "GIT_PROJECT_ROOT": str(repository.git.folder.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{repository.git.folder.name}{path}",
        "QUERY_STRING": request.query_string,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REMOTE_USER": "sandbox",
    }
    folder = repository.git.folder
    out = await command.run("http-backend", cwd=folder, feed=body, env=environment)
    head, _, rest = out.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(headers.pop("Status", "200").split(" ")[0])
    return web.Response(status=status, body=rest, headers=headers)


def _packet(line: bytes) -> bytes:
    """A line of the protocol: four digits of length, then the line."""
    return f"{len(line) + 4:04x}".encode() + line


def _read_commands(body: bytes) -> tuple[list[Move], set[str], bytes]:
    """The moves a push asks for, its capabilities, and the pack that follows."""
    moves: list[Move] = []
    capabilities: set[str] = set()
    at = 0
    while body[at : at + 4] not in (FLUSH, b""):
        length = int(body[at : at + 4], 16)
        line, _, listed = body[at + 4 : at + length].partition(b"\0")
        capabilities |= set(listed.decode().split())
        before, after, ref = line.decode().rstrip("\n").split(" ", 2)
        # A person's git has checked force already; the rules decide what it may do.
        moves.append(Move(ref, after, before, force=True))
        at += length
    return moves, capabilities, body[at + 4 :]


def _secret_of(request: web.Request) -> str | None:
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() in ("bearer", "token"):
        return value
    if kind.lower() != "basic":
        return None
    try:
        return base64.b64decode(value).decode().partition(":")[2]
    except ValueError:
        return ""


def _challenge() -> web.HTTPException:
    return web.HTTPUnauthorized(headers={"WWW-Authenticate": 'Basic realm="sandbox"'})

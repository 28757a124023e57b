"""Git commands: no inherited environment, and limits on time, memory, output and file size.

See docs/design/git-builds.md 2. Secrets are passed in the environment, never as arguments.
"""

import asyncio
import base64
import os
import re
import signal
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bot.uploader.proxies import Proxies

DIRECT = Proxies()

VERSION_MIN = (2, 38)  # the first with `merge-tree --write-tree`
OUTPUT_BYTES_MAX = 1 << 20
ERRORS_BYTES_MAX = 64 << 10
MEMORY_KIB = 2 << 20
FILE_BLOCK_BYTES = 512  # the unit of `ulimit -f` in a POSIX shell
WORDS_MAX = 300
NETWORK_S = 60.0
LOCAL_S = 30.0

# A shell sets the limits, because git's own children must inherit them from the start.
LIMITED = 'ulimit -c 0; ulimit -v "$1"; ulimit -f "$2"; shift 2; exec git "$@"'

ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_OPTIONAL_LOCKS": "0",
}
INHERITED = {
    "PATH": "PATH",
    # OpenSSL's names, which Python reads too, and git's.
    "SSL_CERT_FILE": "GIT_SSL_CAINFO",
    "SSL_CERT_DIR": "GIT_SSL_CAPATH",
}
"""Variables of this process that git gets, by the name that git reads."""
CONFIG = {
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "none",
    "core.askPass": "",
    "credential.helper": "",
    "protocol.allow": "never",
    "http.followRedirects": "false",
    # A server that packs sends a few bytes only, so a higher limit would end a healthy fetch.
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "120",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.negotiate": "false",
    # Like GitHub's merges, which do not follow renames; git 2.39 needs the limit for that.
    "merge.renames": "false",
    "merge.directoryRenames": "false",
    "merge.renameLimit": "1",
    "pack.threads": "1",
    "pack.windowMemory": "64m",
    "core.packedGitLimit": "512m",
    "core.bigFileThreshold": "16m",
}


class GitFailed(Exception):
    """A git command failed; `words` are its error messages, without secrets."""

    def __init__(self, command: str, words: str) -> None:
        super().__init__(f"git {command}: {words}")
        self.command = command
        self.words = words


@dataclass(frozen=True, slots=True)
class Remote:
    """The address of a repository and a token for it."""

    url: str
    token: str = field(repr=False)

    @property
    def credentials(self) -> str:
        """The value of the Authorization header."""
        pair = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        return f"Basic {pair}"


@dataclass(frozen=True, slots=True)
class Command:
    """One git command. `expects`: exit codes of success besides 0. `output_max`: in bytes."""

    arguments: tuple[str, ...]
    feed: bytes = b""
    expects: tuple[int, ...] = ()
    within_s: float = LOCAL_S
    environment: Mapping[str, str] = field(default_factory=dict)
    output_max: int = OUTPUT_BYTES_MAX

    @property
    def name(self) -> str:
        """The name of the command, without options before it."""
        return self.arguments[2 if self.arguments[0] == "-c" else 0]


@dataclass(frozen=True, slots=True)
class Output:
    """Exit code, standard output, and the error messages without secrets."""

    code: int
    text: bytes
    errors: str = ""


class Git:
    """Runs git commands. `files_max`: the largest file that one may write, in bytes."""

    def __init__(
        self, files_max: int, inherited: Mapping[str, str], proxies: Proxies = DIRECT
    ) -> None:
        self._files_max = files_max
        self._inherited = {
            own: inherited[name] for name, own in INHERITED.items() if inherited.get(name)
        }
        self._proxies = proxies
        self.started = 0

    async def version(self) -> tuple[int, int]:
        """Return the version of git, (0, 0) where it is missing."""
        try:
            output = await self.run(Path("/"), Command(("version",)))
        except (GitFailed, OSError):
            return (0, 0)
        match = re.search(rb"(\d+)\.(\d+)", output.text)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    async def run(self, folder: Path, command: Command, remote: Remote | None = None) -> Output:
        """Run a command in a mirror, with a token if it may talk to GitHub.

        Raises GitFailed for an unexpected exit code, a timeout, or a limit.
        """
        self.started += 1
        limits = (str(MEMORY_KIB), str(self._files_max // FILE_BLOCK_BYTES))
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            LIMITED,
            "git",
            *limits,
            *command.arguments,
            cwd="/",
            env=self._environment(folder, command, remote),
            stdin=PIPE if command.feed else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(command.within_s):
                output, errors = await _communicate(process, command)
                code = await process.wait()
        except TimeoutError:
            raise GitFailed(command.name, f"not done within {command.within_s:.0f} s") from None
        except _TooLong:
            raise GitFailed(command.name, "its output is too long") from None
        finally:
            await _end(process)
        words = _without_secrets(errors.decode(errors="replace").strip(), remote)
        if code not in (0, *command.expects):
            raise GitFailed(command.name, words[-WORDS_MAX:] or f"exit code {code}")
        return Output(code, output, words)

    def _environment(self, folder: Path, command: Command, remote: Remote | None) -> dict[str, str]:
        config = dict(CONFIG)
        scheme = "https"
        if remote is not None:
            url = remote.url
            # The options refuse plain http but for this machine (`options.addresses_of`).
            scheme = urlsplit(url).scheme
            config["remote.origin.url"] = url
            if proxy := self._proxies.of(url):
                config["http.proxy"] = proxy
            config[f"http.{url}.extraHeader"] = f"Authorization: {remote.credentials}"
        config[f"protocol.{scheme}.allow"] = "always"
        numbered = {"GIT_CONFIG_COUNT": str(len(config))}
        for place, (key, value) in enumerate(config.items()):
            numbered |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
        return {
            **self._inherited,
            **ENVIRONMENT,
            "GIT_ALLOW_PROTOCOL": scheme,
            "GIT_DIR": str(folder),
            **numbered,
            **command.environment,
        }


def _without_secrets(words: str, remote: Remote | None) -> str:
    """Return words of git without the token in any form."""
    if remote is not None:
        for secret in (remote.credentials.removeprefix("Basic "), remote.token):
            words = words.replace(secret, "[masked]")
    return words


class _TooLong(Exception):
    """More output than is read."""


async def _communicate(process: Process, command: Command) -> tuple[bytes, bytes]:
    output, errors, _ = await asyncio.gather(
        _read(process.stdout, command.output_max),
        _read(process.stderr, ERRORS_BYTES_MAX),
        _feed(process, command.feed),
    )
    return output, errors


async def _read(stream: StreamReader | None, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    length = 0
    while stream is not None and (part := await stream.read(1 << 16)):
        length += len(part)
        if length > bytes_max:
            raise _TooLong
        parts.append(part)
    return b"".join(parts)


async def _feed(process: Process, feed: bytes) -> None:
    if process.stdin is None:
        return
    # A command that ends before it has read everything says why by its exit code. uvloop refuses
    # a pipe that is closed already by a RuntimeError.
    with suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        process.stdin.write(feed)
        await process.stdin.drain()
    process.stdin.close()


async def _end(process: Process) -> None:
    """Kill what is left of the command and its children."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

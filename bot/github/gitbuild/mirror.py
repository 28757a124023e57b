"""Mirrors of repositories: bare clones that are a cache and never the truth about a branch.

See docs/design/git-builds.md 4. A mirror belongs to the process that holds its lock.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from cachetools import LRUCache

from bot.github.client import RepositoryClient
from bot.github.gitbuild.command import NETWORK_S, Command, Git, GitFailed, Output, Remote
from bot.github.options import MirrorOptions
from service.clock import Clock
from service.provider.values import Commit
from service.vocabulary import Resolved, Sha

FULL = ".git"
BLOBLESS = ".blobless.git"
NEW, OLD = "new-", "old-"  # before the name of a mirror that is being made or deleted
CREATION_S = 900.0
MAINTENANCE_S = 600.0
LOCK_PAUSE_S = 0.5
LOCK_TRIES = 120
LOOSE_FILES_MAX = 2_000
PACKS_MAX = 50
GROWTH_MAX = 2
GROWTH_FREE_BYTES = 256 << 20  # a small repository may grow by so much before that
UNUSED_MAX = timedelta(days=14)
FREE_DISK_SHARE = 0.1
UPKEEP_EVERY_S = 3600.0
SIZE_FILE = "headgate-size"
COMMITS_MAX = 1_000
FETCH = (
    "fetch",
    "-q",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--force",
    "--atomic",
    "--stdin",
    "origin",
)
MAINTENANCE = (
    "maintenance",
    "run",
    "--quiet",
    "--task=loose-objects",
    "--task=incremental-repack",
    "--task=commit-graph",
    "--task=pack-refs",
)
BLOBLESS_CONFIG = """\
[core]
\trepositoryformatversion = 1
[remote "origin"]
\tpromisor = true
\tpartialclonefilter = blob:none
[extensions]
\tpartialClone = origin
"""
REFUSED_TOKEN = (
    "authentication failed",
    "could not read username",
    "error: 401",
    # GitHub says so of a token that it has just made, too.
    "denied to",
)
NOT_FOUND = "not our ref"
# The mirror is not to blame for these; after any other local failure it is made anew.
HARMLESS = ("out of memory", "not done within", "malloc", "mmap", "output is too long")


# A fetch also fails for reasons of the network; these are the mirror's.
CORRUPT = (
    "not a git repository",
    "does not match index",
    "bad object",
    "inflate",
    "corrupt",
    "unable to read",
    "is too small",
    "non-monotonic",
    "could not read",
    "bad config",
)


class Reason(StrEnum):
    """Why the REST API built a test branch, a label of the metric; DEFAULT: git built it."""

    DEFAULT = "default"
    SETTING = "setting"
    NO_GIT = "no_git"
    TOO_BIG = "too_big"
    SIGNATURES = "signatures_required"
    UNREADABLE = "repository_unreadable"
    NOT_READY = "mirror_not_ready"
    NOT_MADE = "mirror_failed"
    BUSY = "mirror_busy"
    DISK = "disk_full"
    COOLING = "failed_before"
    DISAGREED = "disagreements"
    FETCH = "fetch_failed"
    MERGE = "merge_failed"
    PUSH = "push_refused"
    PUSH_RULE = "push_rule"
    PUSH_HOOK = "push_hook"
    PUSH_DENIED = "push_denied"
    PUSH_BUSY = "push_busy"
    PUSH_WORKFLOWS = "push_workflows"
    HEAD_MISSING = "head_missing"
    CONFLICT = "conflict"


class Unusable(Exception):
    """Git cannot build this time. `is_failure`: it was tried, which counts against it."""

    def __init__(self, reason: Reason, words: str = "", *, is_failure: bool = True) -> None:
        super().__init__(words or reason.value)
        self.reason = reason
        self.words = words
        self.is_failure = is_failure


@dataclass(slots=True)
class Mirror:
    """One mirror; use it inside `held` only."""

    folder: Path
    git: Git
    clock: Clock
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_clean: bool = False
    made: LRUCache[Hashable, tuple[Commit, tuple[Resolved, ...]]] = field(
        default_factory=lambda: LRUCache(COMMITS_MAX)
    )
    """Commits that this process has made in it with what rules resolved, by what they depend on."""
    made_in: int | None = None

    @property
    def is_blobless(self) -> bool:
        """Return whether file contents are fetched only when a merge needs them."""
        return self.folder.name.endswith(BLOBLESS)

    @property
    def lock_path(self) -> Path:
        """The file whose lock is the right to use the mirror; its time is that of the last use."""
        return _lock_of(self.folder)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the mirror, against tasks and other processes. Raises Unusable(BUSY)."""
        async with self.turn:
            descriptor = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                for _ in range(LOCK_TRIES):
                    if _is_locked(descriptor):
                        break
                    await self.clock.sleep(LOCK_PAUSE_S)
                else:
                    raise Unusable(Reason.BUSY, is_failure=False)
                now = self.clock.now().timestamp()
                os.utime(self.lock_path, (now, now))
                if not self.is_clean:
                    self.remove_leftovers()
                    self.is_clean = True
                self._forget_unless_same()
                yield
            except asyncio.CancelledError:
                # A command that was ended may have left its lock.
                self.is_clean = False
                raise
            finally:
                os.close(descriptor)

    def _forget_unless_same(self) -> None:
        """Forget what was made in a mirror that has been made anew since."""
        born = None
        with suppress(FileNotFoundError):
            born = (self.folder / SIZE_FILE).stat().st_mtime_ns
        if born != self.made_in:
            self.made.clear()
            self.made_in = born

    def remove_leftovers(self) -> None:
        """Delete locks and unfinished packs of commands that were killed."""
        for left in (*self.folder.rglob("*.lock"), *self.folder.glob("objects/**/tmp_*")):
            with suppress(OSError):
                left.unlink()

    async def run(self, command: Command, client: RepositoryClient | None = None) -> Output:
        """Run a command; one with a client may talk to GitHub.

        It is run again with a new token if this one is refused. Raises GitFailed.
        """
        if client is None:
            return await self.git.run(self.folder, command)
        try:
            return await self.git.run(self.folder, command, await _remote_of(client))
        except GitFailed as failed:
            if not any(part in failed.words.lower() for part in REFUSED_TOKEN):
                raise
        client.github.tokens.drop(client.repo)
        return await self.git.run(self.folder, command, await _remote_of(client))

    async def fetch(
        self, client: RepositoryClient, refs: Mapping[str, Sha], *, is_first: bool = False
    ) -> None:
        """Get commits by their ids and keep them under these refs. Raises Unusable, GitFailed.

        Objects are checked, but for the target's own history: old ones often break a rule. In
        a blobless mirror the check takes twenty times as long as the fetch.
        """
        lines = "".join(f"+{sha}:refs/headgate/{name}\n" for name, sha in refs.items())
        is_checked = not (is_first or self.is_blobless)
        arguments = ("-c", f"fetch.fsckObjects={str(is_checked).lower()}", *FETCH)
        within_s = CREATION_S if is_first else NETWORK_S
        command = Command(arguments, lines.encode(), within_s=within_s)
        try:
            await self.run(command, client)
        except GitFailed as failed:
            self.remove_leftovers()
            if NOT_FOUND in failed.words:
                raise Unusable(Reason.HEAD_MISSING, failed.words, is_failure=False) from None
            raise

    def is_there(self) -> bool:
        """Return whether the mirror is complete."""
        return self.folder.is_dir()

    async def create(self, client: RepositoryClient, base: Mapping[str, Sha]) -> None:
        """Make the mirror, with the history of a commit, and let it appear when it is complete."""
        made = Mirror(self.folder.with_name(f"{NEW}{self.folder.name}"), self.git, self.clock)
        async with self.held():
            if self.is_there():
                return
            await _delete(made.folder)
            made.folder.mkdir(mode=0o700, parents=True)
            await made.run(Command(("init", "-q", "--bare", "--template=", "-b", "none")))
            if self.is_blobless:
                with (made.folder / "config").open("a") as file:
                    file.write(BLOBLESS_CONFIG)
            try:
                await made.fetch(client, base, is_first=True)
            except (GitFailed, Unusable):
                await _delete(made.folder)
                raise
            size = await asyncio.to_thread(_size_of, made.folder)
            (made.folder / SIZE_FILE).write_text(str(size))
            made.folder.rename(self.folder)

    async def delete(self) -> None:
        """Delete the mirror; the next build makes it anew."""
        gone = self.folder.with_name(f"{OLD}{self.folder.name}")
        await _delete(gone)
        with suppress(FileNotFoundError):
            self.folder.rename(gone)
        await _delete(gone)

    async def tend(self) -> None:
        """Pack what is loose; delete a mirror that has doubled. Raises GitFailed."""
        size = await asyncio.to_thread(_size_of, self.folder)
        first = int((self.folder / SIZE_FILE).read_text())
        if size > max(first * GROWTH_MAX, first + GROWTH_FREE_BYTES):
            await self.delete()
        elif not self.is_blobless and self._is_untidy():
            # Never of a blobless one: git before 2.48 can drop objects that are still needed.
            await self.run(Command(MAINTENANCE, within_s=MAINTENANCE_S))

    def _is_untidy(self) -> bool:
        # Loose objects are spread evenly over 256 folders, so one shows how many there are.
        loose = len(list(self.folder.glob("objects/17/*"))) * 256
        return loose > LOOSE_FILES_MAX or len(list(self.folder.glob("objects/pack/*.pack"))) > (
            PACKS_MAX
        )


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of all mirrors, their limit, and what is free on the disk.

    `is_enough`: one more mirror fits, at least after others were deleted.
    """

    used: int
    bytes_max: int
    free: int
    is_enough: bool


class Mirrors:
    """All mirrors of one host on this machine, and the limit on their size."""

    def __init__(self, host: str, options: MirrorOptions, clock: Clock) -> None:
        self._folder = options.folder / host
        self._bytes_max = options.bytes_max
        self._clock = clock
        self.git = Git(options.bytes_max, options.environment, options.proxies)
        self._mirrors: dict[str, Mirror] = {}

    def of(self, repository_id: str, *, is_blobless: bool) -> Mirror:
        """Return the mirror of a repository, which need not be there yet."""
        name = f"{repository_id}{BLOBLESS if is_blobless else FULL}"
        if name not in self._mirrors:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._mirrors[name] = Mirror(self._folder / name, self.git, self._clock)
        return self._mirrors[name]

    async def make_room(self, needed: int) -> None:
        """Delete mirrors that were not used for long, and as many more as the limit demands.

        Raises Unusable(DISK) when `needed` bytes are too many all the same.
        """
        sizes = {path: await asyncio.to_thread(_size_of, path) for path in self._used()}
        long_ago = (self._clock.now() - UNUSED_MAX).timestamp()
        for path in list(sizes):
            is_old = _used_at(path) < long_ago
            if (is_old or not self._has_room(sum(sizes.values()), needed)) and await _evict(path):
                del sizes[path]
        if not self._has_room(sum(sizes.values()), needed):
            raise Unusable(Reason.DISK, is_failure=False)

    async def room(self, needed: int) -> Room:
        """Return the room for a mirror, without deleting another one."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sizes = [await asyncio.to_thread(_size_of, path) for path in self._used()]
        free = shutil.disk_usage(self._folder).free
        return Room(sum(sizes), self._bytes_max, free, self._has_room(0, needed))

    def _used(self) -> list[Path]:
        """Return what is there, the least recently used first."""
        found = [path for path in self._folder.glob(f"*{FULL}") if path.is_dir()]
        return sorted(found, key=_used_at)

    def _has_room(self, used: int, needed: int) -> bool:
        disk = shutil.disk_usage(self._folder)
        is_within = used + needed <= self._bytes_max
        return is_within and disk.free - needed >= disk.total * FREE_DISK_SHARE


async def _remote_of(client: RepositoryClient) -> Remote:
    """Return the repository's address for git, with a token for it alone."""
    grant = await client.github.tokens.of(client.repo)
    return Remote(f"{client.github.options.addresses.git_of(client.repo)}", grant.token)


def base_ref(target: str) -> str:
    """Return the ref of a target branch; its name itself enters no command."""
    return f"base/{hashlib.sha256(target.encode()).hexdigest()[:16]}"


def is_harmless(failed: GitFailed) -> bool:
    """Return whether a local command failed for another reason than the mirror."""
    return any(part in failed.words.lower() for part in HARMLESS)


def is_corrupt(failed: GitFailed) -> bool:
    """Return whether a fetch failed because the mirror is damaged or gone."""
    return any(part in failed.words.lower() for part in CORRUPT)


def _size_of(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(at, name)).st_blocks * 512
    return total


def _lock_of(mirror: Path) -> Path:
    """Return the lock of a mirror, or of the one that is being made or deleted there."""
    return mirror.with_name(f"{mirror.name.removeprefix(NEW).removeprefix(OLD)}.lock")


def _used_at(mirror: Path) -> float:
    lock = _lock_of(mirror)
    return lock.stat().st_mtime if lock.exists() else 0.0


async def _evict(mirror: Path) -> bool:
    """Delete a mirror; False when it is in use."""
    descriptor = os.open(_lock_of(mirror), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _is_locked(descriptor):
            await _delete(mirror)
            return True
        return False
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    """Try to take a lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _delete(folder: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

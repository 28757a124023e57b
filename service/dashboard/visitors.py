"""Find who visits pages, and what they may do in a repository (docs/design/security.md 6)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cachetools import LRUCache

from service.http.callers import Caller
from service.mergequeue.operations import overview
from service.mergequeue.operations.overview import Scope
from service.provider.errors import Gone, NotPermitted, Suspended
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, Channel, RepoRef, Role

KEPT = timedelta(seconds=60)
"""The time for which a right to read is remembered. Rights to change are read for each change."""
KEPT_MAX = 10_000

PARTS_MAX = 50
"""Parts in which rights to pause queues are read, each of `overview.REPOSITORIES_MAX`."""

TOKEN_LEVELS = {
    Role.READ: AccessLevel.READ,
    Role.QUEUE: AccessLevel.WRITE,
    Role.ADMIN: AccessLevel.ADMIN,
}
"""Role of an API token → what its holder may do on pages; `ci` reads none."""

LOCAL = Actor(ActorKind.PERSON, "operator (this machine)", channel=Channel.DASHBOARD)
"""Every visitor, where pages are for this machine only."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person, the holder of a token (`caller`), or a person on this machine.

    `level` is about the repository of the page, NONE on other pages. `form_tag` is the secret
    field of their forms. `host` is where a person signed in, empty for others.
    """

    actor: Actor
    form_tag: str
    caller: Caller | None = None
    host: str = ""
    level: AccessLevel = AccessLevel.NONE

    @property
    def key(self) -> str:
        """Return what requests of this visitor are counted by."""
        return self.actor.id or self.actor.login

    def may(self, needed: AccessLevel) -> bool:
        """Return whether they may do in the repository of the page what takes this access."""
        return self.level >= needed


@dataclass(frozen=True, slots=True)
class Rights:
    """The queues that a visitor may see, and their access to each repository by our id.

    `otherwise` is their access to a repository that `levels` does not name. `is_partial`: there are
    more repositories with a queue, whose rights were not read.
    """

    scope: Scope
    levels: Mapping[int, AccessLevel]
    otherwise: AccessLevel = AccessLevel.NONE
    is_partial: bool = False

    def may(self, repository_id: int, needed: AccessLevel) -> bool:
        """Return whether they may do in a repository what takes this access."""
        return self.levels.get(repository_id, self.otherwise) >= needed


class KeptLevels:
    """Rights to read that this process remembers; `changes`: how often some were forgotten."""

    def __init__(self) -> None:
        self.known: LRUCache[tuple[str, RepoRef], tuple[AccessLevel, datetime]] = LRUCache(KEPT_MAX)
        self.changes = 0

    def forget(self, repo: RepoRef) -> None:
        """Forget all rights in a repository, those that are being read too."""
        self.changes += 1
        for key in [key for key in self.known if key[1] == repo]:
            del self.known[key]


class Levels:
    """The rights of people in repositories, as the provider says."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept = runtime.memory.of(KeptLevels)

    async def of(self, visitor: Visitor, repo: RepoRef, *, is_change: bool = False) -> AccessLevel:
        """Return the visitor's rights; those for a change are always read anew.

        Raises ProviderError while they cannot be read.
        """
        if visitor.caller is not None:
            return TOKEN_LEVELS.get(visitor.caller.role, AccessLevel.NONE)
        if not visitor.host:
            return AccessLevel.ADMIN
        if visitor.host != repo.host:
            return AccessLevel.NONE
        now = self._runtime.clock.now()
        key = (visitor.actor.id, repo)
        known, changes = self._kept.known.get(key), self._kept.changes
        if known is not None and not is_change and now - known[1] < KEPT:
            return known[0]
        level = await self._read(visitor.actor, repo)
        if changes == self._kept.changes:
            self._kept.known[key] = (level, now)
        return level

    async def _read(self, actor: Actor, repo: RepoRef) -> AccessLevel:
        provider = self._runtime.providers.get(repo.host)
        if provider is None:
            return AccessLevel.NONE
        try:
            return await provider.access(repo, actor)
        except (Gone, NotPermitted, Suspended):
            return AccessLevel.NONE

    async def everywhere(self, visitor: Visitor, *, is_change: bool = False) -> Rights:
        """Return the visitor's rights where there are queues.

        Those for a change are read anew, in every repository; those for a page in the first ones.
        """
        if visitor.caller is not None:
            scope = Scope(visitor.caller.org_id, visitor.caller.repositories)
            return Rights(scope, {}, TOKEN_LEVELS.get(visitor.caller.role, AccessLevel.NONE))
        if not visitor.host:
            return Rights(Scope(), {}, AccessLevel.ADMIN)
        levels: dict[int, AccessLevel] = {}
        following = await overview.repositories(self._runtime, visitor.host)
        for _ in range(PARTS_MAX if is_change else 1):
            some, last = following, max(following, default=0)
            found = await asyncio.gather(
                *(self.of(visitor, repo, is_change=is_change) for repo in some.values())
            )
            levels |= zip(some, found, strict=True)
            following = await overview.repositories(self._runtime, visitor.host, last)
            if not following:
                break
        readable = {id_: level for id_, level in levels.items() if level >= AccessLevel.READ}
        within = Scope(within=frozenset(readable))
        return Rights(within, readable, is_partial=bool(following))

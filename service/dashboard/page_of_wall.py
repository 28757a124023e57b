"""The wall: chosen queues on one screen, to be read from afar, those in trouble first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.accounts import page_addresses
from service.dashboard import marks
from service.dashboard.marks import Mark
from service.dashboard.visitors import Rights
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import overview
from service.mergequeue.operations.overview import QueueInBrief, Scope
from service.mergequeue.wording import holds
from service.runtime import Options, Runtime
from service.text.phrases import Phrase

TILES_MAX = 12
"""Queues that fit on a screen."""

NAMED_MAX = 100
NAME_CHARACTERS_MAX = 300

_FIRST = {"bad": 0, "odd": 1}
"""Trouble comes first, by the color of its mark."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A queue; `why` says what stops it, empty while it moves. `last` is what merged last."""

    slug: str
    branch: str
    path: str
    mark: Mark
    why: Phrase
    testing: int
    waiting: int
    oldest: datetime | None
    last: Entry | None


@dataclass(frozen=True, slots=True)
class WallPage:
    """The tiles, how many more queues there are, and names that are no queue of the visitor's."""

    tiles: tuple[Tile, ...]
    more: int
    unknown: tuple[str, ...]

    @property
    def columns(self) -> int:
        """Columns in which the tiles are placed."""
        count = len(self.tiles)
        return next(each for each in (1, 2, 3, 4) if count <= each * min(each, 3))

    @property
    def heading(self) -> str:
        """`6 queues, 1 stopped`."""
        count = len(self.tiles)
        words = [tile.mark.word.lower() for tile in self.tiles if tile.mark is not marks.RUNNING]
        counted = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
        return ", ".join([f"{count} {'queue' if count == 1 else 'queues'}", *counted])

    @property
    def tab(self) -> Mark:
        """The worst state as the tab shows it."""
        if not self.tiles or self.tiles[0].mark is marks.RUNNING:
            return marks.RUNNING._replace(word="all running")
        return self.tiles[0].mark


def names_of(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the queues that an address names, each once."""
    cleaned = (each.strip().strip("/")[:NAME_CHARACTERS_MAX] for each in asked)
    return tuple(dict.fromkeys(each for each in cleaned if each))[:NAMED_MAX]


async def scope_of(
    runtime: Runtime, rights: Rights, names: Sequence[str]
) -> tuple[Scope, tuple[str, ...]]:
    """Return the named queues that the visitor may see, and the names of the others.

    Without names: all queues that the visitor may see.
    """
    scope = rights.scope
    if not names:
        return scope, ()
    paths = {
        page_addresses.queue(
            page_addresses.home(runtime.options, each.repo), each.branch
        ).lower(): each.id
        for each in await overview.refs(runtime, scope)
    }
    found = {name: paths.get(_path_of(name)) for name in names}
    ids = frozenset(each for each in found.values() if each is not None)
    unknown = tuple(name for name, each in found.items() if each is None)
    return Scope(scope.org_id, scope.within, ids), unknown


def _path_of(name: str) -> str:
    """Return the path of the page of `octo/widgets/main`; a branch may have its own slashes."""
    parts = name.lower().split("/")
    repository = 3 if name.startswith("~") else 2
    return f"/{'/'.join(parts[:repository])}/{'~'.join(parts[repository:])}"


async def read(runtime: Runtime, scope: Scope, unknown: tuple[str, ...]) -> WallPage:
    """Return the page."""
    now = runtime.clock.now()
    found = sorted(await overview.in_brief(runtime, scope), key=_rank)
    shown = found[:TILES_MAX]
    last = await overview.last_merged(runtime, [each.ref.id for each in shown])
    tiles = tuple(_tile(each, last.get(each.ref.id), runtime.options, now) for each in shown)
    return WallPage(tiles, len(found) - len(shown), unknown)


def _rank(brief: QueueInBrief) -> int:
    return _FIRST.get(marks.of_queue(brief.value).color, len(_FIRST))


def _tile(brief: QueueInBrief, last: Entry | None, options: Options, now: datetime) -> Tile:
    home = page_addresses.home(options, brief.ref.repo)
    testing = brief.counts[EntryState.TESTING]
    return Tile(
        slug=brief.ref.repo.slug,
        branch=brief.ref.branch,
        path=page_addresses.queue(home, brief.ref.branch),
        mark=marks.of_queue(brief.value),
        why=holds.standstill(brief.value, now),
        testing=testing,
        waiting=brief.depth - testing,
        oldest=brief.oldest,
        last=last,
    )

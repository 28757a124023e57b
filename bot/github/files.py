"""Files of a repository: contents, paths, and the comparison of two changes.

A change is a pair of trees. Two changes are walked together, one level at a time and only where
ids differ. The object behind an id never changes, so each tree is read once.
"""

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bot.github import refs
from bot.github.client import ABSENT, RepositoryClient
from bot.github.reading import Fields, Unreadable
from service.provider.errors import Refused, RefusedCode
from service.provider.trees import (
    Different,
    Disjoint,
    Overlapping,
    Same,
    TreeChange,
    TreePaths,
    Unproven,
)
from service.vocabulary import Sha

CALLS_MAX = 400
PATHS_MAX = 200  # in the evidence of a mismatch
TREE_MODE = "040000"
BASE64 = "base64"


async def read_file(
    client: RepositoryClient, path: str, commit: Sha, bytes_max: int
) -> bytes | None:
    """Return the content of a file; None when there is none. Raises Refused(TOO_LARGE)."""
    answer = await client.find(f"/contents/{refs.branch_path(path)}", {"ref": commit})
    if answer is None or isinstance(answer.content, list):
        return None
    file = answer.fields
    if file.words("type") != "file":
        return None
    size = file.number("size")
    if size > bytes_max:
        words = f"{path} has {size:,} bytes, more than {bytes_max:,}."
        raise Refused(words, RefusedCode.TOO_LARGE)
    if file.words("encoding") != BASE64:  # above 1 MB only the blob contains it
        file = (await client.get(f"/git/blobs/{file.text('sha')}")).fields
    try:
        return b64decode(file.words("content"))
    except binascii.Error as failure:
        raise Unreadable("content: not base64") from failure


async def tree_paths(client: RepositoryClient, commit: Sha) -> TreePaths:
    """Read the paths of a commit by one call; GitHub cuts a list at 100,000 lines or 7 MB."""
    answer = await client.find(f"/git/trees/{commit}", {"recursive": 1})
    if answer is None:
        return TreePaths({}, complete=False)
    # So many lines would block the event loop.
    return await asyncio.to_thread(_tree_paths_of, answer.fields)


def _tree_paths_of(answer: Fields) -> TreePaths:
    blobs = [each for each in answer.each("tree") if each.words("type") == "blob"]
    ids = {each.text("path"): Sha(each.text("sha")) for each in blobs}
    return TreePaths(ids, complete=not answer.flag("truncated"))


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a tree: git's mode, and the id of the file, folder or submodule."""

    mode: str
    id: Sha

    @property
    def is_tree(self) -> bool:
        """Return whether it is a folder."""
        return self.mode == TREE_MODE


Pair = tuple[Item | None, Item | None]
"""The same place before and after a change; None: no entry."""


class _UnreadError(Exception):
    """A tree that cannot be read whole, or one too many; the text says which."""


@dataclass(slots=True)
class _Trees:
    """Trees read so far."""

    client: RepositoryClient
    known: dict[Sha, Mapping[str, Item]] = field(default_factory=dict)

    async def items(self, place: Item | None) -> Mapping[str, Item]:
        """Return the entries of a folder; none for a file or a missing entry."""
        if place is None or not place.is_tree:
            return {}
        if place.id not in self.known:
            if len(self.known) >= CALLS_MAX:
                raise _UnreadError(f"more than {CALLS_MAX} folders differ")
            self.known[place.id] = await self._read(place.id)
        return self.known[place.id]

    async def _read(self, tree: Sha) -> Mapping[str, Item]:
        answer = await self.client.get(f"/git/trees/{tree}", expects=ABSENT)
        if answer.status in ABSENT:
            raise _UnreadError(f"tree {tree} is not there")
        if answer.fields.flag("truncated"):
            raise _UnreadError(f"tree {tree} is too large to be read")
        return {
            each.text("path"): Item(each.text("mode"), Sha(each.text("sha")))
            for each in answer.fields.each("tree")
        }

    async def below(self, pairs: tuple[Pair, Pair]) -> Iterator[tuple[str, tuple[Pair, Pair]]]:
        """Return every name below two places, with its entries in all four trees."""
        four = [await self.items(place) for pair in pairs for place in pair]
        names = sorted(set().union(*four))
        return ((name, _at(four, name)) for name in names)


def _at(four: list[Mapping[str, Item]], name: str) -> tuple[Pair, Pair]:
    first, second, third, fourth = (items.get(name) for items in four)
    return (first, second), (third, fourth)


async def same_change(
    client: RepositoryClient, tested: TreeChange, landed: TreeChange
) -> Same | Different | Unproven:
    """Return whether both result in equal sets of (path, mode, content)."""
    found: list[str] = []
    try:
        await _compare(_Trees(client), "", _roots(tested, landed), found)
    except _UnreadError as unread:
        return Unproven(str(unread))
    return Different(tuple(found)) if found else Same()


async def overlap(
    client: RepositoryClient, one: TreeChange, other: TreeChange
) -> Disjoint | Overlapping | Unproven:
    """Return whether some path is touched by both."""
    found: list[str] = []
    try:
        await _intersect(_Trees(client), "", _roots(one, other), found)
    except _UnreadError as unread:
        return Unproven(str(unread))
    return Overlapping(tuple(found)) if found else Disjoint()


def _roots(one: TreeChange, other: TreeChange) -> tuple[Pair, Pair]:
    first, second, third, fourth = (
        Item(TREE_MODE, tree) for tree in (one.before, one.after, other.before, other.after)
    )
    return (first, second), (third, fourth)


async def _compare(trees: _Trees, path: str, pairs: tuple[Pair, Pair], found: list[str]) -> None:
    """Note the files that only one side changed, or that end differently."""
    for name, (tested, landed) in await trees.below(pairs):
        if tested == landed or (tested[0] == tested[1] and landed[0] == landed[1]):
            continue
        here = f"{path}{name}"
        if _file_left(tested) != _file_left(landed):
            found.append(here)
        if any(item is not None and item.is_tree for item in (*tested, *landed)):
            await _compare(trees, f"{here}/", (tested, landed), found)
        if len(found) >= PATHS_MAX:
            return


def _file_left(pair: Pair) -> tuple[bool, Item | None]:
    """Return whether a file changed at this place, and its entry afterwards."""
    before, after = (None if item is None or item.is_tree else item for item in pair)
    return (before != after, after if before != after else None)


async def _intersect(trees: _Trees, path: str, pairs: tuple[Pair, Pair], found: list[str]) -> None:
    """Note the places that both sides changed; folders are entered, files are not."""
    for name, (one, other) in await trees.below(pairs):
        if one[0] == one[1] or other[0] == other[1]:
            continue
        here = f"{path}{name}"
        if all(item is None or item.is_tree for item in (*one, *other)):
            await _intersect(trees, f"{here}/", (one, other), found)
        else:
            found.append(here)
        if len(found) >= PATHS_MAX:
            return

"""The lines and contents of recent landings, and which of them a change takes back.

Rules and their reasons: docs/design/undone-work.md 3. Pure: the caller reads the changes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from service.provider.undoing.changes import Content, FileChange, Landing, key_of, words_of
from service.vocabulary import Sha

SHARE = 0.8
LINES_MIN = 3
SHOWN_MAX = 20
Side = Literal["removed", "added"]
SIDES: tuple[Side, Side] = ("removed", "added")

Owned = dict[bytes, list[int]]
"""The landings that added a line which still stands in a file, oldest first, by the line's key."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A landing that a change takes back.

    `lines` of the `standing` ones are missing afterwards, of which `shown` are some. `paths`: where
    they stood, or paths whose content is again the one before the landing.
    """

    landing: Landing
    lines: int
    standing: int
    returned: int
    shown: tuple[bytes, ...]
    paths: tuple[bytes, ...]


class _Replaced(NamedTuple):
    """A content that a landing replaced, and what the landing did to the file."""

    number: int
    by: FileChange
    content: Content | None


@dataclass(slots=True)
class _Loss:
    """The lines and contents of one landing that a change takes."""

    lines: list[bytes] = field(default_factory=list)
    paths: dict[bytes, None] = field(default_factory=dict)
    returned: dict[bytes, bool] = field(default_factory=dict)
    """Paths whose content is again an older one, or would be but for other lines that it gains.

    Whether each counts alone.
    """
    deleted: int = 0
    """Paths that it created, and that are gone. They may be written anew elsewhere."""


@dataclass(slots=True)
class Ledger:
    """The lines that landings brought and that still stand; add landings oldest first."""

    landings: list[Landing] = field(default_factory=list)
    _standing: Counter[int] = field(default_factory=Counter)
    _owned: dict[bytes, Owned] = field(default_factory=dict)
    _taken: dict[bytes, int] = field(default_factory=dict)
    """The last landing that took a line, by the line's key."""
    _replaced: dict[bytes, list[_Replaced]] = field(default_factory=dict)
    """The contents that landings replaced, by the path that has them now."""

    def add(self, landing: Landing) -> None:
        """Take in the next landing of the branch."""
        number = len(self.landings)
        self.landings.append(landing)
        self._replace_contents(number, landing.files)
        self._move_lines(number, landing.files)

    def _replace_contents(self, number: int, files: Sequence[FileChange]) -> None:
        before = {file.path: self._replaced.pop(file.source, []) for file in files}
        for file in files:
            if file.source != file.path:
                self._replaced[file.source] = [_Replaced(number, file, file.old)]
        for file in files:
            kept = self._replaced[file.path] = before[file.path]
            if file.old != file.new:
                kept.append(_Replaced(number, file, file.old))

    def _move_lines(self, number: int, files: Sequence[FileChange]) -> None:
        """Take out the lines that a landing removes, and bring in those that it adds.

        A line that only changes its place keeps its owner, if it has one.
        """
        pool: defaultdict[bytes, list[int | None]] = defaultdict(list)
        before = {file.path: self._owned.pop(file.source, {}) for file in files}
        for file in files:
            for key in _keys_of((file,), "removed"):
                mine = before[file.path].get(key)
                pool[key].append(mine.pop() if mine else None)
        for file in files:
            if file.new is None:
                continue
            owned = self._owned[file.path] = before[file.path]
            for key in _keys_of((file,), "added"):
                moved = pool[key].pop() if pool.get(key) else number
                if moved is not None:
                    owned.setdefault(key, []).append(moved)
                    self._standing[number] += moved == number
        for key, owners in pool.items():
            if owners:
                self._taken[key] = number
                self._standing.subtract(owner for owner in owners if owner is not None)

    def undone_by(self, files: Sequence[FileChange], since: int = 0) -> tuple[Undone, ...]:
        """Return the landings that a change of the tip takes back, newest first.

        Those before number `since` do not count any more.
        """
        losses: defaultdict[int, _Loss] = defaultdict(_Loss)
        missing: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
        for number, path, line in self._missing_lines(files, since):
            losses[number].lines.append(line)
            losses[number].paths[path] = None
            missing[path][number] += 1
        moved = _moved(files)
        for file in files:
            if file.hunks and moved.keys() >= set(_keys_of((file,), *SIDES)):
                continue
            for number in self._turned_back(file, missing[file.path]):
                losses[number].returned[file.path] = True
            for over in self._returned_over(file, since):
                loss = losses[over.number]
                loss.paths[file.path] = None
                if file.new is None:
                    loss.deleted += 1
                else:
                    loss.returned[file.path] = _changes_enough(over.by)
        found = (self._undone(number, losses[number]) for number in sorted(losses, reverse=True))
        return tuple(each for each in found if each is not None)

    def returned(self, files: Sequence[FileChange]) -> frozenset[bytes]:
        """Return the paths of a change of the tip that have again what a landing replaced."""
        again = (file for file in files if file.new is not None)
        return frozenset(file.path for file in again if self._returned_over(file, 0))

    def repeated_by(self, files: Sequence[FileChange], since: int = 0) -> Landing | None:
        """Return the newest landing whose work a change of the tip only brings once more.

        So merges a second copy of the same work when it stands at another place of the file. A
        change that repeats only a part of what a landing added to a file may be meant so.
        """
        if len(list(_keys_of(files, "added"))) < LINES_MIN or any(_keys_of(files, "removed")):
            return None
        if not all(file.hunks for file in files):
            return None
        for number in range(len(self.landings) - 1, since - 1, -1):
            if all(self._has_lines(number, file) for file in files):
                return self.landings[number]
        return None

    def _has_lines(self, number: int, file: FileChange) -> bool:
        """Return whether what a file gains stands in it by a landing, which added little more."""
        owned = self._owned.get(file.path, {})
        added = {key: count for key in owned if (count := owned[key].count(number))}
        gained = Counter(_keys_of((file,), "added"))
        if gained.total() < SHARE * sum(added.values()):
            return False
        return all(added.get(key, 0) >= many for key, many in gained.items())

    def _missing_lines(
        self, files: Sequence[FileChange], since: int
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield landing, path and text of each line that a change takes and replaces by no other.

        A line that the change only moves is not missing. Each new line stands for one that is
        gone: within its hunk, and those of new files for lines of deleted files.
        """
        moved = _moved(files)
        arrived, left = Counter(moved), Counter(moved)
        deleted: list[tuple[int, bytes, bytes]] = []
        created = 0
        for file in files:
            owned, used = self._owned.get(file.source, {}), Counter[bytes]()
            for hunk in file.hunks:
                new = sum(
                    not _spent(arrived, key) and self._taken.get(key, -1) < since
                    for key in map(key_of, hunk.added)
                    if key
                )
                gone, words = [], words_of(hunk.added)
                for line in hunk.removed:
                    key = key_of(line)
                    if not key or _spent(left, key):
                        continue
                    owners = owned.get(key, ())
                    used[key] += 1
                    if used[key] > len(owners) or owners[-used[key]] < since:
                        continue
                    # A formatter splits and joins lines, and leaves their words.
                    if words_of((line,)) not in words:
                        gone.append((owners[-used[key]], file.path, line))
                if file.old is None:
                    created += new
                elif file.new is None:
                    deleted += gone
                else:
                    yield from gone[new:]
        yield from deleted[created:]

    def _returned_over(self, file: FileChange, since: int) -> Sequence[_Replaced]:
        """Return what a path loses when it has an older content again, newest first.

        Landings that had taken back one another do not count: nothing of them stands.
        """
        over: list[_Replaced] = []
        places = {file.old: 0}  # by content, how many landings lie over it
        for replaced in reversed(self._replaced.get(file.path, ())):
            if replaced.number < since:
                break
            place = places.get(replaced.content)
            if place is not None:
                for undone in over[place:]:
                    del places[undone.content]
                del over[place:]
                continue
            over.append(replaced)
            places[replaced.content] = len(over)
            if replaced.content == file.new:
                return over
        return ()

    def _turned_back(self, file: FileChange, missing: Counter[int]) -> Iterator[int]:
        """Yield landings whose change of a file is turned back, whatever else the file gains.

        Of what a landing added there almost all is missing, and of what it took almost all is back.
        """
        if file.old is None or file.new is None:
            return
        owned = self._owned.get(file.source, {})
        back = Counter(_keys_of((file,), "added"))
        for replaced in self._replaced.get(file.source, ()):
            gone = missing[replaced.number]
            took = _net(replaced.by)
            if min(gone, took.total()) < LINES_MIN:
                continue
            standing = sum(owners.count(replaced.number) for owners in owned.values())
            if gone >= SHARE * standing and (took & back).total() >= SHARE * took.total():
                yield replaced.number

    def _undone(self, number: int, loss: _Loss) -> Undone | None:
        landing, standing = self.landings[number], self._standing[number]
        paths = {file.path for file in landing.files}
        by_lines = len(loss.lines) >= max(LINES_MIN, SHARE * standing)
        contents = len(loss.returned) and len(loss.returned) + loss.deleted
        by_contents = contents and contents >= SHARE * len(paths)
        if not (by_lines or by_contents or any(loss.returned.values())):
            return None
        shown = tuple(loss.lines[:SHOWN_MAX])
        where = tuple(loss.paths)[:SHOWN_MAX]
        return Undone(landing, len(loss.lines), standing, contents, shown, where)


def losing(files: Sequence[FileChange]) -> frozenset[bytes]:
    """Return the paths, as they are at the tip, out of which a change takes lines for good."""
    left = Counter(_keys_of(files, "added"))
    paths = set()
    for file in files:
        for key in _keys_of((file,), "removed"):
            if not _spent(left, key):
                paths.add(file.source)
    return frozenset(paths)


def adds_what_stands(files: Sequence[FileChange], contents: Mapping[Sha, bytes]) -> bool:
    """Return whether a change only adds lines that its files have already.

    `contents` are those of the tip, by id; one that is missing there counts as empty.
    """
    if any(_keys_of(files, "removed")):
        return False
    for file in files:
        content = contents.get(file.old.id, b"") if file.old is not None else b""
        if not Counter(_keys_of((file,), "added")) <= Counter(map(key_of, content.split(b"\n"))):
            return False
    return True


def landing_like(own: Sequence[FileChange], landings: Sequence[Landing]) -> Landing | None:
    """Return the landing that brought most of a pull request's own change, the newest of several.

    For a merge result that equals the tip. None if no landing has a line or a content of it, and
    for a pull request that changes nothing.
    """
    gained = Counter(_keys_of(own, "added"))
    left = {(file.path, file.new) for file in own}
    best, most = None, 0
    for landing in landings:
        lines = (gained & Counter(_keys_of(landing.files, "added"))).total()
        contents = sum((file.path, file.new) in left for file in landing.files)
        if lines + contents and lines + contents >= most:
            best, most = landing, lines + contents
    return best


def _changes_enough(file: FileChange) -> bool:
    """Return whether a landing changes more of a file than a line or two, or no lines at all."""
    return not file.hunks or len(list(_keys_of((file,), *SIDES))) >= LINES_MIN


def _net(file: FileChange) -> Counter[bytes]:
    """Return the keys of lines that a change takes out of a file for good."""
    return Counter(_keys_of((file,), "removed")) - Counter(_keys_of((file,), "added"))


def _moved(files: Sequence[FileChange]) -> Counter[bytes]:
    """Return the keys of lines that a change takes from one place and brings to another."""
    return Counter(_keys_of(files, "added")) & Counter(_keys_of(files, "removed"))


def _keys_of(files: Sequence[FileChange], *sides: Side) -> Iterator[bytes]:
    """Yield the keys of all lines that a change removes or adds."""
    for file in files:
        for hunk in file.hunks:
            for side in sides:
                yield from filter(None, map(key_of, getattr(hunk, side)))


def _spent(left: Counter[bytes], key: bytes) -> bool:
    """Take one of a key; return whether there was one."""
    if left[key] <= 0:
        return False
    left[key] -= 1
    return True

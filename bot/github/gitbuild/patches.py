"""Changes in git's own format: raw records, and patches without context.

See docs/design/undone-work.md 2. The counts of a hunk say how many lines follow, so no content of
a file can pass for a header.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.github.gitbuild.command import GitFailed
from service.provider.undoing.changes import Content, FileChange, Hunk, Landing
from service.vocabulary import Sha

RAW = ("-r", "-z", "--raw", "--no-abbrev", "-M", "-l400", "--no-ext-diff", "--no-textconv")
PATCH = (*RAW, "-p", "-U0", "--no-color")
HEADER = "--format=%x00%H%x00%ct%x00%an%x00%B%x00"
ABSENT = "000000"
REGULAR = "100"  # links and submodules have no lines
RETYPED = "T"
MOVED = "RC"
COUNTS = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def landings_of(output: bytes) -> Iterator[Landing]:
    """Return the landings of `git log` with HEADER, newest first.

    A commit whose date git cannot read has none.
    """
    cursor = _Cursor(output)
    while cursor.skip(b"\0\n"):
        commit, at_s, author, message = (cursor.until(b"\0") for _ in range(4))
        cursor.skip(b"\0\n")
        yield Landing(
            Sha(_text(commit)), tuple(_files(cursor)), _text(message), _text(author), int(at_s or 0)
        )


def change_of(output: bytes) -> tuple[FileChange, ...]:
    """Return the change of `git diff-tree` between two trees."""
    return tuple(_files(_Cursor(output)))


@dataclass(slots=True)
class _Cursor:
    """A place in the output of git."""

    output: bytes
    at: int = 0
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = len(self.output)

    def skip(self, these: bytes) -> bool:
        """Go behind these bytes; return whether anything is left."""
        while self.at < self.end and self.output[self.at] in these:
            self.at += 1
        return self.at < self.end

    def sees(self, start: bytes) -> bool:
        """Return whether this is next."""
        return self.output.startswith(start, self.at)

    def until(self, stop: bytes) -> bytes:
        """Return what stands before the next such byte, and go behind that."""
        found = self.output.find(stop, self.at)
        stop_at = self.end if found < 0 else found
        text, self.at = self.output[self.at : stop_at], stop_at + 1
        return text


@dataclass(frozen=True, slots=True)
class _Raw:
    """One raw record; `patches` follow it, two for a file that became another type of file."""

    path: bytes
    source: bytes
    old: Content | None
    new: Content | None
    patches: int


def _files(cursor: _Cursor) -> Iterator[FileChange]:
    records: list[_Raw] = []
    while cursor.sees(b":"):
        records.append(_record(cursor))
    if not records:
        return
    if cursor.sees(b"\0diff --git "):
        cursor.at += 1
    has_patches = cursor.sees(b"diff --git ")
    for each in records:
        hunks: list[Hunk] = []
        for _ in range(each.patches if has_patches else 0):
            hunks += _hunks(cursor)
        sides = [side for side in (each.old, each.new) if side is not None]
        lines = hunks if all(side.mode.startswith(REGULAR) for side in sides) else ()
        yield FileChange(each.path, each.source, each.old, each.new, tuple(lines))


def _record(cursor: _Cursor) -> _Raw:
    fields = _text(cursor.until(b"\0")).removeprefix(":").split(" ")
    old_mode, new_mode, old_id, new_id, status = fields
    source = path = cursor.until(b"\0")
    if status[0] in MOVED:
        path = cursor.until(b"\0")
    old = None if old_mode == ABSENT else Content(old_mode, Sha(old_id))
    new = None if new_mode == ABSENT else Content(new_mode, Sha(new_id))
    return _Raw(path, source, old, new, 2 if status[0] == RETYPED else 1)


def _hunks(cursor: _Cursor) -> Iterator[Hunk]:
    """Return the hunks of one patch."""
    if not cursor.until(b"\n").startswith(b"diff --git "):
        raise GitFailed("diff", "a patch was expected")
    while not (cursor.sees(b"@@ ") or cursor.sees(b"diff --git ") or cursor.sees(b"\0")):
        if cursor.at >= cursor.end:
            return
        cursor.until(b"\n")
    while cursor.sees(b"@@ "):
        counts = COUNTS.match(cursor.until(b"\n"))
        if counts is None:
            raise GitFailed("diff", "a hunk was expected")
        removed, added = (1 if each is None else int(each) for each in counts.groups())
        yield Hunk(_lines(cursor, removed), _lines(cursor, added))


def _lines(cursor: _Cursor, count: int) -> tuple[bytes, ...]:
    lines = tuple(cursor.until(b"\n")[1:] for _ in range(count))
    if cursor.sees(b"\\"):
        cursor.until(b"\n")  # "No newline at end of file"
    return lines


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")


def contents_of(batch: bytes) -> Iterator[tuple[Sha, bytes]]:
    """Read `git cat-file --batch`: per object its id, type and size, then its bytes."""
    at = 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        fields = batch[at:end].decode("ascii", "replace").split(" ")
        at = end + 1
        if len(fields) == 3:
            size = int(fields[2])
            yield Sha(fields[0]), batch[at : at + size]
            at += size + 1

"""Changes of files: contents, modes, and the lines that each hunk takes and brings."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.vocabulary import Sha

BLANKS = b" \t\r\n\f\v"
WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]")
WORDS = re.compile(rb"[0-9A-Za-z\x80-\xff]+")


class Content(NamedTuple):
    """The content of a path: the mode and the id of the object that it has."""

    mode: str
    id: Sha


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that a change takes out at one place, and those that it brings there."""

    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file; `old` is None for a new file, `new` for a deleted one.

    `source` is the path before, another one than `path` only for a file that moved. A binary file,
    a link and a submodule have no hunks.
    """

    path: bytes
    source: bytes
    old: Content | None
    new: Content | None
    hunks: tuple[Hunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Landing:
    """A commit on the first-parent line of a target branch, with its change of the line."""

    commit: Sha
    files: Sequence[FileChange]
    message: str = ""
    author: str = ""
    at_s: int = 0


def key_of(line: bytes) -> bytes:
    """Return a line without blanks; empty for one without a letter or digit."""
    key = line.translate(None, BLANKS)
    return key if WORD.search(key) else b""


def words_of(lines: Iterable[bytes]) -> bytes:
    """Return the letters and digits of lines in a row, as a formatter leaves them."""
    return b"".join(b"".join(WORDS.findall(line)) for line in lines)

"""Read report files out of a zip archive from an untrusted sender, in memory, within bounds.

Pure. The archive's own statements are never trusted: declared sizes are bounds for what is
unpacked, no name becomes a path, and links, archives in the archive, encrypted and overlapping
entries are refused. `zipfile` reads the whole directory at once, so its size is checked before.
Format: PKWARE's APPNOTE.TXT, 4.3 and 4.4.
"""

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

PACKED_MAX = 100 * 1024 * 1024
UNPACKED_MAX = 512 * 1024 * 1024
RATIO_MAX = 200
RATIO_FREE_BYTES = 8 * 1024 * 1024  # a log of one line again and again unpacks further
FILES_MAX = 1_000
FILE_BYTES_MAX = 100 * 1024 * 1024  # of one report, as in an upload
DIRECTORY_MAX = 8 * 1024 * 1024  # about 65,000 entries, most of which are no reports
NAME_LENGTH_MAX = 1_000
SUFFIXES = (".xml", ".json", ".jsonl", ".trx")

END = struct.Struct("<4s4H2LH")
END_SIGNATURE = b"PK\x05\x06"
COMMENT_MAX = 0xFFFF
LOCATOR = struct.Struct("<4sLQL")
LOCATOR_SIGNATURE = b"PK\x06\x07"
BIG_END = struct.Struct("<4sQ2H2L4Q")
BIG_END_SIGNATURE = b"PK\x06\x06"
LOCAL = struct.Struct("<4s5H3L2H")
IN_BIG_END_16, IN_BIG_END_32 = 0xFFFF, 0xFFFFFFFF  # the real number is in the 64-bit record
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x0001 | 0x0040 | 0x2000
UNIX = 3
PACKED_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")

DAMAGED = "The archive is damaged."
TOO_LARGE = f"The archive is larger than {PACKED_MAX >> 20} MiB."
DAMAGED_FILE = "It is damaged, or holds more or less than it says."
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A report of an archive; `name` is text for people, never a path."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A report of an archive that is not read; `reason` is a sentence."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class NoArchive:
    """Nothing of it can be read, now or later; `reason` is a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class _ArchiveEntry:
    """A report that the directory lists; `refusal` is a sentence, None if it may be read."""

    name: str
    refusal: str | None
    info: zipfile.ZipInfo


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive whose directory was read, and its reports in the directory's order."""

    opened: zipfile.ZipFile
    entries: tuple[_ArchiveEntry, ...]

    def files(self, first_at: int = 0) -> Iterator[ArchiveFile | RefusedFile]:
        """Unpack the reports from a position on, each when it is asked for.

        Each one may take FILE_BYTES_MAX.
        """
        for entry in self.entries[first_at:]:
            if entry.refusal is not None:
                yield RefusedFile(entry.name, entry.refusal)
            else:
                yield _unpacked(self.opened, entry)


class _Unreadable(Exception):
    """The archive as a whole cannot be read; the message is a sentence."""


def read(packed: bytes) -> Archive | NoArchive:
    """Return the reports of a zip archive, or why it cannot be read.

    Skips entries whose names are not those of reports.
    """
    if len(packed) > PACKED_MAX:
        return NoArchive(TOO_LARGE)
    try:
        directory = _directory_of(packed)
        opened = zipfile.ZipFile(io.BytesIO(packed))
        reports = [each for each in opened.infolist() if _name_of(each).lower().endswith(SUFFIXES)]
        _check_bounds(packed, reports, directory)
    except _Unreadable as unreadable:
        return NoArchive(str(unreadable))
    except (struct.error, zipfile.BadZipFile, NotImplementedError, UnicodeError):
        return NoArchive(DAMAGED)
    return Archive(opened, tuple(map(_entry, reports)))


def _directory_of(packed: bytes) -> int:
    """Return where the directory begins, by the record at the end of the archive."""
    at = packed.rfind(END_SIGNATURE, max(0, len(packed) - END.size - COMMENT_MAX))
    if at < 0:
        raise _Unreadable("It is not a zip archive.")
    _, disk, first_disk, here, count, size, start, comment = END.unpack_from(packed, at)
    if at + END.size + comment != len(packed):
        raise _Unreadable(DAMAGED)
    end = at
    if IN_BIG_END_16 in (here, count) or IN_BIG_END_32 in (size, start):
        located = at - LOCATOR.size
        if located >= 0 and packed[located : located + 4] == LOCATOR_SIGNATURE:
            end = LOCATOR.unpack_from(packed, located)[2]
            big = BIG_END.unpack_from(packed, end)
            if big[0] != BIG_END_SIGNATURE:
                raise _Unreadable(DAMAGED)
            disk, first_disk, size, start = big[4], big[5], big[8], big[9]
    if disk or first_disk or start + size != end:
        raise _Unreadable(DAMAGED)
    if size > DIRECTORY_MAX:
        raise _Unreadable("The archive lists too many files.")
    return int(start)


def _check_bounds(packed: bytes, reports: list[zipfile.ZipInfo], directory: int) -> None:
    if len(reports) > FILES_MAX:
        raise _Unreadable(f"The archive holds more than {FILES_MAX:,} reports.")
    spans = sorted(_span_of(packed, each) for each in reports)
    if any(end > directory for _, end in spans):
        raise _Unreadable(DAMAGED)
    if any(after[0] < before[1] for before, after in pairwise(spans)):
        raise _Unreadable("Files in the archive overlap.")
    if sum(each.file_size for each in reports if _refusal_of(each) is None) > UNPACKED_MAX:
        raise _Unreadable(f"The archive unpacks to more than {UNPACKED_MAX >> 20} MiB.")


def _span_of(packed: bytes, info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return where the entry's data begins and ends."""
    local = LOCAL.unpack_from(packed, info.header_offset)
    start = info.header_offset + LOCAL.size + local[9] + local[10]
    return start, start + info.compress_size


def _entry(info: zipfile.ZipInfo) -> _ArchiveEntry:
    shown = CONTROL.sub("\N{REPLACEMENT CHARACTER}", _name_of(info))[:NAME_LENGTH_MAX]
    return _ArchiveEntry(shown, _refusal_of(info), info)


def _name_of(info: zipfile.ZipInfo) -> str:
    """Return the whole name with one kind of slash; `filename` ends at the first NUL."""
    return info.orig_filename.replace("\\", "/")


def _refusal_of(info: zipfile.ZipInfo) -> str | None:
    return _refusal_of_name(_name_of(info)) or _refusal_of_kind(info) or _refusal_of_size(info)


def _refusal_of_name(name: str) -> str | None:
    if len(name) > NAME_LENGTH_MAX:
        return f"Its name is longer than {NAME_LENGTH_MAX:,} characters."
    if name.startswith("/") or DRIVE.match(name) or ".." in name.split("/") or "\0" in name:
        return "Its name leads out of the archive."
    return None


def _refusal_of_kind(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16 if info.create_system == UNIX else 0
    if info.flag_bits & ENCRYPTED:
        return "It is encrypted."
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "It is a link or no plain file."
    if info.compress_type not in METHODS:
        return "It is packed in a way that is not read here."
    return None


def _refusal_of_size(info: zipfile.ZipInfo) -> str | None:
    if info.file_size > FILE_BYTES_MAX:
        return f"It is larger than {FILE_BYTES_MAX >> 20} MiB."
    if info.file_size > max(RATIO_FREE_BYTES, RATIO_MAX * info.compress_size):
        free_mb = RATIO_FREE_BYTES >> 20
        return f"It unpacks to more than {free_mb} MiB and {RATIO_MAX} times its packed size."
    return None


def _unpacked(opened: zipfile.ZipFile, entry: _ArchiveEntry) -> ArchiveFile | RefusedFile:
    try:
        # Unpacks no more than the declared size, and compares the checksum.
        content = opened.read(entry.info)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return RefusedFile(entry.name, DAMAGED_FILE)
    if len(content) != entry.info.file_size:
        return RefusedFile(entry.name, DAMAGED_FILE)
    if content.startswith(PACKED_MAGIC):
        return RefusedFile(entry.name, "It is an archive inside the archive.")
    return ArchiveFile(entry.name, content)

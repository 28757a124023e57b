"""Reading report files out of a zip archive that a stranger packed, in memory, within bounds.

Pure. Nothing is believed that the archive says of itself: declared sizes are bounds for what
is unpacked, never promises; no name becomes a path; links, archives in the archive, encrypted
and overlapping entries are refused. The standard library's reader takes the whole directory in
before anybody can count it, therefore this one. Bounds: RELIABILITY.md 8.4. Format: PKWARE's
APPNOTE.TXT, 4.3 and 4.4.
"""

import re
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

PACKED_MAX = 100 * 1024 * 1024
UNPACKED_MAX = 512 * 1024 * 1024
RATIO_MAX = 200
FILES_MAX = 1_000
FILE_BYTES_MAX = 100 * 1024 * 1024  # of one report, as in an upload (API.md 1.2)
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
LISTED = struct.Struct("<4s6H3L5H2L")
LISTED_SIGNATURE = b"PK\x01\x02"
LOCAL = struct.Struct("<4s5H3L2H")
LOCAL_SIGNATURE = b"PK\x03\x04"
IN_EXTRA_16, IN_EXTRA_32 = 0xFFFF, 0xFFFFFFFF  # the real number stands in the extra field
BIG_EXTRA = 1
STORED, DEFLATED = 0, 8
ENCRYPTED = 0x0001 | 0x0040 | 0x2000
UTF_8 = 0x0800
UNIX = 3
PACKED_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")

DAMAGED = "The archive is damaged."
TOO_LARGE = f"The archive is larger than {PACKED_MAX >> 20} MiB."
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
class Entry:
    """A report as the directory lists it; its data stands from `start` to `end`."""

    name: str
    refusal: str | None
    method: int
    checksum: int
    size: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive whose directory was read: the packed bytes, and its reports in their order."""

    packed: bytes
    entries: tuple[Entry, ...]

    def files(self) -> Iterator[ArchiveFile | RefusedFile]:
        """Each report, unpacked when it is asked for; each one may take FILE_BYTES_MAX."""
        for entry in self.entries:
            if entry.refusal is not None:
                yield RefusedFile(entry.name, entry.refusal)
            else:
                yield _unpacked(self.packed, entry)


class _Broken(Exception):
    """The archive as a whole cannot be read; the message is a sentence."""


def read(packed: bytes) -> Archive | NoArchive:
    """The reports of a zip archive, or why there are none to be had.

    Entries that are no reports by their name are passed over unread.
    """
    if len(packed) > PACKED_MAX:
        return NoArchive(TOO_LARGE)
    try:
        entries = tuple(_entries(packed))
        _refuse_bombs(entries)
    except _Broken as broken:
        return NoArchive(str(broken))
    except struct.error:
        return NoArchive(DAMAGED)
    return Archive(packed, entries)


def _refuse_bombs(entries: tuple[Entry, ...]) -> None:
    spans = sorted((each.start, each.end) for each in entries)
    if any(after[0] < before[1] for before, after in pairwise(spans)):
        raise _Broken("Files in the archive overlap.")
    if sum(each.size for each in entries if each.refusal is None) > UNPACKED_MAX:
        raise _Broken(f"The archive unpacks to more than {UNPACKED_MAX >> 20} MiB.")


def _entries(packed: bytes) -> Iterator[Entry]:
    """The reports that the directory lists, in its order."""
    directory, end = _directory(packed)
    at, found = directory, 0
    while at < end:
        fields = LISTED.unpack_from(packed, at)
        if fields[0] != LISTED_SIGNATURE:
            raise _Broken(DAMAGED)
        name_length, extra_length, comment_length = fields[10:13]
        extra_at = at + LISTED.size + name_length
        following = extra_at + extra_length + comment_length
        if following > end:
            raise _Broken(DAMAGED)
        name = _text_of(packed[at + LISTED.size : extra_at], is_utf_8=bool(fields[3] & UTF_8))
        if name.lower().endswith(SUFFIXES):
            found += 1
            if found > FILES_MAX:
                raise _Broken(f"The archive holds more than {FILES_MAX:,} reports.")
            extra = packed[extra_at : extra_at + extra_length]
            entry = _entry(packed, name, fields, extra)
            if entry.end > directory:
                raise _Broken(DAMAGED)
            yield entry
        at = following


def _directory(packed: bytes) -> tuple[int, int]:
    """Where the directory begins and ends, by the record at the end of the archive."""
    at = packed.rfind(END_SIGNATURE, max(0, len(packed) - END.size - COMMENT_MAX))
    if at < 0:
        raise _Broken("It is not a zip archive.")
    _, disk, first_disk, here, count, size, start, comment = END.unpack_from(packed, at)
    if at + END.size + comment != len(packed):
        raise _Broken(DAMAGED)
    end = at
    if IN_EXTRA_16 in (here, count) or IN_EXTRA_32 in (size, start):
        located = at - LOCATOR.size
        if located >= 0 and packed[located : located + 4] == LOCATOR_SIGNATURE:
            end = LOCATOR.unpack_from(packed, located)[2]
            big = BIG_END.unpack_from(packed, end)
            if big[0] != BIG_END_SIGNATURE:
                raise _Broken(DAMAGED)
            disk, first_disk, size, start = big[4], big[5], big[8], big[9]
    if disk or first_disk or start + size != end:
        raise _Broken(DAMAGED)
    if size > DIRECTORY_MAX:
        raise _Broken("The archive lists too many files.")
    return start, end


def _entry(packed: bytes, name: str, fields: tuple[int, ...], extra: bytes) -> Entry:
    _, made_by, _, flags, method, _, _, checksum = fields[:8]
    packed_size, size, offset = _sizes(fields, extra)
    local = LOCAL.unpack_from(packed, offset)
    if local[0] != LOCAL_SIGNATURE:
        raise _Broken(DAMAGED)
    data = offset + LOCAL.size + local[9] + local[10]
    mode = fields[15] >> 16 if made_by >> 8 == UNIX else 0
    refusal = (
        _refusal_of_name(name)
        or _refusal_of_kind(flags, method, mode)
        or _refusal_of_size(packed_size, size)
    )
    return Entry(_shown(name), refusal, method, checksum, size, data, data + packed_size)


def _sizes(fields: tuple[int, ...], extra: bytes) -> tuple[int, int, int]:
    """Packed size, size and offset; those that do not fit stand in the extra field, in order."""
    packed_size, size, offset = fields[8], fields[9], fields[16]
    if IN_EXTRA_32 not in (packed_size, size, offset):
        return packed_size, size, offset
    big = _big_extra(extra)
    numbers = iter(struct.unpack_from(f"<{len(big) // 8}Q", big))
    size = next(numbers, size) if size == IN_EXTRA_32 else size
    packed_size = next(numbers, packed_size) if packed_size == IN_EXTRA_32 else packed_size
    offset = next(numbers, offset) if offset == IN_EXTRA_32 else offset
    return packed_size, size, offset


def _big_extra(extra: bytes) -> bytes:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == BIG_EXTRA:
            return extra[at + 4 : at + 4 + length]
        at += 4 + length
    return b""


def _text_of(name: bytes, *, is_utf_8: bool) -> str:
    """A name with one kind of slash; without the mark it is in the code page of old."""
    text = name.decode("utf-8" if is_utf_8 else "cp437", errors="replace")
    return text.replace("\\", "/")


def _shown(name: str) -> str:
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", name)[:NAME_LENGTH_MAX]


def _refusal_of_name(name: str) -> str | None:
    if len(name) > NAME_LENGTH_MAX:
        return f"Its name is longer than {NAME_LENGTH_MAX:,} characters."
    if name.startswith("/") or DRIVE.match(name) or ".." in name.split("/") or "\0" in name:
        return "Its name leads out of the archive."
    return None


def _refusal_of_kind(flags: int, method: int, mode: int) -> str | None:
    if flags & ENCRYPTED:
        return "It is encrypted."
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "It is a link or no plain file."
    if method not in (STORED, DEFLATED):
        return "It is packed in a way that is not read here."
    return None


def _refusal_of_size(packed_size: int, size: int) -> str | None:
    if size > FILE_BYTES_MAX:
        return f"It is larger than {FILE_BYTES_MAX >> 20} MiB."
    if size > RATIO_MAX * packed_size:
        return f"It unpacks to more than {RATIO_MAX} times its packed size."
    return None


def _unpacked(packed: bytes, entry: Entry) -> ArchiveFile | RefusedFile:
    content = _content(packed, entry)
    if content is None or zlib.crc32(content) != entry.checksum:
        return RefusedFile(entry.name, "It is damaged, or holds more or less than it says.")
    if content.startswith(PACKED_MAGIC):
        return RefusedFile(entry.name, "It is an archive inside the archive.")
    return ArchiveFile(entry.name, content)


def _content(packed: bytes, entry: Entry) -> bytes | None:
    """The whole content, never more than one byte beyond the declared size unpacked."""
    raw = memoryview(packed)[entry.start : entry.end]
    if entry.method == STORED:
        return bytes(raw) if len(raw) == entry.size else None
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(raw, entry.size + 1)
    except zlib.error:
        return None
    is_whole = unpacker.eof and not unpacker.unused_data and len(content) == entry.size
    return content if is_whole else None

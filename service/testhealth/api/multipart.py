"""Bytes of a `multipart/form-data` body to its parts (RFC 7578), strictly and in one pass.

The body lies in memory, bounded already (`limits.py`); what the parts mean is asked elsewhere.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser

from service.http.errors import HttpRefused

MEDIA_TYPE = "multipart/form-data"

# docs/design/limits.md 1: after expansion, counted while it streams.
EXPANDED_BYTES_MAX = 100 * 1024 * 1024
EXPANSION_RATIO_MAX = 200
EXPANSION_FREE_BYTES = 8 * 1024 * 1024
EXPANSION_STEP_BYTES = 1024 * 1024
GZIP_WINDOW = 16 + zlib.MAX_WBITS

HEAD_BYTES_MAX = 8 * 1024
BOUNDARY_CHARACTERS_MAX = 70
"""RFC 2046, 5.1.1."""
PLAIN_TRANSFER = frozenset({"", "7bit", "8bit", "binary"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part; `filename` None: it has none."""

    name: str
    filename: str | None
    content: bytes


def boundary_of(content_type: str) -> bytes | None:
    """What separates the parts, None when the type is not multipart/form-data or names none."""
    message = Message()
    message["Content-Type"] = content_type
    if message.get_content_type() != MEDIA_TYPE:
        return None
    boundary = message.get_boundary("")
    if not boundary.isascii() or not 1 <= len(boundary) <= BOUNDARY_CHARACTERS_MAX:
        return None
    return boundary.encode()


def expanded(body: bytes) -> bytes:
    """A body that came as gzip, one layer, unpacked.

    Raises HttpRefused: 413 above 100 MiB, or 8 MiB and 200 times the body, 400 when it is damaged,
    cut or followed by something.
    """
    by_ratio = max(EXPANSION_FREE_BYTES, EXPANSION_RATIO_MAX * len(body))
    bytes_max = min(EXPANDED_BYTES_MAX, by_ratio)
    member = zlib.decompressobj(GZIP_WINDOW)
    content = bytearray()
    rest = body
    try:
        while rest and not member.eof:
            content += member.decompress(rest, EXPANSION_STEP_BYTES)
            rest = member.unconsumed_tail
            if len(content) > bytes_max:
                raise HttpRefused(
                    "body_too_large",
                    "The body expands to more than 100 MiB, or to more than 8 MiB and 200 times "
                    "its size.",
                )
    except zlib.error as damaged:
        raise _broken("the gzip stream is damaged") from damaged
    if not member.eof or member.unused_data:
        raise _broken("the gzip stream ends early or is followed by something")
    return bytes(content)


def parts(body: bytes, boundary: bytes) -> Iterator[Part]:
    """The parts in order, as they are asked for.

    Raises HttpRefused 400 for what is no multipart body, 415 for a part that is encoded again.
    """
    line = b"--" + boundary
    if body.startswith(line):
        at = len(line)
    else:
        at = body.find(b"\r\n" + line)
        if at < 0:
            raise _broken("its boundary does not occur")
        at += len(line) + 2
    while not body.startswith(b"--", at):
        head = _line_end(body, at)
        end = body.find(b"\r\n" + line, head - 2)
        if end < 0:
            raise _broken("its last part does not end")
        yield _part(body, head, end)
        at = end + len(line) + 2


def _line_end(body: bytes, at: int) -> int:
    """Where the line after a boundary begins; blanks may stand between."""
    end = body.find(b"\r\n", at)
    if end < 0 or body[at:end].strip(b" \t"):
        raise _broken("something follows a boundary on its line")
    return end + 2


def _part(body: bytes, head: int, end: int) -> Part:
    """The part whose headers begin at `head` and whose content ends at `end`."""
    at = body.find(b"\r\n\r\n", head, min(end, head + HEAD_BYTES_MAX) + 4)
    if at < 0 or at > end:
        raise _broken("a part has no headers, or more than 8 KiB of them")
    try:
        headers = HeaderParser().parsestr(body[head:at].decode("utf-8"))
    except UnicodeDecodeError as unreadable:
        raise _broken("the headers of a part are not UTF-8") from unreadable
    encoding = str(headers.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding not in PLAIN_TRANSFER or "Content-Encoding" in headers:
        raise HttpRefused(
            "unsupported_encoding", "Send each part as it is; a file may be gzip by itself."
        )
    name = headers.get_param("name", header="Content-Disposition")
    if headers.get_content_disposition() != "form-data" or not isinstance(name, str):
        raise _broken("a part does not say its name by Content-Disposition: form-data")
    return Part(name, headers.get_filename(), body[at + 4 : max(end, at + 4)])


def _broken(what: str) -> HttpRefused:
    return HttpRefused("bad_request", f"The body is no multipart/form-data: {what}.")

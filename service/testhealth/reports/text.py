"""Bytes of a report to text: one layer of gzip, an encoding, terminal escapes.

docs/design/reports.md 4 is the source of every rule. What the text means is asked elsewhere.
"""

import codecs
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

from service.testhealth.reports.results import Fault, Warned, WarningCode

# docs/design/limits.md 1: after expansion, counted while it streams.
EXPANDED_BYTES_MAX = 100 * 1024 * 1024
EXPANSION_RATIO_MAX = 200
# A log of one line again and again expands further than a bomb may.
EXPANSION_FREE_BYTES = 8 * 1024 * 1024
EXPANSION_STEP_BYTES = 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 16 + zlib.MAX_WBITS

PIECE_BYTES = 256 * 1024
# docs/design/reports.md 4: so much may stand before the first `<`, and the declaration is at its
# end.
HEAD_BYTES = 64 * 1024
DECLARED = re.compile(rb"""^[^<]*<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UNMARKED_UTF16 = ((b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
# Codecs of the language itself, not of documents; idna also takes quadratic time. UTF-7 is one
# of mail: it takes as long, and spells lone surrogates.
NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}

TOO_LARGE = "The file expands to more than 100 MiB, or to more than 8 MiB and 200 times its size."
REPLACED = Warned(
    WarningCode.ENCODING_REPLACED,
    "The declared encoding does not hold: read as UTF-8, unreadable characters replaced.",
)

FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

# Escape as itself, as U+FFFD (what XML makes of it), and as some reporters spell it. No class
# below holds an escape, so that the search is linear.
ESCAPES = ("\x1b", "\ufffd", "[")
ANSI = re.compile(
    r"(?:[\x1b\ufffd]|#x1B|&(?:amp)?#27;)\[[0-9:;<=>?]{0,40}[ -/]{0,4}[@-~]"  # colors, cursor
    r"|[\x1b\ufffd]\][^\x07\x1b\ufffd\n]{0,400}(?:\x07|[\x1b\ufffd]\\?)"  # titles, links
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,4}m(?!\])"  # colors whose escape the reporter took out
)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Bytes without their container; `fault` when a gzip stream was damaged after them."""

    content: bytes
    fault: Fault | None = None


def unpacked(content: bytes) -> Unpacked | Fault:
    """The file without its one layer of gzip, if it has one; members in a row are joined.

    A Fault alone when the output passes 100 MiB, or 8 MiB and 200 times the input, or when nothing
    could be expanded. A second layer remains what it is.
    """
    if not content.startswith(GZIP_MAGIC):
        return Unpacked(content)
    by_ratio = max(EXPANSION_FREE_BYTES, EXPANSION_RATIO_MAX * len(content))
    bytes_max = min(EXPANDED_BYTES_MAX, by_ratio)
    output = BytesIO()
    fault = None
    try:
        for piece in expanded(content):
            output.write(piece)
            if output.tell() > bytes_max:
                return Fault(TOO_LARGE)
    except (zlib.error, EOFError):
        fault = Fault("The gzip stream is damaged or ends early.")
    if fault and not output.tell():
        return fault
    return Unpacked(output.getvalue(), fault)


def expanded(content: bytes) -> Iterator[bytes]:
    """The output of all members, in steps of at most 1 MiB.

    Raises zlib.error where the stream is damaged, EOFError where it ends early.
    """
    rest = content
    while rest.startswith(GZIP_MAGIC):
        member = zlib.decompressobj(GZIP_WINDOW)
        while rest and not member.eof:
            piece = member.decompress(rest, EXPANSION_STEP_BYTES)
            if piece:
                yield piece
            rest = member.unconsumed_tail
        if not member.eof:
            raise EOFError
        rest = member.unused_data


@dataclass(frozen=True, slots=True)
class Text:
    """A file whose encoding is known.

    `start` is the offset behind a byte order mark; `errors` is `replace` where some bytes mean
    nothing in `codec`.
    """

    content: bytes
    codec: str
    errors: str
    start: int
    warnings: tuple[Warned, ...]

    def pieces(self) -> Iterator[str]:
        """The text in pieces; the first holds all that HEAD_BYTES may reach."""
        return decoded(self)

    def whole(self) -> str:
        """The text at once."""
        return "".join(self.pieces())


def text_of(content: bytes) -> Text:
    """The file's text: byte order mark, then XML declaration, then UTF-8.

    Bytes that a mark's encoding cannot mean are replaced one by one; where a declared encoding
    does not hold, the whole file is read as UTF-8 instead. Both with a warning.

    See docs/design/reports.md 4.
    """
    for mark, codec in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return held(Text(content, codec, "strict", len(mark), ()))
    for start, codec in UNMARKED_UTF16:
        if content.startswith(start):
            return held(Text(content, codec, "strict", 0, ()))
    declared = DECLARED.match(content[: HEAD_BYTES + PIECE_BYTES])
    if not declared:
        return held(Text(content, "utf-8", "strict", 0, ()))
    named = _charset_of(declared[1].decode("ascii", "replace"))
    if named:
        text = Text(content, named, "strict", 0, ())
        if holds(text):
            return text
    return Text(content, "utf-8", "replace", 0, (REPLACED,))


def _charset_of(name: str) -> str | None:
    """The codec of a declared encoding, if Python knows it as one of documents.

    One in which the declaration itself would read otherwise is none, for it was read as ASCII:
    so UTF-16, which has a mark, and the codes of mainframes.
    """
    try:
        codec = codecs.lookup(name).name
        codecs.getincrementaldecoder(codec)
        is_ascii = b"<?xml".decode(codec) == "<?xml"
    except (LookupError, ValueError):
        return None
    if not is_ascii:
        return None
    return None if codec in NO_CHARSETS or codec.startswith(("utf-16", "utf-32")) else codec


def held(text: Text) -> Text:
    """The text, with replacement and a warning where its encoding does not hold."""
    if holds(text):
        return text
    return Text(text.content, text.codec, "replace", text.start, (REPLACED,))


def holds(text: Text) -> bool:
    """Return whether every byte means something; a character cut off at the end is no breach."""
    try:
        for _ in decoded(text):
            pass
    except UnicodeDecodeError:
        return False
    return True


def decoded(text: Text) -> Iterator[str]:
    """Pieces of the text; raises UnicodeDecodeError when `errors` is `strict`."""
    decoder = codecs.getincrementaldecoder(text.codec)(text.errors)
    for at in range(text.start, len(text.content), PIECE_BYTES):
        piece = decoder.decode(text.content[at : at + PIECE_BYTES])
        if piece:
            yield piece


def allowed(text: str) -> str:
    """Return the text with U+FFFD for each character that XML forbids; JSON can spell them too."""
    return FORBIDDEN.sub("\ufffd", text)


def without_escapes(text: str) -> str:
    """The text without terminal escapes: colors, cursor moves, titles and links."""
    return ANSI.sub("", text) if any(escape in text for escape in ESCAPES) else text

"""Elements of an XML file as they come, within bounds; nothing of it is kept here.

expat is asked directly. A document type declaration is refused before anything in it is read, so
that no entity can exist, outside or inside; the other bounds are those of docs/design/limits.md 5.
What defusedxml would add over this is its SAX layer, at half of all the time there is.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol
from xml.parsers import expat
from xml.parsers.expat import ExpatError, XMLParserType

from service.testhealth.reports.results import Fault, Warned, WarningCode
from service.testhealth.reports.text import HEAD_BYTES, Text, allowed

DEPTH_MAX = 64
ATTRIBUTES_MAX = 64
ATTRIBUTE_CHARACTERS_MAX = 64 * 1024
NAME_CHARACTERS_MAX = 255
# expat keeps every name it has seen; no format of reports has a hundred.
NAMES_MAX = 10_000
# Each element takes its time, however short it is: 20 MiB of the shortest took 5 s. A case with
# its outcome inside has 19 bytes for each at least, so that no report is refused.
ELEMENT_BYTES_MIN = 16
ELEMENTS_FREE = 100_000
# expat reads an unfinished piece of markup again with each piece of text.
MARKUP_BYTES_MAX = 1024 * 1024

TOO_DENSE = f"Its elements have less than {ELEMENT_BYTES_MIN} bytes on average."
DOCTYPE_REFUSED = "A document type declaration is not allowed."
NO_FORMAT = "Not a known report format."

REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,60})|([0-9]{1,60}));")
# The length of the longest reference that REFERENCE finds.
REFERENCE_CHARACTERS_MAX = 64

DECLARATION = re.compile(r"<\?xml\s")
SPACE = re.compile(r"\s+")
DOCTYPE = re.compile(r"<!DOCTYPE\s{1,1000}([^\s/>\[]{1,255})")
ROOT = re.compile(r"<([^\s/>]{1,255})")


class Elements(Protocol):
    """The uses that a format makes of elements; names come without prefix.

    `start` and `end` answer whether text is wanted from there on. Both may raise Stopped.
    """

    def start(self, name: str, attributes: dict[str, str]) -> bool: ...

    def end(self, name: str) -> bool: ...

    def text(self, piece: str) -> None: ...


class Stopped(Exception):
    """A bound was passed or something is not allowed: the whole file is refused."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.fault = Fault(message, line, column)


@dataclass(frozen=True, slots=True)
class Head:
    """The first piece of a text with what may not stand before the root made blank."""

    piece: str
    root: str
    at: int
    warnings: tuple[Warned, ...]


def read_xml(text: Text, elements: Elements) -> tuple[Fault | None, tuple[Warned, ...]]:
    """Give every element to `elements` in order; return the fault that ended it, and warnings.

    Characters that XML forbids arrive as U+FFFD. What follows the root element is left out with a
    warning. A fault is malformed XML: all elements before it were given. Raises Stopped.
    """
    pieces = text.pieces()
    head = head_of(next(pieces, ""))
    if head is None:
        raise Stopped(NO_FORMAT)
    reader = _Reader(elements)
    try:
        for piece in encoded(chain([head.piece], pieces)):
            reader.feed(piece)
        reader.finish()
    except Stopped as stopped:
        raise Stopped(str(stopped), *reader.place()) from stopped
    except ExpatError as error:
        if reader.is_behind_root:
            left_out = f"What follows the root element in line {error.lineno} was left out."
            return None, (*head.warnings, Warned(WarningCode.TRAILING_TEXT, left_out))
        message = f"The XML is not well-formed: {expat.ErrorString(error.code)}."
        return Fault(message, error.lineno, error.offset + 1), head.warnings
    return None, head.warnings


class _Reader:
    """One pass of expat over one file."""

    def __init__(self, elements: Elements) -> None:
        self.is_behind_root = False
        self._depth = 0
        self._fed_bytes = 0
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        self._tell(parser, elements)

    def feed(self, piece: bytes) -> None:
        """Read on."""
        self._parser.Parse(piece, False)
        self._fed_bytes += len(piece)
        if self._fed_bytes - self._parser.CurrentByteIndex > MARKUP_BYTES_MAX:
            raise Stopped("A piece of markup is longer than 1 MiB.")
        if len(self._parser.intern) > NAMES_MAX:
            raise Stopped("More than 10,000 different names of elements and attributes.")

    def finish(self) -> None:
        """Say that nothing follows."""
        self._parser.Parse(b"", True)

    def place(self) -> tuple[int, int]:
        """Line and column from 1."""
        return self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1

    def _tell(self, parser: XMLParserType, elements: Elements) -> None:
        """Let the parser tell `elements`; text is asked for only where it is wanted."""
        started, ended, text = elements.start, elements.end, elements.text
        names: dict[str, str] = {}
        depth = count = 0
        is_heard = False

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal depth, count, is_heard
            depth += 1
            count += 1
            is_dense = count > ELEMENTS_FREE and count * ELEMENT_BYTES_MIN > parser.CurrentByteIndex
            if is_dense or depth > DEPTH_MAX or len(attributes) > ATTRIBUTES_MAX:
                raise Stopped(TOO_DENSE if is_dense else too_many(depth))
            for value in attributes.values():
                if len(value) > ATTRIBUTE_CHARACTERS_MAX:
                    raise Stopped("An attribute is longer than 64 KiB.")
            if name not in names:
                names[name] = local(name)
            if started(names[name], attributes) is not is_heard:
                is_heard = not is_heard
                parser.CharacterDataHandler = text if is_heard else None

        def end(name: str) -> None:
            nonlocal depth, is_heard
            depth -= 1
            if not depth:
                self.is_behind_root = True
            if ended(names[name]) is not is_heard:
                is_heard = not is_heard
                parser.CharacterDataHandler = text if is_heard else None

        parser.StartElementHandler = start
        parser.EndElementHandler = end


def _refuse_doctype(*_: object) -> None:
    """Stop before anything of a document type declaration is read."""
    raise Stopped(DOCTYPE_REFUSED)


def too_many(depth: int) -> str:
    """Return which of the two bounds of an element was passed."""
    if depth > DEPTH_MAX:
        return f"Elements are nested deeper than {DEPTH_MAX}."
    return f"An element has more than {ATTRIBUTES_MAX} attributes."


def local(name: str) -> str:
    """The name without its prefix; Stopped if it is longer than 255 characters."""
    if len(name) > NAME_CHARACTERS_MAX:
        raise Stopped("The name of an element is longer than 255 characters.")
    return name.rpartition(":")[2]


def head_of(piece: str) -> Head | None:
    """The first piece, made ready: declarations and text before the root become blanks.

    None if no element begins within the first 64 KiB. Blanks keep lines and columns.
    """
    at = piece.find("<", 0, HEAD_BYTES)
    if at < 0:
        return None
    made: list[str] = []
    is_odd = bool(piece[:at].strip())
    made.append(_blank(piece[:at]) if is_odd else piece[:at])
    is_first = not at
    while (end := _end_of_misc(piece, at)) is not None:
        is_declaration = DECLARATION.match(piece, at) is not None
        is_odd |= is_declaration and not is_first
        is_first = False
        made.append(_blank(piece[at:end]) if is_declaration else piece[at:end])
        at = end
    made.append(piece[at:])
    root = ROOT.match(piece, at)
    text = "Text before the first element was left out."
    warnings = (Warned(WarningCode.LEADING_TEXT, text),) if is_odd else ()
    return Head("".join(made), local(root[1]) if root else "", at, warnings)


def doctype_of(head: Head) -> str:
    """The root that a document type declaration names, empty without one."""
    named = DOCTYPE.match(head.piece, head.at)
    return local(named[1]) if named else ""


def _blank(text: str) -> str:
    """As many blanks, on as many lines."""
    return re.sub(r"[^\n]", " ", text)


def _end_of_misc(piece: str, at: int) -> int | None:
    """Return the end of the comment, instruction or white space at this place; None if none."""
    for opening, closing in (("<?", "?>"), ("<!--", "-->")):
        if piece.startswith(opening, at):
            end = piece.find(closing, at + len(opening))
            return None if end < 0 else end + len(closing)
    space = SPACE.match(piece, at)
    return space.end() if space else None


def encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    """Return UTF-8 in which everything that XML 1.0 forbids, raw or as reference, is U+FFFD.

    In CDATA a reference is text; there the same few are replaced too, which does no harm.
    """
    rest = ""
    for piece in pieces:
        text = rest + piece
        cut = text.rfind("&", max(0, len(text) - REFERENCE_CHARACTERS_MAX))
        rest = ""
        if cut >= 0 and ";" not in text[cut:]:
            text, rest = text[:cut], text[cut:]
        yield _encoded(text)
    if rest:
        yield _encoded(rest)


def _encoded(text: str) -> bytes:
    text = allowed(text)
    if "&#" in text:
        text = REFERENCE.sub(_allowed_reference, text)
    return text.encode("utf-8", "replace")


def _allowed_reference(match: re.Match[str]) -> str:
    """Return the reference itself, or U+FFFD if XML 1.0 has no such character."""
    code = int(match[1], 16) if match[1] else int(match[2])
    is_character = code < 0x110000 and not 0xD800 <= code <= 0xDFFF
    return match[0] if is_character and allowed(chr(code)) == chr(code) else "\ufffd"

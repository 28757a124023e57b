"""Bytes of a YAML file to plain values with line numbers, within bounds."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

BYTES_MAX = 256 * 1024
DEPTH_MAX = 12
VALUES_MAX = 20_000
NUMBER_CHARS_MAX = 40
SHOWN_CHARS_MAX = 60
"""Characters of a key in a message."""

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the document to a value."""

# The core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), decimal numbers only.
NULL = frozenset({"", "~", "null", "Null", "NULL"})
BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+")
NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a file, and the line (from 1) on which each value of it begins."""

    value: object
    lines: Mapping[Path, int]

    def line_of(self, path: Path) -> int | None:
        """Return the line of a value, or of the nearest one that contains it."""
        lengths = range(len(path), -1, -1)
        return next((self.lines[path[:n]] for n in lengths if path[:n] in self.lines), None)


class Unreadable(Exception):
    """The file cannot be read; `message` says what to change, `line` where, if it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def read(content: bytes) -> Document:
    """Return the values of a file; an empty file is null. Raises Unreadable."""
    if len(content) > BYTES_MAX:
        raise Unreadable(
            f"The file has {len(content):,} bytes. Shorten it to at most {BYTES_MAX:,} bytes."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as failed:
        line = content.count(b"\n", 0, failed.start) + 1
        raise Unreadable("The file is not UTF-8 text. Save it as UTF-8.", line) from None
    try:
        return _Builder().document(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as failed:
        mark = failed.problem_mark or failed.context_mark
        at = None if mark is None else mark.line + 1
        raise Unreadable(f"This is not YAML: {failed.problem}.", at) from None
    except yaml.reader.ReaderError as failed:
        line = text.count("\n", 0, failed.position) + 1
        raise Unreadable("Remove the control character from this line.", line) from None


@dataclass(slots=True)
class _Builder:
    lines: dict[Path, int] = field(default_factory=dict)
    count: int = 0

    def document(self, events: Iterator[Event]) -> Document:
        value: object = None
        documents = 0
        for event in events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _refused(event, "The file has a second document. Remove the line `---`.")
            elif isinstance(event, NodeEvent):
                value = self._value(event, events, ())
        return Document(value, self.lines)

    def _value(self, event: Event, events: Iterator[Event], path: Path) -> object:
        self._check(event, path)
        self.lines.setdefault(path, _line_of(event))
        match event:
            case ScalarEvent():
                return _scalar(event)
            case MappingStartEvent():
                return self._mapping(events, path)
            case _:
                return self._sequence(events, path)

    def _check(self, event: Event, path: Path) -> None:
        """Refuse what a file of settings does not need."""
        self.count += 1
        if self.count > VALUES_MAX:
            raise _refused(event, f"The file has more than {VALUES_MAX:,} values. Shorten it.")
        if len(path) > DEPTH_MAX:
            raise _refused(event, f"This is nested more than {DEPTH_MAX} levels deep.")
        if isinstance(event, AliasEvent):
            raise _refused(event, "Aliases (`*name`) are not supported. Write the value itself.")
        if isinstance(event, NodeEvent) and event.anchor is not None:
            raise _refused(event, "Anchors (`&name`) are not supported. Remove the anchor.")
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            raise _refused(event, "Tags (`!name`) are not supported. Remove the tag.")

    def _mapping(self, events: Iterator[Event], path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            self._check(event, path)
            if not isinstance(event, ScalarEvent):
                raise _refused(event, "A key must be a text.")
            key = event.value
            if key in found:
                first = self.lines[(*path, key)]
                shown = key[:SHOWN_CHARS_MAX]
                raise _refused(event, f"`{shown}` is set on line {first} already. Keep one.")
            self.lines[(*path, key)] = _line_of(event)
            found[key] = self._value(next(events), events, (*path, key))
        return found

    def _sequence(self, events: Iterator[Event], path: Path) -> list[object]:
        found: list[object] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            found.append(self._value(event, events, (*path, len(found))))
        return found


def _scalar(event: ScalarEvent) -> object:
    """Return the value of a scalar; a quoted one is always a text."""
    text: str = event.value
    is_plain = event.implicit[0]
    if not is_plain:
        return text
    if text in NULL:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    if len(text) <= NUMBER_CHARS_MAX:
        if INTEGER.fullmatch(text):
            return int(text)
        if NUMBER.fullmatch(text):
            return float(text)
    return text


def _refused(event: Event, message: str) -> Unreadable:
    return Unreadable(message, _line_of(event))


def _line_of(event: Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1

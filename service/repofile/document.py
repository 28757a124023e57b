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
VALUES_MAX = 20_000
# Where aliases are allowed: characters of all texts, each as often as it is used.
CHARS_MAX = 4 * BYTES_MAX
MERGE_KEY = "<<"
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
class Rules:
    """The depth limit of nested values, and whether an alias may stand for an anchored value."""

    depth_max: int
    has_aliases: bool


SETTINGS = Rules(depth_max=12, has_aliases=False)


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


@dataclass(frozen=True, slots=True)
class Anchored:
    """A value with an anchor: values and characters in it, and levels below it."""

    value: object
    count: int
    chars: int
    height: int


def outcome(content: bytes, rules: Rules = SETTINGS) -> "Document | Unreadable":
    """Return the values of a file, or why it cannot be read."""
    try:
        return read(content, rules)
    except Unreadable as unreadable:
        return unreadable


def pieces(content: bytes) -> Iterator[object]:
    """Return the outcome for a file of settings, for a parser process."""
    yield outcome(content)


def read(content: bytes, rules: Rules = SETTINGS) -> Document:
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
        return _Builder(rules).document(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as failed:
        mark = failed.problem_mark or failed.context_mark
        at = None if mark is None else mark.line + 1
        raise Unreadable(f"This is not YAML: {failed.problem}.", at) from None
    except yaml.reader.ReaderError as failed:
        line = text.count("\n", 0, failed.position) + 1
        raise Unreadable("Remove the control character from this line.", line) from None


@dataclass(slots=True)
class _Builder:
    """Builds values from events. `height` is how many levels lie below the value built last."""

    rules: Rules
    lines: dict[Path, int] = field(default_factory=dict)
    count: int = 0
    chars: int = 0
    height: int = 0
    anchors: dict[str, Anchored | None] = field(default_factory=dict)

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
        if isinstance(event, AliasEvent):
            return self._anchored(event, path)
        anchor = event.anchor if isinstance(event, NodeEvent) else None
        if anchor is None:
            return self._built(event, events, path)
        self.anchors[anchor] = None
        count, chars = self.count - 1, self.chars
        value = self._built(event, events, path)
        anchored = Anchored(value, self.count - count, self.chars - chars, self.height)
        self.anchors[anchor] = anchored
        return value

    def _built(self, event: Event, events: Iterator[Event], path: Path) -> object:
        match event:
            case ScalarEvent():
                self.height = 0
                self._add(event, 0, len(event.value))
                return _scalar(event)
            case MappingStartEvent():
                return self._mapping(events, path)
            case _:
                return self._sequence(events, path)

    def _check(self, event: Event, path: Path) -> None:
        """Refuse what makes reading ambiguous or expensive."""
        self._add(event, 1, 0)
        self._check_depth(event, len(path))
        if not self.rules.has_aliases:
            if isinstance(event, AliasEvent):
                raise _refused(
                    event, "Aliases (`*name`) are not supported. Write the value itself."
                )
            if isinstance(event, NodeEvent) and event.anchor is not None:
                raise _refused(event, "Anchors (`&name`) are not supported. Remove the anchor.")
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            raise _refused(event, "Tags (`!name`) are not supported. Remove the tag.")

    def _add(self, event: Event, values: int, chars: int) -> None:
        self.count += values
        self.chars += chars
        if self.chars > CHARS_MAX:
            raise _refused(event, f"The texts have more than {CHARS_MAX:,} characters. Shorten it.")
        if self.count > VALUES_MAX:
            raise _refused(event, f"The file has more than {VALUES_MAX:,} values. Shorten it.")

    def _check_depth(self, event: Event, depth: int) -> None:
        if depth > self.rules.depth_max:
            raise _refused(event, f"This is nested more than {self.rules.depth_max} levels deep.")

    def _anchored(self, event: AliasEvent, path: Path) -> object:
        """Return the value that an alias stands for; it counts as if it were written there."""
        anchored = self.anchors.get(event.anchor or "")
        if anchored is None:
            raise _refused(event, "This alias stands for a value that contains it, or for none.")
        self._add(event, anchored.count - 1, anchored.chars)
        self._check_depth(event, len(path) + anchored.height)
        self.height = anchored.height
        return anchored.value

    def _mapping(self, events: Iterator[Event], path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        height = 0
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, path)
            if key in found:
                first = self.lines[(*path, key)]
                shown = key[:SHOWN_CHARS_MAX]
                raise _refused(event, f"`{shown}` is set on line {first} already. Keep one.")
            self.lines[(*path, key)] = _line_of(event)
            found[key] = self._value(next(events), events, (*path, key))
            height = max(height, self.height + 1)
        self.height = height
        return found

    def _key(self, event: Event, path: Path) -> str:
        self._check(event, path)
        if not isinstance(event, ScalarEvent):
            raise _refused(event, "A key must be a text.")
        key: str = event.value
        if key == MERGE_KEY and event.implicit[0]:
            raise _refused(event, "Merge keys (`<<`) are not supported. Write the keys.")
        if event.anchor is not None:
            self.anchors[event.anchor] = Anchored(key, 1, len(key), 0)
        self._add(event, 0, len(key))
        return key

    def _sequence(self, events: Iterator[Event], path: Path) -> list[object]:
        found: list[object] = []
        height = 0
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            found.append(self._value(event, events, (*path, len(found))))
            height = max(height, self.height + 1)
        self.height = height
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

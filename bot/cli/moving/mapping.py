"""Rows from keys of another queue to settings, and how a file is compared with them."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
from pydantic.alias_generators import to_camel

from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.operations import repository_file
from service.repofile.document import Document, Path
from service.settings import as_json, short_json

SHOWN_CHARS_MAX = 120
"""Characters of a value in the list."""

Settings = Mapping[str, ConfigValue]
"""Settings by their names in `QueueConfig`."""


class Unfit(Exception):
    """This value has no equal; `why`, and what to do instead."""

    def __init__(self, why: str, todo: str) -> None:
        super().__init__(why)
        self.why = why
        self.todo = todo


Convert = Callable[[object], Settings]


@dataclass(frozen=True, slots=True)
class Row:
    """A key of another queue, as `queue_rules[].batch_size`.

    With `convert` its value becomes settings, and `remark` says what differs. Without, the key has
    no equal: `why` and `todo`; both empty if it says nothing about a queue.
    """

    key: str
    convert: Convert | None = None
    remark: str = ""
    why: str = ""
    todo: str = ""


def without(reason: tuple[str, str], *keys: str) -> tuple[Row, ...]:
    """Return rows of keys that have no equal for one reason: why, and what to do."""
    return tuple(Row(key, why=reason[0], todo=reason[1]) for key in keys)


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a file of the other queue; `line` is None if the file does not say it."""

    file: str
    line: int | None
    key: str
    value: str

    @property
    def order(self) -> tuple[bool, str, int]:
        """Places by file and line, those of workflows last."""
        return self.file.startswith(".github/workflows"), self.file, self.line or 0


@dataclass(frozen=True, slots=True)
class Carried:
    """A setting that a value became. `path` is where the value stands in its document."""

    place: Place
    setting: str
    to: ConfigValue
    remark: str = ""
    path: Path = ()

    @property
    def written(self) -> str:
        """The line of the repository's file, `concurrency: 5`."""
        return f"{to_camel(self.setting)}: {short_json(self.to)}"


@dataclass(frozen=True, slots=True)
class Left:
    """A value that was not carried over: why, and what to do."""

    place: Place
    why: str
    todo: str


@dataclass(frozen=True, slots=True)
class Source:
    """Another queue: rows for its keys, and its behavior without them.

    `defaults` have a setting, its value and the remark; a key of the file wins. `end`: why and how
    to end its work, where its file is not all of it.
    """

    name: str
    rows: Sequence[Row]
    defaults: Sequence[tuple[str, ConfigValue, str]] = ()
    end: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file of another queue that was read; `base` is the part of it that `source` has rows of."""

    path: str
    document: Document
    source: Source
    base: Path = ()

    def place(self, path: Path, value: object) -> Place:
        """Return where a value stands, as the list shows it."""
        return Place(self.path, self.document.line_of(path), dotted(path), shown(value))


def translate(file: File) -> Iterator[Carried | Left]:
    """Yield what each value of a file became, in the order of the file."""
    value = file.document.value
    for part in file.base:
        value = inner_of(value, part)
    yield from _translated(file, file.base, value)


def inner_of(value: object, part: str | int) -> object:
    """Return a value inside another one; None if there is none."""
    if isinstance(value, dict):
        return value.get(part)
    is_item = isinstance(value, list) and isinstance(part, int) and part < len(value)
    return value[part] if is_item else None  # type: ignore[index]


def _translated(file: File, path: Path, value: object) -> Iterator[Carried | Left]:
    key = pattern_of(path[len(file.base) :])
    row = next((one for one in file.source.rows if one.key == key), None)
    if row is not None:
        yield from apply(file, row, path, value)
    elif key and not any(one.key.startswith((f"{key}.", f"{key}[")) for one in file.source.rows):
        yield Left(
            file.place(path, value),
            f"Headgate does not know this key of {file.source.name}.",
            "Look it up there; if it matters to you, find the setting in `headgate config schema`.",
        )
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _translated(file, (*path, name), inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _translated(file, (*path, number), inner)


def apply(file: File, row: Row, path: Path, value: object) -> Iterator[Carried | Left]:
    """Yield what one value became by its row."""
    place = file.place(path, value)
    if row.convert is None:
        if row.why:
            yield Left(place, row.why, row.todo)
        return
    try:
        settings = row.convert(value)
    except Unfit as unfit:
        yield Left(place, unfit.why, unfit.todo)
        return
    for setting, to in settings.items():
        fault = fault_of(setting, to)
        if fault:
            yield Left(place, fault, f"Choose a value for `{to_camel(setting)}` yourself.")
        else:
            yield Carried(place, setting, to, row.remark, path)


def fault_of(setting: str, to: ConfigValue) -> str:
    """Return why a setting cannot have this value; empty if it can."""
    one = {"version": 1, "queues": {"main": {to_camel(setting): as_json(to)}}}
    faults = repository_file.check(orjson.dumps(one)).faults
    return faults[0].message.replace("queues.main.", "") if faults else ""


def pattern_of(path: Path) -> str:
    """Return the key of a path as rows write it: `queue_rules[].name`."""
    parts = ("[]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def dotted(path: Path) -> str:
    """Return the key of a path as people find it: `queue_rules[0].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def shown(value: object) -> str:
    """Return a value on one line, cut if it is long."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS_MAX else line[: SHOWN_CHARS_MAX - 1] + "…"


# ---------------------------------------------------------------------------- conversions


def to(setting: str, convert: Callable[[object], ConfigValue]) -> Convert:
    """Return the conversion to one setting."""
    return lambda value: {setting: convert(value)}


def flag(value: object) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise Unfit("The value is neither true nor false.", "Mend it, and import again.")
    return value


def whole(value: object) -> int:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unfit("The value is not a whole number.", "Mend it, and import again.")
    return value


def text(value: object) -> str:
    """Return a text."""
    if not isinstance(value, str) or not value:
        raise Unfit("The value is not a text.", "Mend it, and import again.")
    return value


def minutes_of_seconds(value: object) -> int:
    """Return whole minutes, rounded up."""
    return math.ceil(whole(value) / 60)


def hours_of_seconds(value: object) -> float:
    """Return hours."""
    return round(whole(value) / 3600, 2)


SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def minutes_of_text(value: object) -> int:
    """Return whole minutes, rounded up, of `90 s`, `5 min` or `1 hour 30 min`."""
    parts = DURATION.findall(value.lower()) if isinstance(value, str) else []
    if not parts or any(unit[0] not in SECONDS for _, unit in parts):
        raise Unfit("This is not a duration that Headgate can read.", "Set the minutes yourself.")
    return math.ceil(sum(float(number) * SECONDS[unit[0]] for number, unit in parts) / 60)


WILDCARDS = re.compile(r"[%*]")


def names(value: object) -> tuple[str, ...]:
    """Return names of checks; patterns have no equal."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise Unfit("The value is not a list of names.", "Mend it, and import again.")
    patterns = [each for each in found if WILDCARDS.search(each)]
    if patterns:
        raise Unfit(
            f"`{patterns[0]}` is a pattern; Headgate waits for checks by their names.",
            "List the names in `requiredStatuses`, or require them by a rule of the branch.",
        )
    return tuple(dict.fromkeys(found))


METHODS = {
    "merge": "MERGE_COMMIT",
    "squash": "SQUASH",
    "rebase": "REBASE",
}


def method(value: object) -> str:
    """Return a merge method, however the other queue spells it."""
    word = text(value).lower().replace("-", "_")
    if word not in METHODS:
        raise Unfit(
            f"Headgate has no method `{word}`.",
            "Choose `mergeMethod`; with `landTestedCommits: true` the tested commits land.",
        )
    return METHODS[word]

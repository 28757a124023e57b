"""Read lines of a pull request's description: `Depends-On` and `Not-Before`.

See docs/design/rules.md 1. A line counts that begins with the word, outside of comments and of
code blocks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from service.vocabulary import Blocker, BlockerCode

DEPENDENCIES_MAX = 20
YEAR_MIN, YEAR_MAX = 2000, 2199
TEXT_SHOWN_MAX = 60

_LINE = re.compile(r"(depends-on|not-before):[ \t]*(\S.*)", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})")
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^`]*(?<!`)\1(?!`)")
"""Code within a line, in which a comment does not begin."""

_NUMBERS = re.compile(r"#\d{1,9}(?:[\s,]+#\d{1,9})*[\s,]*")
_IN_ZONE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?) +([A-Za-z0-9_+/-]{1,60})")


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a description; `faults` are blockers for what cannot be read."""

    depends_on: tuple[int, ...] = ()
    not_before: datetime | None = None
    faults: tuple[Blocker, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is any such line."""
        return bool(self.depends_on or self.not_before or self.faults)


def lines_of(body: str) -> Lines:
    """Return what a description says; of several times the latest counts."""
    numbers: dict[int, None] = {}
    times: list[datetime] = []
    faults: dict[Blocker, None] = {}
    for name, text in _found(body):
        if name == "depends-on":
            if _NUMBERS.fullmatch(text) is None:
                faults[Blocker(BlockerCode.DEPENDENCY_LOST, "unreadable")] = None
                continue
            numbers |= dict.fromkeys(int(each) for each in re.findall(r"#(\d{1,9})", text))
            continue
        time = _time_of(text)
        if time is None:
            shown = text[:TEXT_SHOWN_MAX]
            faults[Blocker(BlockerCode.NOT_BEFORE_UNREADABLE, shown)] = None
        else:
            times.append(time)
    if len(numbers) > DEPENDENCIES_MAX:
        faults[Blocker(BlockerCode.DEPENDENCY_LOST, "many")] = None
    return Lines(tuple(numbers)[:DEPENDENCIES_MAX], max(times, default=None), tuple(faults))


def _found(body: str) -> Iterator[tuple[str, str]]:
    """Yield the lines with what they say, in one pass: anybody may write a description.

    What GitHub shows as text counts: one that is wrongly taken for code would merge too early.
    """
    fence, end = None, ""
    lines = body.splitlines()
    last_end = max((at for at, line in enumerate(lines) if "-->" in line), default=-1)
    for at, line in enumerate(lines):
        if fence is not None:
            if fence.fullmatch(line):
                fence = None
            continue
        shown = line
        if end:
            _, is_over, shown = line.partition(end)
            end = "" if is_over else end
        elif opened := _FENCE.match(line):
            mark = opened[1]
            fence = re.compile(rf" {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*")
            continue
        elif read := _LINE.fullmatch(line):
            yield read[1].lower(), read[2].strip()
        if "<!--" in _CODE.sub("", shown).rpartition("-->")[2] and at < last_end:
            end = "-->"


def _time_of(text: str) -> datetime | None:
    """Return the time of RFC 3339, or of a local time and its zone; None: it is neither."""
    local = _IN_ZONE.fullmatch(text)
    try:
        if local is not None:
            time = datetime.fromisoformat(f"{local[1]}T{local[2]}")
            time = time.replace(tzinfo=ZoneInfo(local[3]))
        else:
            time = datetime.fromisoformat(text)
        is_known = time.tzinfo is not None and YEAR_MIN <= time.year <= YEAR_MAX
        return time.astimezone(UTC) if is_known else None
    except (ValueError, OSError, KeyError):
        return None

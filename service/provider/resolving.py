"""Conflicts in files to which lines are only added, resolved by declared rules.

A pure function of three contents, so that whoever has them can recompute the outcome. The rules
are in docs/design/conflicts.md 5.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from service import globs
from service.vocabulary import ConflictRule, Resolution

BYTES_MAX = 1 << 20
"""A longer file stays a conflict."""
ADDED_MAX = 300
"""Lines that one side may add at one place."""
COMPARED_MAX = ADDED_MAX**2
"""Pairs of lines that both sides add at the same places: comparing them takes time."""

_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]")
"""A letter or digit, of any alphabet."""
_HEADING = re.compile(rb"(#{1,6}|={1,6})[ \t]+\S")
_UNDERLINE = re.compile(rb"([=\-~^])\1{2,}[ \t]*\r?\n")
_LEVELS = {b"=": 1, b"-": 2, b"~": 3, b"^": 4}

Lines = list[bytes]
Headings = tuple[tuple[int, bytes], ...]


class _Line(NamedTuple):
    """A line of an outcome, and its places in ours and in theirs; None: it is not there."""

    text: bytes
    ours: int | None
    theirs: int | None


def rule_for(rules: Sequence[ConflictRule], path: str) -> Resolution | None:
    """Return the first rule whose globs fit a path."""
    return next((one.rule for one in rules if globs.any_matches_path(one.paths, path)), None)


def resolved(rule: Resolution, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return a file with the lines that both sides added to it; None: it stays a conflict.

    Every line of both sides is in it, in the order of its side. A line that both added at the same
    place is there once.
    """
    contents = (base, ours, theirs)
    if any(b"\0" in each or len(each) > BYTES_MAX for each in contents):
        return None
    before, mine, other = map(_lines_of, contents)
    if len({line.endswith(b"\r\n") for line in (*before, *mine, *other)}) > 1:
        return None
    ours_added, theirs_added = _added(before, mine), _added(before, other)
    if ours_added is None or theirs_added is None:
        return None
    pairs = zip(ours_added, theirs_added, strict=True)
    if sum(len(one) * len(another) for one, another in pairs) > COMPARED_MAX:
        return None
    for is_ours_first in (True, False):
        made = list(_united(before, ours_added, theirs_added, is_ours_first=is_ours_first))
        if _is_doubled(mine, other, made):
            return None
        if rule is Resolution.UNION or _is_below_same_headings(mine, other, made):
            text = b"".join(each.text for each in made)
            is_ended = ours.endswith(b"\n") or theirs.endswith(b"\n")
            return text if is_ended else text.removesuffix(_end_of(ours))
    return None


def _lines_of(content: bytes) -> Lines:
    """Return the lines of a file; the last one ends as all others do."""
    ended = content if content.endswith(b"\n") or not content else content + _end_of(content)
    return [line + b"\n" for line in ended.split(b"\n")[:-1]]


def _end_of(content: bytes) -> bytes:
    """Return what ends the lines of a file."""
    return b"\r\n" if b"\r\n" in content else b"\n"


def _added(before: Lines, after: Lines) -> list[Lines] | None:
    """Return the lines added in front of each line of `before`, and at the end.

    None: a line was changed, moved or deleted, or too many were added.
    """
    found: list[Lines] = [[] for _ in range(len(before) + 1)]
    head = _common(before, after)
    room = min(len(before), len(after)) - head
    tail = min(_common(before[::-1], after[::-1]), room)
    at = head
    for line in after[head : len(after) - tail]:
        if at < len(before) - tail and line == before[at]:
            at += 1
        else:
            found[at].append(line)
    is_within = all(len(each) <= ADDED_MAX for each in found)
    return found if at == len(before) - tail and is_within else None


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many lines two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _united(
    before: Lines, ours: list[Lines], theirs: list[Lines], *, is_ours_first: bool
) -> Iterator[_Line]:
    """Yield the lines of an outcome: at each place what is common to both, and what each added."""
    at = {"ours": 0, "theirs": 0}
    for place in range(len(before) + 1):
        lines = list(_union(ours[place], theirs[place], is_ours_first=is_ours_first))
        lines += [(text, True, True) for text in before[place : place + 1]]
        for text, is_ours, is_theirs in lines:
            yield _Line(text, at["ours"] if is_ours else None, at["theirs"] if is_theirs else None)
            at["ours"] += is_ours
            at["theirs"] += is_theirs


def _union(mine: Lines, other: Lines, *, is_ours_first: bool) -> Iterator[tuple[bytes, bool, bool]]:
    """Yield the lines added at one place, each with whether ours and theirs have it."""
    start = 0, 0
    for match in (*_matches(mine, other), (len(mine), len(other))):
        parts = mine[start[0] : match[0]], other[start[1] : match[1]]
        if parts[0] == parts[1]:
            yield from ((text, True, True) for text in parts[0])
        else:
            each = [(text, True, False) for text in parts[0]]
            also = [(text, False, True) for text in parts[1]]
            yield from each + also if is_ours_first else also + each
        if match[0] < len(mine):
            yield mine[match[0]], True, True
        start = match[0] + 1, match[1] + 1


def _matches(mine: Lines, other: Lines) -> list[tuple[int, int]]:
    """Return the places of common lines, in the order of both.

    Those at the beginning, then those with words: two entries may have an empty line each. An
    indented line belongs to the one above: it counts if that one is common too.
    """
    begin = _common(mine, other)
    places = [
        [at for at in range(begin, len(side)) if _WORD.search(side[at])] for side in (mine, other)
    ]
    words = [[side[at] for at in kept] for side, kept in zip((mine, other), places, strict=True)]
    blocks = SequenceMatcher(None, words[0], words[1], autojunk=False).get_matching_blocks()
    found = [(at, at) for at in range(begin)]
    for block in blocks:
        for n in range(block.size):
            one, another = places[0][block.a + n], places[1][block.b + n]
            is_part = mine[one].startswith((b" ", b"\t"))
            if not is_part or (found and found[-1] == (one - 1, another - 1)):
                found.append((one, another))
    return found


def _is_doubled(ours: Lines, theirs: Lines, made: Sequence[_Line]) -> bool:
    """Return whether a line with words is there more often than on the side with most of it."""
    most = Counter(ours) | Counter(theirs)
    added = {one.text for one in made if one.ours is None} & {
        one.text for one in made if one.theirs is None
    }
    found = Counter(one.text for one in made if one.text in added)
    return any(_WORD.search(text) and count > most[text] for text, count in found.items())


def _is_below_same_headings(ours: Lines, theirs: Lines, made: Sequence[_Line]) -> bool:
    """Return whether each line is below the same headings as on a side that has it."""
    whole = _headings([one.text for one in made])
    mine, other = _headings(ours), _headings(theirs)
    return all(
        (one.ours is not None and mine[one.ours] == here)
        or (one.theirs is not None and other[one.theirs] == here)
        for one, here in zip(made, whole, strict=True)
        if _WORD.search(one.text)
    )


def _headings(lines: Lines) -> list[Headings]:
    """Return the headings above each line, the outermost first."""
    found: list[Headings] = []
    above: Headings = ()
    for at, line in enumerate(lines):
        level = _level_of(line, lines[at + 1] if at + 1 < len(lines) else b"")
        if level is not None:
            above = tuple(one for one in above if one[0] < level)
        found.append(above)
        if level is not None:
            above = (*above, (level, line.strip()))
    return found


def _level_of(line: bytes, below: bytes) -> int | None:
    """Return the level of a heading in Markdown, AsciiDoc or reStructuredText."""
    if heading := _HEADING.match(line):
        return len(heading[1])
    if _WORD.search(line) and (underline := _UNDERLINE.fullmatch(below)):
        return _LEVELS[underline[1]]
    return None

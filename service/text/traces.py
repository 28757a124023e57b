"""The lines of a trace, made harmless; text of strangers (docs/design/comments.md 6)."""

import re
from typing import NamedTuple

from service.text import markdown

LINE_CHARACTERS_MAX = 1000
INDENT_MAX = 40
HITS = ("E  ", ">  ")
"""The beginnings of pytest's line that failed, and of those that say how."""
MARGIN = re.compile(r"[E>]?[ \t]*")
TAB = 4


class TraceLine(NamedTuple):
    """A line of a trace; `is_hit`: pytest marks it as the one that failed, or as what failed."""

    text: str
    is_hit: bool


def lines_of(text: str, lines_max: int) -> list[TraceLine]:
    """Return a trace's lines, each cleaned like one line; a last line says that more follow.

    Blank lines at its ends are left out.
    """
    lines = text.rstrip().splitlines()
    first = next((nth for nth, line in enumerate(lines) if line.strip()), 0)
    shown_lines = lines[first : first + lines_max]
    kept = [TraceLine(_cleaned_indented(line), line.startswith(HITS)) for line in shown_lines]
    return kept + [TraceLine("…", is_hit=False)] * (len(lines) - first > lines_max)


def _cleaned_indented(line: str) -> str:
    """Return a line cleaned, with its indentation, which may begin with a mark of pytest."""
    margin = MARGIN.match(line)
    width = margin.end() if margin else 0
    indentation = line[:width].expandtabs(TAB)[:INDENT_MAX]
    return indentation + markdown.cleaned(line[width:], LINE_CHARACTERS_MAX)

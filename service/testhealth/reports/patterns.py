"""The patterns of CODEOWNERS files: gitignore's, without `!` and without `[ ]`.

They are a stranger's text matched against paths of any length, so matching never goes back
behind the last star: what that would find, the first place that fits has found already.

See docs/design/reports.md 9.
"""

import re
from collections.abc import Iterator, Sequence

# An escaped character, stars, a question mark, or text.
TOKEN = re.compile(r"\\(.)|(\*+)|(\?)|([^\\*?]+)")
# Text between what is no text; an escaped slash ends a name all the same.
LITERAL = re.compile(r"(?:\\[^/]|[^\\*?])+")
ESCAPED = re.compile(r"\\(.)")
# What a name is without when it stands for itself.
SPECIAL = re.compile(r"[\\*?]")

# Segments of a pattern: a name, an expression for one name, or None for any number of names.
Segment = str | re.Pattern[str] | None
ANY_NUMBER = None
ANY_NAME = re.compile(".*", re.DOTALL)

PIECE_MAX = 12
"""So many characters of a piece are asked for: more would seldom tell two patterns apart."""


def segments_of(pattern: str) -> tuple[Segment, ...]:
    """The pattern as names to fit; empty when it has none.

    With a slash before its end it stands at the root, else at any depth. It means a file, or a
    folder with all below; with `/` at its end a folder alone; with `/*` what lies directly in
    one; with `/**` or `/**/` all below one.
    """
    names = [name for name in pattern.split("/") if name]
    if not names:
        return ()
    is_rooted = "/" in pattern[:-1]
    start = () if is_rooted else (ANY_NUMBER,)
    last = names[-1]
    if last == "**":
        return (*start, *map(segment_of, names[:-1]), ANY_NAME, ANY_NUMBER)
    fitted = (*start, *map(segment_of, names))
    if pattern.endswith("/"):
        return (*fitted, ANY_NAME, ANY_NUMBER)
    return fitted if last == "*" and is_rooted else (*fitted, ANY_NUMBER)


def segment_of(name: str) -> Segment:
    """One name of a pattern; a star inside stands for any text, `?` for one character."""
    if name == "**":
        return ANY_NUMBER
    parts = [""]
    is_plain = True
    for escaped, stars, question, text in TOKEN.findall(name):
        is_plain &= not stars and not question
        if stars:
            parts.append("")
        else:
            parts[-1] += "." if question else re.escape(escaped or text)
    if is_plain:
        return ESCAPED.sub(r"\1", name)
    if len(parts) == 1:
        return re.compile(parts[0], re.DOTALL)
    between = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return re.compile(f"{parts[0]}{between}.*{parts[-1]}", re.DOTALL)


def words_of(pattern: str) -> list[str]:
    """What a path holds if the pattern fits it: `/` and a whole name, or a piece of one."""
    words = []
    for name in pattern.split("/"):
        if name and not SPECIAL.search(name):
            words.append(f"/{name}")
        elif name:
            pieces = (ESCAPED.sub(r"\1", piece) for piece in LITERAL.findall(name))
            words.extend(piece[:PIECE_MAX] for piece in pieces)
    return words


def words_in(names: Sequence[str], lengths: Sequence[int]) -> Iterator[str]:
    """Every word that a path of these names holds; pieces of these lengths alone."""
    for name in set(names):
        yield f"/{name}"
        for length in lengths:
            for start in range(len(name) - length + 1):
                yield name[start : start + length]


def fits(segments: Sequence[Segment], names: Sequence[str]) -> bool:
    """Whether all names fit all segments, in time of their product at most."""
    at = name_at = 0
    # Behind the last ANY_NUMBER, and the name at which it ends for now.
    again = resume = -1
    while name_at < len(names):
        if at < len(segments) and segments[at] is ANY_NUMBER:
            at += 1
            again, resume = at, name_at
        elif at < len(segments) and fits_one(segments[at], names[name_at]):
            at, name_at = at + 1, name_at + 1
        elif again >= 0:
            resume += 1
            at, name_at = again, resume
        else:
            return False
    return all(segment is ANY_NUMBER for segment in segments[at:])


def fits_one(segment: Segment, name: str) -> bool:
    """Whether one name fits one segment that stands for one."""
    if isinstance(segment, re.Pattern):
        return segment.fullmatch(name) is not None
    return segment == name

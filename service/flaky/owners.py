"""Who owns a file, by a CODEOWNERS file (FLAKY.md 7.4).

The patterns are those of the hosts: like gitignore's, without `!` and without `[ ]`. They are
a stranger's text matched against paths of any length, so matching never goes back behind the
last star: what that would find, the first place that fits has found already.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.flaky.identity import is_absolute

# Where hosts look, in this order; the first that exists counts.
PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
BYTES_MAX = 3 * 1024 * 1024
PATTERN_CHARACTERS_MAX = 1_000

# `@user`, `@organization/team`, an address of mail.
OWNER = re.compile(r"@[^\s@]+|[^\s@]+@[^\s@]+")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
WORD = re.compile(r"(?:\\.|[^\s\\])+")
# An escaped character, stars, a question mark, or text.
TOKEN = re.compile(r"\\(.)|(\*+)|(\?)|([^\\*?]+)")

# Segments of a pattern: a name, an expression for one name, or None for any number of names.
Segment = str | re.Pattern[str] | None
ANY_NUMBER = None
ANY_NAME = re.compile(".*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: what it matches, and its owners as written; none clear what came before."""

    segments: tuple[Segment, ...]
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeOwners:
    """A whole file, its rules in order; the last that matches counts."""

    rules: tuple[Rule, ...]

    def of(self, file: str) -> tuple[str, ...]:
        """The owners of a path below the repository's root, case-sensitive; may be none."""
        if not file or is_absolute(file):
            return ()
        names = file.split("/")
        matching = (rule.owners for rule in reversed(self.rules) if fits(rule.segments, names))
        return next(matching, ())


def owners_in(text: str) -> CodeOwners:
    """The rules of a file; a line that names no path is left out.

    Of more than 3 MiB nothing is read, as the hosts do.
    """
    if len(text) > BYTES_MAX or len(text.encode("utf-8", "replace")) > BYTES_MAX:
        return CodeOwners(())
    rules = (rule_in(line) for line in text.splitlines())
    return CodeOwners(tuple(rule for rule in rules if rule))


def rule_in(line: str) -> Rule | None:
    """The rule of one line, its comment left out."""
    words = WORD.findall(COMMENT.sub("", line.strip()))
    if not words or words[0].startswith("!") or len(words[0]) > PATTERN_CHARACTERS_MAX:
        return None
    segments = segments_of(words[0])
    owners = tuple(word for word in words[1:] if OWNER.fullmatch(word))
    return Rule(segments, owners) if segments else None


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
        return re.sub(r"\\(.)", r"\1", name)
    if len(parts) == 1:
        return re.compile(parts[0], re.DOTALL)
    between = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return re.compile(f"{parts[0]}{between}.*{parts[-1]}", re.DOTALL)


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

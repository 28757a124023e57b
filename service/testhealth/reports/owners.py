"""The owners of a file, by a CODEOWNERS file (docs/design/reports.md 9).

Patterns are gitignore's, without `!` and without `[ ]`. They are a stranger's text matched against
paths of any length, so matching never goes back behind the last star: what that would find, the
first place that fits has found already. A file of 3 MiB has more rules than can be asked of every
path, so a rule is asked only of those that hold the rarest of its words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice

from service.testhealth.reports.identity import is_absolute

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
        return (*start, *map(_segment_of, names[:-1]), ANY_NAME, ANY_NUMBER)
    fitted = (*start, *map(_segment_of, names))
    if pattern.endswith("/"):
        return (*fitted, ANY_NAME, ANY_NUMBER)
    return fitted if last == "*" and is_rooted else (*fitted, ANY_NUMBER)


def _segment_of(name: str) -> Segment:
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
    """Return what a path holds if the pattern fits it: `/` and a whole name, or a piece of one."""
    words = []
    for name in pattern.split("/"):
        if name and not SPECIAL.search(name):
            words.append(f"/{name}")
        elif name:
            pieces = (ESCAPED.sub(r"\1", piece) for piece in LITERAL.findall(name))
            words.extend(piece[:PIECE_MAX] for piece in pieces)
    return words


def _words_in(names: Sequence[str], lengths: Sequence[int]) -> Iterator[str]:
    """Every word that a path of these names holds; pieces of these lengths alone."""
    for name in set(names):
        yield f"/{name}"
        for length in lengths:
            for start in range(len(name) - length + 1):
                yield name[start : start + length]


def fits(segments: Sequence[Segment], names: Sequence[str]) -> bool:
    """Return whether all names fit all segments, in time of their product at most."""
    at = name_at = 0
    # Behind the last ANY_NUMBER, and the name at which it ends for now.
    again = resume = -1
    while name_at < len(names):
        if at < len(segments) and segments[at] is ANY_NUMBER:
            at += 1
            again, resume = at, name_at
        elif at < len(segments) and _fits_one(segments[at], names[name_at]):
            at, name_at = at + 1, name_at + 1
        elif again >= 0:
            resume += 1
            at, name_at = again, resume
        else:
            return False
    return all(segment is ANY_NUMBER for segment in segments[at:])


def _fits_one(segment: Segment, name: str) -> bool:
    """Return whether one name fits one segment that stands for one."""
    if isinstance(segment, re.Pattern):
        return segment.fullmatch(name) is not None
    return segment == name


# Where hosts look, in this order; the first that exists counts.
PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
BYTES_MAX = 3 * 1024 * 1024
PATTERN_CHARACTERS_MAX = 1_000
PATHS_OF_PIECE = 2_000
# Each test keeps its owners. An address of mail has at most 254 characters, a name of an
# organization 39 and that of a team 100; more people than this do not look at one test.
OWNER_CHARACTERS_MAX = 255
OWNERS_MAX = 100

# `@user`, `@organization/team`, an address of mail.
OWNER = re.compile(r"@[^\s@]+|[^\s@]+@[^\s@]+")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
WORD = re.compile(r"(?:\\.|[^\s\\])+")

NO_WORD = ""
"""Stands for the words of a rule that has none; every path holds it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: the pattern, and its owners as written; none clear what came before."""

    pattern: str
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeOwners:
    """A whole file, its rules in order; the last that matches counts."""

    rules: tuple[Rule, ...]
    # Word → numbers of the rules to ask of a path that holds it, ascending.
    _of_word: Mapping[str, Sequence[int]] = field(default_factory=dict)
    # Lengths of those words that are pieces of names.
    _lengths: Sequence[int] = ()
    # Number → segments of the rules that were asked before.
    _segments: dict[int, tuple[Segment, ...]] = field(default_factory=dict)

    def owners_of(self, file: str) -> tuple[str, ...]:
        """The owners of a path below the repository's root, case-sensitive; may be none."""
        if not file or is_absolute(file):
            return ()
        names = file.split("/")
        matching = (no for no in self._asked(names) if fits(self._fitted(no), names))
        no = next(matching, None)
        return () if no is None else self.rules[no].owners

    def _asked(self, names: Sequence[str]) -> Iterator[int]:
        """Rules that may match, the last first."""
        words = {NO_WORD, *_words_in(names, self._lengths)}
        candidates = (reversed(self._of_word[word]) for word in words if word in self._of_word)
        return merge(*candidates, reverse=True)

    def _fitted(self, no: int) -> tuple[Segment, ...]:
        if no not in self._segments:
            self._segments[no] = segments_of(self.rules[no].pattern)
        return self._segments[no]


def pieces(text: str, paths: Sequence[str]) -> Iterator[object]:
    """Return the owners of paths by the text of a file: dictionaries, some paths at a time."""
    rules = owners_in(text)
    for first in range(0, len(paths), PATHS_OF_PIECE):
        yield {path: rules.owners_of(path) for path in paths[first : first + PATHS_OF_PIECE]}


def owners_in(text: str) -> CodeOwners:
    """The rules of a file; a line that names no path, or one that a later line names, is left out.

    Of a line's owners the first 100 count. Of more than 3 MiB nothing is read, as the hosts do.
    """
    if len(text) > BYTES_MAX or len(text.encode("utf-8", "replace")) > BYTES_MAX:
        return CodeOwners(())
    last: dict[str, Rule] = {}
    for line in reversed(text.splitlines()):
        rule = _rule_in(line)
        if rule:
            last.setdefault(rule.pattern, rule)
    return indexed(tuple(reversed(last.values())))


def _rule_in(line: str) -> Rule | None:
    """The rule of one line, its comment left out."""
    if "#" in line:
        line = COMMENT.sub("", line.strip())
    words = WORD.findall(line) if "\\" in line else line.split()
    if not words or words[0].startswith("!") or len(words[0]) > PATTERN_CHARACTERS_MAX:
        return None
    if not words[0].strip("/"):
        return None
    return Rule(words[0], tuple(islice(filter(_is_owner, words[1:]), OWNERS_MAX)))


def _is_owner(word: str) -> bool:
    """Return whether the word names somebody who may own a file."""
    return len(word) <= OWNER_CHARACTERS_MAX and OWNER.fullmatch(word) is not None


def indexed(rules: tuple[Rule, ...]) -> CodeOwners:
    """The rules, each to be found by the word of its pattern that the fewest others have."""
    words = [words_of(rule.pattern) or [NO_WORD] for rule in rules]
    often = Counter(word for each in words for word in each)
    of_word: dict[str, list[int]] = {}
    for no, each in enumerate(words):
        of_word.setdefault(min(each, key=often.__getitem__), []).append(no)
    lengths = {len(word) for word in of_word if word and not word.startswith("/")}
    return CodeOwners(rules, of_word, sorted(lengths))

"""Who owns a file, by a CODEOWNERS file (docs/design/reports.md 9).

What a pattern means stands in patterns.py. A file of 3 MiB has more rules than can be asked of
every path, so a rule is asked only of those that hold the rarest of its words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice

from service.testhealth.reports import patterns
from service.testhealth.reports.identity import is_absolute
from service.testhealth.reports.patterns import Segment

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

    def of(self, file: str) -> tuple[str, ...]:
        """The owners of a path below the repository's root, case-sensitive; may be none."""
        if not file or is_absolute(file):
            return ()
        names = file.split("/")
        matching = (no for no in self._asked(names) if patterns.fits(self._fitted(no), names))
        no = next(matching, None)
        return () if no is None else self.rules[no].owners

    def _asked(self, names: Sequence[str]) -> Iterator[int]:
        """Rules that may match, the last first."""
        words = {NO_WORD, *patterns.words_in(names, self._lengths)}
        candidates = (reversed(self._of_word[word]) for word in words if word in self._of_word)
        return merge(*candidates, reverse=True)

    def _fitted(self, no: int) -> tuple[Segment, ...]:
        if no not in self._segments:
            self._segments[no] = patterns.segments_of(self.rules[no].pattern)
        return self._segments[no]


def pieces(text: str, paths: Sequence[str]) -> Iterator[object]:
    """Return the owners of paths by the text of a file: dictionaries, some paths at a time."""
    rules = owners_in(text)
    for first in range(0, len(paths), PATHS_OF_PIECE):
        yield {path: rules.of(path) for path in paths[first : first + PATHS_OF_PIECE]}


def owners_in(text: str) -> CodeOwners:
    """The rules of a file; a line that names no path, or one that a later line names, is left out.

    Of a line's owners the first 100 count. Of more than 3 MiB nothing is read, as the hosts do.
    """
    if len(text) > BYTES_MAX or len(text.encode("utf-8", "replace")) > BYTES_MAX:
        return CodeOwners(())
    last: dict[str, Rule] = {}
    for line in reversed(text.splitlines()):
        rule = rule_in(line)
        if rule:
            last.setdefault(rule.pattern, rule)
    return indexed(tuple(reversed(last.values())))


def rule_in(line: str) -> Rule | None:
    """The rule of one line, its comment left out."""
    if "#" in line:
        line = COMMENT.sub("", line.strip())
    words = WORD.findall(line) if "\\" in line else line.split()
    if not words or words[0].startswith("!") or len(words[0]) > PATTERN_CHARACTERS_MAX:
        return None
    if not words[0].strip("/"):
        return None
    return Rule(words[0], tuple(islice(filter(is_owner, words[1:]), OWNERS_MAX)))


def is_owner(word: str) -> bool:
    """Whether the word names somebody who may own a file."""
    return len(word) <= OWNER_CHARACTERS_MAX and OWNER.fullmatch(word) is not None


def indexed(rules: tuple[Rule, ...]) -> CodeOwners:
    """The rules, each to be found by the word of its pattern that the fewest others have."""
    words = [patterns.words_of(rule.pattern) or [NO_WORD] for rule in rules]
    often = Counter(word for each in words for word in each)
    of_word: dict[str, list[int]] = {}
    for no, each in enumerate(words):
        of_word.setdefault(min(each, key=often.__getitem__), []).append(no)
    lengths = {len(word) for word in of_word if word and not word.startswith("/")}
    return CodeOwners(rules, of_word, sorted(lengths))

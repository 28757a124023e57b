"""Globs of settings: names of artifacts, branches, tests, paths (docs/design/reports.md 2)."""

from collections.abc import Sequence
from fnmatch import fnmatchcase


def matches(pattern: str, text: str) -> bool:
    """Return whether the whole text fits: `*` is any run, slashes included, `?` one character.

    Everything else matches itself, also brackets.
    """
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def any_matches(patterns: Sequence[str], text: str) -> bool:
    """Return whether the text fits one of the patterns; False without patterns."""
    return any(matches(pattern, text) for pattern in patterns)

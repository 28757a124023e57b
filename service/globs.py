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


def matches_path(pattern: str, path: str) -> bool:
    """Return whether a path of a repository fits, in any case of the letters.

    A pattern without a slash is the name of a file in any folder.
    """
    whole = path.lower()
    return matches(pattern.lower(), whole if "/" in pattern else whole.rpartition("/")[2])


def any_matches_path(patterns: Sequence[str], path: str) -> bool:
    """Return whether the path fits one of the patterns; False without patterns."""
    return any(matches_path(pattern, path) for pattern in patterns)

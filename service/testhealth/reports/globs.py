"""Globs of settings: names of artifacts, branches, tests (docs/design/reports.md 2)."""

from collections.abc import Sequence


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text fits: `*` is any run, slashes included, `?` one character.

    Everything else stands for itself, in its own case. At most pattern times text steps.
    """
    at, wanted = 0, 0
    star, tried_to = -1, 0
    while at < len(text):
        char = pattern[wanted] if wanted < len(pattern) else ""
        if char == "*":
            star, tried_to = wanted, at
            wanted += 1
        elif char in ("?", text[at]):
            at, wanted = at + 1, wanted + 1
        elif star >= 0:
            # The run of the last star takes one more; earlier ones need not be asked again.
            tried_to += 1
            at, wanted = tried_to, star + 1
        else:
            return False
    return not pattern[wanted:].strip("*")


def any_matches(patterns: Sequence[str], text: str) -> bool:
    """Whether the text fits one of the patterns; none fits no pattern at all."""
    return any(matches(pattern, text) for pattern in patterns)

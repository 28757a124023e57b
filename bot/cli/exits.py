"""Exit codes, and the exception that carries one with its message."""

from collections.abc import Mapping
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the program; scripts rely on them. From 128 on, those that shells know."""

    DONE = 0
    FALSE = 1
    USAGE = 2
    NOT_ALLOWED = 3
    NOT_FOUND = 4
    UNREACHABLE = 5
    REFUSED = 6
    TIMEOUT = 7
    START_REFUSED = 8
    INTERRUPTED = 130
    BROKEN_PIPE = 141


STEP_EXITS: Mapping[str, int] = {
    "DONE": Exit.DONE,
    "WAIT": 10,
    "FIX": 11,
    "REBASE": 12,
    "RESUBMIT": 13,
    "SUBMIT": 14,
    "SUPERSEDED": 15,
    "DROP": 16,
    "ASK": 17,
}
"""Exit codes of `headgate next`, by the kind of the step; a kind that is not here ends with 1."""


class Failed(Exception):
    """End with `code` after printing `headgate: {what}. {todo}.` on stderr."""

    def __init__(self, code: Exit, what: str, todo: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.todo = todo


def sentence(what: str, todo: str = "") -> str:
    """Return `headgate: {what}. {todo}.` on one line, each part with exactly one full stop."""
    return f"headgate: {plain_sentence(what, todo)}"


def plain_sentence(what: str, todo: str = "") -> str:
    """Return `{what}. {todo}.` on one line, each part with exactly one full stop."""
    parts = [" ".join(part.split()) for part in (what, todo) if part.strip()]
    return " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts)

"""Bounded pieces of long texts: the start and the end of a stack, the end of an output.

A report may hold 50 MB of output in one element; never more is kept than is stored.
"""

STACK_HEAD_CHARACTERS = 6_000
STACK_TAIL_CHARACTERS = 2_000
OUTPUT_CHARACTERS_MAX = 4_000


class Captured:
    """Text that comes in pieces; keeps its first and last characters and drops the middle."""

    def __init__(self, head_characters: int, tail_characters: int) -> None:
        self._head_characters = head_characters
        self._tail_characters = tail_characters
        self._head = ""
        self._tail = ""
        self._is_cut = False

    def add(self, piece: str) -> None:
        """Take the next piece."""
        room = self._head_characters - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece and self._tail_characters:
            tail = self._tail + piece[-self._tail_characters :]
            self._is_cut |= len(self._tail) + len(piece) > self._tail_characters
            self._tail = tail[-self._tail_characters :]

    def text(self) -> str:
        """Return what is kept, an ellipsis between both parts where something is missing."""
        if self._is_cut and self._head:
            return f"{self._head}\n…\n{self._tail}"
        return self._head + self._tail


def stack() -> Captured:
    """Room for the text of a failure: its first 6,000 and last 2,000 characters."""
    return Captured(STACK_HEAD_CHARACTERS, STACK_TAIL_CHARACTERS)


def output() -> Captured:
    """Room for what a test printed: its last 4,000 characters."""
    return Captured(0, OUTPUT_CHARACTERS_MAX)


def shortened_stack(text: str) -> str:
    """A whole text as `stack` would keep it."""
    captured = stack()
    captured.add(text)
    return captured.text()

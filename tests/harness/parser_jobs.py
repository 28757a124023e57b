"""Parsers that a parser process runs in tests: good ones, and ones that take too much.

Imports the standard library alone, as the process imports it.
"""

import os
import signal
from collections.abc import Iterator


def repeated(words: str, times: int) -> Iterator[str]:
    """Return the words, so many times."""
    for _ in range(times):
        yield words


def never_ending() -> Iterator[object]:
    """Compute until the process is stopped."""
    while True:
        pass
    yield None


def hungry() -> Iterator[object]:
    """Take memory until there is no more."""
    taken = []
    while True:
        taken.append(bytearray(1 << 20))
    yield None


def broken() -> Iterator[object]:
    """Fail as a parser with a mistake does."""
    raise ValueError("a mistake of ours")
    yield None


def killed() -> Iterator[object]:
    """End as the kernel ends a process when the machine has no memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    yield None


def writing(path: str) -> Iterator[object]:
    """Write a file, as no parser should."""
    with open(path, "wb") as file:
        file.write(b"x")
    yield None


def environment() -> Iterator[object]:
    """Return the names of the variables that the process sees."""
    yield sorted(os.environ)

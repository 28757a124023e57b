"""Reports to cases, in a process of its own that `parsing.py` starts.

Reads pickled work from standard input, writes what it found to standard output and ends:
limits and a crash are its own, and what it used is given back. Nothing is imported here but
the pure readers, so that it starts in a fraction of a second.
"""

import gc
import hashlib
import pickle
import resource
import sys
from collections.abc import Sequence
from typing import NamedTuple

from service.testhealth.operations import parser_answer
from service.testhealth.operations.parser_answer import Done
from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import Format
from service.testhealth.reports.text import Unpacked, unpacked

EXIT_NO_MEMORY = 3


class Limits(NamedTuple):
    """What the process may use: seconds that it computes, and bytes of address space."""

    computing_s: int
    memory_bytes: int


class Work(NamedTuple):
    """Files as they were sent, how to read them, and what that may cost."""

    contents: Sequence[bytes]
    wanted: Format | None
    read_options: ReadOptions
    limits: Limits


def read(work: Work) -> list[Done]:
    """Every file of the work, in order."""
    return [
        Done(digest_of(content), reports.read(content, work.wanted, work.read_options))
        for content in work.contents
    ]


def digest_of(content: bytes) -> str:
    """Return the digest by which a file is recognized, packed or not."""
    plain = unpacked(content)
    return hashlib.sha256(plain.content if isinstance(plain, Unpacked) else content).hexdigest()


def main() -> int:
    """Do the work of standard input, say all of it; the exit code."""
    # Nothing of what is made lies in a circle, and all of it goes with the process.
    gc.disable()
    # Both ends are ours: what a stranger sent is bytes inside of the work.
    work: Work = pickle.load(sys.stdin.buffer)  # noqa: S301
    limit(resource.RLIMIT_CPU, work.limits.computing_s)
    limit(resource.RLIMIT_AS, work.limits.memory_bytes)
    try:
        for piece in parser_answer.told(read(work)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except MemoryError:
        return EXIT_NO_MEMORY
    return 0


def limit(kind: int, most: int) -> None:
    """Bound this process; a bound that it has already stays where it is lower."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))

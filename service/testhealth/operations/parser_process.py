"""Reports to cases, in a process of its own that `parsing.py` starts.

Reads pickled work from standard input, writes what it found to standard output and ends:
limits and a crash are its own, and what it used is given back. Nothing is imported here but
the pure readers, so that it starts in a fraction of a second.
"""

import gc
import hashlib
import io
import pickle
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseResult, Format, ReportFile
from service.testhealth.reports.text import Unpacked, unpacked

EXIT_NO_MEMORY = 3

CASES_OF_PIECE = 2_000
"""Cases are written as columns, so many at a time: mostly equal texts are quick to write and read,
and no piece blocks the interpreter, and with it the event loop, for 10 ms."""


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


class Done(NamedTuple):
    """One file, read; `sha256` is the hex digest of its bytes without compression."""

    sha256: str
    report: ReportFile


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


def encoded(done: Sequence[Done]) -> Iterator[bytes]:
    """Return the heads of the files as bytes, then their cases, piece by piece."""
    heads = [(each.sha256, replace(each.report, cases=()), len(each.report.cases)) for each in done]
    yield pickle.dumps(heads, pickle.HIGHEST_PROTOCOL)
    for each in done:
        for first in range(0, len(each.report.cases), CASES_OF_PIECE):
            columns = list(zip(*each.report.cases[first : first + CASES_OF_PIECE], strict=True))
            yield pickle.dumps(columns, pickle.HIGHEST_PROTOCOL)


def decoded(pieces: bytes) -> list[Done]:
    """Return the files again: our own code encoded them a moment ago, from plain values."""
    source = io.BytesIO(pieces)
    files: list[Done] = []
    # What a namedtuple's `_make` does, without a call of Python for each.
    case_of = partial(tuple.__new__, CaseResult)
    for sha256, head, count in pickle.load(source):  # noqa: S301
        cases: list[CaseResult] = []
        while len(cases) < count:
            columns = pickle.load(source)  # noqa: S301
            cases += map(case_of, zip(*columns, strict=True))
        files.append(Done(sha256, replace(head, cases=tuple(cases))))
    return files


def main() -> int:
    """Do the work of standard input, say all of it; the exit code."""
    # Nothing of what is made lies in a circle, and all of it goes with the process.
    gc.disable()
    # Both ends are ours: what a stranger sent is bytes inside of the work.
    work: Work = pickle.load(sys.stdin.buffer)  # noqa: S301
    limit(resource.RLIMIT_CPU, work.limits.computing_s)
    limit(resource.RLIMIT_AS, work.limits.memory_bytes)
    try:
        for piece in encoded(read(work)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except MemoryError:
        return EXIT_NO_MEMORY
    return 0


def limit(kind: int, most: int) -> None:
    """Bound this process; a bound that it has already stays where it is lower."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))

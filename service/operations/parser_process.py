"""Reports to cases, in a process of its own: `python -m service.operations.parser_process`.

Reads pickled work from standard input, writes the pickled result to standard output and ends:
limits and a crash are its own, and what it used is given back. Nothing is imported here but
the pure readers, so that it starts in a fraction of a second.
"""

import hashlib
import pickle
import resource
import sys
from collections.abc import Sequence
from typing import NamedTuple

from service.flaky import reports
from service.flaky.reading import Wishes
from service.flaky.results import Format, ReportFile
from service.flaky.text import Unpacked, unpacked

# FLAKY.md 2.8: a parse over 20 s is stopped. Time that the process computes, so that a busy
# machine refuses nothing.
COMPUTING_S_MAX = 20
# FLAKY.md 2.8 promises 256 MiB for 20 MiB of report; 500,000 cases of 100 MiB need four times
# as much, beside what the interpreter maps for itself.
MEMORY_BYTES_MAX = 1024 * 1024 * 1024
EXIT_NO_MEMORY = 3


class Work(NamedTuple):
    """Files as they were sent, and how to read them."""

    contents: Sequence[bytes]
    wanted: Format | None
    wishes: Wishes


class Done(NamedTuple):
    """One file, read; `sha256` is the hex digest of its bytes without compression."""

    sha256: str
    report: ReportFile


def read(work: Work) -> list[Done]:
    """Every file of the work, in order."""
    return [
        Done(digest_of(content), reports.read(content, work.wanted, work.wishes))
        for content in work.contents
    ]


def digest_of(content: bytes) -> str:
    """The digest by which a file is known again, packed or not (FLAKY.md 2.4)."""
    plain = unpacked(content)
    return hashlib.sha256(plain.content if isinstance(plain, Unpacked) else content).hexdigest()


def main() -> int:
    """Do the work of standard input; the exit code."""
    limit(resource.RLIMIT_CPU, COMPUTING_S_MAX)
    limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    try:
        # Both ends are ours: what a stranger sent is bytes inside of the work.
        work: Work = pickle.load(sys.stdin.buffer)  # noqa: S301
        pickle.dump(read(work), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return EXIT_NO_MEMORY
    return 0


def limit(kind: int, most: int) -> None:
    """Bound this process; a bound that it has already stays where it is lower."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))


if __name__ == "__main__":
    sys.exit(main())

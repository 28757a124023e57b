"""Run one parser of foreign bytes, in a process of its own that `service/parsers.py` starts.

The process reads a pickled job from standard input, writes the pieces of the result to standard
output and ends: limits and a crash are its own, and what it used is given back. Unpickling the
job imports the module of the parser, so these modules import little and start fast.
"""

import gc
import pickle
import resource
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

EXIT_NO_MEMORY = 3


class Limits(NamedTuple):
    """The limits of the process: seconds that it computes, and bytes of address space."""

    computing_s: int
    memory_bytes: int


class Job(NamedTuple):
    """A parser, which is a function of a module, its arguments, and what it may cost.

    `parse` returns the pieces of its result: plain values that can be pickled, each of them small
    enough that reading it delays no other thread for long.
    """

    parse: Callable[..., Iterable[object]]
    arguments: tuple[object, ...]
    limits: Limits


def main() -> int:
    """Do the job of standard input, write its pieces to standard output; return the exit code."""
    # Parsed values are in no circle, and all of them go with the process.
    gc.disable()
    # Both ends are ours: what a stranger sent is bytes inside of the job.
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301
    # A parser writes no file, and no part of a tenant's file stays behind in a core dump.
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CPU, job.limits.computing_s)
    limit(resource.RLIMIT_AS, job.limits.memory_bytes)
    try:
        for piece in job.parse(*job.arguments):
            pickle.dump(piece, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
    except MemoryError:
        return EXIT_NO_MEMORY
    return 0


def limit(kind: int, most: int) -> None:
    """Bound this process; a bound that it has already stays where it is lower."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))

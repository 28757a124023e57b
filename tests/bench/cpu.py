"""CPU of this process and of the commands that it runs."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Took:
    """Milliseconds of CPU, known at the end."""

    ms: float = 0.0


@contextmanager
def measured() -> Iterator[Took]:
    """Measure what happens inside; a command counts once it has ended."""
    took, before = Took(), _used_s()
    yield took
    took.ms = (_used_s() - before) * 1000


def _used_s() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)

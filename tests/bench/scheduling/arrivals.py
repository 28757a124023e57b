"""When pull requests came to real queues.

The table lies beside the project and is no part of it: without it there are no such arrivals.
"""

import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from service.mergequeue.simulation import table

VARIABLE = "HEADGATE_SHARED_DATA"
TABLE = "merge-queue-runs.csv"
BESIDE = Path(__file__).parents[3].parent / "shared" / "data"


@cache
def read_table() -> str:
    """Return the table as it is written, empty without it."""
    path = Path(os.environ.get(VARIABLE) or BESIDE) / TABLE
    return path.read_text("utf-8") if path.is_file() else ""


@cache
def gaps() -> tuple[float, ...]:
    """Times between arrivals, of one queue after the other; their mean is 1 in each queue.

    Empty without the table.
    """
    found: list[float] = []
    for history in table.histories_of(read_table()).values() if read_table() else ():
        times = sorted(arrival.at for arrival in history.arrivals)
        of_queue = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        usual = fmean(of_queue)
        found += [gap / usual for gap in of_queue]
    return tuple(found)

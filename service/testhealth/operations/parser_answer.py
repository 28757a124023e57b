"""What the process that reads reports says, on its way back: heads of files, then their cases.

Cases go as columns, some at a time. A column of texts that are mostly the same is quick to
write and to read, and no piece keeps the interpreter, and with it the event loop, for 10 ms.
"""

import io
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from service.testhealth.reports.results import CaseResult, ReportFile

CASES_OF_PIECE = 2_000


class Done(NamedTuple):
    """One file, read; `sha256` is the hex digest of its bytes without compression."""

    sha256: str
    report: ReportFile


def told(done: Sequence[Done]) -> Iterator[bytes]:
    """The files as bytes, piece by piece."""
    heads = [(each.sha256, replace(each.report, cases=()), len(each.report.cases)) for each in done]
    yield pickle.dumps(heads, pickle.HIGHEST_PROTOCOL)
    for each in done:
        for first in range(0, len(each.report.cases), CASES_OF_PIECE):
            columns = list(zip(*each.report.cases[first : first + CASES_OF_PIECE], strict=True))
            yield pickle.dumps(columns, pickle.HIGHEST_PROTOCOL)


def heard(said: bytes) -> list[Done]:
    """The files again: what our own code said a moment ago, of plain values."""
    source = io.BytesIO(said)
    made: list[Done] = []
    # What a namedtuple's `_make` does, without a call of Python for each.
    case_of = partial(tuple.__new__, CaseResult)
    for sha256, head, count in pickle.load(source):  # noqa: S301
        cases: list[CaseResult] = []
        while len(cases) < count:
            columns = pickle.load(source)  # noqa: S301
            cases += map(case_of, zip(*columns, strict=True))
        made.append(Done(sha256, replace(head, cases=tuple(cases))))
    return made

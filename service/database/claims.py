"""Rows that a process has claimed, to carry them out."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ClaimedRows(Generic[Row]):
    """Rows that a process has claimed; `next_due` is when the next one may be, None if none waits.

    `given_back` counts the rows that the same transaction freed before. `is_behind`: others may
    wait for the end of a claimed one.
    """

    rows: tuple[Row, ...]
    next_due: datetime | None
    given_back: int = 0
    is_behind: bool = True

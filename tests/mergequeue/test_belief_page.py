"""The example of docs/explanation/belief.md is what the engine computes."""

import math
from pathlib import Path

from service.mergequeue.engine import blame
from service.mergequeue.engine.policy.belief import Belief
from service.mergequeue.engine.records import Record, Suspect, cleared, with_failure
from service.mergequeue.engine.reported import Rates

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "belief.md"
NUMBERS = (11, 12, 13, 14)
P_FAIL = 0.03


def test_the_page_shows_what_is_computed() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    start = rows.index("| Result | #11 | #12 | #13 | #14 |") + 1
    shown = [row.strip("| ").split(" | ")[1:] for row in rows[start : start + 6]]
    assert shown == _computed()


def _computed() -> list[list[str]]:
    records: tuple[Record, ...] = ()
    rows = [_believed(records)]
    records = _failed(records, "batch", *NUMBERS)
    rows.append(_believed(records))
    records = cleared(records, ["11", "12"])
    rows.append(_believed(records))
    for run in ("alone", "alone again"):
        records = _failed(records, run, 13)
        rows.append(_believed(records))
    rows.append(_believed(blame.explained(records, ["13"])))
    return rows


def _believed(records: tuple[Record, ...]) -> list[str]:
    return [f"{math.floor(1000 * _failing(records, number)) / 10:.1f}" for number in NUMBERS]


def _failing(records: tuple[Record, ...], number: int) -> float:
    believed = Belief(records, Rates())
    return believed.failing(str(number), believed.prior(P_FAIL, has_passed=False))


def _failed(records: tuple[Record, ...], run: str, *numbers: int) -> tuple[Record, ...]:
    suspects = tuple(
        Suspect(str(number), number, _failing(records, number), is_tested=True)
        for number in numbers
    )
    return with_failure(records, Record(run, suspects, ("unit",)))

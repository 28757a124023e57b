"""The tables of figures: narrow, without empty cells, and a miss is seen."""

import pytest

from tests.bench import tables

ROWS = [
    {
        "goal": "V4",
        "subject": "webhook",
        "service_cpu_us": 398.4,
        "service_per_second": 2399,
        "bare_cpu_us": 54.3,
        "ratio": 7.33,
        "ratio_goal": 4.2,
    },
    {"goal": "V5", "subject": "decision", "p50_ms": 4.6, "p50_goal_ms": 15},
    {
        "goal": "V6",
        "subject": "submission",
        "service_cpu_us": 200.0,
        "service_per_second": 204,
        "bare_cpu_us": 56.6,
        "ratio": 3.5,
        "ratio_goal": 5.0,
    },
    {"subject": "load", "store_cpu_us": 4780.3},
]

PAGE = """\
## service

Goals missed: 1 of 3.

| met | goal | subject | cpu us | service per second | ratio |
|---|---|---|---|---|---|
| NO | V4 | webhook | 398.4 / 54.3 | 2,399 | 7.33 (≤ 4.2) |
| yes | V6 | submission | 200.0 / 56.6 | 204 | 3.5 (≤ 5) |

| met | goal | subject | p50 ms |
|---|---|---|---|
| yes | V5 | decision | 4.6 (≤ 15) |

| subject | store cpu us |
|---|---|
| load | 4,780.3 |
"""


def test_rows_of_one_shape_share_a_table_and_a_miss_is_seen():
    assert tables.section("service", [tables.judged(row) for row in ROWS]) == PAGE


@pytest.mark.parametrize(
    ("row", "met"),
    [
        ({"s": 2.0, "s_goal": 2.0}, "yes"),
        ({"s": 2.01, "s_goal": 2.0}, "NO"),
        ({"s": 1.0, "s_goal": 2.0, "peak_mib": 300, "peak_goal_mib": 256}, "NO"),
        ({"events_per_s": 20_000, "events_per_s_floor": 20_000}, "yes"),
        ({"events_per_s": 19_999, "events_per_s_floor": 20_000}, "NO"),
        ({"figure": "precision", "gate": "≥ 0.9", "met": "NO"}, "NO"),
        ({"s": 2.0}, None),
    ],
)
def test_a_row_is_judged_by_all_of_its_goals(row, met):
    assert tables.judged(row).get("met") == met

"""Tables of test runs as histories, and what is said of those that are wrong."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.errors import Malformed
from service.mergequeue.engine.config import CLI_DEFAULTS, QueueConfig, changed
from service.mergequeue.simulation import table
from service.mergequeue.simulation.replay import replay

HEADER = (
    "repo,run_id,bisection,named_pr,started_at,base_sha,pr_numbers_in_merge_order,"
    "pr_heads_in_merge_order,prefix_tree_found_on_target,landed_commit,minutes_start_to_land\n"
)
ROOT = Path(__file__).resolve().parents[2]


def a_line(**differences) -> str:
    cells = {
        "repo": "octo/widgets",
        "run_id": "r1",
        "bisection": "0",
        "named_pr": "1",
        "started_at": "2026-03-02T14:00:00+00:00",
        "base_sha": "b",
        "prs": "1",
        "heads": "h1",
        "landed": "1",
        "commit": "c",
        "minutes": "10.0",
    }
    return ",".join((cells | differences).values()) + "\n"


def read(*lines: str):
    return table.histories_of(HEADER + "".join(lines))


def test_heads_arrive_when_their_first_run_started():
    found = read(
        a_line(started_at="2026-03-02T15:00:00+01:00", landed="0", minutes=""),
        a_line(started_at="2026-03-02T14:30:00Z", minutes="12.5"),
        a_line(repo="octo/gadgets", heads="g1"),
    )
    assert list(found) == ["octo/widgets", "octo/gadgets"]
    history = found["octo/widgets"]
    (one,) = history.arrivals
    assert (one.pr, one.head, one.at) == (1, "h1", datetime(2026, 3, 2, 14, tzinfo=UTC))
    assert (one.fate.is_good, one.ci_s, history.durations_s) == (True, 750.0, (750.0,))
    assert history.flake_rate == 0.5


def test_what_never_landed_breaks_and_what_is_below_a_landed_tree_is_good():
    found = read(a_line(prs="1 2 3", heads="h1 h2 h3", landed="010", minutes="30"))
    fates = {one.pr: one.fate.is_good for one in found["octo/widgets"].arrivals}
    assert fates == {1: True, 2: True, 3: False}
    assert found["octo/widgets"].durations_s == (1800.0,)


def test_unknown_numbers_are_found_by_the_branch_or_by_other_lines_else_made():
    found = read(
        a_line(named_pr="7", prs="?", heads="h7"),
        a_line(named_pr="7", prs="? ?", heads="h7 h8", landed="00", minutes=""),
        a_line(named_pr="9", prs="9", heads="h8"),
        a_line(named_pr="7", prs="7 ?", heads="h7 h3", landed="", minutes="?"),
    )
    numbers = {one.head: one.pr for one in found["octo/widgets"].arrivals}
    assert numbers == {"h7": 7, "h8": 9, "h3": 10}


def test_missing_values_leave_a_line_out_or_say_nothing():
    found = read(
        a_line(started_at=""),
        a_line(heads="", prs="", landed=""),
        a_line(bisection="", named_pr="?", minutes="", landed="?"),
    )
    (one,) = found["octo/widgets"].arrivals
    assert (one.fate.breaks, one.ci_s) == (True, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Line 1 names no column repo."),
        (HEADER.replace("named_pr", "pr"), "Line 1 names no column named_pr."),
        (HEADER + "a,b\n", "Line 2 has 2 columns where line 1 has 11."),
        (HEADER + a_line() + a_line(started_at="soon"), "Line 3, column started_at: 'soon' is no"),
        (HEADER + a_line(prs="1 2"), "Line 2, column pr_numbers_in_merge_order: 2 numbers for 1"),
        (HEADER + a_line(prs="one"), "Line 2, column pr_numbers_in_merge_order: 'one' is no num"),
        (HEADER + a_line(named_pr="-1"), "Line 2, column named_pr: '-1' is no number of a pull"),
        (HEADER + a_line(bisection="yes"), "Line 2, column bisection: 'yes' is neither 0 nor 1"),
        (HEADER + a_line(landed="11"), "Line 2, column prefix_tree_found_on_target: '11' is not"),
        (HEADER + a_line(landed="2"), "Line 2, column prefix_tree_found_on_target: '2' is not"),
        (HEADER + a_line(minutes="-3"), "Line 2, column minutes_start_to_land: '-3' is no number"),
        (HEADER + a_line(minutes="nan"), "Line 2, column minutes_start_to_land: 'nan' is no num"),
        (HEADER + '"a,b\n', "Line 2: unexpected end of data."),
    ],
)
def test_a_wrong_table_is_refused_by_line_and_column(text, said):
    with pytest.raises(Malformed) as refused:
        table.histories_of(text)
    assert refused.value.detail.startswith(said)


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm():
    text = "\ufeff" + (HEADER + a_line()).replace("\n", "\r\n")
    assert len(table.histories_of(text)["octo/widgets"].arrivals) == 1


def shared_table() -> str:
    """The table of real queues that lies beside the project, or a skip that says how to have it."""
    folder = os.environ.get("HEADGATE_SHARED_DATA") or ROOT.parent / "shared" / "data"
    path = Path(folder) / "merge-queue-runs.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not there; set HEADGATE_SHARED_DATA to the folder that has it")
    return path.read_text("utf-8")


def test_real_queues_can_be_replayed():
    config = changed(QueueConfig(), CLI_DEFAULTS)
    found = table.histories_of(shared_table())
    assert len(found) > 1
    for history in found.values():
        measured = replay(history, config, 1)
        good = sum(one.fate.is_good for one in history.arrivals)
        assert measured.unfinished == 0
        # A head that was pushed away while it was queued is good, and merges no more.
        assert good - measured.failed_good - measured.cancelled <= len(measured.merged) <= good

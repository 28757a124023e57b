"""Tables, goals and the command line, at the smallest scale."""

import json
from dataclasses import replace

import pytest

from tests.bench.scheduling import __main__ as command
from tests.bench.scheduling import document, goals, worlds_page
from tests.bench.scheduling.cells import (
    PUBLISHED,
    Effort,
    Scenario,
    grid,
    measured,
    published,
    variations,
    worlds,
)
from tests.bench.scheduling.scenarios import VARIATIONS

STRATEGIES = ("headgate", "headgate-plain", "prefix", "proto")
SMALL = Effort(seeds=(1,), count=25, strategies=STRATEGIES, procs=1)


def test_every_goal_gets_a_row():
    small = Effort(seeds=(1,), count=8, procs=1)
    scenarios = (*goals.needed(), *goals.needed_in_worlds())
    rows = goals.rows_of({cell.scenario: cell for cell in measured(scenarios, small)})
    assert {row["goal"] for row in rows} == {f"P{number}" for number in range(1, 24)}
    safety = next(row for row in rows if row["goal"] == "P1")
    assert safety["met"] == "yes"


def test_published_cells_are_the_grids_and_the_variations_of_their_middles():
    cells = published()
    of_grids = 2 * (9 + len(VARIATIONS) - 1)
    assert len(cells) == len(set(cells)) == of_grids + len(worlds())
    assert set(goals.needed()) <= set(cells)
    assert set(grid("S")) <= set(cells)
    assert set(variations("F", 30, 24)) <= set(cells)


def test_goals_of_strategies_that_were_not_measured_are_left_out():
    cells = {cell.scenario: cell for cell in measured(grid("F")[:2], SMALL)}
    rows = goals.rows_of(cells)
    assert [row["goal"] for row in rows] == ["P1", "P2", "P6", "P11"]
    assert str(rows[2]["best baseline"]).endswith("(prefix)")


def test_a_simulation_that_was_cut_off_meets_no_goal():
    hasty = replace(SMALL, count=150, max_cpu_s=1e-9)
    scenarios = [Scenario("F", 30, 24), Scenario("F", 30, 24, "urgent 1%")]
    cells = {cell.scenario: cell for cell in measured(scenarios, hasty)}
    rows = goals.rows_of(cells)
    assert "Cut off before the end" in document.page([*cells.values()], "command", "machine")
    assert [(row["goal"], row["met"]) for row in rows] == [
        ("P1", "cut off"),
        ("P2", "cut off"),
        ("P4", "cut off"),
        ("P13", "cut off"),
    ]


def test_two_processes_measure_what_one_does():
    scenarios = grid("F")[:2]
    in_two = Effort(seeds=(1, 2), count=25, strategies=("prefix",), procs=2)
    in_one = Effort(seeds=(1, 2), count=25, strategies=("prefix",), procs=1)
    for two, one in zip(measured(scenarios, in_two), measured(scenarios, in_one), strict=True):
        assert two.scenario == one.scenario
        assert two.rows["prefix"].p95_min == one.rows["prefix"].p95_min


def test_oracles_are_left_out_where_authors_withdraw():
    (cell,) = measured([Scenario("F", 30, 24, "cancel 5%")], Effort((1,), count=80, procs=1))
    assert list(cell.rows) == [name for name in PUBLISHED if not name.endswith("-lanes")]


def test_the_page_holds_goals_and_tables():
    cells = list(measured([Scenario("F", 30, 24), Scenario("S", 300, 300, "urgent 1%")], SMALL))
    page = document.page(cells, "the command", "the machine")
    assert "Written by `the command` (the machine)" in page
    assert "**F 30/h x 24** (ideal P50/P95/P99 = " in page
    assert "**S 300/h x 300, urgent 1%**" in page
    assert "| P4 | F 30/h x 24 |" in page


def test_the_part_about_worlds_replaces_itself_and_stays_when_the_rest_is_written():
    scenarios = [Scenario("F", 60, 24, world=of) for of in ("plain", "believable")]
    cells = list(measured(scenarios, replace(SMALL, strategies=("headgate", "proto"))))
    section = worlds_page.section(cells, "the command", "the machine")
    assert "25 pull requests, seeds 1," in section
    (row,) = [line for line in section.splitlines() if "| F 60/h x 24 | headgate |" in line]
    assert row.count(" / ") == 2
    assert "| P23 | F 60/h x 24; believable |" in section
    whole = document.page(cells, "command", "machine")
    assert worlds_page.kept(whole) == ""
    twice = worlds_page.replaced(worlds_page.replaced(whole, "\n## Worlds of CI\nold\n"), section)
    assert twice == whole + section
    assert worlds_page.kept(twice) == section


def test_speed_names_every_strategy_and_its_events():
    lines = list(document.speed_rows(SMALL, 20))
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    assert names == 2 * ["(drawing the workload)", "oracle", *STRATEGIES]


def test_the_command_prints_a_cell_and_writes_its_figures(capsys, tmp_path):
    seeds = ["--seeds", "11,12", "--n", "20", "--procs", "1"]
    written = ["--strategies", "prefix", "--json", str(tmp_path / "figures")]
    command.main(["cells", "F 30x8", *seeds, *written])
    assert "| prefix | " in capsys.readouterr().out
    (cell,) = json.loads((tmp_path / "figures").read_text())
    assert cell["scenario"]["workers"] == 8
    assert cell["rows"]["prefix"]["stuck"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["grid", "X"],
        ["grid", "F", "--strategies", "nobody"],
        ["cells", "F 30"],
        ["cells", "F 8x8, x"],
    ],
)
def test_the_command_says_what_there_is(wrong, capsys):
    with pytest.raises(SystemExit):
        command.main(wrong)
    assert "there are" in capsys.readouterr().err

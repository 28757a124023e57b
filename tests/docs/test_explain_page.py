"""The page about `headgate explain` names every state, every condition and who may have to act."""

import re
from pathlib import Path

from service.mergequeue.engine.explaining.conditions import ConditionCode
from service.mergequeue.engine.reasons import NOT_READY_ORDER
from service.mergequeue.engine.states import EntryState
from service.mergequeue.reasons.record import WhoMustAct

PAGE = (Path(__file__).parents[2] / "docs/reference/explain.md").read_text("utf-8")


def rows_below(heading: str) -> list[str]:
    """What stands in code spans in the first column of the table below a heading."""
    table = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_every_condition_has_its_row():
    assert sorted(rows_below("Conditions")) == sorted([*NOT_READY_ORDER, *ConditionCode])


def test_every_state_has_its_row():
    assert sorted(rows_below("States")) == sorted(EntryState)


def test_everybody_who_may_have_to_act_is_named():
    named = PAGE.split("who must act: ")[1].split(".")[0]
    assert sorted(re.findall(r"`(\w+)`", named)) == sorted(WhoMustAct)

"""docs/design/states.md draws the engine's tables of states."""

from pathlib import Path

import pytest

from service.mergequeue.engine import states
from tests.docs.state_charts import chart, page

PAGE = Path(__file__).parents[2] / "docs/design/states.md"


def test_the_charts_are_current(pytestconfig: pytest.Config):
    fresh = page()
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


@pytest.mark.parametrize(
    "transitions",
    [states.ENTRY_TRANSITIONS, states.RUN_TRANSITIONS, states.QUEUE_TRANSITIONS],
    ids=["pull request", "run", "queue"],
)
def test_a_chart_has_each_transition_once(transitions):
    lines = [line.strip() for line in chart(transitions)]
    arrows = [tuple(line.split(" --> ")) for line in lines if " --> " in line and "[*]" not in line]
    assert len(arrows) == len(set(arrows))
    live = [state.name for state, targets in transitions.items() if targets]
    drawn = {
        (start, end) for source, end in arrows for start in (live if source == "live" else [source])
    }
    assert drawn == {
        (source.name, target.name) for source, targets in transitions.items() for target in targets
    }

"""Every cell of the laboratory is right, or is one of those that are named."""

from pathlib import Path

import pytest

from tests.laboratory import judge, page
from tests.laboratory.all_producers import PRODUCERS
from tests.laboratory.named import NAMED
from tests.laboratory.record import RECORDED

PAGE = Path(__file__).parents[2] / "docs/reference/producers.md"


@pytest.mark.parametrize("name", PRODUCERS)
def test_every_cell_of_a_producer_is_right_or_named(name: str) -> None:
    cells = judge.judged(PRODUCERS[name], judge.recorded(RECORDED / name))
    wrong = {
        condition: said
        for condition, said in cells.items()
        if said not in (judge.RIGHT, judge.BY_CODE, judge.AS_FAILURE)
    }
    assert wrong == {at: named.said for at, named in NAMED.get(name, {}).items()}


def test_every_recording_is_of_a_producer_and_of_all_its_scenes() -> None:
    assert {path.name for path in RECORDED.iterdir()} == set(PRODUCERS)
    for name, producer in PRODUCERS.items():
        assert set(judge.recorded(RECORDED / name)) == set(producer.played), name


def test_the_page_is_current(pytestconfig: pytest.Config) -> None:
    fresh = page.page()
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"

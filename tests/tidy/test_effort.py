"""What `make test` leaves to `make soak`: one of two databases, further variants of stories."""

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import effort
from tests.harness.databases import DIALECTS


@dataclass(frozen=True)
class Collected:
    """A test as pytest has collected it."""

    name: str
    kind: str = ""
    folder: str = "operations"
    marks: tuple[str, ...] = ()

    @property
    def nodeid(self) -> str:
        return f"tests/{self.folder}/test_it.py::{self.name}[{self.kind}]"

    @property
    def path(self) -> Path:
        return effort.TESTS / self.folder / "test_it.py"

    @property
    def callspec(self) -> SimpleNamespace:
        return SimpleNamespace(params={"database_url": self.kind} if self.kind else {})

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks


def left_out_of(tests: Any) -> Any:
    return effort.twins_in(tests)


def on_each(name: str, **more):
    return [Collected(name, kind, **more) for kind in DIALECTS]


def test_of_two_twins_one_is_left_out_and_both_kinds_are_played():
    names = [f"test_{number}" for number in range(20)]
    left_out = left_out_of([one for name in names for one in on_each(name)])
    assert sorted(one.name for one in left_out) == sorted(names)
    assert {one.kind for one in left_out} == set(DIALECTS)


def test_a_test_without_a_twin_is_played():
    alone = [Collected("test_a", "postgresql"), Collected("test_b"), Collected("test_c", "sqlite")]
    assert left_out_of(alone) == []


def test_what_is_about_a_database_is_played_on_each():
    assert left_out_of(on_each("test_a", marks=("each_database",))) == []
    assert left_out_of(on_each("test_a", folder="store")) == []


def test_each_kind_is_met_before_and_after_a_commit():
    spread = effort.spread([f"tx.{name}.{when}" for name in "abcd" for when in ("before", "after")])
    met = {(name.rpartition(".")[2], kind) for name, kind in spread}
    assert met == {(when, kind) for when in ("before", "after") for kind in DIALECTS}


def test_where_no_transaction_is_under_way_one_kind_is_met():
    spread = effort.spread(["act.land.before_send", "act.land.after_send"])
    assert spread == [("act.land.before_send", "sqlite"), ("act.land.after_send", "sqlite")]


def on_command_line(*arguments: str, keyword: str = "") -> SimpleNamespace:
    return SimpleNamespace(args=list(arguments), getoption=lambda _: keyword)


@pytest.mark.parametrize(
    ("command_line", "left_out"),
    [
        (on_command_line("tests"), 1),
        (on_command_line("tests/test_it.py::test_a"), 0),
        (on_command_line("tests", keyword="test_a"), 0),
    ],
    ids=["everything", "by id", "by -k"],
)
def test_a_further_variant_is_left_out_unless_it_is_named(command_line, left_out):
    tests: Any = [Collected("test_a"), Collected("test_a", marks=("soak",))]
    assert len(effort.variants_in(tests, command_line)) == left_out


SMALLER = ("pytest.mark.soak", "effort.examples(", "effort.spread(")
"""With each of these `make test` plays less than `make soak`."""


def test_make_soak_plays_every_folder_with_further_variants():
    rows = re.findall(r"^ROWS := (.*)", (effort.TESTS.parent / "Makefile").read_text(), re.M)
    folders = {
        file.relative_to(effort.TESTS).parts[0]
        for file in effort.TESTS.rglob("test_*.py")
        if file != Path(__file__) and any(word in file.read_text() for word in SMALLER)
    }
    assert folders <= set(rows[0].split())

"""The stand-in is held to recordings of GitHub: every difference is known and explained."""

import asyncio
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.faces import PLAIN, RECORDED, drawn
from tests.recorded import acts, comparing, recordings

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("differences.toml")
PAGE = ROOT / "docs/reference/stand-in.md"
HEAD = "| What differs | Fields, calls or facts | Class | Why |\n|---|---|---|---|\n"
KNOWN: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["difference"]
CLASSES = {"time has passed", "not modelled", "wrong"}
FACES = (PLAIN, RECORDED, *(drawn(f"acts {seed}") for seed in range(4)))
"""Both ways of GitHub, and others that are drawn, with deliveries in random orders."""


@cache
def found() -> frozenset[str]:
    """Every difference between the stand-in and the recordings."""
    imitated = [asyncio.run(acts.perform(face)) for face in FACES]
    return frozenset(comparing.differences(recordings.of_2022(), imitated))


@pytest.mark.fault(
    "the stand-in for GitHub behaves as GitHub does not",
    holds="each difference from the recordings is known and explained, and each known one occurs",
    within="-",
)
def test_each_difference_is_explained_and_each_explained_one_occurs():
    rows = [line for known in KNOWN for line in known["lines"]]
    new = {line for line in found() if not any(re.fullmatch(row, line) for row in rows)}
    gone = [row for row in rows if not any(re.fullmatch(row, line) for line in found())]
    assert (sorted(new), gone) == ([], []), "new, and known in differences.toml but gone"


def test_each_explanation_has_a_class_and_a_reason():
    assert {known["class"] for known in KNOWN} == CLASSES
    assert all(known["lines"] and known["why"] for known in KNOWN)


def test_the_page_of_the_stand_in_is_current(pytestconfig: pytest.Config):
    old = PAGE.read_text("utf-8")
    before, head, after = old.partition(HEAD)
    assert head, f"{PAGE.name} has no table with this head:\n{HEAD}"
    rows = sorted(KNOWN, key=lambda known: (known["class"] != "wrong", known["class"]))
    fresh = before + HEAD + "".join(map(row, rows)) + after[after.index("\n## ") :]
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh, "`make docs` writes it anew"


def row(known: dict[str, Any]) -> str:
    """One line of the table."""
    lines = [one for one in found() if any(re.fullmatch(row, one) for row in known["lines"])]
    return f"| {known['what']} | {len(lines)} | {known['class']} | {known['why']} |\n"


def test_a_difference_that_is_not_known_is_found():
    """The comparison has teeth: fields, words, kinds and orders that differ are lines."""
    github, own = recordings.of_2022(), asyncio.run(acts.perform(PLAIN))
    lines = comparing.differences(own, [github])
    assert "fact merge: `push` first in the stand-in only" in lines
    assert "label: archived_at is sent by GitHub only" in lines
    assert "delivery pull_request.assigned: GitHub was not recorded to send it" in lines
    assert comparing.differences(own, [own]) == set()

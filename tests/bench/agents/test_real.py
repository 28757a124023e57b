"""The agents against a running service: what clashes here clashes in git too."""

from dataclasses import replace

import pytest

from tests.bench.agents.real import PLACES, TWENTY, PlacedWorld, real_row, virtual_row
from tests.bench.agents.world import Scenario

FEW = replace(
    TWENTY, agents=3, people=0, hours=0.5, agent_every_min=8.0, flood=0, files=3, broken=0.0
)


def count(row, name):
    return int(str(row[name]))


def test_two_clash_that_edit_the_same_place_of_a_file():
    world = PlacedWorld(Scenario(files=1, clash=1 / PLACES, breaks=0.0))
    heads = [world.push(world.open(0, 0.0, is_person=True)) for _ in range(8)]
    for own in heads:
        clashing = world.clashing(own.id, [head.id for head in heads if head is not own])
        place = world.place_of(own.pr)
        alike = [each.id for each in heads if world.place_of(each.pr) == place and each is not own]
        assert clashing == alike


def test_the_virtual_side_counts_what_the_service_counts():
    row = virtual_row(FEW)
    assert count(row, "opened") >= count(row, "landed") > 3
    assert count(row, "submitted") >= count(row, "landed")


@pytest.mark.soak
async def test_the_service_lands_them_and_git_shows_what_was_taken_back(tmp_path):
    row = await real_row(replace(FEW, stale=0.3), tmp_path)
    assert count(row, "landed") > 3
    assert (count(row, "lost_in_git") > 0) == (count(row, "silent_reverts") > 0)

"""Producers that can be fetched still write what was recorded of them."""

from pathlib import Path

import pytest

from tests.harness.needs import needs
from tests.laboratory import judge
from tests.laboratory.all_producers import PRODUCERS
from tests.laboratory.producer import Home, Producer, Scene
from tests.laboratory.record import RECORDED, play

FETCHED = {name: made for name, made in PRODUCERS.items() if made.home is not Home.MACHINE}


def read(producer: Producer, scene: Scene, folder: Path) -> judge.Played:
    """Play a scene now, and read it; its folder is cut off, as that of recordings is."""
    run = play(producer, scene, folder)
    place = str(folder).encode()
    contents = {path: text.replace(place, b"/build") for path, text in run.reports.items()}
    return judge.read_scene(contents, run.ended, Scene.SUITE)


def ended(played: judge.Played) -> dict[str, list[str]]:
    """How each attempt of each test ended."""
    return {
        key: [attempt.outcome.value for attempt in case.attempts]
        for key, case in played.tests.items()
    }


@pytest.mark.parametrize("name", FETCHED)
def test_the_suite_reads_as_it_was_recorded(name: str, tmp_path: Path) -> None:
    needs("laboratory")
    now = read(FETCHED[name], Scene.SUITE, tmp_path)
    known = judge.recorded(RECORDED / name)[Scene.SUITE]
    assert ended(now) == ended(known)
    assert now.ended == known.ended


@pytest.mark.soak
@pytest.mark.parametrize("name", FETCHED)
def test_every_cell_is_as_it_was_recorded(name: str, tmp_path: Path) -> None:
    needs("laboratory")
    producer = FETCHED[name]
    scenes = {}
    for scene in producer.played:
        (tmp_path / scene).mkdir()
        scenes[scene] = read(producer, scene, tmp_path / scene)
    known = judge.judged(producer, judge.recorded(RECORDED / name))
    assert judge.judged(producer, scenes) == known

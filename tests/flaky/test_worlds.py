"""The simulated worlds: the same seed is the same world, and hindsight is no advantage."""

from dataclasses import replace

import pytest

from tests.bench.flaky import document, figures, scenarios, uploads, worlds
from tests.bench.flaky.ledger import Ledger
from tests.bench.flaky.worlds import DAY, START, Shape

SMALL = Shape("A", tests=200, days=16, pr_runs=20, main_runs=8, flaky_share=0.1)


@pytest.fixture(scope="module")
def world():
    return worlds.drawn(SMALL, "heavy-tailed", 3)


def test_a_seed_is_a_world(world):
    again = worlds.drawn(SMALL, "heavy-tailed", 3)
    assert again == world
    assert uploads.reported(again) == uploads.reported(world)
    assert worlds.drawn(SMALL, "heavy-tailed", 4) != world


def test_flags_hit_flaky_tests_and_every_status_can_be_recomputed(world):
    ledger = Ledger(uploads.reported(world))
    judged, _ = scenarios.judged_in(ledger)
    found = figures.measured(world, scenarios.spans_of(judged, SMALL.days))
    assert found.precision > 0.9
    assert found.recall > 0.8
    assert all(scenarios.is_founded(health) for health in judged.values())


def test_what_was_said_each_evening_is_what_the_history_says_later(world):
    reported = uploads.reported(world)
    whole = Ledger(reported)
    histories = {no: whole.judge(no).history for no in whole.suspects}
    differing = judged = 0
    for day in range(5, SMALL.days):
        evening = START + DAY * day
        then = Ledger([each for each in reported if each.at < evening])
        for no in then.suspects:
            later = [change for change in histories.get(no, ()) if change.at <= then.clock]
            value = later[-1].value if later else "healthy"
            judged += 1
            differing += then.judge(no).value != value
    assert judged > 500
    # A re-run that comes after the evening changes what is known of the day.
    assert differing <= judged * 0.005


@pytest.mark.parametrize(
    "shape", [each.shape_of(2) for each in scenarios.SCENARIOS], ids=lambda s: s.name
)
def test_every_scenario_can_be_drawn(shape):
    world = worlds.drawn(shape, "log-uniform", 1)
    flaky = {test for cause in world.causes for test in cause.tests}
    assert len(flaky) == round(shape.tests * shape.flaky_share)
    assert all(0.0005 <= truth.rate <= 0.5 for truth in figures.truths_of(world))


def test_the_page_shows_every_scenario_and_marks_what_is_missed(world):
    outcome = scenarios.outcome_of(world.shape, "heavy-tailed", world.seed)
    bad = replace(outcome, unfounded=1, found=replace(outcome.found, wrong=outcome.found.right))
    rows = [
        row
        for each in scenarios.SCENARIOS
        for law in scenarios.LAWS
        for row in scenarios.rows_of(each, law, [bad if each.is_hidden else outcome])
    ]
    lines = document.page(rows, "the command", "then").splitlines()
    for each in scenarios.SCENARIOS:
        shown = [line for line in lines if line.startswith(f"| {each.shape.name}: {each.about} |")]
        assert len(shown) == 2 * len(scenarios.LAWS)
        assert ("**0.5** (≥ 0.95)" in shown[0]) is each.is_hidden

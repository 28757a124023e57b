"""How well tests are judged here, by a replay of what is stored, and what settings would change."""

from datetime import timedelta

import pytest

from service.testhealth.operations import quality, settings
from service.vocabulary import SYSTEM, Health, QuarantineForgives, Sensitivity, Sha
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW

DAYS = 28
OTHERS = [f"sound_{nth}" for nth in range(12)]


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store, at=NOW - timedelta(days=DAYS))


async def a_month(stage, failing, **meta):
    """Six runs a day; `failing` says on which runs each test fails and passes on a retry."""
    nth = 0
    for day in range(DAYS):
        for turn in range(6):
            nth += 1
            stage.clock.present = NOW - timedelta(days=DAYS - day, hours=-4 * turn)
            tests = dict.fromkeys(OTHERS, "P")
            tests |= {name: "FP" if nth in runs else "P" for name, runs in failing.items()}
            sha = Sha(f"{nth:040x}")
            await stage.ran(tests, **({"sha": sha, "run_id": f"{nth}", "pr_number": nth} | meta))
    stage.clock.present = NOW


async def test_a_flag_is_confirmed_by_a_later_disagreement_and_by_nothing_else(stage):
    await a_month(stage, {"often": range(20, 160, 10), "twice": [40, 42], "end": [166, 168]})
    found = await quality.of_repository(stage.runtime, stage.repository)
    names = {found.tests[each.no].name for each in found.now.doubtful}
    assert names == {"twice", "end"}
    counts = found.now.quality
    assert (counts.confirmed, counts.unconfirmed, counts.open) == (1, 1, 1)
    assert counts.precision.low is None
    assert counts.precision.missing == quality_min() - 2
    assert sum(flags for _, flags in found.now.by_week) == 3


def quality_min():
    from service.testhealth.detector.quality import FLAGS_MIN

    return FLAGS_MIN

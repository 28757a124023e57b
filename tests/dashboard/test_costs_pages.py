"""The pages of the slowest tests, and of what flaky tests cost."""

import re
from datetime import timedelta

import pytest

from service.testhealth.operations import settings, sweeps
from service.vocabulary import SYSTEM, Role
from tests.dashboard.browsing import browsing, token_of
from tests.operations import upload_stage
from tests.operations.test_times_and_costs import OWNERS, flagged, ran
from tests.operations.upload_stage import NOW

SLOWEST, COSTS = "/octo/widgets/tests/slowest", "/octo/widgets/tests/costs"


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


async def test_pages_without_a_counted_day_say_when_there_will_be_one(stage):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(SLOWEST)
        assert "No time of a test is known yet" in page.text
        assert "A day is counted an hour after its end." in page.text
        assert "No cost of flaky tests is known yet" in (await browser.see(COSTS)).text


async def test_pages_list_slow_tests_and_what_flaky_ones_cost_by_owner(stage):
    quick = {"mail": ("P", 0.02), "shared": ("P", 2.0)}
    for days in (12, 1):
        slower = {**quick, "shared": ("P", 3.0)} if days == 1 else quick
        await ran(stage, days, slower, codeowners=OWNERS)
    await flagged(stage, "mail")
    await ran(stage, 0, {"mail": ("F", 900.0), "shared": ("P", 300.0)}, codeowners=OWNERS)
    changes = {"flake_cost_alert_minutes": 10}
    await settings.update(stage.runtime, stage.repository, changes, SYSTEM)
    stage.clock.present = NOW + timedelta(hours=2)
    await sweeps.expire(stage.runtime)
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page = await browser.see(SLOWEST)
        assert re.search(r"2 tests took (19|20|21) min in a week", page.text)
        assert "+" in page.text
        for query in ("?sort=median", "?sort=p95", "?owner=@octo/web"):
            assert "shared" in (await browser.see(SLOWEST + query)).text
        assert "mail.py" not in (await browser.see(f"{SLOWEST}?owner=@octo/web")).text
        assert "No test of this owner" in (await browser.see(f"{SLOWEST}?owner=@nobody")).text
        costs = await browser.see(COSTS)
        assert "Flaky tests lost 20 min of CI in 2 weeks" in costs.text
        assert "This week is above the limit" in costs.text
        assert "@octo/mail" in costs.text

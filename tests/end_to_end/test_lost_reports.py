"""No delivery tells that CI has ended: its reports are found all the same."""

import pytest
from sqlalchemy import select

from service.database.database import Tx
from service.testhealth.store.tables_tests import CaseRow
from service.testhealth.store.uploads import UPLOAD, uploads
from tests.harness import reporting_ci as ci
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

CI = """\
triggers: {push: [main, "headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 3
    reports:
      tests:
        - {name: adds, rules: [{branch: "headgate/merge/**", conclusion: failure}]}
        - {name: divides}
"""
PERIODS = {"period_idle_s": 20, "period_run_checks_s": 10}


@pytest.fixture
def world_options() -> WorldOptions:
    """Sweeps that come soon, in a world slow enough for a queue's wait of 90 s."""
    return WorldOptions(ci=CI, speed=10.0, settings=PERIODS)


@pytest.fixture(autouse=True)
async def silence(world: World) -> None:
    """News of CI runs never arrive, and GitHub knows of no failure."""
    await world.fault({"event": "workflow_run"}, "drop")


def _collected(session: Tx) -> list[str]:
    """Kinds of the uploads there are."""
    rows = session.execute(select(*UPLOAD.columns).order_by(uploads.c.received_at))
    return [UPLOAD.value(row).kind for row in rows]


def _id_of(session: Tx, name: str) -> str:
    cases = CaseRow.__table__
    return str(session.execute(select(cases.c.id).where(cases.c.name == name)).scalar_one())


async def reported_on_main(world: World) -> None:
    """CI of `main` has run, and its reports are there."""
    await world.make_queue(confirm_failures="OFF")
    files = {"a.txt": "a\n"}
    await world.act("push", by="alice", branch="main", files=files, bypass=True)

    async def is_there() -> bool:
        return "stable" in await world.runtime.store.read(_collected)

    await world.until(is_there)


async def test_what_ci_left_is_collected_by_the_next_sweep(world: World) -> None:
    await world.settle()
    await reported_on_main(world)


async def test_a_queue_that_waits_for_results_gets_them_in_time(world: World) -> None:
    await world.settle()
    await reported_on_main(world)
    ask = await asker(world)
    await ci.settle_tests(
        ask,
        "update-settings",
        quarantine_enabled=True,
        quarantine_forgives="ANY_FAILURE",
        excuse_proof="RUN",
    )
    await ci.fails_by_tests_alone(ask)
    await ci.settle_tests(
        ask,
        "set-quarantine-override",
        test_id=await world.runtime.store.read(_id_of, "adds"),
        override="ALWAYS_QUARANTINE",
        reason="waits on the real clock",
    )
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]

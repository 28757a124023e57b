"""Machines that fail tests which pass elsewhere: found by uploads, told once, over by evidence."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.notifications.store import subscribers
from service.notifications.store.notifications import messages
from service.notifications.store.subscribers import Endpoint
from service.testhealth.operations import bad_machines
from service.vocabulary import Sha
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW

MACHINES = 4
GREEN = {"cart": "P", "mail": "P", "total": "P", "other": "P"}
RED = {"cart": "F", "mail": "F", "total": "F", "other": "P"}


@pytest.fixture
async def stage(store):
    found = await upload_stage.staged(store)
    await store.run(listen, found.repository.org_id)
    return found


def listen(session, org_id):
    url = "https://example.org/hook"
    endpoint = Endpoint("e1", org_id, url, ("test_machine.failing",), None, "", b"", NOW)
    subscribers.create(session, endpoint)


async def days_of(stage, days, *, bad):
    """Let days pass.

    Each day every machine runs three commits; a bad `runner 0` fails tests that pass again.
    """
    for day in days:
        stage.clock.present = NOW + timedelta(days=day + 1)
        for number in range(3 * MACHINES):
            at = NOW + timedelta(days=day, hours=number)
            sha = Sha(f"{1000 * day + number:040x}")
            here = {"sha": sha, "pr_number": 1000 * day + number, "branch": f"topic-{number}"}
            fails = bad and number % MACHINES == 0
            facts = {**here, "machine": f"runner {number % MACHINES}", "ran_at": at}
            await stage.ran(RED if fails else GREEN, run_id=f"{day}{number:02}1", **facts)
            if fails:
                facts |= {"machine": "runner 2", "ran_at": at + timedelta(minutes=20)}
                await stage.ran(GREEN, run_id=f"{day}{number:02}2", **facts)


async def told(stage):
    def read(session):
        statement = select(messages.c.body).where(messages.c.event == "test_machine.failing")
        return [json.loads(body)["machine"] for body in session.execute(statement).scalars()]

    return await stage.runtime.store.read(read)


async def found(stage):
    return await bad_machines.of_repository(stage.runtime, stage.repository)


async def test_a_bad_machine_is_told_once_and_again_only_if_it_was_sound_meanwhile(stage):
    await days_of(stage, range(2), bad=True)
    assert await found(stage) == ()
    await days_of(stage, range(2, 5), bad=True)
    ((machine, tests),) = await found(stage)
    assert (machine.machine, machine.count) == ("runner 0", 3)
    assert [case.name for case in tests] == ["cart", "mail", "total"]
    (said,) = await told(stage)
    assert (said["name"], said["tests"], said["failing_runs_elsewhere"]) == ("runner 0", 3, 0)
    assert said["since"].startswith("2026-03-22T")
    assert {each["name"] for each in said["examples"]} == {"cart", "mail", "total"}
    await days_of(stage, range(5, 9), bad=False)
    assert await found(stage) == ()
    await days_of(stage, range(9, 11), bad=True)
    assert len(await found(stage)) == 1
    assert len(await told(stage)) == 2
    # Nothing was heard of it for two weeks.
    stage.clock.present += timedelta(days=15)
    assert await found(stage) == ()

"""Two `headgate serve` over one PostgreSQL database, as real processes."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from tests.end_to_end.test_kill import RECEIVERS, delivered, is_of_pull, lands_once, listen
from tests.end_to_end.test_two_processes import comment, open_one, seed
from tests.harness.processes import LAND_WITHIN_S, LOOK_EVERY_S, Service, Stage, admin_in, stage
from tests.harness.receiver import receiving


@pytest.fixture
async def on_stage(postgres_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, postgres_url) as set_up:
        set_up.environment |= {**RECEIVERS, "HEADGATE_ADMIN_LISTEN": "127.0.0.1:0"}
        await seed(set_up)
        yield set_up


def tell(service: Service, number: signal.Signals) -> None:
    assert service.process.pid is not None
    os.kill(service.process.pid, number)


async def stands_still(set_up: Stage, service: Service) -> None:
    """Wait until the process has stopped itself at its crash point."""
    deadline = set_up.clock.monotonic_s() + LAND_WITHIN_S
    while state_of(service) != "T":
        assert set_up.clock.monotonic_s() < deadline, "it never stopped"
        await set_up.clock.sleep(LOOK_EVERY_S)


def state_of(service: Service) -> str:
    """The system's letter for how the process stands."""
    told = Path(f"/proc/{service.process.pid}/stat").read_text()
    return told.rpartition(")")[2].split()[0]


async def level(set_up: Stage, service: Service, name: str) -> float:
    """A gauge of the process's own page."""
    async with set_up.http.get(f"{admin_in(service.log)}/metrics") as answer:
        shown = {one.name: one for one in parsed(await answer.text())}
    return float(shown[name].samples[0].value)


@pytest.mark.parametrize(
    "name",
    [pytest.param("act.build.after_send", marks=pytest.mark.soak), "act.land.after_send"],
)
@pytest.mark.fault(
    "one of two instances is killed at its work",
    holds="the other does it to its end",
    within="150 s",
)
async def test_what_one_was_doing_when_it_was_killed_the_other_does_to_its_end(
    on_stage: Stage, name: str
) -> None:
    number = await open_one(on_stage)
    async with on_stage.serving() as other:
        await on_stage.ready(other)  # one that still recovers would hold a lock
        tell(other, signal.SIGSTOP)
        struck = await on_stage.start(HEADGATE_FAULT_BOUNDARY=f"{name}:1:kill")
        await comment(on_stage, number, "/merge")
        assert await struck.ended() == -9
        tell(other, signal.SIGCONT)
        await lands_once(on_stage, number)


@pytest.mark.fault(
    "an instance stands still while it sends a message",
    holds="no other sends it",
    within="150 s",
)
async def test_a_message_that_one_is_sending_is_sent_by_no_other_that_starts(
    on_stage: Stage,
) -> None:
    number = await open_one(on_stage)
    async with receiving() as receiver:
        first = await on_stage.start(HEADGATE_FAULT_BOUNDARY="notify.after_send:1:stop")
        try:
            secret = await listen(on_stage, first, receiver.url)
            await comment(on_stage, number, "/merge")
            await stands_still(on_stage, first)
            async with on_stage.serving() as second:
                await on_stage.api(second, "webhooks/list-endpoints", secret[0])
                assert await level(on_stage, second, "headgate_instances") == 2
                tell(first, signal.SIGCONT)
                await lands_once(on_stage, number)
                log = await delivered(on_stage, second, secret)
        finally:
            first.process.kill()
            first.process.join()
    told = [each.id for each in receiver.got if is_of_pull(each.json)]
    assert sorted(told) == sorted(each["message_id"] for each in log)


async def test_both_work_side_by_side_and_each_pull_request_lands_once(on_stage: Stage) -> None:
    numbers = [await open_one(on_stage, name) for name in ("one", "two", "three", "four")]
    async with on_stage.serving() as first, on_stage.serving() as second, receiving() as receiver:
        secret = await listen(on_stage, first, receiver.url)
        for number in numbers:
            await comment(on_stage, number, "/merge")
        for number in numbers:
            await on_stage.landed(number)
        log = await delivered(on_stage, second, secret, merges=len(numbers))
        for service in (first, second):
            assert await level(on_stage, service, "headgate_instances") == 2
            assert await level(on_stage, service, "headgate_config_mismatch") == 0
        second.process.terminate()
        assert await second.ended() == 0
        assert await level(on_stage, first, "headgate_instances") == 1
    assert [each["event"] for each in log].count("pull_request.merged") == len(numbers)
    told = [each.id for each in receiver.got if is_of_pull(each.json)]
    assert sorted(told) == sorted(each["message_id"] for each in log)

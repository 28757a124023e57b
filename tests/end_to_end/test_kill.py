"""`kill -9` at each named crash point of the first merge: it lands exactly once.

Together the stories pass every point of service/crash_points.py; those around the issue of a test
are passed in test_kill_tickets.py.
"""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from service import crash_points
from tests.end_to_end.test_two_processes import REPO, REPO_REF, comment, open_one, seed, token
from tests.harness import effort
from tests.harness.processes import LAND_WITHIN_S, LOOK_EVERY_S, Service, Stage, stage
from tests.harness.receiver import receiving

RECEIVERS = {
    "HEADGATE_WEBHOOK_PORTS": "1024-65535",
    "HEADGATE_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}
STOPPING = ("stop.before_drain", "stop.before_close")
ANSWERING = "api.before_answer"
TICKETING = tuple(name for name in crash_points.NAMES if name.startswith("act.ticket."))
NOTIFYING = tuple(name for name in crash_points.NAMES if name.startswith("notify."))
APART = {*STOPPING, *NOTIFYING, *TICKETING, ANSWERING}
STORY = [name for name in crash_points.NAMES if name not in APART]
NAME_AND_KIND = ("name", "database_url")


async def lands_once(set_up: Stage, number: int) -> None:
    """The pull request is merged, `main` has exactly its one commit more, nothing is left."""
    await set_up.landed(number)
    await set_up.swept(REPO)
    history = await set_up.rest(f"repos/{REPO}/commits?sha=main")
    landed = [one for one in history if one["commit"]["message"].endswith(f"(#{number})")]
    assert len(landed) == 1
    assert len(history) == 3


@pytest.mark.parametrize(NAME_AND_KIND, effort.spread(STORY), indirect=["database_url"])
@pytest.mark.fault(
    "`kill -9` at each crash point of a merge, as a real process",
    holds="it lands once",
    within="150 s",
)
async def test_a_kill_loses_nothing_and_lands_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:1:kill")
        if struck.is_running:
            await comment(set_up, number, "/merge")
        assert await struck.ended() == -9
        async with set_up.serving():
            if name.startswith("barrier."):
                await comment(set_up, number, "/merge")
            await lands_once(set_up, number)


@pytest.mark.parametrize(NAME_AND_KIND, effort.spread(STOPPING), indirect=["database_url"])
@pytest.mark.fault(
    "`kill -9` in the middle of a stop",
    holds="it lands once",
    within="150 s",
)
async def test_a_kill_in_the_middle_of_a_stop_loses_nothing_and_lands_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        stopping = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:1:kill")
        await comment(set_up, number, "/merge")
        await stopping.ready()
        stopping.process.terminate()
        assert await stopping.ended() == -9
        async with set_up.serving():
            await comment(set_up, number, "/merge")
            await lands_once(set_up, number)


@pytest.mark.parametrize(NAME_AND_KIND, effort.spread(NOTIFYING), indirect=["database_url"])
@pytest.mark.fault(
    "`kill -9` around the sending of a message",
    holds="every event arrives, in an unbroken order",
    within="150 s",
)
async def test_a_kill_around_a_message_lets_every_event_arrive_at_least_once(
    name: str, database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up, receiving() as receiver:
        set_up.environment |= RECEIVERS
        await seed(set_up)
        number = await open_one(set_up)
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{name}:2:kill")
        secret = await listen(set_up, struck, receiver.url)
        await comment(set_up, number, "/merge")
        assert await struck.ended() == -9
        async with set_up.serving() as service:
            await lands_once(set_up, number)
            log = await delivered(set_up, service, secret)
        told = {each.id: each.json for each in receiver.got if is_of_pull(each.json)}
        logged = {each["message_id"]: each["payload"] for each in log}
        assert told == logged
        steps = sorted(each["sequence"] for each in told.values())
        assert steps == list(range(1, len(steps) + 1))
        assert max(told.values(), key=lambda each: each["sequence"])["type"].endswith("merged")
        twice = len([each for each in receiver.got if is_of_pull(each.json)]) - len(told)
        assert twice <= (0 if name == "notify.before_send" else 4)


def is_of_pull(told: Any) -> bool:
    """Whether a message is of one pull request."""
    return str(told["type"]).startswith("pull_request.")


async def listen(set_up: Stage, service: Service, url: str) -> tuple[str, str]:
    """An endpoint of the organization that hears of everything; a token, and its id."""
    secret = await token(set_up)
    status, made = await set_up.api(
        service, "webhooks/create-endpoint", secret, url=url, events=["pull_request.*"]
    )
    assert status == 200, made
    return secret, made["id"]


async def delivered(
    set_up: Stage, service: Service, of: tuple[str, str], merges: int = 1
) -> list[Any]:
    """The endpoint's log, once nothing in it is pending and so many merges are told."""
    secret, endpoint = of
    deadline = set_up.clock.monotonic_s() + LAND_WITHIN_S
    while True:
        _, answer = await set_up.api(
            service, "webhooks/list-deliveries", secret, endpoint_id=endpoint
        )
        log: list[Any] = answer["deliveries"]
        told = [each["event"] for each in log].count("pull_request.merged")
        if told >= merges and all(each["state"] == "delivered" for each in log):
            return log
        assert set_up.clock.monotonic_s() < deadline, log
        await set_up.clock.sleep(LOOK_EVERY_S)


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)], indirect=True
)
@pytest.mark.fault(
    "SIGTERM in the middle of a merge",
    holds="the stop ends well; the next start lands it",
    within="150 s",
)
async def test_a_stop_that_is_asked_for_ends_well_and_the_next_start_lands_it(
    database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        stopping = await set_up.start()
        await comment(set_up, number, "/merge")
        await stopping.ready()
        stopping.process.terminate()
        assert await stopping.ended() == 0
        async with set_up.serving():
            await comment(set_up, number, "/merge")
            await lands_once(set_up, number)


@pytest.mark.parametrize(
    "database_url", [pytest.param("sqlite", marks=pytest.mark.soak), "postgresql"], indirect=True
)
@pytest.mark.fault(
    "`kill -9` between the commit of a submission and its answer",
    holds="it is kept and lands once",
    within="150 s",
)
async def test_a_submission_whose_answer_a_kill_took_is_kept_and_lands_once(
    database_url: str, tmp_path: Path
) -> None:
    async with stage(tmp_path, database_url) as set_up:
        await seed(set_up)
        number = await open_one(set_up)
        body = {"repo": REPO_REF, "targetBranch": "main"}
        struck = await set_up.start(HEADGATE_FAULT_BOUNDARY=f"{ANSWERING}:2:kill")
        secret = await token(set_up)
        assert (await set_up.api(struck, "createQueue", secret, **body))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await set_up.api(struck, "submitPullRequest", secret, **body, pr={"number": number})
        assert await struck.ended() == -9
        async with set_up.serving():
            await lands_once(set_up, number)

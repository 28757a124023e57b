"""Messages from the turn to the receiver and back, on both databases, over real HTTP."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from service.errors import ServiceError
from service.mergequeue.states import QueueState
from service.notifications.sender import HttpSender
from service.operations import endpoints, notifications, queues
from service.operations.endpoints import EndpointWish
from service.operations.queues import QueueWish
from service.store import access as stored
from service.vocabulary import SYSTEM, DeliveryState, EndpointState
from service.workers import notifications as worker
from service.workers.flow import Flow
from tests.harness.receiver import receiving, verified
from tests.operations.notifying import LOOPBACK, sorted_by_state


async def test_what_happens_is_sent_once_signed_with_the_same_bytes_as_logged(stage):
    await stage.hold("release freeze")
    await stage.drain()
    (got,) = stage.receiver.got
    told = verified(got, stage.secret)
    assert got.headers["user-agent"] == "Headgate/0.0.7"
    assert got.headers["content-type"] == "application/json"
    assert told == {
        "type": "queue.held",
        "action": "held",
        "timestamp": "2026-03-02T14:00:00.000Z",
        "organization": stage.caller.org_slug,
        "repository": {
            "host": stage.queue.repo.host,
            "owner": stage.queue.repo.owner,
            "name": stage.queue.repo.name,
        },
        "target_branch": "main",
        "status": "PAUSED",
        "previous_status": "PAUSED",
        "reason": "release freeze",
        "actor": {"kind": "system", "login": None},
        "changed_fields": [],
        "hold": told["hold"],
        "version": told["version"],
    }
    assert told["hold"]["text"] == "release freeze"
    (logged,) = await stage.log()
    assert (logged.message_id, logged.event, logged.state) == (
        got.id,
        "queue.held",
        DeliveryState.DELIVERED,
    )
    assert logged.body.encode() == got.body
    assert [each.status_code for each in logged.attempts] == [200]
    assert (await stage.endpoint()).last_success_at is not None


async def test_an_endpoint_hears_of_its_events_and_repositories_alone(stage):
    async with AsyncExitStack() as stack:
        other, elsewhere = [await stack.enter_async_context(receiving()) for _ in range(2)]
        await stage.another(other, "pull_request.*", "queue.created")
        limited, _ = await stage.another(elsewhere, "*")
        empty = EndpointWish(repositories=())
        await endpoints.update(stage.runtime, stage.caller, limited.id, empty)
        await stage.hold()
        await stage.drain()
        assert stage.receiver.types() == ["queue.held"]
        assert (other.types(), elsewhere.types()) == ([], [])


async def test_a_failing_message_is_tried_ten_times_over_three_days_and_then_failed(stage):
    stage.receiver.answers = [500]
    await stage.hold()
    await stage.drain()
    for count in range(2, 11):
        (waiting,) = await stage.log()
        assert waiting.state is DeliveryState.PENDING
        assert waiting.next_attempt_at is not None
        await stage.clock.sleep(
            (waiting.next_attempt_at - stage.clock.now()).total_seconds() - 0.001
        )
        await stage.drain()
        assert len(stage.receiver.got) == count - 1
        await stage.pass_time(seconds=0.002)
        assert len(stage.receiver.got) == count
    (failed,) = await stage.log()
    assert (failed.state, failed.next_attempt_at) == (DeliveryState.FAILED, None)
    assert [each.error for each in failed.attempts] == ["It answered 500."] * 10
    assert len({got.body for got in stage.receiver.got}) == 1
    assert {got.id for got in stage.receiver.got} == {failed.message_id}
    times = [int(got.headers["webhook-timestamp"]) for got in stage.receiver.got]
    assert 3 < (times[-1] - times[0]) / 86_400 < 3.6
    await stage.pass_time(days=9)
    assert len(stage.receiver.got) == 10


async def test_a_failing_message_blocks_no_other(stage):
    stage.receiver.answers = [500, 200]
    await stage.change()
    await stage.drain()
    await stage.change()
    await stage.drain()
    assert [each.state for each in await sorted_by_state(stage)] == [
        DeliveryState.DELIVERED,
        DeliveryState.PENDING,
    ]
    await stage.pass_time(seconds=6)
    assert {each.state for each in await stage.log()} == {DeliveryState.DELIVERED}


@pytest.mark.parametrize("status", [429, 503])
async def test_a_receiver_says_itself_when_it_wants_to_be_asked_again(stage, status):
    stage.receiver.answers = [status, 200]
    stage.receiver.headers = {"Retry-After": "3600"}
    await stage.change()
    await stage.drain()
    await stage.pass_time(minutes=59)
    assert len(stage.receiver.got) == 1
    await stage.pass_time(minutes=2)
    assert [each.state for each in await stage.log()] == [DeliveryState.DELIVERED]


async def test_an_endpoint_that_is_gone_gets_nothing_more_and_the_others_hear_of_it(stage):
    async with receiving() as other:
        _, secret = await stage.another(other, "webhook.*")
        stage.receiver.answers = [500, 410]
        await stage.change()
        await stage.drain()
        await stage.change()
        await stage.drain()
        endpoint = await stage.endpoint()
        assert endpoint.state is EndpointState.DISABLED
        assert endpoint.disabled_reason == "It answered 410: gone."
        assert {each.state for each in await stage.log()} == {DeliveryState.FAILED}
        told = verified(other.got[0], secret)
        assert told == {
            "type": "webhook.endpoint_disabled",
            "action": "endpoint_disabled",
            "timestamp": told["timestamp"],
            "organization": stage.caller.org_slug,
            "endpoint_id": stage.view.id,
            "reason": "It answered 410: gone.",
        }
        await stage.change()
        await stage.pass_time(days=4)
        assert len(stage.receiver.got) == 2
        assert len(other.got) == 1


async def test_only_failures_for_five_days_disable_an_endpoint(stage):
    stage.receiver.answers = [500]
    for _ in range(12):
        await stage.change()
        await stage.pass_time(hours=11)
    endpoint = await stage.endpoint()
    assert endpoint.disabled_reason == "Only failures for 5 days."
    enabled = EndpointWish(is_enabled=True)
    again = await endpoints.update(stage.runtime, stage.caller, stage.view.id, enabled)
    assert (again.state, again.disabled_reason) == (EndpointState.ENABLED, None)
    await stage.change()
    await stage.drain()
    assert (await stage.endpoint()).state is EndpointState.ENABLED


async def test_one_success_lets_the_days_count_from_nothing(stage):
    stage.receiver.answers = [500]
    for _ in range(6):
        await stage.change()
        await stage.pass_time(hours=19)
    stage.receiver.answers = [200]
    await stage.change()
    await stage.drain()
    stage.receiver.answers = [500]
    for _ in range(11):
        await stage.change()
        await stage.pass_time(hours=4)
    assert (await stage.endpoint()).state is EndpointState.ENABLED


async def test_while_secrets_overlap_both_sign_and_then_the_new_one_alone(stage):
    fresh = await endpoints.rotate_secret(stage.runtime, stage.caller, stage.view.id, 2)
    stage.receiver.answers = [500, 200]
    await stage.change()
    await stage.drain()
    await stage.pass_time(hours=3)
    both, alone = stage.receiver.got
    newest, old = both.headers["webhook-signature"].split(" ")
    assert newest != old
    verified(both, stage.secret)
    verified(both, fresh)
    verified(alone, fresh)
    assert len(alone.headers["webhook-signature"].split(" ")) == 1
    last = await endpoints.rotate_secret(stage.runtime, stage.caller, stage.view.id, 0)
    await stage.change()
    await stage.drain()
    assert len(stage.receiver.got[-1].headers["webhook-signature"].split(" ")) == 1
    verified(stage.receiver.got[-1], last)


async def test_an_attempt_whose_process_ended_is_made_again(stage):
    await stage.change()
    (taken,) = await notifications.claim(stage.runtime, 64)
    assert not await notifications.claim(stage.runtime, 64)
    await stage.pass_time(seconds=59)
    assert stage.receiver.got == []
    await stage.pass_time(seconds=2)
    assert [got.id for got in stage.receiver.got] == [taken.message]
    await stage.change()
    await notifications.claim(stage.runtime, 64)
    assert await notifications.release(stage.runtime) == 1
    await stage.drain()
    assert len(stage.receiver.got) == 2


async def test_of_one_endpoint_four_are_under_way_of_all_sixty_four(stage):
    async with receiving() as other:
        await stage.another(other, "queue.*")
        for _ in range(6):
            await stage.change()
        taken = await notifications.claim(stage.runtime, 64)
        assert len(taken) == 8
        assert not await notifications.claim(stage.runtime, 64)
        for attempt in taken[:2]:
            await notifications.carry_out(stage.runtime, attempt)
        assert len(await notifications.claim(stage.runtime, 1)) == 1
        assert len(await notifications.claim(stage.runtime, 64)) == 1


async def test_a_mistake_of_ours_is_a_failed_attempt(stage):
    await stage.change()
    (taken,) = await notifications.claim(stage.runtime, 64)
    await notifications.stumble(stage.runtime, taken)
    (logged,) = await stage.log()
    assert logged.state is DeliveryState.PENDING
    assert logged.attempts[0].error == "A mistake of ours; the log has it."


async def test_a_secret_that_cannot_be_opened_fails_the_attempt_and_says_what_to_do(stage):
    class Lost:
        def __getattr__(self, name: str) -> object:
            return getattr(stage.runtime.keys, name)

        def opened(self, sealed: bytes) -> str:
            raise ServiceError("Neither key sealed this.")

    lost = replace(stage.runtime, keys=Lost())
    _, made = await notifications.send_test(lost, stage.caller, stage.view.id)
    assert made.error == "The endpoint's secret cannot be read any more; rotate it."


async def test_what_happens_to_a_queue_is_told_as_the_event_it_is(stage):
    record = await stage.runtime.store.read(stored.repository, stage.queue.repository_id)
    await queues.create(stage.runtime, record, "release/2", QueueWish({}), SYSTEM)
    change = QueueWish({"concurrency": 7}, QueueState.RUNNING)
    await queues.update(stage.runtime, stage.queue, change, SYSTEM)
    await stage.hold()
    (hold,) = (await queues.read(stage.runtime, stage.queue)).holds[-1:]
    await queues.release_hold(stage.runtime, stage.queue, hold.id, "go", SYSTEM)
    await queues.set_state(stage.runtime, stage.queue, QueueState.DRAINING, "sleep", SYSTEM)
    await queues.delete(stage.runtime, stage.queue, SYSTEM)
    await stage.drain()
    by_type = {each.json["type"]: each.json for each in stage.receiver.got}
    assert set(by_type) >= {
        "queue.created",
        "queue.updated",
        "queue.held",
        "queue.released",
        "queue.state_changed",
        "queue.drained",
        "queue.deleted",
    }
    created = by_type["queue.created"]
    assert (created["target_branch"], created["previous_status"]) == ("release/2", None)
    assert by_type["queue.updated"]["changed_fields"] == ["concurrency"]
    changed = by_type["queue.state_changed"]
    assert changed["changed_fields"] == ["state"]
    assert by_type["queue.released"]["hold"]["id"] == hold.id
    mains = [each.json for each in stage.receiver.got if each.json["target_branch"] == "main"]
    versions = sorted(each["version"] for each in mains)
    assert versions == list(range(versions[0], versions[-1] + 1)) or len(set(versions)) > 3


async def test_a_hanging_receiver_delays_no_other(stage):
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    quick = replace(stage.runtime, sender=HttpSender(LOOPBACK, timeout_s=0.5))
    wish = EndpointWish(f"http://127.0.0.1:{port}/", ("queue.*",))
    await endpoints.create(quick, stage.caller, wish)
    for _ in range(3):
        await stage.change()
    flow = asyncio.create_task(Flow(quick, worker.WORK).drain())
    while len(stage.receiver.got) < 3:
        stage.receiver.arrived.clear()
        await stage.receiver.arrived.wait()
    assert not flow.done()
    await flow
    server.close()

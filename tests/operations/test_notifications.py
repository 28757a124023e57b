"""Messages from the turn to the receiver and back, on both databases, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from service.accounts import access, tokens
from service.accounts.store import access as stored
from service.accounts.store import audit
from service.accounts.tokens import TokenRequest
from service.database.paging import PageSelection
from service.errors import Invalid, Malformed, NotFound, ServiceError, Unauthenticated
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queue_views, queues
from service.mergequeue.operations.pull_requests import Requester
from service.mergequeue.operations.queues import QueueRequest
from service.metrics.process_families import ProcessMeter
from service.notifications import endpoints, notifications
from service.notifications.endpoints import EndpointChange
from service.notifications.notifications import DeliveryPage, ReplayRequest
from service.notifications.sender import HttpSender
from service.notifications.store.delivery_log import Delivery
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.runtime import Runtime
from service.vocabulary import SYSTEM, DeliveryState, EndpointState, QueueRef, Role
from tests.harness.receiver import receiving, verified
from tests.operations.conftest import WaitingClock
from tests.operations.message_stage import LOOPBACK, Stage, a_caller


@pytest.fixture
async def stage(runtime: Runtime, clock: WaitingClock, queue: QueueRef) -> AsyncIterator[Stage]:
    own = replace(runtime, sender=HttpSender(LOOPBACK))
    async with receiving() as receiver:
        caller = await a_caller(own, queue)
        wish = EndpointChange(receiver.url, ("queue.*", "webhook.*"), description="ops")
        view, secret = await endpoints.create(own, caller, wish)
        yield Stage(own, clock, queue, caller, receiver, view, secret)


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
        "http_details_url": None,
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
        empty = EndpointChange(repositories=())
        await endpoints.update(stage.runtime, stage.caller, limited.id, empty)
        await stage.hold()
        await stage.drain()
        assert stage.receiver.types() == ["queue.held"]
        assert (other.types(), elsewhere.types()) == ([], [])


async def test_another_organization_hears_nothing(stage):
    async with receiving() as other:
        stranger = replace(stage.queue.repo, owner="initech")
        wish = TokenRequest(stranger.host, "initech", "theirs", Role.ADMIN)
        made = await tokens.create_token(stage.runtime, wish, SYSTEM)
        caller = await access.look_up(stage.runtime, made.secret)
        await endpoints.create(stage.runtime, caller, EndpointChange(other.url, ("*",)))
        await stage.hold()
        await stage.drain()
        assert (stage.receiver.types(), other.types()) == (["queue.held"], [])
        assert not (await endpoints.list_all(stage.runtime, stage.caller, PageSelection(9))).rows[
            1:
        ]
        for asked in (
            endpoints.update(stage.runtime, caller, stage.view.id, EndpointChange()),
            endpoints.delete(stage.runtime, caller, stage.view.id),
            endpoints.rotate_secret(stage.runtime, caller, stage.view.id, 1),
            notifications.send_test(stage.runtime, caller, stage.view.id),
            notifications.replay(stage.runtime, caller, stage.view.id, ReplayRequest("msg_1")),
            notifications.list_deliveries(
                stage.runtime, caller, DeliveryPage(stage.view.id, PageSelection(9))
            ),
        ):
            with pytest.raises(NotFound) as hidden:
                await asked
            assert hidden.value.code == "webhook_endpoint_not_found"


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


async def test_attempts_are_counted_by_how_they_ended(stage):
    meter = ProcessMeter("0.0.7", "3.11.9")
    stage.runtime = replace(stage.runtime, telemetry=meter)
    stage.receiver.answers = [500, 200, 410]
    for _ in range(2):
        await stage.change()
        await stage.drain()
        await stage.pass_time(seconds=6)
    shown = meter.text().decode()
    for outcome in ("retried", "delivered", "failed"):
        assert f'headgate_notifications_total{{outcome="{outcome}"}} 1.0' in shown


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
    enabled = EndpointChange(is_enabled=True)
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


async def test_secrets_are_stored_sealed(stage):
    def rows(session) -> list[bytes]:
        return list(session.exec_driver_sql("SELECT secret FROM endpoint").scalars())

    (sealed,) = await stage.runtime.store.read(rows)
    assert stage.secret.encode() not in bytes(sealed)
    assert stage.secret.removeprefix("whsec_").encode() not in bytes(sealed)
    assert stage.runtime.keys.opened(bytes(sealed)) == stage.secret


async def test_messages_are_replayed_under_their_ids(stage):
    stage.receiver.answers = [410]
    await stage.change()
    await stage.drain()
    stage.receiver.answers = [200]
    enabled = EndpointChange(is_enabled=True)
    await endpoints.update(stage.runtime, stage.caller, stage.view.id, enabled)
    await stage.change()
    await stage.drain()
    delivered, failed = await sorted_by_state(stage)
    now = stage.clock.now()
    span = ReplayRequest(since=now - timedelta(hours=1), until=now + timedelta(hours=1))
    assert await replay(stage, span) == 1
    await stage.drain()
    assert stage.receiver.got[-1].id == failed.message_id
    assert {each.state for each in await stage.log()} == {DeliveryState.DELIVERED}
    assert await replay(stage, span) == 0
    assert await replay(stage, replace(span, include_delivered=True)) == 2
    assert await replay(stage, replace(span, include_delivered=True)) == 0
    await stage.drain()
    assert await replay(stage, ReplayRequest(delivered.message_id)) == 1
    await stage.drain()
    by_id = {each.message_id: each for each in await stage.log()}
    assert [len(by_id[each.message_id].attempts) for each in (delivered, failed)] == [3, 3]
    with pytest.raises(NotFound, match="never sent") as unknown:
        await replay(stage, ReplayRequest("msg_" + "0" * 32))
    assert unknown.value.code == "message_not_found"
    for since, until in ((now, now), (now - timedelta(days=8), now)):
        with pytest.raises(Invalid) as refused:
            await replay(stage, ReplayRequest(since=since, until=until))
        assert refused.value.code == "invalid_time_range"


async def replay(stage: Stage, wish: ReplayRequest) -> int:
    return await notifications.replay(stage.runtime, stage.caller, stage.view.id, wish)


async def sorted_by_state(stage: Stage) -> list[Delivery]:
    return sorted(await stage.log(), key=lambda each: each.state.value)


async def test_the_log_is_filtered_and_paged(stage):
    for _ in range(3):
        await stage.change()
        await stage.clock.sleep(60)
    await stage.drain()
    stage.receiver.answers = [500]
    await stage.change()
    await stage.drain()
    versions = [orjson.loads(each.body)["version"] for each in await stage.log()]
    assert versions == sorted(versions, reverse=True)
    assert len(versions) == 4
    pending = await stage.log(state=DeliveryState.PENDING)
    assert [each.state for each in pending] == [DeliveryState.PENDING]
    assert len(await stage.log(event="queue.updated")) == 4
    assert not await stage.log(event="queue.created")
    assert len(await stage.log(since=stage.clock.now())) == 1
    assert len(await stage.log(until=stage.clock.now())) == 3
    pages: list[str] = []
    cursor = None
    for _ in range(4):
        wish = DeliveryPage(stage.view.id, PageSelection(1, cursor))
        part = await notifications.list_deliveries(stage.runtime, stage.caller, wish)
        pages += [each.message_id for each in part.rows]
        cursor = part.next_cursor
    assert cursor is None
    assert pages == [each.message_id for each in await stage.log()]
    first = await notifications.list_deliveries(
        stage.runtime, stage.caller, DeliveryPage(stage.view.id, PageSelection(1))
    )
    other = DeliveryPage(stage.view.id, PageSelection(1, first.next_cursor), event="queue.updated")
    with pytest.raises(Malformed):
        await notifications.list_deliveries(stage.runtime, stage.caller, other)


async def test_a_test_is_one_attempt_and_in_the_log(stage):
    stage.receiver.answers = [503]
    message, made = await notifications.send_test(stage.runtime, stage.caller, stage.view.id)
    assert (made.status_code, made.error) == (503, "It answered 503.")
    told = verified(stage.receiver.got[0], stage.secret)
    assert told == {
        "type": "webhook.test",
        "action": "test",
        "timestamp": told["timestamp"],
        "organization": stage.caller.org_slug,
    }
    (logged,) = await stage.log()
    assert (logged.message_id, logged.state) == (message, DeliveryState.FAILED)
    await stage.pass_time(days=1)
    assert len(stage.receiver.got) == 1


async def test_disabled_by_hand_it_gets_nothing_and_what_waits_is_given_up(stage):
    stage.receiver.answers = [500]
    await stage.change()
    await stage.drain()
    view = await endpoints.update(
        stage.runtime, stage.caller, stage.view.id, EndpointChange(is_enabled=False)
    )
    assert (view.state, view.disabled_reason) == (EndpointState.DISABLED, "Disabled by ops.")
    await stage.change()
    await stage.pass_time(days=1)
    assert len(stage.receiver.got) == 1
    assert [each.state for each in await stage.log()] == [DeliveryState.FAILED]


async def test_a_deleted_endpoint_is_forgotten_with_what_waits_for_it(stage):
    await stage.change()
    await endpoints.delete(stage.runtime, stage.caller, stage.view.id)
    await stage.drain()
    assert stage.receiver.got == []
    with pytest.raises(NotFound):
        await stage.log()


async def test_an_attempt_whose_process_ended_is_made_again(stage):
    await stage.change()
    (taken,) = (await notifications.claim(stage.runtime, 64)).rows
    assert not (await notifications.claim(stage.runtime, 64)).rows
    await stage.pass_time(seconds=59)
    assert stage.receiver.got == []
    await stage.pass_time(seconds=2)
    assert [got.id for got in stage.receiver.got] == [taken.message]


async def test_of_one_endpoint_four_are_under_way_of_all_sixty_four(stage):
    async with receiving() as other:
        await stage.another(other, "queue.*")
        for _ in range(6):
            await stage.change()
        taken = (await notifications.claim(stage.runtime, 64)).rows
        assert len(taken) == 8
        assert not (await notifications.claim(stage.runtime, 64)).rows
        for attempt in taken[:2]:
            await notifications.carry_out(stage.runtime, attempt)
        assert len((await notifications.claim(stage.runtime, 1)).rows) == 1
        assert len((await notifications.claim(stage.runtime, 64)).rows) == 1


async def test_a_mistake_of_ours_is_a_failed_attempt(stage):
    await stage.change()
    (taken,) = (await notifications.claim(stage.runtime, 64)).rows
    await notifications.interrupted(stage.runtime, taken, ArithmeticError("x"))
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


async def test_addresses_that_may_not_be_called_make_no_endpoint(stage):
    for url in ("https://10.0.0.1/", "http://1.1.1.1:8080/", "https://user@example.org/"):
        with pytest.raises(Invalid) as refused:
            await endpoints.create(stage.runtime, stage.caller, EndpointChange(url, ("*",)))
        assert refused.value.code == "webhook_url_refused"
        wish = EndpointChange(url)
        with pytest.raises(Invalid):
            await endpoints.update(stage.runtime, stage.caller, stage.view.id, wish)
    assert (await stage.endpoint()).url == stage.receiver.url


async def test_an_organization_has_at_most_fifty_endpoints(stage):
    for _ in range(49):
        await stage.another(stage.receiver, "queue.created")
    with pytest.raises(Invalid) as refused:
        await stage.another(stage.receiver, "queue.created")
    assert refused.value.code == "limit_reached"
    pages: list[str] = []
    cursor = None
    while not pages or cursor:
        part = await endpoints.list_all(stage.runtime, stage.caller, PageSelection(20, cursor))
        pages += [each.id for each in part.rows]
        cursor = part.next_cursor
    assert len(set(pages)) == len(pages) == 50


async def test_a_limited_token_sees_and_makes_endpoints_within_its_limit_alone(stage):
    caller = await a_caller(stage.runtime, stage.queue, stage.queue.repo)
    for asked in (
        endpoints.update(stage.runtime, caller, stage.view.id, EndpointChange()),
        endpoints.delete(stage.runtime, caller, stage.view.id),
    ):
        with pytest.raises(NotFound):
            await asked
    assert not (await endpoints.list_all(stage.runtime, caller, PageSelection(9))).rows
    with pytest.raises(Invalid) as refused:
        await endpoints.create(stage.runtime, caller, EndpointChange(stage.receiver.url, ("*",)))
    assert refused.value.code == "scope_exceeds_own"
    wish = EndpointChange(stage.receiver.url, ("*",), (stage.queue.repo,))
    view, _ = await endpoints.create(stage.runtime, caller, wish)
    assert view.repositories == (stage.queue.repo,)
    assert [
        each.id for each in (await endpoints.list_all(stage.runtime, caller, PageSelection(9))).rows
    ] == [view.id]
    wish = EndpointChange(everywhere=True)
    with pytest.raises(Invalid):
        await endpoints.update(stage.runtime, caller, view.id, wish)


DEEDS = ["create", "update", "delete", "rotate", "test", "replay"]


def deed_of(stage: Stage, name: str):
    """One deed of an administrator on the endpoint."""
    runtime, caller, own = stage.runtime, stage.caller, stage.view.id
    now = stage.clock.now()
    span = ReplayRequest(since=now - timedelta(hours=1), until=now)
    return {
        "create": lambda: stage.another(stage.receiver, "*"),
        "update": lambda: endpoints.update(runtime, caller, own, EndpointChange()),
        "delete": lambda: endpoints.delete(runtime, caller, own),
        "rotate": lambda: endpoints.rotate_secret(runtime, caller, own, 1),
        "test": lambda: notifications.send_test(runtime, caller, own),
        "replay": lambda: notifications.replay(runtime, caller, own, span),
    }[name]()


@pytest.mark.parametrize("name", DEEDS)
async def test_a_deed_is_written_down_without_the_secret_parts_of_the_address(stage, name):
    await deed_of(stage, name)
    (row,) = await stage.runtime.store.read(audit.newest, stage.caller.org_id, 1)
    assert row.action.startswith("webhook.")
    assert name in row.action
    assert (row.actor, row.decision) == (stage.caller.actor, "allowed")
    assert "key=1" not in str(row.data)


@pytest.mark.parametrize("name", DEEDS)
async def test_a_token_that_was_revoked_on_the_way_does_nothing_any_more(stage, name):
    await tokens.revoke_token(stage.runtime, stage.caller.token_id, SYSTEM)
    with pytest.raises(Unauthenticated):
        await deed_of(stage, name)
    assert (await stage.endpoint()).state is EndpointState.ENABLED
    assert stage.receiver.got == []


async def test_what_happens_to_a_queue_is_told_as_the_event_it_is(stage):
    record = await stage.runtime.store.read(stored.repository, stage.queue.repository_id)
    await queues.create(stage.runtime, record, "release/2", QueueRequest({}), SYSTEM)
    change = QueueRequest({"concurrency": 7}, QueueState.RUNNING)
    await queues.update(stage.runtime, stage.queue, change, SYSTEM)
    await stage.hold()
    (hold,) = (await queue_views.queue_view(stage.runtime, stage.queue)).holds[-1:]
    await queues.release_hold(stage.runtime, stage.queue, hold.id, "go", SYSTEM)
    await queues.set_state(
        stage.runtime, stage.queue, QueueState.DRAINING, "sleep", Requester(SYSTEM)
    )
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
    over = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    quick = replace(stage.runtime, sender=HttpSender(LOOPBACK, timeout_s=100))
    wish = EndpointChange(f"http://127.0.0.1:{port}/", ("queue.*",))
    await endpoints.create(quick, stage.caller, wish)
    for _ in range(3):
        await stage.change()
    flow = asyncio.create_task(Flow(quick, flows.NOTIFICATIONS).drain())
    while len(stage.receiver.got) < 3:
        stage.receiver.arrived.clear()
        await stage.receiver.arrived.wait()
    assert not flow.done()
    over.set()
    await flow
    server.close()

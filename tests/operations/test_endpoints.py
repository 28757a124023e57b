"""Endpoints made, changed, tested and replayed, and who may do so."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from service.errors import Invalid, Malformed, NotFound, Unauthenticated
from service.operations import access, delivery_log, endpoints, notifications, tokens
from service.operations.delivery_log import LogWish
from service.operations.endpoints import EndpointWish
from service.operations.notifications import ReplayWish
from service.operations.tokens import TokenWish
from service.store import audit
from service.vocabulary import SYSTEM, DeliveryState, EndpointState, Role
from tests.harness.receiver import receiving, verified
from tests.operations.notifying import Stage, a_caller, sorted_by_state


async def test_another_organization_hears_nothing(stage):
    async with receiving() as other:
        stranger = replace(stage.queue.repo, owner="initech")
        wish = TokenWish(stranger.host, "initech", "theirs", Role.ADMIN)
        made = await tokens.create_token(stage.runtime, wish, SYSTEM)
        caller = await access.look_up(stage.runtime, made.secret)
        await endpoints.create(stage.runtime, caller, EndpointWish(other.url, ("*",)))
        await stage.hold()
        await stage.drain()
        assert (stage.receiver.types(), other.types()) == (["queue.held"], [])
        assert not (await endpoints.list_all(stage.runtime, stage.caller, 9, None)).rows[1:]
        for asked in (
            endpoints.update(stage.runtime, caller, stage.view.id, EndpointWish()),
            endpoints.delete(stage.runtime, caller, stage.view.id),
            endpoints.rotate_secret(stage.runtime, caller, stage.view.id, 1),
            notifications.send_test(stage.runtime, caller, stage.view.id),
            notifications.replay(stage.runtime, caller, stage.view.id, ReplayWish("msg_1")),
            delivery_log.read(stage.runtime, caller, LogWish(stage.view.id, 9)),
        ):
            with pytest.raises(NotFound) as hidden:
                await asked
            assert hidden.value.code == "webhook_endpoint_not_found"


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
    enabled = EndpointWish(is_enabled=True)
    await endpoints.update(stage.runtime, stage.caller, stage.view.id, enabled)
    await stage.change()
    await stage.drain()
    delivered, failed = await sorted_by_state(stage)
    now = stage.clock.now()
    span = ReplayWish(since=now - timedelta(hours=1), until=now + timedelta(hours=1))
    assert await replay(stage, span) == 1
    await stage.drain()
    assert stage.receiver.got[-1].id == failed.message_id
    assert {each.state for each in await stage.log()} == {DeliveryState.DELIVERED}
    assert await replay(stage, span) == 0
    assert await replay(stage, replace(span, include_delivered=True)) == 2
    assert await replay(stage, replace(span, include_delivered=True)) == 0
    await stage.drain()
    assert await replay(stage, ReplayWish(delivered.message_id)) == 1
    await stage.drain()
    by_id = {each.message_id: each for each in await stage.log()}
    assert [len(by_id[each.message_id].attempts) for each in (delivered, failed)] == [3, 3]
    with pytest.raises(NotFound, match="never sent") as unknown:
        await replay(stage, ReplayWish("msg_" + "0" * 32))
    assert unknown.value.code == "message_not_found"
    for since, until in ((now, now), (now - timedelta(days=8), now)):
        with pytest.raises(Invalid) as refused:
            await replay(stage, ReplayWish(since=since, until=until))
        assert refused.value.code == "invalid_time_range"


async def replay(stage: Stage, wish: ReplayWish) -> int:
    return await notifications.replay(stage.runtime, stage.caller, stage.view.id, wish)


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
        wish = LogWish(stage.view.id, 1, cursor)
        part = await delivery_log.read(stage.runtime, stage.caller, wish)
        pages += [each.message_id for each in part.rows]
        cursor = part.next_cursor
    assert cursor is None
    assert pages == [each.message_id for each in await stage.log()]
    first = await delivery_log.read(stage.runtime, stage.caller, LogWish(stage.view.id, 1))
    other = LogWish(stage.view.id, 1, first.next_cursor, event="queue.updated")
    with pytest.raises(Malformed):
        await delivery_log.read(stage.runtime, stage.caller, other)


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
        stage.runtime, stage.caller, stage.view.id, EndpointWish(is_enabled=False)
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


async def test_addresses_that_may_not_be_called_make_no_endpoint(stage):
    for url in ("https://10.0.0.1/", "http://1.1.1.1:8080/", "https://user@example.org/"):
        with pytest.raises(Invalid) as refused:
            await endpoints.create(stage.runtime, stage.caller, EndpointWish(url, ("*",)))
        assert refused.value.code == "webhook_url_refused"
        wish = EndpointWish(url)
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
        part = await endpoints.list_all(stage.runtime, stage.caller, 20, cursor)
        pages += [each.id for each in part.rows]
        cursor = part.next_cursor
    assert len(set(pages)) == len(pages) == 50


async def test_a_limited_token_sees_and_makes_endpoints_within_its_limit_alone(stage):
    caller = await a_caller(stage.runtime, stage.queue, stage.queue.repo)
    for asked in (
        endpoints.update(stage.runtime, caller, stage.view.id, EndpointWish()),
        endpoints.delete(stage.runtime, caller, stage.view.id),
    ):
        with pytest.raises(NotFound):
            await asked
    assert not (await endpoints.list_all(stage.runtime, caller, 9, None)).rows
    with pytest.raises(Invalid) as refused:
        await endpoints.create(stage.runtime, caller, EndpointWish(stage.receiver.url, ("*",)))
    assert refused.value.code == "scope_exceeds_own"
    wish = EndpointWish(stage.receiver.url, ("*",), (stage.queue.repo,))
    view, _ = await endpoints.create(stage.runtime, caller, wish)
    assert view.repositories == (stage.queue.repo,)
    assert [
        each.id for each in (await endpoints.list_all(stage.runtime, caller, 9, None)).rows
    ] == [view.id]
    wish = EndpointWish(everywhere=True)
    with pytest.raises(Invalid):
        await endpoints.update(stage.runtime, caller, view.id, wish)


DEEDS = ["create", "update", "delete", "rotate", "test", "replay"]


def deed_of(stage: Stage, name: str):
    """One deed of an administrator on the endpoint."""
    runtime, caller, own = stage.runtime, stage.caller, stage.view.id
    now = stage.clock.now()
    span = ReplayWish(since=now - timedelta(hours=1), until=now)
    return {
        "create": lambda: stage.another(stage.receiver, "*"),
        "update": lambda: endpoints.update(runtime, caller, own, EndpointWish()),
        "delete": lambda: endpoints.delete(runtime, caller, own),
        "rotate": lambda: endpoints.rotate_secret(runtime, caller, own, 1),
        "test": lambda: notifications.send_test(runtime, caller, own),
        "replay": lambda: notifications.replay(runtime, caller, own, span),
    }[name]()


@pytest.mark.parametrize("name", DEEDS)
async def test_a_deed_is_written_down_without_the_secret_parts_of_the_address(stage, name):
    await deed_of(stage, name)
    (row,) = await stage.runtime.store.read(audit.tail, stage.caller.org_id, 1)
    assert row.action.startswith("webhook.")
    assert name in row.action
    assert (row.actor, row.decision) == (access.actor_of(stage.caller), "allowed")
    assert "key=1" not in str(row.data)


@pytest.mark.parametrize("name", DEEDS)
async def test_a_token_that_was_revoked_on_the_way_does_nothing_any_more(stage, name):
    await tokens.revoke_token(stage.runtime, stage.caller.token_id, SYSTEM)
    with pytest.raises(Unauthenticated):
        await deed_of(stage, name)
    assert (await stage.endpoint()).state is EndpointState.ENABLED
    assert stage.receiver.got == []

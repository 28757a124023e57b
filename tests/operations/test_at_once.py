"""Requests about tokens and endpoints that come at the same time, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.accounts import access, repositories, tokens
from service.accounts.tokens import TokenRequest
from service.database.paging import PageSelection
from service.errors import Invalid, NotFound
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.notifications import endpoints, notifications
from service.notifications.endpoints import EndpointChange
from service.notifications.notifications import ReplayRequest
from service.notifications.sender import HttpSender
from service.provider.values import Repository
from service.runtime import Runtime
from service.testhealth.operations import overrides
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.store import quarantine
from service.vocabulary import SYSTEM, MergeMethod, Override, QueueRef, RepoId, RepoRef, Role
from tests.harness.receiver import receiving
from tests.operations import upload_stage
from tests.operations.conftest import WaitingClock
from tests.operations.message_stage import LOOPBACK, Stage, a_caller

pytestmark = pytest.mark.each_database


@pytest.fixture
async def stage(runtime: Runtime, clock: WaitingClock, queue: QueueRef) -> AsyncIterator[Stage]:
    own = replace(runtime, sender=HttpSender(LOOPBACK))
    async with receiving() as receiver:
        caller = await a_caller(own, queue)
        wish = EndpointChange(receiver.url, ("queue.*",), description="ops")
        view, secret = await endpoints.create(own, caller, wish)
        yield Stage(own, clock, queue, caller, receiver, view, secret)


async def refusals(*asked: Coroutine[Any, Any, object]) -> list[str]:
    """The codes of those that were refused; any other trouble is raised."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, Invalid | NotFound):
            raise each
    return [each.code for each in found if isinstance(each, Invalid | NotFound)]


async def test_no_more_endpoints_than_the_limit_are_made_at_once(stage, monkeypatch):
    monkeypatch.setattr(endpoints, "ENDPOINTS_MAX", 3)
    wish = EndpointChange(stage.receiver.url, ("queue.*",))
    make = (endpoints.create(stage.runtime, stage.caller, wish) for _ in range(8))
    assert await refusals(*make) == ["limit_reached"] * 6
    assert (
        len((await endpoints.list_all(stage.runtime, stage.caller, PageSelection(100))).rows) == 3
    )


async def test_no_more_queues_than_the_limit_are_made_at_once(stage, monkeypatch):
    monkeypatch.setattr(queues, "QUEUES_MAX", 3)
    record = await access.find_repository(stage.runtime, stage.caller, stage.queue.repo)
    wish, actor = QueueRequest({}), stage.caller.actor
    make = (queues.create(stage.runtime, record, f"line-{n}", wish, actor) for n in range(8))
    assert await refusals(*make) == ["limit_reached"] * 6


async def test_no_more_holds_than_the_limit_are_placed_at_once(stage):
    actor = stage.caller.actor
    place = (
        queues.add_hold(stage.runtime, stage.queue, HoldRequest(str(n)), actor) for n in range(24)
    )
    assert await refusals(*place) == ["limit_reached"] * 4


async def test_no_more_tokens_than_the_limit_are_made_at_once(stage, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_MAX", 3)
    wish = TokenRequest(stage.queue.repo.host, stage.queue.repo.owner, "x", Role.READ)
    actor = stage.caller.actor
    make = (tokens.create_token(stage.runtime, wish, actor) for _ in range(8))
    assert await refusals(*make) == ["limit_reached"] * 6


async def test_a_token_that_ends_by_its_rotation_has_one_successor(stage):
    wish = TokenRequest(stage.queue.repo.host, stage.queue.repo.owner, "x", Role.READ)
    actor = stage.caller.actor
    old = (await tokens.create_token(stage.runtime, wish, actor)).view.id
    rotate = (tokens.rotate_token(stage.runtime, old, 0, actor) for _ in range(6))
    assert await refusals(*rotate) == ["token_not_found"] * 5


async def test_a_repository_that_many_meet_for_the_first_time_is_stored_once(stage):
    record = await access.find_repository(stage.runtime, stage.caller, stage.queue.repo)
    for number in range(5):
        seen = Repository(
            RepoRef(record.ref.host, f"owner-{number}", "first"),
            RepoId(record.ref.host, f"90{number}"),
            f"80{number}",
            "main",
            frozenset(MergeMethod),
            archived=False,
            url="https://values.test/first",
        )
        keep = (stage.runtime.store.run(repositories.upsert, seen) for _ in range(6))
        assert len({one.id for one in await asyncio.gather(*keep)}) == 1


async def test_messages_that_are_replayed_twice_at_once_are_sent_again_once(stage):
    for _ in range(20):
        await stage.change()
    await stage.drain()
    sent = len(stage.receiver.got)
    now, day = stage.clock.now(), timedelta(days=1)
    wish = ReplayRequest(since=now - day, until=now + day, include_delivered=True)
    replay = (
        notifications.replay(stage.runtime, stage.caller, stage.view.id, wish) for _ in range(8)
    )
    assert sorted(await asyncio.gather(*replay)) == [0] * 7 + [sent]
    await stage.drain()
    assert len(stage.receiver.got) == 2 * sent


async def test_two_changes_of_an_endpoint_at_once_both_stand(stage):
    async def change(wish: EndpointChange) -> object:
        return await endpoints.update(stage.runtime, stage.caller, stage.view.id, wish)

    async with receiving() as elsewhere:
        moved, named = EndpointChange(url=elsewhere.url), EndpointChange(description="new")
        only = EndpointChange(repositories=(stage.queue.repo,))
        assert await refusals(change(moved), change(named), change(only)) == []
        view = await stage.endpoint()
    assert (view.url, view.description) == (elsewhere.url, "new")
    assert view.repositories == (stage.queue.repo,)


async def test_a_change_of_a_disabled_endpoint_drops_no_replay(stage):
    await stage.change()
    await stage.drain()
    wish = EndpointChange(is_enabled=False)
    await endpoints.update(stage.runtime, stage.caller, stage.view.id, wish)
    (logged,) = await stage.log()
    again = ReplayRequest(logged.message_id)
    await notifications.replay(stage.runtime, stage.caller, stage.view.id, again)
    named = EndpointChange(description="still off")
    await endpoints.update(stage.runtime, stage.caller, stage.view.id, named)
    await stage.drain()
    assert len(stage.receiver.got) == 2


async def test_words_on_one_test_at_once_are_all_taken(store):
    tested = await upload_stage.staged(store)
    await tested.ran({"total": "F"})
    test_id = (await tested.case("total")).id
    words = [OverrideRequest(test_id, Override.ALWAYS_QUARANTINE, str(n)) for n in range(8)]
    said = (overrides.put(tested.runtime, tested.repository, each, SYSTEM) for each in words)
    assert await refusals(*said) == []


async def test_a_word_is_not_taken_back_because_the_one_before_ends(store):
    tested = await upload_stage.staged(store)
    names = [f"test_{n}" for n in range(8)]
    await tested.ran(dict.fromkeys(names, "F"))
    cases = await tested.cases()
    words = [OverrideRequest(cases[name].id, Override.ALWAYS_QUARANTINE, "x") for name in names]

    def saying():
        return [overrides.put(tested.runtime, tested.repository, each, SYSTEM) for each in words]

    await asyncio.gather(*saying())
    tested.clock.present += overrides.ALWAYS_FOR
    sweeps = [overrides.expire(tested.runtime) for _ in range(4)]
    assert await refusals(*sweeps, *saying()) == []
    for case in cases.values():
        here = tested.repository.id
        said = await tested.runtime.store.read(quarantine.override_of, here, case.no)
        assert said is not None
        assert said.at == tested.clock.present

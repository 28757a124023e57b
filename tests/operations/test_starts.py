"""What a process takes over when it starts or notices that another one is gone."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.accounts import installations
from service.accounts.store import access
from service.database import instances, outbox
from service.database.claims import ClaimedRows
from service.database.instances import Instance
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import QueueRequest
from service.notifications import endpoints, notifications
from service.notifications.endpoints import EndpointChange
from service.notifications.sender import HttpSender
from service.process import deliveries, effects, presence
from service.provider.errors import NotPermitted, ProviderError, Unavailable
from service.provider.signals import Delivery
from service.provider.values import Emoji, Reaction, Repository
from service.runtime import Runtime
from service.troubles import Trouble, TroubleName, sentence
from service.vocabulary import SYSTEM, QueueRef
from tests.harness.receiver import receiving
from tests.harness.values import ValuesProvider
from tests.operations.conftest import WaitingClock
from tests.operations.message_stage import LOOPBACK, Stage, a_caller


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing of this depends on the kind of database."""
    return sqlite_url


@pytest.fixture
async def gone(runtime: Runtime, clock: WaitingClock, queue: QueueRef) -> AsyncIterator[Runtime]:
    """An instance that is gone; one of everything waits for whoever claims it."""
    first = replace(runtime, instance="gone", sender=HttpSender(LOOPBACK))
    async with receiving() as receiver:
        caller = await a_caller(first, queue)
        view, secret = await endpoints.create(first, caller, EndpointChange(receiver.url, ("*",)))
        await Stage(first, clock, queue, caller, receiver, view, secret).hold()
        reaction = OutboxItem(Lane.NOTICE, "r", "react", Reaction(3, "7", Emoji.EYES), clock.now())
        await first.store.run(outbox.append, queue.repository_id, queue.id, 1, [reaction])
        sent = Delivery("values.test", "guid-1", "push", None, "1", b"{}", clock.now())
        await deliveries.accept(replace(first, translators={}), sent)
        await clock.sleep(5)
        yield first


CLAIMS: dict[str, Callable[[Runtime], Awaitable[ClaimedRows[Any]]]] = {
    "effects": lambda first: effects.claim(first, 9, lanes=outbox.ACTING),
    "deliveries": lambda first: deliveries.claim(first, 9),
    "notifications": lambda first: notifications.claim(first, 9),
}


@pytest.mark.parametrize("kind", CLAIMS)
async def test_what_an_instance_had_that_is_gone_wakes_the_workers(
    runtime: Runtime, gone: Runtime, kind: str
):
    await presence.beat(runtime)
    before = versions(runtime)
    assert not any(freed_by(await presence.beat(runtime)).values())
    assert versions(runtime) == before
    assert (await CLAIMS[kind](gone)).rows
    freed = freed_by(await presence.beat(runtime))
    assert [name for name, count in freed.items() if count] == [kind]
    assert versions(runtime) == [version + 1 for version in before]


def freed_by(freed: presence.Freed) -> dict[str, int]:
    return {name: getattr(freed, name) for name in CLAIMS}


def versions(runtime: Runtime) -> list[int]:
    return [runtime.wakeups.version(topic) for topic in presence.TOPICS]


class Troubled(ValuesProvider):
    """Refuses to name its repositories; `reads` are those of pull requests."""

    def __init__(self, trouble: ProviderError | None) -> None:
        super().__init__()
        self.trouble = trouble
        self.tips = 0

    async def repositories(self) -> Sequence[Repository]:
        if self.trouble is not None:
            raise self.trouble
        return await super().repositories()

    async def tip(self, repo, branch):
        self.tips += 1
        return await super().tip(repo, branch)


@pytest.mark.fault("the provider is away at a start", holds="the start goes on", within="-")
@pytest.mark.parametrize(
    ("trouble", "is_read"), [(None, True), (NotPermitted("Denied."), True), ("away", False)]
)
async def test_a_start_reads_the_queues_of_a_provider_that_can_be_reached(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef, trouble, is_read: bool
):
    if trouble == "away":
        trouble = Unavailable("The provider is away.", clock.now())
    provider = Troubled(trouble)
    started = replace(runtime, providers={queue.repo.host: provider})
    await presence.recover(started)
    assert bool(provider.tips) is is_read
    name = TroubleName.CREDENTIALS_REFUSED if is_read else TroubleName.PROVIDER_AWAY
    assert [one.name for one in started.troubles.all()] == ([] if trouble is None else [name])


class Stuck(ValuesProvider):
    """Names its repositories; any other answer takes as long as a call waits at most."""

    def __init__(self, clock: WaitingClock) -> None:
        super().__init__()
        self.clock = clock

    async def tip(self, repo, branch):
        await self.clock.sleep(90)
        raise Unavailable("No answer.", self.clock.now())

    async def open_pull_requests(self, repo, base):
        await self.clock.sleep(90)
        return await super().open_pull_requests(repo, base)

    async def statuses_posted(self, repo, marker, since):
        await self.clock.sleep(90)
        return await super().statuses_posted(repo, marker, since)


@pytest.mark.fault(
    "a part of the provider does not answer at a start",
    holds="the start goes on; sweeps read what is left",
    within="10 min",
)
async def test_a_start_waits_a_bounded_time_for_a_provider_that_is_stuck(
    runtime: Runtime, clock: WaitingClock, queue: QueueRef
):
    record = await runtime.store.read(access.repository, queue.repository_id)
    for number in range(20):
        wish = QueueRequest({}, QueueState.PAUSED)
        await queues.create(runtime, record, f"release-{number}", wish, SYSTEM)
    began_s = clock.monotonic_s()
    await presence.recover(replace(runtime, providers={queue.repo.host: Stuck(clock)}))
    assert clock.monotonic_s() - began_s <= 600


async def test_a_trouble_quotes_no_refusal_which_may_name_an_account(
    runtime: Runtime, queue: QueueRef
):
    words = "The `canary` organization has an IP allow list enabled."
    provider = Troubled(NotPermitted(words))
    started = replace(runtime, providers={queue.repo.host: provider})
    await installations.read_all(started)
    (trouble,) = started.troubles.public()
    assert "canary" not in sentence(trouble, runtime.clock.now())


async def test_a_limit_of_an_account_that_is_called_no_more_is_over_after_its_time(
    runtime: Runtime, queue: QueueRef
):
    started = replace(runtime, providers={queue.repo.host: Troubled(None)})
    now = started.troubles.clock.now()
    spent = Trouble(TroubleName.RATE_LIMIT, now, now, queue.repo.host, "canary")
    started.troubles.report(replace(spent, until=now + timedelta(hours=1)), "core")
    await installations.read_all(started)
    assert [one.owner for one in started.troubles.all()] == ["canary"]
    started.troubles.report(spent, "core")
    await installations.read_all(started)
    assert started.troubles.all() == ()


async def test_an_instance_that_is_alone_differs_from_none(runtime: Runtime):
    with capture_logs() as logs:
        await presence.join(runtime)
    (line,) = logs
    assert (line["event"], line["instances"]) == ("recovering", 1)


async def test_an_instance_that_is_gone_is_named_once(runtime: Runtime):
    gone = Instance("gone", "0.0.7", "same")
    await runtime.store.run(instances.beat, gone, runtime.clock.now())
    with capture_logs() as logs:
        assert (await presence.beat(runtime)).gone == ("gone",)
        assert (await presence.beat(runtime)).gone == ()
    assert [(line["event"], line["gone"]) for line in logs] == [("instances_gone", ("gone",))]

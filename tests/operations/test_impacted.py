"""An upload reaches the queue, whether it comes before, beside or after the submission."""

import asyncio

from service.mergequeue.engine import targets
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import impacted_targets, pull_requests, turn
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, Channel, QueueRef
from tests.harness.values import sha_of

CI = Actor(ActorKind.BOT, "CI run 42", channel=Channel.API)
ALICE = Actor(ActorKind.PERSON, "alice", "1")
A = targets.of(["//a"])


async def submit(runtime: Runtime, queue: QueueRef, number: int) -> None:
    await pull_requests.submit(runtime, queue, number, SubmitOptions(), ALICE)


async def upload(runtime: Runtime, queue: QueueRef, number: int, what: Targets) -> None:
    await impacted_targets.set_targets(runtime, queue, Upload(number, None, what), CI)


async def targets_of(runtime: Runtime, queue: QueueRef, number: int) -> Targets | None:
    """What the queue knows."""
    return (await turn.value(runtime, queue.id)).entries[number].targets


async def test_what_was_uploaded_before_comes_with_the_submission(runtime, queue):
    await upload(runtime, queue, 7, A)
    await submit(runtime, queue, 7)
    assert await targets_of(runtime, queue, 7) == A


async def test_what_is_uploaded_later_reaches_the_entry_at_once(runtime, queue):
    await submit(runtime, queue, 7)
    assert await targets_of(runtime, queue, 7) is None
    await upload(runtime, queue, 7, A)
    assert await targets_of(runtime, queue, 7) == A
    await upload(runtime, queue, 7, targets.ALL)
    assert await targets_of(runtime, queue, 7) == targets.ALL


async def test_what_is_uploaded_for_another_head_is_kept_and_not_told(runtime, queue):
    await submit(runtime, queue, 7)
    before = (await turn.value(runtime, queue.id)).version
    told = await impacted_targets.set_targets(runtime, queue, Upload(7, sha_of("older"), A), CI)
    assert (told.count, told.impacts_all) == (1, False)
    assert (await turn.value(runtime, queue.id)).version == before


async def test_an_upload_beside_the_submission_is_not_lost(runtime, queue):
    both = [
        *(submit(runtime, queue, number) for number in range(1, 21)),
        *(upload(runtime, queue, number, A) for number in range(1, 21)),
    ]
    await asyncio.gather(*both)
    found = [await targets_of(runtime, queue, number) for number in range(1, 21)]
    assert found == [A] * 20

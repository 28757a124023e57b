"""Near the provider's limits notices thin out, final ones never (docs/design/limits.md 8)."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from service.mergequeue.engine.inputs import Cancel
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations import notices, pull_requests, turn
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.provider.budget import Pressure
from service.provider.errors import Throttled
from service.provider.values import CheckReport, Emoji, Reaction, StatusComment
from service.vocabulary import SYSTEM

COMMENT, CHECK = StatusComment, CheckReport


class LeftOut:
    """A meter that knows which texts were left out."""

    def __init__(self):
        self.surfaces = []

    def count(self, name, *labels):
        if name == "headgate_notices_left_out_total":
            self.surfaces += labels

    def observe(self, name, seconds, *labels): ...

    def level(self, name, value, *labels): ...

    def text(self):
        return b""


@pytest.fixture
def runtime(runtime):
    return replace(runtime, telemetry=LeftOut())


async def submitted(runtime, queue):
    await pull_requests.submit(runtime, queue, 7, SubmitOptions(), SYSTEM)
    return await told(runtime, queue)


async def told(runtime, queue):
    entry = (await turn.value(runtime, queue.id)).entries[7]
    return Tell(entry.pr, entry.id, entry.state, entry.reason)


def kinds(provider):
    return [type(one) for one in provider.said]


WRITTEN = {
    Pressure.NONE: ([CHECK, COMMENT], []),
    Pressure.HIGH: ([CHECK], ["comment"]),
    Pressure.CRITICAL: ([], ["check", "comment"]),
}
"""What is written of a middle state, and what is left out."""


@pytest.mark.parametrize("pressure", Pressure)
async def test_a_middle_state_is_written_as_far_as_the_limits_allow(
    runtime, provider, queue, pressure
):
    written, surfaces = WRITTEN[pressure]
    action = await submitted(runtime, queue)
    provider.pressure = pressure
    waits = pytest.raises(Throttled) if surfaces else nullcontext()
    with waits:
        await notices.tell(runtime, queue, action, first=True)
    assert kinds(provider) == written
    assert runtime.telemetry.surfaces == surfaces


async def test_a_text_that_was_left_out_is_written_when_limits_allow_and_counted_once(
    runtime, provider, queue
):
    action = await submitted(runtime, queue)
    provider.pressure = Pressure.HIGH
    for first in (True, False):
        with pytest.raises(Throttled):
            await notices.tell(runtime, queue, action, first=first)
    assert kinds(provider) == [CHECK]
    assert runtime.telemetry.surfaces == ["comment"]
    provider.pressure = Pressure.NONE
    await notices.tell(runtime, queue, action, first=False)
    assert kinds(provider) == [CHECK, COMMENT]


async def test_final_texts_are_written_whatever_is_left(runtime, provider, queue):
    action = await submitted(runtime, queue)
    provider.pressure = Pressure.CRITICAL
    await turn.ask(runtime, queue, Cancel(7, Reason.USER_REQUESTED, SYSTEM))
    await notices.tell(runtime, queue, action, first=True)
    assert kinds(provider)[:2] == [CHECK, COMMENT]
    assert all(one.is_final for one in provider.said)
    assert runtime.telemetry.surfaces == []


async def test_reactions_that_repeat_what_a_text_says_are_left_out(runtime, provider, queue):
    provider.pressure = Pressure.HIGH
    for emoji in (Emoji.ACCEPTED, Emoji.UNCLEAR):
        reaction = Reaction(7, "1", emoji)
        await notices.say_plain(runtime, queue.repository_id, reaction, first=True)
    assert [one.emoji for one in provider.said] == [Emoji.UNCLEAR]
    assert runtime.telemetry.surfaces == ["reaction"]

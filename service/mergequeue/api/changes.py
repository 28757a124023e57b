"""Reads that wait for a change of what they answer (docs/design/http.md 12)."""

from collections.abc import Awaitable, Callable

from service.accounts import access
from service.http import waiting
from service.http.callers import Call
from service.http.models.common import Awaited
from service.http.waiting import Versioned, Waiting

LOOK_EVERY_S = 2.0
"""Another process may have made the change, this one may be about to stop, and the client may
have left."""


async def newest(
    call: Call, topic: str, awaited: Awaited | None, read: Callable[[], Awaitable[Versioned]]
) -> bytes:
    """Return what `read` answers: at once, or when its version is another one, or after the time.

    Raises Unauthenticated when the token ends meanwhile, Overloaded, and what `read` raises.
    """
    if awaited is None:
        return (await read()).body
    runtime, places = call.runtime, call.cache(Waiting)
    clock, wakeups = runtime.clock, runtime.wakeups
    began_s = clock.monotonic_s()
    with places.place(call.caller.token_id):
        while True:
            seen = wakeups.version(topic)
            answer = await read()
            waited_s = clock.monotonic_s() - began_s
            left_s = awaited.seconds - waited_s
            is_over = left_s <= 0 or places.is_stopping or waiting.has_client_left()
            if answer.version != awaited.since or is_over:
                break
            await wakeups.wait(topic, seen, min(left_s, LOOK_EVERY_S))
    waiting.note(waited_s)
    await runtime.store.read(access.recheck, call.actor, clock.now())
    return answer.body

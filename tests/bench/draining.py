"""A process that works on the deliveries of a database beside others, until none waits.

Prints a line when it is ready, begins when it is told to, and prints how many lanes it worked on
and for how many seconds. Each lane takes as long as one call of a provider.
"""

import asyncio
import sys
from dataclasses import replace

from service.clock import RandomIds
from service.crash_points import NoCrashes
from service.database.database import open_store
from service.database.inbox import ClaimedLane
from service.process import deliveries, presence
from service.process.workers import flows
from service.process.workers.flow import Flow
from service.runtime import Runtime
from tests.bench.deliveries import CLOCK, runtime_over

CALL_S = 1.0
"""The time of one call of a provider."""


async def drain(url: str, instance: str) -> None:
    """Work until nothing is due."""
    store = await open_store(url, clock=CLOCK, ids=RandomIds(), crash_points=NoCrashes())
    runtime = replace(runtime_over(store), instance=instance)
    await presence.join(runtime)
    worked = 0

    async def carry_out(runtime: Runtime, lane: ClaimedLane) -> None:
        nonlocal worked
        worked += 1
        await CLOCK.sleep(CALL_S)
        await deliveries.take_up(runtime, lane)

    flow = Flow(runtime, replace(flows.DELIVERIES, carry_out=carry_out))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    began_s = CLOCK.monotonic_s()
    await flow.drain()
    sys.stdout.write(f"{worked} {CLOCK.monotonic_s() - began_s}\n")
    await presence.leave(runtime)
    await store.close()


if __name__ == "__main__":
    asyncio.run(drain(*sys.argv[1:]))

"""Compare settings by a replay in a process of its own, which answers no request meanwhile.

`simulate.py` does the work. The process is stopped after two minutes of computing, and one of them
runs at a time. Answers are kept by the history and the settings that they were computed from.
"""

import asyncio
import os
import pickle
import resource
import sys
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import structlog
from cachetools import LRUCache

import service
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.operations import simulate
from service.mergequeue.operations.simulate import Comparison, Recorded
from service.runtime import Runtime

COMPUTING_S = 120
BEGIN_S = 30
"""No variant behind the first one is begun after so much computing."""
WAIT_S = 600
MEMORY_BYTES = 1024 * 1024 * 1024
NICENESS = 10
SEED = 1
REPLAYS_KEPT = 256

# The process gets the code that runs here and nothing of the environment, where secrets are.
ENVIRONMENT = {"PYTHONPATH": str(Path(service.__file__).parents[1])}
COMMAND = (sys.executable, "-P", "-c", f"from {__name__} import main; main()")

log = structlog.get_logger()


Variant = Mapping[str, ConfigValue]
"""Settings that differ, by name of `QueueConfig`."""


class Busy(Exception):
    """Another replay is running, and the caller does not wait for it."""


class ReplayCache:
    """The newest comparisons, by a digest of what they were computed from."""

    def __init__(self) -> None:
        self.known: LRUCache[bytes, tuple[Comparison, ...]] = LRUCache(REPLAYS_KEPT)


async def compare(
    runtime: Runtime, recorded: Recorded, variants: Sequence[Variant], *, waits: bool = True
) -> tuple[Comparison, ...] | None:
    """Return the history replayed under its settings and under those of each variant.

    Variants are left out at the end if there was no time for them. None: the history is too long
    to be replayed here. Raises Busy.
    """
    asked = recorded, [dict(each) for each in variants]
    sent = await asyncio.to_thread(pickle.dumps, asked)
    known = runtime.store.caches.of(ReplayCache).known
    key = blake2b(sent).digest()
    if key not in known:
        if runtime.replays.locked() and not waits:
            raise Busy
        found = await _computed(runtime, sent)
        if found is None:
            return None
        known[key] = found
    return known[key]


async def _computed(runtime: Runtime, sent: bytes) -> tuple[Comparison, ...] | None:
    async with runtime.replays:
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT
        )
        try:
            async with asyncio.timeout(WAIT_S):
                answer, trouble = await child.communicate(sent)
        except TimeoutError:
            return None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
    if child.returncode == 0:
        found: tuple[Comparison, ...] = pickle.loads(answer)  # noqa: S301 - our own process
        return found
    said = trouble.decode(errors="replace")[-2000:]
    # The simulation used too much time or memory, or failed.
    log.warning("replay_stopped", code=child.returncode, said=said)
    return None


def main() -> None:
    """Read history and variants from stdin, write the comparisons to stdout."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CPU, (COMPUTING_S, COMPUTING_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    began_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    recorded, variants = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process sent it
    histories = (recorded.history,)
    found = []
    for each in simulate.compare_each(histories, recorded.config, variants, SEED, lambda *_: None):
        found.append(each)
        if resource.getrusage(resource.RUSAGE_SELF).ru_utime - began_s > BEGIN_S:
            break
    sys.stdout.buffer.write(pickle.dumps(tuple(found)))

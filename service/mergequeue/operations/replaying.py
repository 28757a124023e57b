"""Compare settings by a replay in a process of its own, which answers no request meanwhile.

`simulate.py` does the work. The process is stopped after two minutes of computing, and one of them
runs at a time.
"""

import asyncio
import os
import pickle
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

import structlog

import service
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.operations import simulate
from service.mergequeue.operations.simulate import Comparison, Recorded
from service.runtime import Runtime

COMPUTING_S = 120
WAIT_S = 600
MEMORY_BYTES = 1024 * 1024 * 1024
NICENESS = 10
SEED = 1

# The process gets the code that runs here and nothing of the environment, where secrets are.
ENVIRONMENT = {"PYTHONPATH": str(Path(service.__file__).parents[1])}
COMMAND = (sys.executable, "-P", "-c", f"from {__name__} import main; main()")

log = structlog.get_logger()


async def compare(
    runtime: Runtime, recorded: Recorded, changes: Mapping[str, ConfigValue]
) -> Comparison | None:
    """Return the history replayed under both settings; None if it is too long for that here."""
    sent = await asyncio.to_thread(pickle.dumps, (recorded, dict(changes)))
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
        comparison: Comparison = pickle.loads(answer)  # noqa: S301 - our own process wrote it
        return comparison
    said = trouble.decode(errors="replace")[-2000:]
    log.warning("replay_stopped", code=child.returncode, said=said)
    return None


def main() -> None:
    """Read history and changes from stdin, write the comparison to stdout."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CPU, (COMPUTING_S, COMPUTING_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    recorded, changes = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process sent it
    histories = (recorded.history,)
    comparison = simulate.compare(histories, recorded.config, changes, SEED, lambda *_: None)
    sys.stdout.buffer.write(pickle.dumps(comparison))

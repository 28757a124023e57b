"""Run a service, a sandbox or the demo; imported by the commands that do so."""

import asyncio
import json
import sys
from collections.abc import Callable

from bot import forms, listening, telemetry, wiring
from bot.cli.exits import Exit, Failed
from bot.demo import run as demos
from bot.demo.run import DemoOptions
from bot.sandbox import app as sandboxes
from bot.sandbox.app import CannotRun, SandboxOptions
from bot.settings import Settings
from service.clock import SystemClock
from service.errors import StartRefused
from service.http import connections

try:
    import uvloop

    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
except ImportError:
    new_loop = asyncio.new_event_loop


def serve(chosen: Settings, *, migrate: bool) -> None:
    """Run the service until a signal stops it. Raises StartRefused."""
    descriptors = connections.claim_descriptors()
    if descriptors < connections.DESCRIPTORS_MIN:
        raise StartRefused(
            f"This process may open {descriptors} files, and needs {connections.DESCRIPTORS_MIN}. "
            "Raise that limit (`ulimit -n`, `LimitNOFILE=` of systemd)"
        )
    telemetry.start(chosen.log_format, chosen.log_level, SystemClock())
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(wiring.serve(chosen, migrate=migrate))


def play_demo(options: DemoOptions) -> bool:
    """Play the demo's stories, and return whether everything was proved."""
    return asyncio.run(demos.demo(options))


def serve_playground(options: DemoOptions) -> bool:
    """Serve the playground until it is ended, and return whether everything was proved."""
    return asyncio.run(demos.playground(options))


def run_sandbox(chosen: SandboxOptions, *, is_exposed: bool, as_json: bool) -> None:
    """Run a sandbox until a signal stops it. Raises StartRefused, Failed(START_REFUSED)."""
    if not forms.is_loopback(chosen.host) and not is_exposed:
        raise Failed(
            Exit.START_REFUSED,
            f"other machines can reach {chosen.host}, and the sandbox trusts everybody",
            "Use 127.0.0.1, or add --expose",
        )
    try:
        asyncio.run(_print_and_serve(chosen, as_json=as_json))
    except CannotRun as cannot:
        raise StartRefused(f"{cannot}. Install it") from cannot
    except OSError as taken:
        raise StartRefused(
            f"the sandbox cannot listen on {chosen.host}:{chosen.port} ({taken.strerror}). "
            "Give another --port"
        ) from taken


async def _print_and_serve(chosen: SandboxOptions, *, as_json: bool) -> None:
    """Print the settings with which a service finds the sandbox, and serve."""
    async with listening.until_stopped() as stopping, sandboxes.running(chosen) as running:
        if as_json:
            sys.stdout.write(json.dumps(running.environment()) + "\n")
        else:
            sys.stdout.write("\n".join(sandboxes.environment_lines(running)) + "\n")
        sys.stdout.flush()
        await stopping.wait()

"""`serve`, `migrate`, `sandbox`, `demo`: the commands that run something here."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated

import typer

from bot import settings, telemetry, wiring
from bot.cli import output
from bot.cli.exits import Exit, Failed
from service.clock import SystemClock
from service.store import migrate as migrations

try:
    from uvloop import new_event_loop
except ImportError:
    new_event_loop = asyncio.new_event_loop

app = typer.Typer()

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", help="sqlite:///PATH or postgresql://….")
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where state and key live.")]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    public_url: Annotated[
        str | None, typer.Option("--public-url", help="How people and GitHub reach it.")
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", help="auto, json or text.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", help="debug, info, warning or error.")
    ] = None,
    no_migrate: Annotated[
        bool, typer.Option("--no-migrate", help="Refuse a database that is behind.")
    ] = False,
) -> None:
    """Run the service until it is told to stop. Settings: HEADGATE_* or .env."""
    chosen = settings.read(
        host=host,
        port=port,
        public_url=public_url,
        database_url=database_url,
        data_dir=data_dir,
        log_format=log_format,
        log_level=log_level,
    )
    telemetry.start(chosen.log_format, chosen.log_level, SystemClock())
    run(wiring.serve(chosen, migrate=not no_migrate))


def run(work: Coroutine[None, None, None]) -> None:
    """Run on the fastest loop that is installed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(work)

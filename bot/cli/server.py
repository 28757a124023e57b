"""`serve`, `migrate`, `sandbox`, `demo`: the commands that run a server on this machine."""

import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options, output
from bot.cli.exits import Exit
from bot.program import SANDBOX_PORT

app = typer.Typer()

PORT_MAX = 65_535


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Keep what is imported here out of garbage collection: it stays as long as the process.

    The imports of a service take 1.7 s of CPU instead of 2.1 s, and each full collection after
    them 0 s instead of 0.16 s, in which every request waits.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@app.command()
def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    public_url: Annotated[
        str | None, typer.Option("--public-url", help="Public URL of the service.")
    ] = None,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", help="auto, json or text.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", help="debug, info, warning or error.")
    ] = None,
    no_migrate: Annotated[
        bool, typer.Option("--no-migrate", help="Do not migrate; exit if the schema is outdated.")
    ] = False,
) -> None:
    """Run the service until a signal stops it. Settings: HEADGATE_* or .env."""
    with _loading():
        from bot import settings
        from bot.cli import servers

    chosen = settings.read(
        host=host,
        port=port,
        public_url=public_url,
        database_url=database_url,
        data_dir=data_dir,
        log_format=log_format,
        log_level=log_level,
    )
    servers.serve(chosen, migrate=not no_migrate)


@app.command()
def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if the database is behind.")
    ] = False,
    backup_to: Annotated[
        Path | None, typer.Option("--backup-to", metavar="FILE", help="Copy a SQLite database.")
    ] = None,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Bring the database's schema up to date; --check and --backup-to work beside `serve`."""
    import asyncio

    with _loading():
        from bot import settings, wiring

    chosen = settings.read(database_url=database_url, data_dir=data_dir)
    if backup_to is not None:
        asyncio.run(wiring.back_up(chosen, backup_to))
    behind = asyncio.run(wiring.is_behind(chosen))
    if not check and backup_to is None and behind:
        asyncio.run(wiring.migrate(chosen))
        behind = False
    if as_json:
        output.print_json({"behind": behind, "backup": backup_to and str(backup_to)})
    else:
        copied = f"copied to {backup_to}; " if backup_to else ""
        output.line(f"{copied}the schema is {'behind' if behind else 'up to date'}")
    if check and behind:
        raise typer.Exit(Exit.FALSE)


@app.command()
def sandbox(
    port: Annotated[
        int, typer.Option("--port", min=0, max=PORT_MAX, help="0 chooses a free port.")
    ] = SANDBOX_PORT,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    expose: Annotated[
        bool, typer.Option("--expose", help="Allow an address other machines can reach.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="Keep the repositories in this folder.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 1,
    speed: Annotated[
        float, typer.Option("--speed", min=0.001, max=1000, help="Speed factor of its clock.")
    ] = 1.0,
    webhook_url: Annotated[
        str | None, typer.Option("--webhook-url", help="URL for webhook deliveries.")
    ] = None,
    allow_commands: Annotated[
        bool, typer.Option("--allow-commands", help="Let its CI run commands on this machine.")
    ] = False,
    pass_env: Annotated[
        list[str] | None, typer.Option("--pass-env", help="Variable passed to CI; repeatable.")
    ] = None,
    without_app: Annotated[
        bool, typer.Option("--without-app", help="Register the App in the browser, by /setup.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Begin with repositories, pull requests and CI.")
    ] = False,
    ghes: Annotated[bool, typer.Option("--ghes", help="Behave as Enterprise Server.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the settings as JSON.")] = False,
) -> None:
    """Run a stand-in for GitHub; prints the HEADGATE_* settings with which `serve` finds it."""
    with _loading():
        from bot.cli import servers
        from bot.sandbox.app import SandboxOptions

    chosen = SandboxOptions(
        host=host,
        port=port,
        data=data,
        seed=seed,
        speed=speed,
        webhook_url=webhook_url,
        allow_commands=allow_commands,
        pass_env=tuple(pass_env or ()),
        is_ghes=ghes,
        has_app=not without_app,
        has_example=example,
    )
    servers.run_sandbox(chosen, is_exposed=expose, as_json=as_json)


@app.command()
def demo(
    once: Annotated[bool, typer.Option("--once", help="Play all stories once, and end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON value on stdout, the story on stderr.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep all state there.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=PORT_MAX, help="Port of the service.")
    ] = None,
    sandbox_port: Annotated[
        int | None, typer.Option("--sandbox-port", min=1, max=PORT_MAX, help="Port of the sandbox.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds until the story has failed.")
    ] = 300,
) -> None:
    """Serve a playground on this machine, without GitHub; without a terminal, play it once."""
    with _loading():
        from bot.cli import servers
        from bot.demo.run import DemoOptions
        from bot.demo.stage import Ports

    chosen = DemoOptions(
        as_json=as_json,
        keep=keep,
        ports=Ports(service=port, sandbox=sandbox_port),
        timeout_s=timeout,
    )
    is_watched = sys.stdout.isatty() and not once and not as_json
    held = servers.serve_playground(chosen) if is_watched else servers.play_demo(chosen)
    if not held:
        raise typer.Exit(Exit.FALSE)

"""`headgate audit`: recompute every landing from git, rows and signed evidence."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options, output

app = typer.Typer()

SHOWN_MAX = 200
"""Findings of one queue that the text shows; --json has all."""


@app.command()
def audit(
    queue: Annotated[
        str | None,
        typer.Option("--queue", help="[HOST/]OWNER/NAME@BRANCH. Default: every queue."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="A day as 2026-01-31, or 7d: leave out what is older."),
    ] = None,
    checkout: Annotated[
        Path | None,
        typer.Option(
            "--checkout", help="A clone to read. Default: the mirror in the data directory."
        ),
    ] = None,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Recompute every landing. Exit: 0 as promised, 1 a fault, 2 cannot tell."""
    from bot.cli.auditing import auditing, report

    wanted = auditing.Wanted(queue, since, checkout)
    audits = auditing.audits(wanted, database_url, data_dir)
    if as_json:
        output.print_json(report.record_of(audits))
    else:
        for line in report.lines_of(audits, SHOWN_MAX):
            output.line(line)
    raise typer.Exit(report.exit_of(audits))

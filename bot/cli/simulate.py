"""`simulate`: compare a queue's settings with changed ones over the same pull requests."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options
from bot.cli.exits import Exit, Failed

app = typer.Typer()


@app.command()
def simulate(
    settings: options.Set = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", metavar="[HOST/]OWNER/NAME@BRANCH", help="Replay its own history."),
    ] = None,
    since: Annotated[str, typer.Option("--since", help="How far back, as 30d.")] = "30d",
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Replay a table of test runs.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Replay a made-up stream of 400 submissions.")
    ] = None,
    database_url: options.DatabaseUrl = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare a queue's settings with changed ones over the same pull requests."""
    given = [each for each in (queue, csv_file, seed) if each is not None]
    if len(given) != 1:
        todo = "Give one of --queue OWNER/NAME@BRANCH, --csv FILE, --seed N"
        raise Failed(Exit.USAGE, "it is not clear what to replay", todo)
    from bot.cli import replays

    changes = replays.parse_changes(settings)
    if queue is not None:
        source = replays.queue_history(queue, since, database_url, data_dir)
    elif csv_file is not None:
        source = replays.table_of_runs(csv_file)
    else:
        source = replays.made_up_stream(seed or 0)
    replays.compare(source, changes, as_json=as_json)

"""`targets set`: upload what a pull request's head touches."""

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from bot.cli import destination, options, output
from bot.cli.destination import Queue
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result

app = typer.Typer(help="Upload the impacted targets of a pull request.")

ALL = "ALL"
STDIN = "-"


@app.callback()
def root() -> None:
    """Upload the impacted targets of a pull request."""


@options.queue_command(app, "set")
def set_targets(
    queue: Queue,
    number: options.Number,
    sha: Annotated[str, typer.Option("--sha", help="Head commit of the pull request.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Names, one a line or as a JSON array; `-` is standard input.",
        ),
    ] = None,
    are_all: Annotated[
        bool, typer.Option("--all", help="The pull request impacts all targets.")
    ] = False,
) -> Result:
    """Upload the impacted targets of a head commit; the newest upload counts."""
    if (source is None) is not are_all:
        raise Failed(
            Exit.USAGE,
            "the impacted targets are missing or given twice",
            "Give --from FILE or --all",
        )
    answer = queue.post_pull_request(
        "/setImpactedTargets",
        number,
        pr={"sha": sha},
        impactedTargets=ALL if source is None else names_in(source),
    )

    def show() -> None:
        what = "all targets" if answer["impactsAll"] else f"{answer['targetCount']} targets"
        output.line(f"#{number} at {str(answer['prSha'])[:8]} touches {what}")

    return Result(answer, show)


def names_in(source: Path) -> object:
    """Return the names in a file, unchecked. Raises Failed(USAGE) if it cannot be read."""
    text = sys.stdin.read() if str(source) == STDIN else destination.read_text(source)
    if not text.lstrip().startswith("["):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as failed:
        raise Failed(Exit.USAGE, f"{source} is not a JSON array ({failed})") from failed

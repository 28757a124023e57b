"""`targets …`: say what a pull request's head touches."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import JsonValue

from bot.cli import options, output, place
from bot.cli.client import Json
from bot.cli.exits import Exit, Failed

app = typer.Typer(help="Tell which targets a pull request touches.")

ALL = "ALL"
STDIN = "-"


@app.callback()
def root() -> None:
    """Tell which targets a pull request touches."""


@app.command(name="set")
def set_targets(
    number: options.Number,
    sha: Annotated[str, typer.Option("--sha", help="The head that touches them.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Names, one a line or as a JSON array; `-` is standard input.",
        ),
    ] = None,
    are_all: Annotated[bool, typer.Option("--all", help="It touches everything.")] = False,
    url: options.Url = None,
    token_file: options.TokenFile = None,
    repo: options.Repo = None,
    branch: options.Branch = None,
    as_json: options.AsJson = False,
) -> None:
    """Upload the impacted targets of one head; the newest upload counts."""
    if (source is None) is not are_all:
        raise Failed(Exit.USAGE, "it is not clear what is touched", "Give --from FILE or --all")
    touched: JsonValue = ALL if source is None else names_in(source)
    where = place.find(url, token_file, repo, branch)

    async def act() -> Json:
        async with where.opened() as opened:
            return await opened.post_about(
                "/setImpactedTargets", number, pr={"sha": sha}, impactedTargets=touched
            )

    answer = asyncio.run(act())
    if as_json:
        output.json_value(answer)
        return
    what = "all targets" if answer["impactsAll"] else f"{answer['targetCount']} targets"
    output.line(f"#{number} at {str(answer['prSha'])[:8]} touches {what}")


def names_in(source: Path) -> list[JsonValue]:
    """The names in a file, as they stand there. Raises Failed(USAGE) when it cannot be read."""
    try:
        is_stdin = str(source) == STDIN
        text = sys.stdin.read() if is_stdin else source.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise Failed(Exit.USAGE, f"{source} cannot be read ({failed})") from failed
    if not text.lstrip().startswith("["):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        found: list[JsonValue] = orjson.loads(text)
    except orjson.JSONDecodeError as failed:
        raise Failed(Exit.USAGE, f"{source} is no JSON array ({failed})") from failed
    return found

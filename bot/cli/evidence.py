"""`evidence …`: signed evidence of landings, as `headgate verify` reads it."""

import sys
from typing import Annotated

import typer

from bot.cli import destination, options, output
from bot.cli.destination import Queue
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer(help="Print signed evidence of landings.")

# As many as one request may return.
PAGE = 100


@options.queue_command(app)
def show(
    queue: Queue, commit: Annotated[str, typer.Argument(help="The landed commit, all digits.")]
) -> Result:
    """Print the evidence of one landed commit."""
    query = {**destination.repository_members(queue.repo), "commit": commit}
    answer = queue.client.get(
        "/getLandingEvidence", {name: str(each) for name, each in query.items()}
    )
    return shown(output.objects(answer["evidence"]))


@options.queue_command(app)
def export(queue: Queue) -> Result:
    """Print the evidence of everything that landed on a branch, the oldest first."""
    body: Json = {"take": PAGE}
    found: list[Json] = []
    while True:
        answer = queue.post("/listLandingEvidence", body)
        found += output.objects(answer["evidence"])
        if not answer.get("nextCursor"):
            return shown(found)
        body["cursor"] = answer["nextCursor"]


def shown(found: list[Json]) -> Result:
    """Return each envelope on a line of its own."""

    def show() -> None:
        for each in found:
            # As it is: the line of a table would be cut to the width of the terminal.
            sys.stdout.write(f"{each['envelope']}\n")

    return Result({"evidence": found}, show)

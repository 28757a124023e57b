"""`tests machines`: machines that fail tests which pass elsewhere."""

import typer

from bot.cli import options, output
from bot.cli.destination import Repository
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer()


@options.repository_command(app)
def machines(repository: Repository) -> Result:
    """List the machines that fail tests which pass elsewhere."""
    answer = repository.post("/list-bad-machines", {})
    found = output.objects(answer["machines"])

    def show() -> None:
        if not found:
            output.line("No machine fails tests that pass elsewhere.")
            return
        headings = ("Machine", "Tests", "Since", "Its runs", "Runs elsewhere", "For example")
        output.print_table(headings, map(_row, found))
        output.log(str(answer["advice"]))

    return Result(answer, show)


def _row(machine: Json) -> tuple[str, ...]:
    examples = output.objects(machine["examples"])
    return (
        str(machine["name"]),
        str(machine["tests"]),
        str(machine["since"])[:10],
        f"{machine['failing_runs']} of {machine['runs']} failed",
        f"{machine['failing_runs_elsewhere']} of {machine['runs_elsewhere']}",
        output.joined([each["name"] for each in examples[:3]]),
    )

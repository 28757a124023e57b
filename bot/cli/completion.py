"""`completion`: the script that lets a shell complete commands and options."""

from enum import StrEnum
from typing import Annotated

import typer

from bot.cli import output

app = typer.Typer()

PROGRAM = "headgate"
# The variable by which the shell asks for completions; the library reads it.
VARIABLE = "_HEADGATE_COMPLETE"


class Shell(StrEnum):
    """A shell that can be completed for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a completion script for a shell.

    bash, zsh: eval "$(headgate completion bash)". fish: headgate completion fish | source.
    """
    # The library documents the scripts, and exports them by `--show-completion` alone.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    output.print_text(script)

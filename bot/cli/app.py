"""The root of the command line, and the only place where an error becomes an exit code.

The modules of commands import service code inside the commands that need it, so that a thin
command starts fast; a test holds what such a command may import.
"""

import functools
import os
import sys
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException
from typer.main import get_command

from bot.cli import (
    access,
    audit,
    completion,
    config_file,
    costs,
    doctor,
    evidence,
    importing,
    keys,
    machines,
    openapi,
    pull_requests,
    quality,
    queues,
    server,
    setup,
    simulate,
    suspects,
    targets,
    tests,
    upload,
    verify,
    webhooks,
)
from bot.cli.agents import command as agents
from bot.cli.exits import Exit, Failed, sentence
from bot.program import VERSION
from service.errors import (
    DatabaseUnavailable,
    NotAllowed,
    NotFound,
    ServiceError,
    StartRefused,
    Unauthenticated,
)

app = typer.Typer(
    name="headgate",
    help="A self-hosted merge queue: what lands is exactly what was tested.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(server.app)
app.add_typer(setup.app)
app.add_typer(access.app, name="token")
app.add_typer(queues.app, name="queue")
app.add_typer(config_file.app, name="config")
app.add_typer(targets.app, name="targets")
tests.app.add_typer(costs.app)
tests.app.add_typer(machines.app)
tests.app.add_typer(quality.app)
app.add_typer(tests.app, name="tests")
app.add_typer(webhooks.app, name="webhook")
app.add_typer(evidence.app, name="evidence")
app.add_typer(keys.app, name="keys")
app.add_typer(verify.app)
app.add_typer(audit.app)
app.add_typer(pull_requests.app)
app.add_typer(upload.app)
app.add_typer(suspects.app)
app.add_typer(simulate.app)
app.add_typer(doctor.app)
app.add_typer(importing.app)
app.add_typer(openapi.app)
app.add_typer(completion.app)
app.add_typer(agents.app)

# Errors of the commands that run the service or open its database.
EXITS: tuple[tuple[type[ServiceError], Exit], ...] = (
    (StartRefused, Exit.START_REFUSED),
    (DatabaseUnavailable, Exit.UNREACHABLE),
    (Unauthenticated, Exit.NOT_ALLOWED),
    (NotAllowed, Exit.NOT_ALLOWED),
    (NotFound, Exit.NOT_FOUND),
    (ServiceError, Exit.REFUSED),
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A self-hosted merge queue: what lands is exactly what was tested."""
    if version:
        sys.stdout.write(f"headgate {VERSION}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stderr.write(context.get_help() + "\n")
        raise typer.Exit(Exit.USAGE)


command_tree = functools.cache(functools.partial(get_command, app))
"""All commands with their options: read from the functions once in a process, which takes 40 ms."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; an error is one line on stderr."""
    try:
        result = command_tree()(arguments, prog_name="headgate", standalone_mode=False)
        sys.stdout.flush()
    except Failed as failed:
        return report(failed.code, sentence(failed.what, failed.todo))
    except ServiceError as failed:
        code = next(code for kind, code in EXITS if isinstance(failed, kind))
        return report(code, sentence(failed.detail))
    except TyperException as misused:
        context = getattr(misused, "ctx", None)
        command = "headgate" if context is None else context.command_path
        # A value that an option's type rejects carries the words of the parser's library.
        what = misused.format_message().replace("Value error, ", "")
        return report(misused.exit_code, sentence(what, f"See `{command} --help`"))
    except (Abort, KeyboardInterrupt):
        return report(Exit.INTERRUPTED, sentence("interrupted"))
    except SystemExit as ended:
        # The library ends the process for a broken pipe, with the code of "not merged".
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        return _broken_pipe()
    except BrokenPipeError:
        # The reader of our output has closed it (`headgate … | head`).
        return _broken_pipe()
    return result if isinstance(result, int) else Exit.DONE


def _broken_pipe() -> int:
    """Return the code of a process that SIGPIPE ends, and write nothing more."""
    # What is left in the buffer would be written at the end of the process, and fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.BROKEN_PIPE


def report(code: int, text: str) -> int:
    """Print the text on stderr and return the code."""
    sys.stderr.write(text + "\n")
    return code

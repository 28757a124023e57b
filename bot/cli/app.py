"""The root of the command line, and the only place where an error becomes an exit code."""

import sys
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from bot.cli import (
    access,
    openapi,
    pull_requests,
    queues,
    server,
    simulate,
    targets,
    tests,
    upload,
    validate,
    webhooks,
)
from bot.cli.exits import Exit, Failed, sentence
from bot.settings import VERSION
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
app.add_typer(access.app, name="token")
app.add_typer(queues.app, name="queue")
app.add_typer(targets.app, name="targets")
app.add_typer(tests.app, name="tests")
app.add_typer(webhooks.app, name="webhook")
app.add_typer(pull_requests.app)
app.add_typer(upload.app)
app.add_typer(validate.app)
app.add_typer(simulate.app)
app.add_typer(openapi.app)

# Errors of the service itself, met by the commands that open its database.
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


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code (UX.md 5)."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """The exit code of a command; what went wrong is said on stderr in one line."""
    try:
        answer = app(arguments, prog_name="headgate", standalone_mode=False)
    except Failed as failed:
        return said(failed.code, sentence(failed.what, failed.todo))
    except ServiceError as failed:
        code = next(code for kind, code in EXITS if isinstance(failed, kind))
        return said(code, sentence(failed.detail))
    except TyperException as misused:
        context = getattr(misused, "ctx", None)
        command = "headgate" if context is None else context.command_path
        # The parser of options passes on how its own library words a value it does not know.
        what = misused.format_message().replace("Value error, ", "")
        return said(misused.exit_code, sentence(what, f"See `{command} --help`"))
    except (Abort, KeyboardInterrupt):
        return said(Exit.INTERRUPTED, sentence("interrupted"))
    except BrokenPipeError:
        # The reader of our output has gone (`headgate … | head`); nobody is left to tell.
        sys.stderr.close()
        return Exit.FALSE
    return answer if isinstance(answer, int) else Exit.DONE


def said(code: int, text: str) -> int:
    """Say the text on stderr; the code."""
    sys.stderr.write(text + "\n")
    return code

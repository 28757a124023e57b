"""Options that many commands share, and decorators that add them to a command."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from bot.cli import destination, output
from bot.cli.exits import Exit, Failed
from service.testhealth.reports.results import Format


def _completed_setting(context: typer.Context, incomplete: str) -> list[str]:
    """Return the settings and values that a shell may complete `--set` to."""
    from bot.cli import queue_settings

    is_of_tests = context.command_path.split()[-2:] == ["tests", "settings"]
    return queue_settings.completed(incomplete, is_of_tests=is_of_tests)


Url = Annotated[
    str | None,
    typer.Option("--url", help="Address of the service. Default: HEADGATE_URL, else this machine."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="File with the API token. Default: HEADGATE_TOKEN."),
]
Repo = Annotated[
    str | None,
    typer.Option(
        "--repo", help="[HOST/]OWNER/NAME. Default: GITHUB_REPOSITORY, else the remote origin."
    ),
]
Branch = Annotated[
    str | None,
    typer.Option(
        "--branch",
        help="Target branch. Default: the pull request's, else the only one with a queue.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Number = Annotated[int, typer.Argument(help="The pull request's number.", min=1, max=2**32 - 1)]
_JUNIT = typer.Option(
    "--junit", metavar="GLOB", help="Reports, quoted; `**` is any folder. Repeatable."
)
Junit = Annotated[list[str], _JUNIT]
MoreJunit = Annotated[list[str] | None, _JUNIT]
SourceRoot = Annotated[
    str, typer.Option("--source-root", help="Folder to remove from the files of tests.")
]
ReportFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="Format of all reports. Default: detected in each file.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting and its value; repeatable.",
        autocompletion=_completed_setting,
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        help="sqlite:///PATH or postgresql://…. Default: HEADGATE_DATABASE_URL.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of state and key. Default: HEADGATE_DATA_DIR."),
]

UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class Result(NamedTuple):
    """The end of a client command: `answer` is printed with --json, else `show` prints it.

    `end` is raised afterwards: an exit code other than 0, or an error.
    """

    answer: object
    show: Callable[[], object]
    end: Exception | None = None


Command = Callable[..., Result]


def seconds(text: str) -> float:
    """Return a duration as people write it: `90`, `90s`, `5m`, `2h`, `1d`. Raises Failed(USAGE)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    if match is None:
        raise Failed(Exit.USAGE, f"{text!r} is not a duration", "Write 90s, 5m, 2h or 1d")
    return float(match[1]) * UNITS_S[match[2]]


def client_command(app: typer.Typer, name: str | None = None) -> Callable[[Command], Command]:
    """Register a command whose first argument is a `Client`; adds --json, --url, --token-file."""
    options = {"url": Url, "token_file": TokenFile}
    return _found_first(app, name, options, destination.find_client)


def client_later_command(app: typer.Typer) -> Callable[[Command], Command]:
    """Register a command whose first argument returns a `Client`; it may work without one."""
    options = {"url": Url, "token_file": TokenFile}
    return _found_first(
        app, None, options, lambda **given: partial(destination.find_client, **given)
    )


def repository_command(app: typer.Typer, name: str | None = None) -> Callable[[Command], Command]:
    """Register a command whose first argument is a `Repository`; adds --repo as well."""
    options = {"url": Url, "token_file": TokenFile, "repo": Repo}
    return _found_first(app, name, options, destination.find_tests)


def queue_command(app: typer.Typer, name: str | None = None) -> Callable[[Command], Command]:
    """Register a command whose first argument is a `Queue`; adds --repo and --branch as well."""
    options = {"url": Url, "token_file": TokenFile, "repo": Repo, "branch": Branch}
    return _found_first(app, name, options, destination.find_queue)


def _found_first(
    app: typer.Typer,
    name: str | None,
    options: Mapping[str, object],
    find: Callable[..., object],
) -> Callable[[Command], Command]:
    """Register a command with more options, from which `find` makes its first argument."""

    def register(command: Command) -> Command:
        own = list(inspect.signature(command).parameters.values())[1:]
        added = [Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)]
        added += [
            Parameter(option, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for option, annotation in options.items()
        ]

        def run(*, as_json: bool, **given: object) -> None:
            found = find(**{option: given.pop(option) for option in options})
            result = command(found, **given)
            if as_json:
                output.print_json(result.answer)
            else:
                result.show()
            if result.end is not None:
                raise result.end

        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own] + added
        # Typer reads the options of a command from its signature.
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        app.command(name)(run)
        return command

    return register

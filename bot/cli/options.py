"""Options that many commands share, told once."""

import re
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.exits import Exit, Failed
from service.testhealth.reports.results import Format

Url = Annotated[
    str | None,
    typer.Option("--url", help="The service. Default: HEADGATE_URL, else this machine."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="File that holds the API token. Default: HEADGATE_TOKEN."),
]
Repo = Annotated[
    str | None,
    typer.Option(
        "--repo", help="[HOST/]OWNER/NAME. Default: GITHUB_REPOSITORY, else the remote origin."
    ),
]
Branch = Annotated[
    str | None, typer.Option("--branch", help="Target branch. Default: the only one with a queue.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Number = Annotated[int, typer.Argument(help="The pull request's number.", min=1, max=2**32 - 1)]
Junit = Annotated[
    list[str],
    typer.Option(
        "--junit", metavar="GLOB", help="Reports, quoted; `**` is any folder. Repeatable."
    ),
]
SourceRoot = Annotated[
    str, typer.Option("--source-root", help="Folder that is cut off the files of tests.")
]
ReportFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="Format of all reports. Default: as each file's content says.",
    ),
]

UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(text: str) -> float:
    """A span as people write it: `90`, `90s`, `5m`, `2h`, `1d`. Raises Failed(USAGE)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    if match is None:
        raise Failed(Exit.USAGE, f"{text!r} is no span of time", "Write 90s, 5m, 2h or 1d")
    return float(match[1]) * UNITS_S[match[2]]

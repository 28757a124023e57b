"""`tests slowest|shards|costs`: what tests take, shards by time, and what flaky tests cost."""

import shlex
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import options, output, tests
from bot.cli.destination import Repository
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer()

STDIN = "-"
WEEKS_MAX = 12
DAYS_OF_WEEK = 7
MINUTE, HOUR = 60, 3600


class Order(StrEnum):
    """The orders of slow tests."""

    TOTAL = "total"
    MEDIAN = "median"
    P95 = "p95"


class Format(StrEnum):
    """The forms in which the files of a shard are written."""

    PYTEST = "pytest"
    JEST = "jest"
    FILES = "files"


BEFORE: Mapping[Format, str] = {Format.PYTEST: "", Format.JEST: "--runTestsByPath "}
"""The words before the files on each runner's command line."""


@options.repository_command(app)
def slowest(
    repository: Repository,
    sort: Annotated[
        Order, typer.Option("--sort", help="First by the time of all runs, by median, or by p95.")
    ] = Order.TOTAL,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only tests of this code owner, or of none.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="How many tests, at most 200.")] = 20,
) -> Result:
    """List the tests that took longest in the last counted week, and how that changed."""
    given: Json = {"order_by": sort.value.upper(), "limit": limit}
    if owner is not None:
        given["owner"] = owner
    answer = repository.post("/list-slowest-tests", given)

    def show() -> None:
        if answer["week"] is None:
            output.line("No time of a test is known yet; a day is counted an hour after its end.")
            return
        week = answer["week"] if isinstance(answer["week"], dict) else {}
        output.log(
            f"{week['first_day']} to {week['last_day']}: {answer['tests_timed']} tests took "
            f"{seconds(answer['total_seconds'])}, "
            f"{seconds(answer['total_seconds_before'])} in the week before"
        )
        headings = ("Test", "All runs", "Runs", "Median", "p95", "Change", "Owner", "Link")
        output.print_linked(headings, map(_slow_row, output.objects(answer["tests"])))

    return Result(answer, show)


def _slow_row(test: Json) -> tuple[str, ...]:
    times = test["week"] if isinstance(test["week"], dict) else {}
    change = test["median_change"]
    return (
        tests.short_name_of(test, "file_path"),
        seconds(times["total_seconds"]),
        str(times["runs"]),
        seconds(times["median_seconds"]),
        seconds(times["p95_seconds"]),
        "" if change is None else f"{float(str(change)) * 100:+.0f} %",
        output.joined(test["codeowners"]),
        str(test["html_url"]),
    )


@options.repository_command(app)
def shards(
    repository: Repository,
    count: Annotated[int, typer.Option("--count", min=1, max=256, help="How many shards.")],
    shard: Annotated[
        int | None, typer.Option("--shard", min=1, help="Print the files of this shard alone.")
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to print them: as arguments of a runner, or as lines."),
    ] = None,
    files: Annotated[
        str | None,
        typer.Option(
            "--files", help="A file with the paths of all test files, one a line; - is stdin."
        ),
    ] = None,
    variant: Annotated[
        str | None, typer.Option("--variant", help="Use times of this variant.")
    ] = None,
) -> Result:
    """Divide test files into shards that take about as long as one another."""
    if (shard is None) != (format_ is None):
        raise Failed(
            Exit.USAGE,
            "--shard and --format go together",
            "Without both, the command shows all shards",
        )
    if shard is not None and shard > count:
        raise Failed(Exit.USAGE, f"There is no shard {shard} of {count}", "Shards begin at 1")
    if shard is not None and files is None:
        raise Failed(
            Exit.USAGE,
            "--shard needs --files: without them new files would be in no shard",
            f"git ls-files 'tests/**/test_*.py' | headgate tests shards --count {count} "
            f"--shard {shard} --format {format_.value if format_ else 'files'} --files -",
        )
    given: Json = {"count": count}
    if files is not None:
        given["files"] = _paths_in(files)
    if variant is not None:
        given["variant"] = variant
    answer = repository.post("/plan-shards", given)
    planned = output.objects(answer["shards"])

    def show() -> None:
        if answer["note"]:
            output.log(str(answer["note"]))
        if shard is not None and format_ is not None:
            for line in _written(planned[shard - 1]["files"], format_):
                output.line(line)
            return
        rows = [
            (str(each["index"]), seconds(each["expected_seconds"]), str(_count(each["files"])))
            for each in planned
        ]
        output.print_table(("Shard", "Expected", "Files"), rows)
        output.line(f"The longest takes {seconds(answer['worst_expected_seconds'])}.")

    return Result(answer, show)


def _paths_in(source: str) -> list[str]:
    """Return the lines of a file or of stdin. Raises Failed if there are none."""
    try:
        text = sys.stdin.read() if source == STDIN else Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(Exit.USAGE, f"--files {source} cannot be read: {error}") from error
    paths = [line.strip() for line in text.splitlines() if line.strip()]
    if not paths:
        raise Failed(
            Exit.USAGE, f"--files {source} names no file", "It has the path of a test file a line"
        )
    return paths


def _written(files: object, format_: Format) -> list[str]:
    """Return the lines that name the files of a shard, none if it is empty."""
    paths = [str(each) for each in files] if isinstance(files, list) else []
    if format_ is Format.FILES or not paths:
        return paths
    return [BEFORE[format_] + shlex.join(paths)]


def _count(files: object) -> int:
    return len(files) if isinstance(files, list) else 0


@options.repository_command(app)
def costs(
    repository: Repository,
    weeks: Annotated[
        int,
        typer.Option("--weeks", min=1, max=WEEKS_MAX, help="How many weeks, this one included."),
    ] = WEEKS_MAX,
) -> Result:
    """Show what flaky tests cost, week by week and by owner."""
    answer = repository.post("/get-flake-costs", {"weeks": weeks})

    def show() -> None:
        known = [each for each in output.objects(answer["weeks"]) if each["days_counted"]]
        if not known:
            output.line("No cost is known yet; a day is counted an hour after its end.")
            return
        rows = [
            (
                str(each["week_start"])
                + ("" if each["days_counted"] == DAYS_OF_WEEK else " (in part)"),
                tests.hours(each["ci_seconds"]),
                tests.hours(each["pull_request_seconds"]),
                f"{float(str(each['queue_failures'])):g}",
            )
            for each in known
        ]
        output.print_table(("Week of", "CI lost", "PRs waited", "Flakes in the queue"), rows)
        owners = [
            (
                str(each["owner"] or "no owner"),
                tests.hours(_sum(each["weeks"], "ci_seconds")),
                tests.hours(_sum(each["weeks"], "pull_request_seconds")),
            )
            for each in output.objects(answer["owners"])
        ]
        if owners:
            output.print_table(("Owner", "CI lost", "PRs waited"), owners)
        if answer["alert"]:
            output.log(f"This week is above the limit of {answer['alert_minutes']} minutes of CI")

    return Result(answer, show)


def _sum(weeks: object, field: str) -> int:
    return sum(int(str(each[field])) for each in output.objects(weeks))


def seconds(value: object) -> str:
    """Return `0.12 s`, `4.8 s`, `3:20 min` or `1:05 h`."""
    found = float(str(value))
    if found < MINUTE:
        return f"{found:.3g} s"
    if found < HOUR:
        return f"{int(found) // 60}:{int(found) % 60:02} min"
    return tests.hours(int(found))

"""`simulate`: what other settings would have done with the same pull requests.

Opens the database for one read; the replay itself runs here, where nobody is served.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue
from pydantic.alias_generators import to_camel
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bot.cli import access, options, output, place, queue_text, queues
from bot.cli.client import Refusal
from bot.cli.exits import Exit, Failed, sentence
from service.errors import Malformed
from service.http.models import common
from service.mergequeue.api.models.queues import UpdateQueue
from service.mergequeue.engine.config import (
    CLI_DEFAULTS,
    ConfigValue,
    QueueConfig,
    changed,
    not_available_yet,
)
from service.mergequeue.operations import simulate as simulations
from service.mergequeue.operations.simulate import BASELINE, CHANGED, Comparison, Recorded
from service.mergequeue.simulation import stream, table
from service.mergequeue.simulation.figures import Figures
from service.mergequeue.simulation.history import History
from service.runtime import Runtime
from service.text import times
from service.vocabulary import RepoRef

app = typer.Typer()

CHANCE = 1
"""Seed of everything left to chance where the stream is given."""

CSV_BYTES_MAX = 256 * 1024 * 1024
NOTHING = "-"
NOT_SIMULATED = ("state", "stateReason")
SIDES = {BASELINE: "present settings", CHANGED: "changed settings"}


@dataclass(frozen=True, slots=True)
class Source:
    """Where the submissions come from, and the settings to compare with."""

    name: str
    histories: tuple[History, ...]
    config: QueueConfig
    seed: int = CHANCE


@app.command()
def simulate(
    settings: queues.Set = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", metavar="HOST/OWNER/NAME@BRANCH", help="Replay its own history."),
    ] = None,
    since: Annotated[str, typer.Option("--since", help="How far back, as 30d.")] = "30d",
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Replay a table of test runs.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Replay a made-up stream of 400 submissions.")
    ] = None,
    database_url: access.DatabaseUrl = None,
    data_dir: access.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare a queue's settings with changed ones over the same pull requests."""
    given = [each for each in (queue, csv_file, seed) if each is not None]
    if len(given) != 1:
        todo = "Give one of --queue HOST/OWNER/NAME@BRANCH, --csv FILE, --seed N"
        raise Failed(Exit.USAGE, "it is not clear what to replay", todo)
    changes = parse_changes(settings)
    if queue is not None:
        source = of_queue(queue, since, database_url, data_dir)
    elif csv_file is not None:
        source = of_table(csv_file)
    else:
        source = of_seed(seed or 0)
    with Watch() as watch:
        found = simulations.compare(
            source.histories, source.config, changes, source.seed, watch.show
        )
    if as_json:
        output.json_value(record_of(source, changes, found))
    else:
        printed(source, changes, found)


def parse_changes(texts: Sequence[str] | None) -> dict[str, ConfigValue]:
    """The settings to try, by field name, checked as `queue update` has them checked.

    A setting that no queue takes yet is taken here, and said. Raises Failed(USAGE, REFUSED).
    """
    given = queues.parse_settings(texts)
    if not given:
        raise Failed(Exit.USAGE, "nothing to change", "Give --set KEY=VALUE")
    for name in NOT_SIMULATED:
        if name in given:
            raise Failed(Exit.USAGE, f"{name!r} is no setting that a simulation can change")
    anywhere = place.target(RepoRef(place.DEFAULT_HOST, "owner", "name"), "main")
    try:
        changes = common.read(UpdateQueue, anywhere | given).settings()
    except Malformed as malformed:
        errors: list[JsonValue] = [asdict(each) for each in malformed.errors]
        raise Refusal(400, {"detail": malformed.detail, "errors": errors}) from None
    early = not_available_yet(changes)
    if early:
        what = f"no queue takes {', '.join(map(to_camel, early))} yet: it may change nothing here"
        output.told(sentence(what))
    return changes


def of_queue(text: str, since: str, database_url: str | None, data_dir: Path | None) -> Source:
    """A queue's own history under its own settings. Raises Failed(USAGE), NotFound."""
    name, at, branch = text.partition("@")
    repo = place.parse_repository(name)
    if repo is None or not at or not branch:
        raise Failed(Exit.USAGE, f"{text!r} names no queue", "Write HOST/OWNER/NAME@BRANCH")
    span = timedelta(seconds=min(options.seconds(since), SPAN_MAX_S))

    async def act(runtime: Runtime, _host: str) -> Recorded:
        return await simulations.recorded(runtime, repo, branch, span)

    found = access.administered(act, database_url, data_dir)
    days = times.duration(span)
    return Source(f"{repo.slug}@{branch}, the last {days}", (found.history,), found.config)


SPAN_MAX_S = 400 * 86_400.0
"""Nothing older is kept (ARCHITECTURE.md 6)."""


def of_table(path: Path) -> Source:
    """The runs of a file, each repository a queue of its own with default settings.

    Raises Failed(USAGE) with line and column of what cannot be read.
    """
    try:
        if path.stat().st_size > CSV_BYTES_MAX:
            raise Failed(Exit.USAGE, f"{path} is larger than {CSV_BYTES_MAX >> 20} MiB")
        found = table.histories_of(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is no text"
        raise Failed(Exit.USAGE, f"{path} cannot be read ({why})") from failed
    except Malformed as malformed:
        raise Failed(Exit.USAGE, f"{path}: {malformed.detail}") from None
    histories = tuple(one for one in found.values() if one.arrivals)
    if not histories:
        raise Failed(Exit.USAGE, f"{path} holds no test run")
    return Source(f"{path.name}, {', '.join(found)}", histories, default_settings())


def of_seed(seed: int) -> Source:
    """A made-up stream under default settings; the seed is also that of flakes."""
    return Source(f"seed {seed}", (stream.made_up(seed),), default_settings(), seed)


def default_settings() -> QueueConfig:
    """What `queue create` sets."""
    return changed(QueueConfig(), CLI_DEFAULTS)


class Watch:
    """How far the replays are: bars on a terminal, else one line for each. On stderr."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, highlight=False)
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )
        self.tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Watch":
        """Begin to show."""
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self.console.is_terminal:
            self.progress.stop()

    def show(self, side: str, of: int, ended: int) -> None:
        """So many submissions have ended under one side's settings."""
        if side not in self.tasks:
            self.tasks[side] = self.progress.add_task(SIDES[side], total=of)
            if not self.console.is_terminal:
                output.told(f"replaying {of} submissions under the {SIDES[side]}")
        self.progress.update(self.tasks[side], completed=ended)


def record_of(
    source: Source, changes: Mapping[str, ConfigValue], found: Comparison
) -> dict[str, object]:
    """The comparison as one JSON value, names spelled as in the API; times in seconds."""
    baseline, after = camel(found.baseline), camel(found.changed)
    return {
        "source": source.name,
        "submissions": found.submissions,
        "settings": {
            to_camel(name): {
                BASELINE: queue_text.plain_value(getattr(source.config, name)),
                CHANGED: queue_text.plain_value(value),
            }
            for name, value in changes.items()
        },
        BASELINE: baseline,
        CHANGED: after,
        "ratio": {name: ratio(baseline[name], after[name]) for name in baseline},
    }


def camel(figures: Figures) -> dict[str, float | None]:
    """The figures by name as the API spells names, units written out."""
    return {
        to_camel(re.sub("_s$", "_seconds", name)): None if value is None else round(value, 3)
        for name, value in asdict(figures).items()
    }


def ratio(baseline: float | None, after: float | None) -> float | None:
    """How many times the baseline the other is; None where that says nothing."""
    if baseline is None or after is None or not baseline:
        return None
    return round(after / baseline, 3)


ROWS = (
    ("Time to merge, p50", "time_to_merge_p50_s"),
    ("Time to merge, p95", "time_to_merge_p95_s"),
    ("Merged", "merged"),
    ("CI runs", "ci_runs"),
    ("CI runs per merge", "ci_runs_per_merge"),
    ("CI minutes", "ci_minutes"),
    ("Restarts", "restarts"),
    ("Removed: failed", "failed"),
    ("  of them good", "failed_good"),
    ("Removed: cancelled", "cancelled"),
    ("Still queued", "unfinished"),
)
"""Rows of the table, and which figure each shows."""


def printed(source: Source, changes: Mapping[str, ConfigValue], found: Comparison) -> None:
    """Print what was replayed, what was changed, and the figures side by side."""
    output.line(f"{source.name}: {found.submissions} submissions")
    for name, value in changes.items():
        before = queue_text.written(queue_text.plain_value(getattr(source.config, name)))
        after = queue_text.written(queue_text.plain_value(value))
        output.line(f"{to_camel(name)}: {before} → {after}")
    rows = [
        (label, getattr(found.baseline, name), getattr(found.changed, name), name)
        for label, name in ROWS
    ]
    output.table(
        ("", "Present", "Changed", "Ratio"),
        [
            (label, shown(name, before), shown(name, after), times_as_much(before, after))
            for label, before, after, name in rows
        ],
    )


def times_as_much(baseline: float | None, after: float | None) -> str:
    """The ratio as people read it."""
    found = ratio(baseline, after)
    return NOTHING if found is None else f"{found:.2f}"


def shown(name: str, figure: float | None) -> str:
    """A figure as people read it."""
    if figure is None:
        return NOTHING
    if name.endswith("_s"):
        return times.duration(timedelta(seconds=figure))
    return f"{figure:.2f}" if name == "ci_runs_per_merge" else f"{figure:.0f}"

"""Replay submissions under two sets of settings, and print the figures side by side.

A queue's own history is one read of the database; the replay itself runs in this process.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from pydantic.alias_generators import to_camel

from bot.cli import destination, options, output, queue_settings
from bot.cli.administration import administer
from bot.cli.client import Refusal
from bot.cli.exits import Exit, Failed
from bot.cli.progress import ReplayDisplay
from service.errors import Malformed, NotFound
from service.http.models import common
from service.mergequeue.api.models.queues import UpdateQueue
from service.mergequeue.engine.config import (
    CLI_DEFAULTS,
    ConfigValue,
    QueueConfig,
    changed,
)
from service.mergequeue.operations import simulate as simulations
from service.mergequeue.operations.simulate import BASELINE, CHANGED, Comparison, Recorded
from service.mergequeue.simulation import stream, table
from service.mergequeue.simulation.figures import Figures
from service.mergequeue.simulation.history import History
from service.mergequeue.wording.file_checks import left_out_texts
from service.runtime import Runtime
from service.settings import as_json
from service.text import times
from service.vocabulary import RepoRef

# Random seed of the replay where the submissions are given.
SEED = 1
# Nothing older is stored.
SPAN_MAX_S = 400 * 86_400.0
CSV_BYTES_MAX = 256 * 1024 * 1024
NOTHING = "-"
NOT_SIMULATED = ("state", "stateReason")
SIDES = {BASELINE: "present settings", CHANGED: "changed settings"}

# Rows of the table, and which figure each shows.
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


@dataclass(frozen=True, slots=True)
class Source:
    """The source of the submissions, and the settings to compare."""

    name: str
    histories: tuple[History, ...]
    config: QueueConfig
    seed: int = SEED


def compare(source: Source, changes: Mapping[str, ConfigValue], *, as_json: bool) -> None:
    """Replay the source under both settings and print the comparison."""
    with ReplayDisplay() as display:
        comparison = simulations.compare(
            source.histories,
            source.config,
            changes,
            source.seed,
            lambda side, total, ended: display.show(SIDES[side], total, ended),
        )
    if as_json:
        output.print_json(record_of(source, changes, comparison))
    else:
        print_comparison(source, changes, comparison)


def parse_changes(texts: Sequence[str] | None) -> dict[str, ConfigValue]:
    """Return the settings to try by field name, checked as `queue update` checks them.

    Raises Failed(USAGE, REFUSED).
    """
    given = queue_settings.parse(texts)
    if not given:
        raise Failed(Exit.USAGE, "nothing to change", "Give --set KEY=VALUE")
    for name in NOT_SIMULATED:
        if name in given:
            raise Failed(Exit.USAGE, f"a simulation cannot change {name!r}")
    anywhere = destination.queue_members(RepoRef(destination.DEFAULT_HOST, "owner", "name"), "main")
    try:
        changes = common.read(UpdateQueue, anywhere | given).settings()
    except Malformed as malformed:
        errors = [asdict(each) for each in malformed.errors]
        raise Refusal(400, {"detail": malformed.detail, "errors": errors}) from None
    return changes


def queue_history(text: str, since: str, database_url: str | None, data_dir: Path | None) -> Source:
    """Return a queue's own history and settings. Raises Failed(USAGE), NotFound."""
    name, at, branch = text.partition("@")
    if destination.parse_repository(name) is None or not at or not branch:
        raise Failed(Exit.USAGE, f"{text!r} is not a queue", "Write [HOST/]OWNER/NAME@BRANCH")
    span = timedelta(seconds=min(options.seconds(since), SPAN_MAX_S))

    async def read_history(runtime: Runtime, host: str) -> Recorded:
        repo = destination.parse_repository(name, host) or RepoRef(host, "", "")
        try:
            return await simulations.recorded(runtime, repo, branch, span)
        except NotFound as missing:
            if missing.code == "repository_not_found" and repo.host != host:
                todo = f"Leave the host out for {host}, the host of this deployment"
                raise Failed(Exit.NOT_FOUND, missing.detail, todo) from None
            raise

    recorded = administer(read_history, database_url, data_dir)
    name = f"{name}@{branch}, the last {times.duration(span)}"
    return Source(name, (recorded.history,), recorded.config)


def table_of_runs(path: Path) -> Source:
    """Return the runs in a file, each repository a queue of its own with default settings.

    Raises Failed(USAGE) with line and column of an error.
    """
    try:
        if path.stat().st_size > CSV_BYTES_MAX:
            raise Failed(Exit.USAGE, f"{path} is larger than {CSV_BYTES_MAX >> 20} MiB")
        by_repository = table.histories_of(destination.read_text(path))
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{path} cannot be read ({failed.strerror})") from failed
    except Malformed as malformed:
        raise Failed(Exit.USAGE, f"{path}: {malformed.detail}") from None
    histories = tuple(one for one in by_repository.values() if one.arrivals)
    if not histories:
        raise Failed(Exit.USAGE, f"{path} contains no test run")
    return Source(f"{path.name}, {', '.join(by_repository)}", histories, default_settings())


def made_up_stream(seed: int) -> Source:
    """Return a made-up stream with default settings; the seed decides flakes as well."""
    return Source(f"seed {seed}", (stream.made_up(seed),), default_settings(), seed)


def default_settings() -> QueueConfig:
    """Return the settings of a queue that `queue create` creates."""
    return changed(QueueConfig(), CLI_DEFAULTS)


def record_of(
    source: Source, changes: Mapping[str, ConfigValue], comparison: Comparison
) -> dict[str, object]:
    """Return the comparison as one JSON value, names as in the API; times in seconds."""
    baseline, after = camel(comparison.baseline), camel(comparison.changed)
    return {
        "source": source.name,
        "submissions": comparison.submissions,
        "settings": {
            to_camel(name): {
                BASELINE: as_json(getattr(source.config, name)),
                CHANGED: as_json(value),
            }
            for name, value in changes.items()
        },
        BASELINE: baseline,
        CHANGED: after,
        "leftOut": dict(comparison.left_out),
        "ratio": {name: ratio(baseline[name], after[name]) for name in baseline},
    }


def camel(figures: Figures) -> dict[str, float | None]:
    """Return the figures by names as the API spells them, units written out."""
    return {
        to_camel(re.sub("_s$", "_seconds", name)): None if value is None else round(value, 3)
        for name, value in asdict(figures).items()
    }


def ratio(baseline: float | None, after: float | None) -> float | None:
    """Return the quotient; None without a baseline."""
    if baseline is None or after is None or not baseline:
        return None
    return round(after / baseline, 3)


def print_comparison(
    source: Source, changes: Mapping[str, ConfigValue], comparison: Comparison
) -> None:
    """Print what was replayed, what was changed, and the figures side by side."""
    output.line(f"{source.name}: {comparison.submissions} submissions")
    for name, value in changes.items():
        before = queue_settings.written(as_json(getattr(source.config, name)))
        after = queue_settings.written(as_json(value))
        output.line(f"{to_camel(name)}: {before} → {after}")
    rows = [
        (label, getattr(comparison.baseline, name), getattr(comparison.changed, name), name)
        for label, name in ROWS
    ]
    output.print_table(
        ("", "Present", "Changed", "Ratio"),
        [
            (label, readable(name, before), readable(name, after), readable_ratio(before, after))
            for label, before, after, name in rows
        ],
    )
    for text in left_out_texts(comparison.left_out):
        output.line(text)


def readable_ratio(baseline: float | None, after: float | None) -> str:
    """Return the ratio as people read it."""
    quotient = ratio(baseline, after)
    return NOTHING if quotient is None else f"{quotient:.2f}"


def readable(name: str, figure: float | None) -> str:
    """Return a figure as people read it."""
    if figure is None:
        return NOTHING
    if name.endswith("_s"):
        return times.duration(timedelta(seconds=figure))
    return f"{figure:.2f}" if name == "ci_runs_per_merge" else f"{figure:.0f}"

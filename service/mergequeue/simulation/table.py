"""A table of test runs, as comma-separated text, as histories: one for each repository in it.

Columns, found by name: `repo`, `bisection` (1: part of a search in a failed run), `named_pr`,
`started_at` (ISO 8601), `pr_numbers_in_merge_order` and `pr_heads_in_merge_order` (apart by
blanks, `?` where unknown), `prefix_tree_found_on_target` (a digit for each: 1 when the tree up
to there landed), `minutes_start_to_land`. Other columns are not read.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from service.errors import Malformed
from service.mergequeue.simulation.history import GOOD, Arrival, Fate, History, history_of
from service.vocabulary import Sha

COLUMNS = (
    "repo",
    "bisection",
    "named_pr",
    "started_at",
    "pr_numbers_in_merge_order",
    "pr_heads_in_merge_order",
    "prefix_tree_found_on_target",
    "minutes_start_to_land",
)
UNKNOWN = "?"
LINES_MAX = 1_000_000
BREAKS = Fate(breaks=True)


@dataclass(frozen=True, slots=True)
class TestedRun:
    """One line: heads in merge order, how many of them landed, minutes until they had."""

    __test__ = False
    repo: str
    is_bisection: bool
    named_pr: int | None
    started_at: datetime
    prs: tuple[int | None, ...]
    heads: tuple[Sha, ...]
    landed: int
    minutes: float | None


def histories_of(text: str) -> dict[str, History]:
    """The histories in a table, by repository.

    A head arrives when its first run started. It is good when a tree with it landed, else it
    breaks: the table does not tell failing from cancelling. The time of a test is that of runs
    of one pull request alone, from start to landing; such a run that did not land although its
    head landed later counts as a flake. Raises Malformed naming line and column.
    """
    by_repo: defaultdict[str, list[TestedRun]] = defaultdict(list)
    for run in _runs_in(text):
        by_repo[run.repo].append(run)
    return {repo: _history(runs) for repo, runs in by_repo.items()}


def _history(runs: Sequence[TestedRun]) -> History:
    numbers = _numbers(runs)
    first_at: dict[Sha, datetime] = {}
    landed: set[Sha] = set()
    for run in runs:
        for head in run.heads:
            first_at[head] = min(run.started_at, first_at.get(head, run.started_at))
        landed.update(run.heads[: run.landed])
    alone = [run for run in runs if len(run.heads) == 1 and not run.is_bisection]
    own_s = {run.heads[0]: run.minutes * 60 for run in alone if run.minutes is not None}
    flaky = sum(1 for run in alone if not run.landed and run.heads[0] in landed)
    passed = sum(1 for run in alone if run.landed)
    every_s = [run.minutes * 60 for run in runs if run.minutes is not None]
    arrivals = [
        Arrival(
            at=at,
            pr=numbers[head],
            head=head,
            fate=GOOD if head in landed else BREAKS,
            ci_s=own_s.get(head),
        )
        for head, at in first_at.items()
    ]
    return history_of(
        arrivals, own_s.values() or every_s, flaky / (passed + flaky) if flaky else 0.0
    )


def _numbers(runs: Sequence[TestedRun]) -> Mapping[Sha, int]:
    """The pull request of each head; one that no line names gets a number of its own."""
    known: dict[Sha, int] = {}
    for run in runs:
        named = run.named_pr if run.prs.count(None) == 1 else None
        for head, pr in zip(run.heads, run.prs, strict=True):
            if pr is not None:
                known[head] = pr
            elif named is not None and named not in run.prs:
                known.setdefault(head, named)
    free = max(known.values(), default=0)
    for run in runs:
        for head in run.heads:
            if head not in known:
                free += 1
                known[head] = free
    return known


def _runs_in(text: str) -> Iterator[TestedRun]:
    """The lines of a table; those without a start or without heads are left out."""
    reader = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)
    try:
        header = next(reader, [])
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise Malformed(f"Line 1 names no column {missing[0]}.")
        for cells in reader:
            line = _Line(reader.line_num, header, cells)
            run = line.run() if cells else None
            if run is not None:
                yield run
            if reader.line_num > LINES_MAX:
                raise Malformed(f"Line {LINES_MAX + 1}: the table has more lines than that.")
    except csv.Error as broken:
        raise Malformed(f"Line {reader.line_num}: {broken}.") from None


class _Line:
    """One line of the table, by column."""

    def __init__(self, number: int, header: Sequence[str], cells: Sequence[str]) -> None:
        self._number = number
        self._places = {name: place for place, name in enumerate(header)}
        if len(cells) != len(header):
            raise Malformed(
                f"Line {number} has {len(cells)} columns where line 1 has {len(header)}."
            )
        self._cells = cells

    def run(self) -> TestedRun | None:
        """Return the row's submission, None without a start or without heads."""
        heads = tuple(Sha(head) for head in self._of("pr_heads_in_merge_order").split())
        started_at = self._time("started_at")
        if started_at is None or not heads:
            return None
        numbers = self._of("pr_numbers_in_merge_order").split()
        if len(numbers) != len(heads):
            raise self._wrong(
                "pr_numbers_in_merge_order",
                f"{len(numbers)} numbers for {len(heads)} heads",
            )
        return TestedRun(
            repo=self._of("repo"),
            is_bisection=self._flag("bisection"),
            named_pr=self._pr("named_pr", self._of("named_pr")),
            started_at=started_at,
            prs=tuple(self._pr("pr_numbers_in_merge_order", each) for each in numbers),
            heads=heads,
            landed=self._landed(len(heads)),
            minutes=self._minutes("minutes_start_to_land"),
        )

    def _of(self, column: str) -> str:
        return self._cells[self._places[column]].strip()

    def _flag(self, column: str) -> bool:
        text = self._of(column)
        if text not in ("", UNKNOWN, "0", "1"):
            raise self._wrong(column, f"{text!r} is neither 0 nor 1")
        return text == "1"

    def _pr(self, column: str, text: str) -> int | None:
        if text in ("", UNKNOWN):
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text)):
            raise self._wrong(column, f"{text!r} is no number of a pull request")
        return int(text)

    def _time(self, column: str) -> datetime | None:
        text = self._of(column)
        if text in ("", UNKNOWN):
            return None
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise self._wrong(column, f"{text!r} is no time, as 2026-03-02T08:00:00Z") from None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

    def _landed(self, heads: int) -> int:
        """Return how many heads, from the first, are in a tree that landed."""
        column = "prefix_tree_found_on_target"
        text = self._of(column)
        if text in ("", UNKNOWN):
            return 0
        if len(text) != heads or set(text) - {"0", "1", UNKNOWN}:
            raise self._wrong(column, f"{text!r} is not one 0 or 1 for each of {heads} heads")
        return text.rfind("1") + 1

    def _minutes(self, column: str) -> float | None:
        text = self._of(column)
        if text in ("", UNKNOWN):
            return None
        try:
            minutes = float(text)
        except ValueError:
            minutes = -1.0
        if not 0 <= minutes <= MINUTES_MAX:
            raise self._wrong(column, f"{text!r} is no number of minutes")
        return minutes

    def _wrong(self, column: str, what: str) -> Malformed:
        return Malformed(f"Line {self._number}, column {column}: {what}.")


MINUTES_MAX = 60 * 24 * 365
"""A year; a longer span is a mistake of the table."""

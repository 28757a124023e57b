"""The report of a queue in shadow on a terminal: its sums, then each pull request."""

from datetime import datetime

from bot.cli import output
from bot.uploader.transport import Json

ROWS_MAX = 40


def print_report(repo: str, branch: object, answer: Json) -> None:
    """Print what Headgate decided, beside what others did."""
    if answer.get("since") is None:
        output.line(f"The queue for {branch} of {repo} has never been in shadow.")
        output.line("Set it: headgate queue update --set shadow=true")
        return
    end = "" if answer.get("until") is None else f" until {output.moment(answer['until'])}"
    output.line(f"{repo} {branch}, in shadow since {output.moment(answer['since'])}{end}")
    same, compared = answer["same"], answer["compared"]
    few = ". Few so far: this says little" if answer.get("isSmall") else ""
    output.print_facts(
        [
            ("Entered", _entered(answer)),
            ("Same verdict", f"{same} of {compared} that both sides decided{few}"),
            ("Passed here, not merged", answer["passedNotMerged"]),
            ("Failed here, merged", answer["failedButMerged"]),
            ("Entry to verdict", _spread(answer.get("toVerdict"))),
            ("Entry to merge", _spread(answer.get("toMerge"))),
            ("Saved", _saved(answer.get("savedP50Seconds"))),
            ("Test runs", _runs(answer)),
            ("Flakes found", f"in {answer['flakyRuns']} test runs"),
        ]
    )
    rows = output.objects(answer.get("pullRequests"))
    if rows:
        headings = ("PR", "Headgate", "After", "Others", "After", "Target then", "Failed here")
        output.print_table(headings, map(_row, rows[:ROWS_MAX]))
    if len(rows) > ROWS_MAX:
        output.line(f"and {len(rows) - ROWS_MAX} more; --json has them")


def _entered(answer: Json) -> str:
    return (
        f"{answer['submitted']}: {answer['passed']} passed and {answer['failed']} failed here, "
        f"{answer['merged']} were merged by others, "
        f"{answer['mergedUndecided']} of them before Headgate had decided"
    )


def _runs(answer: Json) -> str:
    each = answer.get("runsPerMerge")
    rate = "" if each is None else f", {float(str(each)):.1f} for each merge"
    return f"{answer['runs']}{rate}"


def _spread(spread: object) -> str:
    if not isinstance(spread, dict):
        return ""
    return f"{_minutes(spread['p50Seconds'])} in the median, {_minutes(spread['p95Seconds'])} P95"


def _saved(seconds: object) -> str:
    if seconds is None:
        return ""
    value = float(str(seconds))
    return f"{_minutes(abs(value))} {'earlier' if value >= 0 else 'later'} in the median"


def _minutes(seconds: object) -> str:
    return f"{float(str(seconds)) / 60:.1f} min"


def _row(row: Json) -> tuple[str, ...]:
    is_red = row.get("isRed")
    return (
        f"#{row['number']}",
        str(row["verdict"]),
        _after(row, "decidedAt"),
        "merged" if row.get("isMerged") else "not merged",
        _after(row, "mergedAt"),
        "" if is_red is None else "red" if is_red else "green",
        output.joined(row.get("failedTests")) or output.joined(row.get("failedChecks")),
    )


def _after(row: Json, name: str) -> str:
    at = row.get(name)
    if at is None:
        return ""
    began = datetime.fromisoformat(str(row["submittedAt"]))
    return _minutes((datetime.fromisoformat(str(at)) - began).total_seconds())

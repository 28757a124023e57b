"""`tests quality|preview`: how well tests are judged, and what other settings would have said."""

from collections.abc import Iterator

import typer

from bot.cli import options, output, tests
from bot.cli.destination import Repository
from bot.cli.exits import Exit, Failed
from bot.cli.options import Result
from bot.uploader.transport import Json

app = typer.Typer()

NOTHING = "No evidence is stored yet: upload test results first."
LISTED = 20


@options.repository_command(app)
def quality(repository: Repository) -> Result:
    """Show how well past flags hold, by everything that is known today."""
    answer = repository.post("/get-detection-quality", {})
    past = answer["past"]

    def show() -> None:
        if not isinstance(past, dict):
            output.line(NOTHING)
            return
        output.log(_span_of(answer))
        output.print_table(("Figure", "Value"), _figures(past))
        doubtful = output.objects(answer["doubtful_flags"])
        if doubtful:
            output.line("")
            rows = map(_doubtful_row, doubtful[:LISTED])
            output.print_linked(("Flag not confirmed", "From", "To", "Runs since", "Link"), rows)
        missed = output.objects(answer["missed_failures"])
        if missed:
            output.line("")
            rows = map(_missed_row, missed[:LISTED])
            output.print_linked(("Failed before its flag", "Failed", "Flagged", "Link"), rows)

    return Result(answer, show)


@options.repository_command(app)
def preview(repository: Repository, changes: options.Set = None) -> Result:
    """Show what other settings would have said of the past; --set names them. Changes nothing."""
    if not changes:
        raise Failed(
            Exit.USAGE,
            "`tests preview` needs the settings to try",
            "headgate tests preview --set sensitivity=eager",
        )
    answer = repository.post("/preview-settings", tests.parse_settings(changes))
    now, then = answer["now"], answer["then"]

    def show() -> None:
        for name in output.texts(answer["not_replayed"]):
            output.log(f"Not replayed: {name}")
        for note in output.texts(answer["notes"]):
            output.log(note)
        if not isinstance(now, dict):
            output.line(NOTHING)
            return
        if not isinstance(then, dict):
            output.line("The past would have been the same.")
            return
        output.log(_span_of(answer))
        pairs = zip(_figures(now), _figures(then), strict=True)
        rows = [(label, before, after) for (label, before), (_, after) in pairs]
        output.print_table(("Figure", "Now", "Then"), rows)
        for heading, field in (
            ("Flagged then, not now", "newly_flagged"),
            ("Flagged now, not then", "no_longer_flagged"),
        ):
            found = output.objects(answer[field])
            if found:
                output.line("")
                named = ((tests.short_name_of(each, "file_path"), str(each["html_url"]))
                         for each in found)  # fmt: skip
                output.print_linked((heading, "Link"), named)

    return Result(answer, show)


def _span_of(answer: Json) -> str:
    left_out = int(str(answer["uploads_left_out"]))
    more = f"; {left_out} older uploads are left out" if left_out else ""
    return f"{output.moment(answer['since'])} to {output.moment(answer['until'])}{more}"


def _figures(past: Json) -> Iterator[tuple[str, str]]:
    """Yield each figure as a label and a text."""
    yield "Flags", str(past["flags"])
    yield "… confirmed since", str(past["flags_confirmed"])
    yield "… not confirmed: wrong, or mended", str(past["flags_unconfirmed"])
    yield "… too few runs since to tell", str(past["flags_open"])
    yield "Precision", _at_least(past)
    yield "Flaky failures while flagged", str(past["failures_caught"])
    yield "… of the same tests while not", str(past["failures_missed"])
    yield "… of tests never flagged: rare flakes, or machines", str(past["failures_unclear"])
    yield "Impact recall", _between(past)
    yield "Flaky, broken at the end", f"{past['flaky_now']}, {past['broken_now']}"
    yield (
        "Failed results excused",
        f"{past['failed_results_excused']} of {past['failed_results']}",
    )
    yield (
        "Queue runs failed by flakes, explained",
        f"{past['queue_runs_explained']} of {past['queue_runs_failed_by_flakes']}",
    )


def _at_least(past: Json) -> str:
    share = past["precision_at_least"]
    if share is None:
        missing = past["flags_missing"]
        return f"too little evidence: {missing} more flags with a known outcome are needed"
    return f"at least {tests.percent(share)}"


def _between(past: Json) -> str:
    low, high = past["recall_at_least"], past["recall_at_most"]
    if low is None or high is None:
        return f"too little evidence: {past['failures_missing']} more flaky failures needed"
    return f"{tests.percent(low)} to {tests.percent(high)}"


def _doubtful_row(flag: Json) -> tuple[str, ...]:
    return (
        tests.short_name_of(flag, "file_path"),
        output.moment(flag["flagged_at"]),
        output.moment_or(flag["cleared_at"], "now"),
        f"{flag['runs_since']} of {flag['runs_needed']}",
        str(flag["html_url"]),
    )


def _missed_row(failure: Json) -> tuple[str, ...]:
    return (
        tests.short_name_of(failure, "file_path"),
        output.moment(failure["failed_at"]),
        output.moment_or(failure["flagged_at"], "not again"),
        str(failure["html_url"]),
    )

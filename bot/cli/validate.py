"""`validate`, `upload --dry-run`: what reports hold and what to mend, read on this machine."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import typer

from bot.cli import options, output
from bot.cli.exits import Exit
from bot.portable import files, verdict
from bot.portable.files import Found
from service.flaky import duplicates, reports, results
from service.flaky.reading import Wishes
from service.flaky.results import CaseKind, CaseResult, FileStatus, Format, ReportFile

app = typer.Typer()

NO_FILE = "{n} name no file: let the reporter write `file`, so that they have code owners."
NO_CLASSNAME = "{n} have no classname: let the reporter write `classname`, or names may clash."
SAME_NAME = "{n} names stand for several tests: give each test a name of its own."


@app.command()
def validate(
    junit: options.Junit,
    source_root: options.SourceRoot = "",
    report_format: options.ReportFormat = None,
    as_json: options.AsJson = False,
) -> int:
    """Read test reports on this machine, and say what in them to mend."""
    found = files.reports_in(junit, 0, output.told)
    return shown(found, report_format, source_root, as_json=as_json)


def shown(found: Found, wanted: Format | None, source_root: str, *, as_json: bool) -> int:
    """Print what each report holds; the exit code: 1 if one is not read to its end, or none."""
    wishes = Wishes(source_root)
    read = [(each.name, reports.read(each.packed, wanted, wishes)) for each in found.reports]
    if as_json:
        output.json_value({"files": [record(name, report) for name, report in read]})
    elif read:
        output.table(
            ("File", "Format", "Read", "Tests", "Distinct"),
            [(name, *row(report)) for name, report in read],
        )
        for name, report in read:
            for finding in findings(report):
                output.line(f"{name}: {finding}")
    if not read:
        output.told(f"headgate: {verdict.NO_REPORT}.")
    is_whole = all(report.status is FileStatus.ACCEPTED for _, report in read)
    return Exit.DONE if read and is_whole and not found.unread else Exit.FALSE


def row(report: ReportFile) -> tuple[object, ...]:
    """One file for people: format, how far it was read, tests, distinct ones."""
    counts = results.counts_of([report])
    known = "unknown" if report.format is None else report.format.value
    return (known, report.status.value, counts.tests, counts.distinct)


def record(name: str, report: ReportFile) -> dict[str, object]:
    """One file for programs."""
    counts = results.counts_of([report])
    return {
        "name": name,
        "format": None if report.format is None else report.format.value,
        "status": report.status.value,
        "tests": counts.tests,
        "distinct": counts.distinct,
        "findings": findings(report),
    }


def findings(report: ReportFile) -> list[str]:
    """What is wrong or odd about a file, each with its mend."""
    fault = report.fault
    said = [] if fault is None else [fault.message if fault.line is None else at_place(report)]
    said += [each.text for each in report.warnings]
    tests = [case for case in report.cases if case.kind is CaseKind.TEST]
    said += counted(NO_FILE, [case for case in tests if not case.file])
    said += counted(NO_CLASSNAME, [case for case in tests if not case.classname])
    return said + counted(SAME_NAME, ambiguous(tests))


def at_place(report: ReportFile) -> str:
    """The fault of a file with its place."""
    fault = report.fault
    return "" if fault is None else f"line {fault.line}, column {fault.column}: {fault.message}"


def counted(text: str, found: Sequence[object]) -> list[str]:
    """The sentence about so many, if there are any."""
    return [text.format(n=f"{len(found):,}")] if found else []


def ambiguous(tests: Iterable[CaseResult]) -> list[tuple[str, ...]]:
    """The identities that several different tests share."""
    groups: dict[tuple[str, ...], list[CaseResult]] = defaultdict(list)
    for case in tests:
        groups[results.fields_of(case)].append(case)
    return [
        fields for fields, cases in groups.items() if not duplicates.result_of(cases).is_comparable
    ]

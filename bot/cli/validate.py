"""`validate`, `upload --dry-run`: what reports hold and what to mend, read on this machine."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import typer

from bot.cli import options, output, place
from bot.cli.exits import Exit
from bot.uploader import files, verdict
from bot.uploader.files import Found
from service.testhealth.reports import duplicates, reports, results
from service.testhealth.reports.reading import Wishes
from service.testhealth.reports.results import CaseKind, CaseResult, FileStatus, Format, ReportFile

app = typer.Typer()

# What changes with every run: digits, and the hexadecimal ones of ids.
CHANGING = re.compile(r"[0-9a-f]*\d[0-9a-f]*", re.IGNORECASE)
SHORT = "{n} tests are declared and missing: was the runner stopped, or the file cut?"

NO_FILE = "{n} name no file: let the reporter write `file`, so that they have code owners."
NO_CLASSNAME = "{n} have no classname: let the reporter write `classname`, or names may clash."
VOLATILE = (
    "{n} tests have another name in each run, as {first!r} and {second!r}: "
    "take out what changes, or mask it (`name_masks`)."
)
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
    root = source_root or place.find_root()
    return shown(found, report_format, root, as_json=as_json)


def shown(found: Found, wanted: Format | None, source_root: str, *, as_json: bool) -> int:
    """Print what each report holds; the exit code: 1 if one is not read to its end, or none."""
    wishes = Wishes(source_root)
    read = [(each.name, reports.read(each.packed, wanted, wishes)) for each in found.reports]
    between = volatile_of([report for _, report in read])
    if as_json:
        records = [record(name, report) for name, report in read]
        output.json_value({"files": records, "findings": between})
    elif read:
        output.table(
            ("File", "Format", "Read", "Tests", "Distinct"),
            [(name, *row(report)) for name, report in read],
        )
        for name, report in read:
            for finding in findings(report):
                output.line(f"{name}: {finding}")
        for finding in between:
            output.line(finding)
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
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.errors,
        "skipped": counts.skipped,
        "retried": retried(report),
        "suite_failures": counts.suite_failures,
        "findings": findings(report),
    }


def records_of(found: Found, wanted: Format | None, source_root: str) -> list[dict[str, object]]:
    """The reports for programs, each read on this machine."""
    wishes = Wishes(source_root)
    return [record(each.name, reports.read(each.packed, wanted, wishes)) for each in found.reports]


def retried(report: ReportFile) -> int:
    """How many tests of a file have several attempts."""
    sorted_tests = duplicates.sorted_by_test(*keyed(report.cases))
    return sum(
        1
        for each in sorted_tests.others.values()
        if each.case.kind is CaseKind.TEST and each.is_comparable and len(each.attempts) > 1
    )


def keyed(
    cases: Sequence[CaseResult],
) -> tuple[list[tuple[str, ...]], Sequence[CaseResult]]:
    """What tells each case's test apart, and the cases."""
    return [results.fields_of(case) for case in cases], cases


def volatile_of(read: Sequence[ReportFile]) -> list[str]:
    """What two reports of the same tests show together: names that change with every run.

    Nothing unless there are two. Names that differ in their digits alone, as many in each report,
    are those of one test, if the reports share other tests or all of their names pair so.
    """
    if len(read) != 2:
        return []
    one, two = (set(keyed(report.cases)[0]) for report in read)
    only_one, only_two = masked(one - two), masked(two - one)
    pairs = [
        (only_one[key], only_two[key])
        for key in only_one
        if len(only_one[key]) == len(only_two.get(key, ()))
    ]
    is_same_suite = bool(one & two) or len(pairs) == len(only_one) == len(only_two)
    if not pairs or not is_same_suite:
        return []
    first, second = pairs[0][0][0], pairs[0][1][0]
    at = next(at for at in range(len(first)) if first[at] != second[at])
    count = f"{sum(len(each) for each, _ in pairs):,}"
    return [VOLATILE.format(n=count, first=first[at], second=second[at])]


def masked(tests: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """The tests by their fields with every run of digits made one sign."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for fields in sorted(tests):
        groups[tuple(CHANGING.sub("#", text) for text in fields)].append(fields)
    return groups


def findings(report: ReportFile) -> list[str]:
    """What is wrong or odd about a file, each with its mend."""
    fault = report.fault
    said = [] if fault is None else [fault.message if fault.line is None else at_place(report)]
    said += [each.text for each in report.warnings]
    if report.declared is not None and report.declared.is_short:
        missing = report.declared.tests - report.declared.held
        said.append(SHORT.format(n=f"{max(missing, 1):,}"))
    tests = [case for case in report.cases if case.kind is CaseKind.TEST]
    said += counted(NO_FILE, [case for case in tests if not case.file])
    said += counted(NO_CLASSNAME, [case for case in tests if not case.classname])
    return said + counted(SAME_NAME, ambiguous(report.cases))


def at_place(report: ReportFile) -> str:
    """The fault of a file with its place."""
    fault = report.fault
    return "" if fault is None else f"line {fault.line}, column {fault.column}: {fault.message}"


def counted(text: str, found: Sequence[object]) -> list[str]:
    """The sentence about so many, if there are any."""
    return [text.format(n=f"{len(found):,}")] if found else []


def ambiguous(cases: Sequence[CaseResult]) -> list[tuple[str, ...]]:
    """The identities that several different tests share."""
    found = duplicates.sorted_by_test(*keyed(cases)).others
    return [
        fields
        for fields, each in found.items()
        if each.case.kind is CaseKind.TEST and not each.is_comparable
    ]

"""Check reports on this machine: count their results and list what to fix."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from bot.cli import output
from bot.cli.exits import Exit
from bot.uploader.files import Reports
from service.testhealth.reports import duplicates, reports, results
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import (
    CaseKind,
    CaseResult,
    Fault,
    FileStatus,
    Format,
    ReportFile,
)

# Digits, and the hexadecimal digits of ids, which change with every run.
CHANGING = re.compile(r"[0-9a-f]*\d[0-9a-f]*", re.IGNORECASE)
SHORT = "Tests declared but missing: {n}. Was the runner stopped, or the file cut?"

NO_FILE = "Tests without a file: {n}. Let the reporter write `file`, so that they have code owners."
NO_CLASSNAME = (
    "Tests without a classname: {n}. Let the reporter write `classname`, or names may clash."
)
VOLATILE = (
    "Tests with another name in each run: {n}, as {first!r} and {second!r}. "
    "Remove what changes, or mask it (`name_masks`)."
)
SAME_NAME = (
    "Names shared by several tests: {n}. Give each test a name of its own, or merge its retries "
    "(Gradle: `mergeReruns = true`)."
)


def print_checks(files: Reports, wanted: Format | None, source_root: str, *, as_json: bool) -> int:
    """Print each report's content; return exit code 1 if one is incomplete, or there is none."""
    read = read_all(files, wanted, source_root)
    between = _volatile_names([report for _, report in read])
    if as_json:
        records = [record(name, report) for name, report in read]
        output.print_json({"files": records, "findings": between})
    elif read:
        output.print_table(
            ("File", "Format", "Read", "Tests", "Distinct"),
            [(name, *row(report)) for name, report in read],
        )
        for name, report in read:
            for finding in findings(report):
                output.line(f"{name}: {finding}")
        for finding in between:
            output.line(finding)
    is_whole = all(report.status is FileStatus.ACCEPTED for _, report in read)
    return Exit.DONE if read and is_whole and not files.unread else Exit.FALSE


def read_all(
    files: Reports, wanted: Format | None, source_root: str
) -> list[tuple[str, ReportFile]]:
    """Return each report by name, read on this machine."""
    read_options = ReadOptions(source_root)
    return [(each.name, reports.read(each.packed, wanted, read_options)) for each in files.readable]


def records_of(files: Reports, wanted: Format | None, source_root: str) -> list[dict[str, object]]:
    """Return the reports for programs."""
    return [record(name, report) for name, report in read_all(files, wanted, source_root)]


def row(report: ReportFile) -> tuple[object, ...]:
    """Return a file for people: format, how far it was read, tests, distinct tests."""
    counts = results.counts_of([report])
    name = "unknown" if report.format is None else report.format.value
    return (name, report.status.value, counts.tests, counts.distinct)


def record(name: str, report: ReportFile) -> dict[str, object]:
    """Return a file for programs."""
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


def retried(report: ReportFile) -> int:
    """Return how many tests of a file have several attempts."""
    sorted_tests = duplicates.sorted_by_test(*keyed(report.cases))
    others = sorted_tests.others.values()
    return sum(1 for each in others if each.is_comparable and len(each.attempts) > 1)


def keyed(
    cases: Sequence[CaseResult],
) -> tuple[list[tuple[str, ...]], Sequence[CaseResult]]:
    """Return the fields that identify each case's test, and the cases."""
    return [results.fields_of(case) for case in cases], cases


def _volatile_names(read: Sequence[ReportFile]) -> list[str]:
    """Return a finding about names that change with every run; it takes two reports to see it.

    Names that differ in their digits alone, equally many in each report, belong to one test if
    the reports share other tests or all of their names pair like this.
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
    """Return the tests by their fields with each run of digits replaced by `#`."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for fields in sorted(tests):
        groups[tuple(CHANGING.sub("#", text) for text in fields)].append(fields)
    return groups


def findings(report: ReportFile) -> list[str]:
    """Return what is wrong or odd about a file, each with its fix."""
    fault = report.fault
    found = [] if fault is None else [_with_position(fault)]
    found += [each.text for each in report.warnings]
    if report.declared is not None and report.declared.is_short:
        missing = report.declared.tests - report.declared.held
        found.append(SHORT.format(n=f"{max(missing, 1):,}"))
    tests = [case for case in report.cases if case.kind is CaseKind.TEST]
    found += counted(NO_FILE, [case for case in tests if not case.file])
    found += counted(NO_CLASSNAME, [case for case in tests if not case.classname])
    return found + counted(SAME_NAME, ambiguous(report.cases))


def _with_position(fault: Fault) -> str:
    """Return the fault of a file with line and column, where they are known."""
    if fault.line is None:
        return fault.message
    return f"line {fault.line}, column {fault.column}: {fault.message}"


def counted(text: str, cases: Sequence[object]) -> list[str]:
    """Return the sentence with their number, if there are any."""
    return [text.format(n=f"{len(cases):,}")] if cases else []


def ambiguous(cases: Sequence[CaseResult]) -> list[tuple[str, ...]]:
    """Return the identities that several different tests share."""
    by_fields = duplicates.sorted_by_test(*keyed(cases)).others
    return [fields for fields, each in by_fields.items() if each.kind is CaseKind.SEVERAL]

"""One file of an upload to its cases: container, encoding, format, reader."""

from collections.abc import Callable
from dataclasses import replace

from service.testhealth.reports import junit
from service.testhealth.reports.formats import ctrf, dotnet, go_json
from service.testhealth.reports.reading import ReadOptions, refused
from service.testhealth.reports.results import (
    Fault,
    FileStatus,
    Format,
    ReportFile,
    Warned,
    WarningCode,
)
from service.testhealth.reports.text import GZIP_MAGIC, HEAD_BYTES, Text, text_of, unpacked
from service.testhealth.reports.xml import NO_FORMAT, Stopped, doctype_of, head_of

READERS: dict[Format, Callable[[Text, ReadOptions], ReportFile]] = {
    Format.JUNIT: junit.read,
    Format.GO_JSON: go_json.read,
    Format.CTRF: ctrf.read,
    **{
        dialect.format: dotnet.read_with(dialect)
        for dialect in (dotnet.TRX, dotnet.NUNIT, dotnet.XUNIT)
    },
}
# Root elements that only one format has; every other root may hold JUnit's cases.
ROOTS = {
    root: dialect.format
    for dialect in (dotnet.TRX, dotnet.NUNIT, dotnet.XUNIT)
    for root in dialect.roots
}
# So many lines of build output may come before the first event of a Go run.
LINES_BEFORE_EVENT_MAX = 1_000


def read(content: bytes, wanted: Format | None, read_options: ReadOptions) -> ReportFile:
    """The file, whatever it is: never raises.

    `wanted` is the format that the upload names; a file of another one is refused. None: as the
    content says (docs/design/reports.md 6).
    """
    bytes_read = unpacked(content)
    if isinstance(bytes_read, Fault):
        return refused(bytes_read)
    if not bytes_read.content.strip(b" \t\r\n"):
        return refused(bytes_read.fault or Fault("The file is empty."))
    if bytes_read.content.startswith(GZIP_MAGIC):
        return refused(Fault(NO_FORMAT))
    text = text_of(bytes_read.content)
    format_found = format_of(text)
    if format_found is None or wanted not in (None, format_found):
        return refused(Fault(NO_FORMAT))
    try:
        report = READERS[format_found](text, read_options)
    except Stopped as stopped:
        return refused(stopped.fault, format_found)
    if report.status is FileStatus.REFUSED:
        return report
    report = replace(report, warnings=(*text.warnings, *report.warnings))
    return _damaged(report, bytes_read.fault) if bytes_read.fault else report


def _damaged(report: ReportFile, fault: Fault) -> ReportFile:
    """The report of a file whose container was cut or damaged: never more than partial."""
    if report.fault or not report.cases:
        return report if report.cases else refused(fault, report.format)
    warned = Warned(WarningCode.MALFORMED, fault.message)
    return replace(
        report, status=FileStatus.PARTIAL, warnings=(*report.warnings, warned), fault=fault
    )


def format_of(text: Text) -> Format | None:
    """The format by content: its root element, or what its JSON looks like."""
    first = next(text.pieces(), "")
    begins = first[:HEAD_BYTES].lstrip()
    if not begins.startswith("<"):
        lines = first.split("\n", LINES_BEFORE_EVENT_MAX)[:LINES_BEFORE_EVENT_MAX]
        if any(go_json.event_of(line) is not None for line in lines):
            return Format.GO_JSON
        if begins.startswith("{"):
            return Format.CTRF
    head = head_of(first)
    if head is None:
        return None
    # A document type names the root that follows; its file is refused under its own format.
    root = doctype_of(head) or head.root
    return ROOTS.get(root, Format.JUNIT)
